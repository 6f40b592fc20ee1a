package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// The tests of this file change a protocol through its window, and see that the
// invariant that the change breaks is one that would be noticed.

// A change gets a rank's operations instead of the window; between is the moment
// at which a test lets the other rank run.
type change func(o rma.Operation, below rma.Transport, r *rma.Results, between func())

// changed is a Comm whose windows pass operations through a change.
type changed struct {
	rma.Comm
	change  change
	between func()
}

func (c changed) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return &changing{Transport: t, c: c} }), nil
}

// changing does every operation when it is issued.
type changing struct {
	rma.Transport
	c       changed
	results rma.Results
}

func (t *changing) Issue(o rma.Operation) {
	t.c.change(o, t.Transport, &t.results, t.c.between)
}

func (t *changing) Flush(_ int, r *rma.Results) (int, error) {
	*r = t.results
	return 0, nil
}

// do does an operation now.
func do(o rma.Operation, below rma.Transport, r *rma.Results) {
	below.Issue(o)
	var all rma.Results
	if _, err := below.Flush(o.Target, &all); err != nil {
		panic(err)
	}
	r[o.Slot] = all[o.Slot]
}

// The displacements of G and, in a table of one lock, of L.
const dispG, dispL = 0, 1

// minus reports whether an operation takes back what a Lock added to a word.
func minus(o rma.Operation, disp int) bool {
	return o.Kind == rma.KindAccumulate && o.Operand < 0 && o.Disp == disp
}

// forgetG drops the subtraction from G after a CAS that failed.
func forgetG() change {
	var last rma.Kind
	return func(o rma.Operation, below rma.Transport, r *rma.Results, _ func()) {
		if minus(o, dispG) && last == rma.KindCompareAndSwap {
			return
		}
		last = o.Kind
		do(o, below, r)
	}
}

// testFirst looks at L before it adds the reader to it.
func testFirst(o rma.Operation, below rma.Transport, r *rma.Results, between func()) {
	if o.Kind != rma.KindFetchAndOp || o.Disp != dispL {
		do(o, below, r)
		return
	}
	test := o
	test.Kind = rma.KindGet
	do(test, below, r)
	seen := r[o.Slot]
	between()
	do(o, below, r)
	r[o.Slot] = seen
}

// pauseAdd lets the other rank run before the reader adds itself to L.
func pauseAdd(o rma.Operation, below rma.Transport, r *rma.Results, between func()) {
	if o.Kind == rma.KindFetchAndOp && o.Disp == dispL {
		between()
	}
	do(o, below, r)
}

// freeGFirst subtracts from G before L.
func freeGFirst() change {
	var l rma.Operation
	return func(o rma.Operation, below rma.Transport, r *rma.Results, between func()) {
		switch {
		case minus(o, dispL):
			l = o
		case minus(o, dispG):
			do(o, below, r)
			between()
			do(l, below, r)
		default:
			do(o, below, r)
		}
	}
}

// pauseFree lets the other rank run between the subtractions from L and G.
func pauseFree(o rma.Operation, below rma.Transport, r *rma.Results, between func()) {
	if minus(o, dispG) {
		between()
	}
	do(o, below, r)
}

func plain(o rma.Operation, below rma.Transport, r *rma.Results, _ func()) { do(o, below, r) }

// always is a change without memory.
func always(c change) func() change { return func() change { return c } }

// failedTry has rank 1 fail to get what rank 0 holds, and looks at the words
// afterwards.
func failedTry(ch func() change) error {
	return inproc.RunNodes(2, 1, func(c rma.Comm) error {
		tab, err := NewRW(changed{c, ch(), nil}, Config{}, FoMPI)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = errors.Join(holdX(tab), c.Barrier(), c.Barrier(), tab.Unlock(0, lock.Exclusive))
		} else {
			err = c.Barrier()
			if got, e := tab.TryLock(0, lock.Exclusive); got || e != nil {
				err = fmt.Errorf("TryLock: %v, %v", got, e)
			}
			err = errors.Join(err, c.Barrier())
		}
		return errors.Join(err, atRest(c, tab), tab.Free())
	})
}

// readerMeetsWriter has rank 0 lock while rank 1 is on its way in as a reader.
func readerMeetsWriter(ch func() change) error {
	here, there := make(chan bool), make(chan bool) // rank 1 is on its way; rank 0 holds
	return inproc.RunNodes(2, 1, func(c rma.Comm) error {
		if c.Rank() == 0 {
			tab, err := NewRW(changed{c, plain, nil}, Config{}, FoMPI)
			if err != nil {
				return err
			}
			<-here
			err = holdX(tab)
			there <- true
			return errors.Join(err, c.Barrier(), tab.Unlock(0, lock.Exclusive), tab.Free())
		}
		tab, err := NewRW(changed{c, ch(), func() { here <- true; <-there }}, Config{}, FoMPI)
		if err != nil {
			return err
		}
		got, err := tab.TryLock(0, lock.Shared)
		if got {
			err = errors.New("a reader and a writer hold the lock")
		}
		return errors.Join(c.Barrier(), err, tab.Free())
	})
}

// allMeetsWriter has rank 1 want everything while rank 0 frees a lock.
func allMeetsWriter(ch func() change) error {
	here, there := make(chan bool), make(chan bool) // rank 0 is half out; rank 1 has looked
	return inproc.RunNodes(2, 1, func(c rma.Comm) error {
		if c.Rank() == 0 {
			tab, err := NewRW(changed{c, ch(), func() { here <- true; <-there }}, Config{}, FoMPI)
			if err != nil {
				return err
			}
			return errors.Join(holdX(tab), tab.Unlock(0, lock.Exclusive), tab.Free())
		}
		tab, err := NewRW(changed{c, plain, nil}, Config{}, FoMPI)
		if err != nil {
			return err
		}
		<-here
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
		defer cancel()
		err = tab.LockAll(ctx)
		if err == nil {
			if l, e := tab.w.GetFlush(0, dispL); e != nil || !noWriter(l) {
				err = fmt.Errorf("LockAll has everything, but L is %d (%v)", l, e)
			}
			err = errors.Join(err, tab.UnlockAll())
		} else if errors.Is(err, lock.ErrDeadline) {
			err = nil
		}
		there <- true
		return errors.Join(err, tab.Free())
	})
}

func TestMutationsAreCaught(t *testing.T) {
	for _, m := range []struct {
		name     string
		check    func(func() change) error
		as, away func() change // of the protocol as it is, and changed; one for each rank
		says     string
	}{
		{"G kept after a failed CAS", failedTry, always(plain), forgetG, "at rest G of rank 0 is 0x1"},
		{"a reader that looks before it adds", readerMeetsWriter, always(pauseAdd), always(testFirst), "a reader and a writer"},
		{"G freed before L", allMeetsWriter, always(pauseFree), freeGFirst, "but L is 1"},
	} {
		if err := m.check(m.as); err != nil {
			t.Errorf("the protocol fails the check for: %s: %v", m.name, err)
		}
		if err := m.check(m.away); err == nil || !strings.Contains(err.Error(), m.says) {
			t.Errorf("not caught: %s: %v", m.name, err)
		}
	}
}
