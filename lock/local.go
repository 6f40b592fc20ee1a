package lock

import (
	"context"
	"fmt"
	"sync"
)

// A Local lets any number of goroutines of a rank use one Table handle. It is one more
// level of the machine, below the rank: goroutines queue in the rank, first come, first
// served, and a lock passes from one to the next that wants it up to T_L times before
// it is let go for other ranks. Passing costs no operation on a window.
//
// To the other ranks the goroutines are one: the rank wants or holds one lock of the
// table at a time. So a goroutine that holds a lock and asks for another waits for
// itself; Do is the way to several locks at once. A lock that a rank passes on inside
// counts as held for as long: where the lock's own bound says n entries of other ranks,
// these are n * (T_L + 1) goroutines.
//
// Holders in shared mode are inside together. A Window is for one goroutine at a time:
// each of them needs one of its own.
//
// A Local has the methods of a Table, but for more than one lock at a time. It must not
// be copied.
type Local struct {
	t      Table
	tl     int
	shared bool // the table has a shared mode

	mu         sync.Mutex
	busy       bool // a goroutine uses the handle: takes a lock, lets it go, or is in Do
	in         int  // goroutines that hold the lock that the rank holds
	id         int  // that lock
	mode       Mode
	passed     int // goroutines that have had it since the rank took it, but for the first
	head, tail *waiter
	spare      *waiter
}

// A waiter is a goroutine in the queue.
type waiter struct {
	next *waiter
	id   int
	mode Mode
	raw  bool // of Do
	turn chan turn
}

type turn uint8

const (
	holds turn = iota // it has the lock
	takes             // it has the handle, and is to take the lock
)

// NewLocal makes a Local of a handle that nothing else uses from then on. tl is T_L, at
// least 0.
func NewLocal(t Table, tl int) (*Local, error) {
	if tl < 0 {
		return nil, fmt.Errorf("lock: T_L of a Local is %d, want at least 0: %w", tl, ErrConfig)
	}
	_, rw := t.Mutex(0).(RWMutex)
	return &Local{t: t, tl: tl, shared: rw}, nil
}

// Len is the number of locks.
func (l *Local) Len() int { return l.t.Len() }

// Home is the rank whose memory holds the central word of lock id.
func (l *Local) Home(id int) int { return l.t.Home(id) }

// Free closes the table. Collective; no goroutine may hold or want a lock.
func (l *Local) Free() error {
	l.mu.Lock()
	idle := !l.busy && l.in == 0 && l.head == nil
	l.mu.Unlock()
	if !idle {
		panic("lock: Free of a Local in use")
	}
	return l.t.Free()
}

// Lock takes lock id. Errors are the table's, and ErrDeadline if ctx ended in the
// rank's queue.
func (l *Local) Lock(ctx context.Context, id int, mode Mode) error {
	mode = l.check(id, mode)
	l.mu.Lock()
	if l.joins(id, mode) {
		l.mu.Unlock()
		return nil
	}
	has, err := l.handle(ctx, id, mode, false)
	if err != nil || has == holds {
		return err
	}
	err = l.t.Lock(ctx, id, mode)
	l.took(id, mode, err == nil)
	return err
}

// TryLock takes lock id if it is free, or shares it with goroutines of the rank. It fails
// while another goroutine of the rank holds or wants any other lock.
func (l *Local) TryLock(id int, mode Mode) (bool, error) {
	mode = l.check(id, mode)
	l.mu.Lock()
	if l.joins(id, mode) {
		l.mu.Unlock()
		return true, nil
	}
	if !l.idle() {
		l.mu.Unlock()
		return false, nil
	}
	l.busy = true
	l.mu.Unlock()
	got, err := l.t.TryLock(id, mode)
	l.took(id, mode, got)
	return got, err
}

// Unlock releases lock id: to the next goroutine that waits if it wants the same in the
// same mode, T_L times in a row, otherwise to the other ranks.
func (l *Local) Unlock(id int, mode Mode) error {
	mode = l.check(id, mode)
	l.mu.Lock()
	if l.in == 0 || l.id != id || l.mode != mode {
		l.mu.Unlock()
		panic("lock: Unlock of a Local that does not hold the lock in that mode")
	}
	if l.in--; l.in > 0 || l.admit() {
		l.mu.Unlock()
		return nil
	}
	l.busy = true
	l.mu.Unlock()
	err := l.t.Unlock(id, mode)
	l.mu.Lock()
	l.pass()
	l.mu.Unlock()
	return err
}

// Do calls f with the table itself when no goroutine of the rank holds a lock of it. f
// may take several locks, in an order that all ranks keep to, and lets them go again.
func (l *Local) Do(ctx context.Context, f func(Table) error) error {
	l.mu.Lock()
	if _, err := l.handle(ctx, 0, Exclusive, true); err != nil {
		return err
	}
	defer func() {
		l.mu.Lock()
		l.pass()
		l.mu.Unlock()
	}()
	return f(l.t)
}

