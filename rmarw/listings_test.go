package rmarw_test

import (
	"context"
	"errors"
	"math"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// A printing is RMA-RW as rma-rw prints it, Listings 4 to 10 line by line, or
// with repairs. Its words are all Far, so that what shows is what goes wrong and not
// that a class forbids it. Loops that only look are one Await.
type printing struct {
	topo   *topo.Topology
	tl     int64 // T_L,i
	tw, tr int64
	// What is repaired.
	done  bool // Listing 9: the reader that is let in leaves the loop
	check bool // Listing 7: the writer waits for the readers that are in (section 4.1)
}

type printed struct {
	printing
	w *rma.Window
	p int
}

// Words; those of a queue are there for each level.
const (
	wArrive, wDepart = 0, 1
	wNext, wStatus   = 2, 3
	wTail            = 4
	wQueue           = 3
)

// Values of STATUS that are not counts. ACQUIRE_START is a count of 0.
const (
	acquireStart  = 0
	wait          = -1
	acquireParent = -2
	modeChange    = -3
	null          = 0 // rank r is r+1
	half          = math.MaxInt64 / 2
)

func (k printing) info() lock.Info {
	return lock.Info{Name: "listings 4 to 10", Shared: true, Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		words := []rma.Word{{Name: "ARRIVE", Class: rma.Far}, {Name: "DEPART", Class: rma.Far}}
		for i := range k.topo.Levels() {
			n := string(rune('1' + i))
			words = append(words, rma.Word{Name: "NEXT" + n, Class: rma.Far}, rma.Word{Name: "STATUS" + n, Class: rma.Far}, rma.Word{Name: "TAIL" + n, Class: rma.Far})
		}
		w, err := c.Allocate(rma.Spec{Name: "rmarw", Regions: []rma.Region{{Count: 1, Words: words}}})
		return &printed{k, w, c.Rank()}, err
	}}
}

func (t *printed) Len() int             { return 1 }
func (t *printed) Home(int) int         { return 0 }
func (t *printed) Free() error          { return t.w.Free() }
func (t *printed) Mutex(int) lock.Mutex { return nil }
func (t *printed) me() int64            { return int64(1 + t.p) }

func (t *printed) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

func (t *printed) Lock(_ context.Context, _ int, mode lock.Mode) error {
	if mode == lock.Shared {
		return t.readerAcquire()
	}
	return t.writerAcquire(len(t.topo.Levels()))
}

func (t *printed) Unlock(_ int, mode lock.Mode) error {
	if mode == lock.Shared {
		return t.readerRelease()
	}
	return t.writerRelease(len(t.topo.Levels()))
}

// Levels are 1 to N, as in the paper.
func (t *printed) next(i int) int   { return wNext + wQueue*(i-1) }
func (t *printed) status(i int) int { return wStatus + wQueue*(i-1) }
func (t *printed) tail(i int) (rank, disp int) {
	return t.topo.FirstRank(i-1, t.topo.Element(t.p, i-1)), wTail + wQueue*(i-1)
}

// put is a Put and its Flush.
func (t *printed) put(v int64, rank, disp int) error { return t.w.PutFlush(v, rank, disp) }

// enter is what Listings 4 and 7 have in common.
func (t *printed) enter(i int) (pred, status int64, err error) {
	t.w.Put(null, t.p, t.next(i))
	t.w.Put(wait, t.p, t.status(i))
	if err = t.w.Flush(t.p); err != nil {
		return
	}
	tail, disp := t.tail(i)
	if pred, err = t.w.FetchAndOpFlush(t.me(), tail, disp, rma.Replace); err != nil || pred == null {
		return
	}
	if err = t.put(t.me(), int(pred-1), t.next(i)); err != nil {
		return
	}
	status, err = t.w.Await(t.p, t.status(i), rma.NotEqual(wait))
	return
}

func (t *printed) writerAcquire(i int) error {
	pred, status, err := t.enter(i)
	if err != nil {
		return err
	}
	if i > 1 { // Listing 4
		if pred != null && status != acquireParent { // line 15
			return nil
		}
		if err := t.put(acquireStart, t.p, t.status(i)); err != nil { // line 22
			return err
		}
		return t.writerAcquire(i - 1) // line 23
	}
	if pred == null || status == modeChange { // Listing 7, lines 14, 19
		if err := t.setCountersToWrite(); err != nil { // lines 16, 21
			return err
		}
		return t.put(acquireStart, t.p, t.status(1)) // lines 17, 22
	}
	return nil
}

