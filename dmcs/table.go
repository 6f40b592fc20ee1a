package dmcs

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Len is the number of locks.
func (t *Table) Len() int { return t.locks }

// Home is the rank whose memory holds the lock's TAIL.
func (t *Table) Home(id int) int {
	home, _ := t.at(id)
	return home
}

// at is the home of a lock and the displacement of its TAIL there.
func (t *Table) at(id int) (home, tail int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("dmcs: lock %d of a table of %d", id, t.locks))
	}
	return (t.home + id) % t.size, t.tails + id/t.size
}

// Promise is the same for both modes. Acquire is lines 6 and 10 of Listing 2, release
// lines 5 and 14 of Listing 3. Nobody who swaps TAIL later enters earlier. Where a swap is a
// loop, that holds from the try on that succeeds.
func (t *Table) Promise(lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: t.size - 1, Acquire: 2, Release: 2}
	if !t.w.Caps().NativeSwap {
		p.Acquire = lock.Unbounded
	}
	return p
}

// Idle checks that the rank's queue nodes are unused and nothing queues at its TAILs.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("dmcs: rank %d uses queue nodes %b", t.rank, t.busy)
	}
	for disp := range t.w.Words() {
		word := disp >= t.tails || disp%nodeWords == next
		if v := t.w.Peek(disp); word && v != null {
			return fmt.Errorf("dmcs: %s of rank %d is %d, want null", t.w.Spec().WordName(disp), t.rank, v)
		}
	}
	return nil
}

// Lock takes lock id, in exclusive mode whatever the mode.
func (t *Table) Lock(ctx context.Context, id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Lock(ctx)
}

// TryLock takes lock id if it is free.
func (t *Table) TryLock(id int, _ lock.Mode) (bool, error) {
	m := t.mutex(id)
	return m.TryLock()
}

// Unlock hands lock id on.
func (t *Table) Unlock(id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Unlock()
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *Table) mutex(id int) Mutex {
	home, tail := t.at(id)
	return Mutex{t: t, id: id, home: home, tail: tail}
}

// Free closes the window. Collective. A held lock is a mistake of the caller.
func (t *Table) Free() error { return t.w.Free() }

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t          *Table
	id         int
	home, tail int
}

var _ lock.Mutex = (*Mutex)(nil)

// Lock takes the lock: Listing 2. With a context that can end it polls TryLock; see
// package lock. NEXT of a node that is not in use is null (line 3): handOver sees
// to it.
func (m *Mutex) Lock(ctx context.Context) error {
	t := m.t
	k := 0
	if t.busy == 0 { // the usual case: it is the only one
		t.busy, t.held[0] = 1, m.id
	} else {
		var err error
		if k, err = t.take(m.id); err != nil {
			return err
		}
	}
	if ctx.Done() != nil {
		return m.poll(ctx, k)
	}
	pred, err := t.w.FetchAndOpFlush(node(t.rank, k), m.home, m.tail, rma.Replace) // lines 6, 7
	if err != nil || pred == null {                                                // line 8
		return err
	}
	return t.enqueue(k, pred) // lines 9 to 14
}

// poll takes the lock without queueing, until ctx ends.
func (m *Mutex) poll(ctx context.Context, k int) error {
	for try := 0; ; try++ {
		got, last, err := m.t.try(k, m.home, m.tail)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			m.t.drop(k)
			return fmt.Errorf("dmcs: lock %d: %w (%w)", m.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := m.t.w.Backoff(m.home, m.tail, last, try); err != nil {
			return err
		}
	}
}

// TryLock takes the lock if its queue is empty.
func (m *Mutex) TryLock() (bool, error) {
	k, err := m.t.take(m.id)
	if err != nil {
		return false, err
	}
	got, _, err := m.t.try(k, m.home, m.tail)
	if !got {
		m.t.drop(k)
	}
	return got, err
}

// Unlock hands the lock to the successor, or leaves it free: Listing 3.
func (m *Mutex) Unlock() error {
	t := m.t
	k := t.find(m.id)
	if k < 0 {
		panic("dmcs: unlock of unlocked lock")
	}
	succ := t.w.Peek(k*nodeWords + next) // line 2
	if succ == null {                    // line 3
		me := node(t.rank, k)
		last, err := t.w.CompareAndSwapFlush(null, me, m.home, m.tail) // lines 5, 6
		if err != nil || last == me {                                  // line 7
			t.drop(k)
			return err
		}
	}
	err := t.handOver(k, succ) // lines 9 to 14
	t.drop(k)
	return err
}

// take finds a queue node for a lock.
func (t *Table) take(id int) (int, error) {
	if t.find(id) >= 0 {
		panic("dmcs: lock of a lock that this rank holds")
	}
	k := bits.TrailingZeros8(^t.busy)
	if k == MaxHeld {
		return 0, fmt.Errorf("dmcs: rank %d holds %d locks: %w", t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << k
	t.held[k] = id
	return k, nil
}

func (t *Table) drop(k int) { t.busy &^= 1 << k }

// find is the queue node with which this rank holds a lock, or -1.
func (t *Table) find(id int) int {
	if t.busy == 1 && t.held[0] == id {
		return 0
	}
	return t.findOther(id)
}

func (t *Table) findOther(id int) int {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros8(b); t.held[k] == id {
			return k
		}
	}
	return -1
}