// idle reports whether no goroutine uses the handle or waits for it.
func (l *Local) idle() bool { return !l.busy && l.in == 0 && l.head == nil }

// joins lets a goroutine in that may share the lock at once.
func (l *Local) joins(id int, mode Mode) bool {
	ok := l.head == nil && l.in > 0 && mode == Shared && l.mode == Shared && l.id == id && l.passed < l.tl
	if ok {
		l.in++
		l.passed++
	}
	return ok
}

// handle waits until the goroutine has the handle or, with the lock passed on to it, the
// lock. l.mu is locked, and unlocked on return.
func (l *Local) handle(ctx context.Context, id int, mode Mode, raw bool) (turn, error) {
	if l.idle() {
		l.busy = true
		l.mu.Unlock()
		return takes, nil
	}
	w := l.spare
	if w == nil {
		w = &waiter{turn: make(chan turn, 1)}
	} else {
		l.spare = w.next
	}
	w.next, w.id, w.mode, w.raw = nil, id, mode, raw
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.mu.Unlock()
	var has turn
	var err error
	select {
	case has = <-w.turn:
	case <-ctx.Done():
		if l.leave(w) {
			err = fmt.Errorf("lock: lock %d, in the queue of the rank: %w (%w)", id, ErrDeadline, context.Cause(ctx))
		} else {
			has = <-w.turn // it came at the same time
		}
	}
	l.mu.Lock()
	w.next, l.spare = l.spare, w
	l.mu.Unlock()
	return has, err
}

// leave takes a waiter from the queue, and reports whether it was still there.
func (l *Local) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var before *waiter
	for at := l.head; at != nil; before, at = at, at.next {
		if at != w {
			continue
		}
		if before == nil {
			l.head = w.next
		} else {
			before.next = w.next
		}
		if l.tail == w {
			l.tail = before
		}
		if before == nil && l.in > 0 && l.mode == Shared {
			l.admit() // those behind it may share what it did not want
		}
		return true
	}
	return false
}

// took notes what became of taking a lock.
func (l *Local) took(id int, mode Mode, got bool) {
	l.mu.Lock()
	if got {
		l.busy, l.in, l.id, l.mode, l.passed = false, 1, id, mode, 0
		if mode == Shared {
			l.admit()
		}
	} else {
		l.pass()
	}
	l.mu.Unlock()
}

// admit gives the lock that the rank holds to those at the head of the queue that want
// it: all that may share it, or one. It reports whether there were any.
func (l *Local) admit() bool {
	any := false
	for w := l.head; w != nil && !w.raw && w.id == l.id && w.mode == l.mode && l.passed < l.tl; w = l.head {
		l.passed++
		l.in++
		l.wake(holds)
		if any = true; l.mode == Exclusive {
			break
		}
	}
	return any
}

// pass gives the handle to the head of the queue.
func (l *Local) pass() {
	if l.busy = l.head != nil; l.busy {
		l.wake(takes)
	}
}

// wake takes the head from the queue.
func (l *Local) wake(has turn) {
	w := l.head
	if l.head = w.next; l.head == nil {
		l.tail = nil
	}
	w.turn <- has // has room: it is sent to once
}

// check is the mode in which a lock is taken that is there.
func (l *Local) check(id int, mode Mode) Mode {
	if uint(id) >= uint(l.t.Len()) {
		panic(fmt.Sprintf("lock: lock %d of a table of %d", id, l.t.Len()))
	}
	if !l.shared {
		return Exclusive
	}
	return mode
}

// Mutex is a handle on lock id, for any number of goroutines; it implements RWMutex
// where the lock has a shared mode.
func (l *Local) Mutex(id int) Mutex {
	l.check(id, Exclusive)
	if m := (localMutex{l, id}); l.shared {
		return &localRWMutex{m}
	} else {
		return &m
	}
}

type localMutex struct {
	l  *Local
	id int
}

func (m *localMutex) Lock(ctx context.Context) error { return m.l.Lock(ctx, m.id, Exclusive) }
func (m *localMutex) Unlock() error                  { return m.l.Unlock(m.id, Exclusive) }
func (m *localMutex) TryLock() (bool, error)         { return m.l.TryLock(m.id, Exclusive) }

type localRWMutex struct{ localMutex }

var _ RWMutex = (*localRWMutex)(nil)

func (m *localRWMutex) RLock(ctx context.Context) error { return m.l.Lock(ctx, m.id, Shared) }
func (m *localRWMutex) RUnlock() error                  { return m.l.Unlock(m.id, Shared) }
func (m *localRWMutex) TryRLock() (bool, error)         { return m.l.TryLock(m.id, Shared) }