func (t *printed) writerRelease(i int) error {
	if i == 1 {
		return t.writerReleaseRoot()
	}
	w := t.w // Listing 5
	s, st := w.Get(t.p, t.next(i)), w.Get(t.p, t.status(i))
	if err := w.Flush(t.p); err != nil { // lines 3, 4
		return err
	}
	succ, status := w.Value(s), w.Value(st)
	if succ != null && status < t.tl { // line 5
		return t.put(status+1, int(succ-1), t.status(i)) // line 8
	}
	if err := t.writerRelease(i - 1); err != nil { // line 12
		return err
	}
	if succ == null { // line 13
		var err error
		if succ, err = t.leave(i); err != nil || succ == null { // lines 15 to 20
			return err
		}
	}
	return t.put(acquireParent, int(succ-1), t.status(i)) // line 23
}

// leave is lines 15 to 20 of Listings 5 and 8; null if there is no successor.
func (t *printed) leave(i int) (int64, error) {
	tail, disp := t.tail(i)
	curr, err := t.w.CompareAndSwapFlush(null, t.me(), tail, disp)
	if err != nil || curr == t.me() {
		return null, err
	}
	return t.w.Await(t.p, t.next(i), rma.NotEqual(null))
}

// writerReleaseRoot is Listing 8.
func (t *printed) writerReleaseRoot() error {
	reset := false
	status, err := t.w.GetFlush(t.p, t.status(1)) // line 4
	if err != nil {
		return err
	}
	if status++; status == t.tw { // line 5
		if err := t.resetCounters(); err != nil { // line 6
			return err
		}
		status, reset = modeChange, true // line 7
	}
	succ, err := t.w.GetFlush(t.p, t.next(1)) // line 9
	if err != nil {
		return err
	}
	if succ == null { // line 10
		if !reset { // line 11
			if err := t.resetCounters(); err != nil { // line 12
				return err
			}
			status = modeChange
		}
		if succ, err = t.leave(1); err != nil || succ == null { // lines 15 to 20
			return err
		}
	}
	return t.put(status, int(succ-1), t.status(1)) // line 23
}

// counter is c(p): there is one physical counter, at rank 0.
const counter = 0

// setCountersToWrite is that of Listing 6, and with check what section 4.1 says: the
// writer looks at each counter again.
func (t *printed) setCountersToWrite() error {
	if err := t.w.AccumulateFlush(half, counter, wArrive, rma.Sum); err != nil { // line 6
		return err
	}
	if !t.check {
		return nil
	}
	for {
		departed, err := t.w.GetFlush(counter, wDepart)
		if err != nil {
			return err
		}
		arrived, err := t.w.GetFlush(counter, wArrive)
		if in := arrived - departed; err != nil || in == 0 || in == half {
			return err
		}
	}
}

// resetCounters and reset_counter of Listing 6.
func (t *printed) resetCounters() error {
	w := t.w
	a, d := w.Get(counter, wArrive), w.Get(counter, wDepart) // line 11
	if err := w.Flush(counter); err != nil {                 // line 12
		return err
	}
	arr, dep := w.Value(a), w.Value(d)
	subArr, subDep := -dep, -dep // line 14
	if arr >= half {             // line 18
		subArr -= half // line 19
	}
	w.Accumulate(subArr, counter, wArrive, rma.Sum) // line 22
	w.Accumulate(subDep, counter, wDepart, rma.Sum) // line 23
	return w.Flush(counter)
}

// readerAcquire is Listing 9.
func (t *printed) readerAcquire() error {
	w := t.w
	for done, barrier := false, false; !done; {
		if barrier { // lines 5 to 8
			if _, err := w.Await(counter, wArrive, rma.Less(t.tr)); err != nil {
				return err
			}
		}
		curr, err := w.FetchAndOpFlush(1, counter, wArrive, rma.Sum) // line 12
		if err != nil {
			return err
		}
		if curr < t.tr {
			done = t.done // no line says so
			continue
		}
		barrier = true    // line 14
		if curr == t.tr { // line 15
			rank, disp := t.tail(1)
			tail, err := w.GetFlush(rank, disp) // lines 17, 18
			if err != nil {
				return err
			}
			if tail == null { // line 19
				if err := t.resetCounters(); err != nil { // line 20
					return err
				}
				barrier = false
			}
		}
		if err := w.AccumulateFlush(-1, counter, wArrive, rma.Sum); err != nil { // line 24
			return err
		}
	}
	return nil
}

// readerRelease is Listing 10.
func (t *printed) readerRelease() error { return t.w.AccumulateFlush(1, counter, wDepart, rma.Sum) }
