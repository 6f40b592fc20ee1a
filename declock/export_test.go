package declock

import "github.com/rmalock/rmalock/lock"

// Waits reports whether a rank waits for a lock, and has written its entry.
func (t *Table) Waits(rank, id int) bool {
	k := &member{id: id, home: t.Home(id), disp: t.headerAt(id)}
	written := 0
	t.locks.GetBulk(t.queue, k.home, t.entryAt(k, 0))
	if err := t.locks.Flush(k.home); err != nil {
		return false
	}
	for _, e := range t.queue {
		if e != 0 && int(entryClient.Get(e)/maxHeld) == rank {
			written++
		}
	}
	clear(t.queue)
	state, err := t.part(rank, id)
	return err == nil && state == waiting && written > 0
}

// Bytes is the memory of the locks at a host, and of a node's ranks.
func (t *Table) Bytes() (central, node int) {
	spec := t.locks.Spec()
	for _, w := range []interface{ Words() int }{t.ranks.Spec(), t.near.Spec()} {
		node += 8 * w.Words() * len(t.c.Node().Ranks)
	}
	return 8 * spec.Words(), node
}

// Listed is the number of ranks of the node that wait in the list of a lock's local lock.
func (t *Table) Listed(id int) (n int, err error) {
	r, _, err := t.lockLocal(id)
	if err != nil {
		return 0, err
	}
	for at := queueHead.Get(r.queue); at != 0 && err == nil; n++ {
		var w int64
		w, err = t.want(at)
		at = wantNext.Get(w)
	}
	if err == nil {
		err = t.unlockLocal(&r)
	}
	return n, err
}

// Reset resets a lock in which this rank has no part.
func (t *Table) Reset(id int) error {
	k, err := t.claim(id, lock.Exclusive)
	if err != nil {
		return err
	}
	defer t.unclaim(k)
	if err := t.begin(k); err != nil {
		return err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil {
		return err
	}
	k.epoch = t.header.epoch.Get(v)
	return t.reset(k)
}

// Stopped reports whether a lock is being reset.
func (t *Table) Stopped(id int) (bool, error) {
	v, err := t.locks.GetFlush(t.Home(id), t.headerAt(id))
	return t.header.rst.Get(v) != 0, err
}
