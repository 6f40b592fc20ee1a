package baseline

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// This file is what ranks say to each other, and what they do when they are asked.

var letter = struct{ kind, turn, shared, lock rma.Field }{
	kind:   rma.Field{Name: "kind", Shift: 56, Bits: 4},
	turn:   rma.Field{Name: "turn", Shift: 44, Bits: 12},
	shared: rma.Field{Name: "readers", Shift: 32, Bits: 12},
	lock:   rma.Field{Name: "lock", Shift: 0, Bits: 32},
}

// Kinds of messages.
const (
	mailGrant    = iota // to a rank that waits: the lock is its
	mailWriter          // a writer asks the writer before it
	mailReader          // a reader asks a writer
	mailLeft            // a reader that a writer let in has left
	mailHomed           // a writer asks the server, behind readers
	mailLeftHome        // a reader that met no writer has left
	mailEnd             // a rank wants no more locks
	mailStop            // no rank does
)

// A record is a writer's turn: what it owes to the ranks that asked it.
type record struct {
	id       int
	turn     int64
	released bool
	waiting  []int // readers
	granted  int   // readers that were let in
	returned int   // readers that have left
	succ     int   // the next writer's rank + 1, or 0
	succS    int   // the readers that it waits for
}

// homed is what a server knows of readers that met no writer.
type homed struct {
	id, left int
	succ     int // a writer that waits, its rank + 1, or 0
	succS    int
}

// tell sends a message; one to the rank itself is taken at once.
func (t *NCoSED) tell(to, kind int, turn, readers int64, id int) error {
	v := letter.kind.With(letter.turn.With(letter.shared.With(int64(id), readers), turn), int64(kind))
	if to == t.c.Rank() {
		return t.handle(to, v)
	}
	t.mail.post(to, v)
	return nil
}

// attend answers others until done, and all messages are sent.
func (t *NCoSED) attend(done func() bool) error {
	for {
		if err := t.mail.look(); err != nil {
			return err
		}
		for {
			from, v, err := t.mail.take()
			if err != nil {
				return err
			}
			if from < 0 {
				break
			}
			if err := t.handle(from, v); err != nil {
				return err
			}
		}
		if err := errors.Join(t.mail.pump(), t.mail.flush()); err != nil {
			return err
		}
		if done() && len(t.mail.out) == 0 {
			return nil
		}
		if err := t.mail.wait(); err != nil {
			return err
		}
	}
}

// handle does what a message asks for.
func (t *NCoSED) handle(from int, v int64) error {
	id, turn, readers := int(letter.lock.Get(v)), letter.turn.Get(v), int(letter.shared.Get(v))
	switch letter.kind.Get(v) {
	case mailGrant:
		t.granted = true
	case mailWriter:
		r := t.record(id, turn)
		if r.released && r.returned == readers {
			t.retire(r)
			return t.tell(from, mailGrant, 0, 0, id)
		}
		r.succ, r.succS = from+1, readers
	case mailReader:
		r := t.record(id, turn)
		if !r.released {
			r.waiting = append(r.waiting, from)
			return nil
		}
		r.granted++
		return t.tell(from, mailGrant, 0, 0, id)
	case mailLeft:
		return t.left(t.record(id, turn))
	case mailHomed:
		h := t.homed(id)
		h.succ, h.succS = from+1, readers
		return t.readersLeft(h)
	case mailLeftHome:
		h := t.homed(id)
		h.left++
		return t.readersLeft(h)
	case mailEnd:
		if t.ended++; t.ended == t.clients {
			t.ended = 0
			for r := range t.c.Size() {
				if err := t.tell(r, mailStop, 0, 0, 0); err != nil {
					return err
				}
			}
		}
	case mailStop:
		t.stopped = true
	}
	return nil
}

// record finds a turn that is not over.
func (t *NCoSED) record(id int, turn int64) *record {
	for i := range t.records {
		if r := &t.records[i]; r.id == id && r.turn == turn {
			return r
		}
	}
	return nil
}

// left is a writer's part when a reader that it let in has left.
func (t *NCoSED) left(r *record) error {
	r.returned++
	switch {
	case r.succ > 0:
		if r.returned < r.succS {
			return nil
		}
		to, id := r.succ-1, r.id
		t.retire(r)
		return t.tell(to, mailGrant, 0, 0, id)
	case r.returned == r.granted:
		return t.clear(r)
	}
	return nil
}

// clear makes the word 0 if no rank has come after the readers that have left.
func (t *NCoSED) clear(r *record) error {
	last := ncosed.shared.With(t.wordOf(r.turn), int64(r.returned))
	found, err := t.cas(t.at(r.id), last, 0)
	if err == nil && found == last {
		t.retire(r)
	}
	return err
}

// retire ends a turn.
func (t *NCoSED) retire(r *record) {
	for i := range t.records {
		if &t.records[i] == r {
			t.records = append(t.records[:i], t.records[i+1:]...)
			return
		}
	}
}

// homed finds what a server knows of a lock's readers.
func (t *NCoSED) homed(id int) *homed {
	for i := range t.homes {
		if t.homes[i].id == id {
			return &t.homes[i]
		}
	}
	t.homes = append(t.homes, homed{id: id})
	return &t.homes[len(t.homes)-1]
}

// readersLeft is a server's part when a reader has left, or a writer asks.
func (t *NCoSED) readersLeft(h *homed) error {
	id := h.id
	if h.succ > 0 {
		if h.left < h.succS {
			return nil
		}
		to := h.succ - 1
		t.forget(h)
		return t.tell(to, mailGrant, 0, 0, id)
	}
	last := ncosed.shared.With(0, int64(h.left))
	found, err := t.cas(t.at(id), last, 0)
	if err == nil && found == last {
		t.forget(h)
	}
	return err
}

func (t *NCoSED) forget(h *homed) {
	for i := range t.homes {
		if &t.homes[i] == h {
			t.homes = append(t.homes[:i], t.homes[i+1:]...)
			return
		}
	}
}

// Serve is of lock.Server: a rank that takes locks answers others until all want no more.
func (t *NCoSED) Serve() (more bool, err error) {
	if !t.Serves() && !t.ending {
		t.ending = true
		if err := t.tell(t.clients, mailEnd, 0, 0, 0); err != nil {
			return false, err
		}
	}
	if err := t.attend(func() bool { return t.stopped }); err != nil {
		return false, err
	}
	// What was sent before a rank ended is there by now, but may not have been looked at.
	if err := t.attend(func() bool { return true }); err != nil {
		return false, err
	}
	t.ending, t.stopped = false, false
	return false, nil
}
