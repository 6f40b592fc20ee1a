package baseline

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// This file is what a rank does that takes locks; ncosedmail.go is what ranks answer each other.

// Lock takes lock id.
func (t *NCoSED) Lock(ctx context.Context, id int, mode lock.Mode) error {
	at := t.at(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return err
	}
	switch {
	case ctx.Done() != nil || t.retries > 0 && t.held.several():
		err = t.poll(ctx, k, id, at, mode)
	case mode == lock.Shared:
		err = t.share(k, id, at)
	default:
		err = t.own(k, id, at)
	}
	_, err = t.taken(k, true, err)
	return err
}

// own takes a lock exclusively.
func (t *NCoSED) own(k, id int, at place) error {
	mine := t.begin(k, id)
	v := int64(0)
	for {
		found, err := t.cas(at, v, mine)
		if err != nil {
			return err
		}
		if found == v {
			break
		}
		v = found
	}
	readers := ncosed.shared.Get(v)
	switch writer := int(ncosed.rank.Get(v)) - 1; {
	case v == 0:
		return nil
	case writer < 0:
		return t.request(t.server(id), mailHomed, 0, readers, id)
	default:
		return t.request(writer, mailWriter, ncosed.turn.Get(v), readers, id)
	}
}

// share takes a lock with other readers.
func (t *NCoSED) share(k, id int, at place) error {
	v, err := t.add(at, ncosed.shared.One())
	if err != nil {
		return err
	}
	as := writerTurn{int(ncosed.rank.Get(v)) - 1, ncosed.turn.Get(v)}
	t.readAs[k] = as
	if as.rank < 0 {
		return nil
	}
	return t.request(as.rank, mailReader, as.turn, 0, id)
}

// request asks for a lock and waits for it.
func (t *NCoSED) request(to, kind int, turn, readers int64, id int) error {
	t.granted = false
	if err := t.tell(to, kind, turn, readers, id); err != nil {
		return err
	}
	return t.attend(func() bool { return t.granted })
}

func (t *NCoSED) claim(id int, mode lock.Mode) (int, error) {
	if t.Serves() {
		panic("baseline: lock by a rank that serves")
	}
	return t.held.claim(t.name, id, mode)
}

// begin begins a turn, and returns the word that says so.
func (t *NCoSED) begin(k, id int) int64 {
	for t.turn++; !t.same && t.record(id, ncosed.turn.Get(t.turn<<ncosed.turn.Shift)) != nil; t.turn++ {
	}
	turn := ncosed.turn.Get(t.turn << ncosed.turn.Shift)
	t.turns[k] = turn
	t.records = append(t.records, record{id: id, turn: turn})
	return t.wordOf(turn)
}

// wordOf is the word with a turn of this rank and no readers.
func (t *NCoSED) wordOf(turn int64) int64 {
	return ncosed.rank.With(ncosed.turn.With(0, turn), owner(t.c))
}

// Unlock releases lock id.
func (t *NCoSED) Unlock(id int, mode lock.Mode) error {
	k := t.held.claimed(id, mode)
	t.held.unclaim(k)
	var err error
	if mode == lock.Shared {
		if as := t.readAs[k]; as.rank < 0 {
			err = t.tell(t.server(id), mailLeftHome, 0, 0, id)
		} else {
			err = t.tell(as.rank, mailLeft, as.turn, 0, id)
		}
		t.readAs[k] = writerTurn{}
	} else {
		err = t.release(t.record(id, t.turns[k]))
		t.turns[k] = 0
	}
	if err != nil {
		return err
	}
	return t.attend(func() bool { return true })
}

// release is a writer's.
func (t *NCoSED) release(r *record) error {
	switch {
	case r.succ > 0 && r.succS == 0:
		to, id := r.succ-1, r.id
		t.retire(r)
		return t.tell(to, mailGrant, 0, 0, id)
	case len(r.waiting) > 0:
		r.released, r.granted = true, len(r.waiting)
		id, waiting := r.id, r.waiting
		r.waiting = nil
		for _, to := range waiting {
			if err := t.tell(to, mailGrant, 0, 0, id); err != nil {
				return err
			}
		}
		return nil
	case r.succ == 0:
		r.released = true
		return t.clear(r)
	}
	r.released = true
	return nil
}

// TryLock takes lock id if its word says that it is free.
func (t *NCoSED) TryLock(id int, mode lock.Mode) (bool, error) {
	at := t.at(id)
	k, err := t.claim(id, mode)
	if err != nil {
		return false, err
	}
	got, _, err := t.try(k, id, at, mode)
	if err == nil && !got {
		err = t.attend(func() bool { return true })
	}
	return t.taken(k, got, err)
}

// try takes a lock if its word is free of writers, and for a writer of readers. A lock may not
// be seen to be free until others have taken the messages that say so.
func (t *NCoSED) try(k, id int, at place, mode lock.Mode) (bool, int64, error) {
	if mode == lock.Exclusive {
		mine := t.begin(k, id)
		found, err := t.cas(at, 0, mine)
		if err != nil || found != 0 {
			t.retire(t.record(id, t.turns[k]))
		}
		return err == nil && found == 0, found, err
	}
	v, err := t.get(at)
	for err == nil && ncosed.rank.Get(v) == 0 {
		var found int64
		if found, err = t.cas(at, v, v+ncosed.shared.One()); err == nil && found == v {
			t.readAs[k] = writerTurn{rank: -1}
			return true, v, nil
		}
		v = found
	}
	return false, v, err
}

// poll tries until it gets the lock, or is to try no more: a request cannot be taken back.
func (t *NCoSED) poll(ctx context.Context, k, id int, at place, mode lock.Mode) error {
	for try := 0; ; try++ {
		got, v, err := t.try(k, id, at, mode)
		if err == nil && !got {
			if err = t.attend(func() bool { return true }); err == nil {
				err = t.pause(ctx, id, blocker{at.target, at.disp, v}, try)
			}
		}
		if got || err != nil {
			return err
		}
	}
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *NCoSED) Mutex(id int) lock.Mutex {
	t.word(id)
	return &handle{t, id}
}
