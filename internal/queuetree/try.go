package queuetree

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// TryLock takes the lock if nobody has or wants it.
func (m *Mutex) TryLock() (bool, error) {
	k, err := m.t.take(m.id)
	if err != nil {
		return false, err
	}
	got, err := m.t.try(k)
	if !got {
		m.t.drop(k)
	}
	return got, err
}

// poll takes the lock with node k without queueing, until ctx ends.
func (t *Tree) poll(ctx context.Context, k int) error {
	id := t.slots[k].id
	for try := 0; ; try++ {
		got, err := t.try(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			t.drop(k)
			return fmt.Errorf("%s: lock %d: %w (%w)", t.name, id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := t.pause(id, try); err != nil {
			return err
		}
	}
}

// try takes a lock with node k if nobody has or wants it; otherwise it leaves the
// levels again that it has entered.
func (t *Tree) try(k int) (bool, error) {
	id, s := t.slots[k].id, &t.slots[k]
	for i := t.Leaf; i >= 0; i-- {
		host, tail := t.tail(i, id)
		mine := t.node(k)
		if i == t.Leaf && t.crowd {
			tail, mine = t.state(id), held
			s.status[i], s.queued = start, false
		}
		last, err := t.W.CompareAndSwapFlush(mine, null, host, tail)
		if err != nil {
			return false, err
		}
		if last != null {
			t.failed, t.seen = i, last
			return false, t.leave(i+1, k, id)
		}
	}
	if t.gate == nil {
		return true, nil
	}
	got, err := t.gate.TryAcquire(id)
	if got || err != nil {
		return got, err
	}
	if err := t.leave(0, k, id); err != nil {
		return false, err
	}
	t.failed = -1
	return false, t.gate.Withdrawn(id)
}

// leave leaves the queues from a level inwards; whoever came after this rank must
// acquire the next level out itself.
func (t *Tree) leave(from, k, id int) error {
	s, mine := &t.slots[k], t.node(k)
	for i := from; i <= t.Leaf; i++ {
		at := &s.at[i]
		if i == t.Leaf && t.crowd {
			return t.set(at.host, id, 0) // whoever waits looks at it
		}
		last, err := t.W.CompareAndSwapFlush(null, mine, at.host, at.disp)
		if err == nil && last != mine {
			err = t.follow(i, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow lets whoever came after this rank into the queue of a level acquire the next
// level out.
func (t *Tree) follow(i, k int) error {
	succ, err := t.linked(i, t.node(k))
	if err != nil {
		return err
	}
	if err := t.tell(i, succ, parent); err != nil {
		return err
	}
	return t.clean(i, k)
}

// pause waits before another try of a lock: until the word that made the last one fail
// has changed, or for as long as the backend likes.
func (t *Tree) pause(id, try int) error {
	if t.failed < 0 {
		return t.gate.Backoff(try)
	}
	host, tail := t.tail(t.failed, id)
	if t.failed == t.Leaf && t.crowd {
		tail = t.state(id)
	}
	return t.W.Backoff(host, tail, t.seen, try)
}
