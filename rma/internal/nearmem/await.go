package nearmem

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
)

const (
	spins  = 30  // reads of the word before the first yield
	yields = 100 // yields before sleep
)

// A Waiter is one goroutine's way to wait for words of a Memory.
type Waiter struct {
	Memory *Memory
	Now    func() int64    // the clock of rma.Waiting.Until
	Ended  <-chan struct{} // closed when all waits are to end
	Why    func() error    // the error that they then return

	entries [2]entry // by word of the wait
	timer   *time.Timer
}

// Await is of rma.Transport. It spins for a few reads, yields to other goroutines, and then
// sleeps.
func (z *Waiter) Await(q rma.Waiting) (int, int64, error) {
	for range spins {
		if i, v := z.found(&q); i >= 0 {
			return i, v, nil
		}
	}
	for range yields {
		runtime.Gosched()
		if i, v := z.found(&q); i >= 0 || z.late(&q) {
			return i, v, nil
		}
	}
	limit := z.limit(&q)
	defer z.stop()
	for {
		if i, v, err := z.sleep(&q, limit); i >= 0 || err != nil || z.late(&q) {
			return i, v, err
		}
	}
}

// found is the index of the first word whose condition holds, or -1, and its value.
func (z *Waiter) found(q *rma.Waiting) (int, int64) {
	for i := range q.N {
		a := &q.Words[i]
		if v := atomic.LoadInt64(z.Memory.Word(a.Target, a.Disp)); a.Cond.Holds(v) {
			return i, v
		}
	}
	return -1, 0
}

// late reports whether the limit of a wait has passed.
func (z *Waiter) late(q *rma.Waiting) bool { return q.Until != rma.Forever && z.Now() >= q.Until }

// sleep sleeps until a write into one of the parts, and says what it then finds.
func (z *Waiter) sleep(q *rma.Waiting, limit <-chan time.Time) (int, int64, error) {
	for i := range q.N {
		if z.entries[i].wake == nil {
			z.entries[i].wake = make(chan struct{}, 1)
		}
		z.Memory.enter(&z.entries[i], q.Words[i].Target, q.Words[i].Disp)
	}
	var err error
	i, v := z.found(q) // a write before enter wakes no sleeper
	if i < 0 {
		select {
		case <-z.entries[0].wake:
			z.entries[0].woken = true
		case <-z.entries[1].wake: // nil, or empty, in a wait for one word
			z.entries[1].woken = true
		case <-limit:
		case <-z.Ended:
			err = z.Why()
		}
	}
	for i := range q.N {
		z.Memory.leave(&z.entries[i])
	}
	if i < 0 && err == nil {
		i, v = z.found(q)
	}
	return i, v, err
}

// limit is a channel on which the limit of a wait comes.
func (z *Waiter) limit(q *rma.Waiting) <-chan time.Time {
	if q.Until == rma.Forever {
		return nil
	}
	d := time.Duration(q.Until - z.Now())
	if z.timer == nil {
		z.timer = time.NewTimer(d)
	} else {
		z.timer.Reset(d)
	}
	return z.timer.C
}

func (z *Waiter) stop() {
	if z.timer != nil {
		z.timer.Stop()
	}
}
