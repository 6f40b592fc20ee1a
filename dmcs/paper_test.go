package dmcs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// The claims of rma-rw, section 2.4, and of the package's own doc, one test each.

var background = context.Background()

// stage runs ranks on nodes of their own, each with a counted and traced table
// whose lock 0 is at home.
func stage(t *testing.T, ranks, home int, decorate func(rma.Comm) rma.Comm, play func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error) []hook.Event {
	t.Helper()
	var log hook.Log
	err := inproc.RunNodes(ranks, 1, func(c rma.Comm) error {
		var n hook.Tally
		l, err := dmcs.New(hook.Trace(hook.Count(decorate(c), &n), log.Add), dmcs.Config{Home: home})
		if err != nil {
			return err
		}
		if err := rma.Agree(c, play(c, l, &n)); err != nil {
			return err
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
	return log.Events()
}

func asIs(c rma.Comm) rma.Comm { return c }

// expect compares a Tally with the remote operations that it should hold.
func expect(what string, n *hook.Tally, fao, cas, put int64) error {
	got := [3]int64{n.Ops(rma.KindFetchAndOp, hook.Far), n.Ops(rma.KindCompareAndSwap, hook.Far), n.Ops(rma.KindPut, hook.Far)}
	if want := [3]int64{fao, cas, put}; got != want || n.Remote() != fao+cas+put {
		return fmt.Errorf("%s made %d FAOs, %d CASs and %d Puts of %d remote operations, want %d", what, got[0], got[1], got[2], n.Remote(), want)
	}
	return nil
}

// Section 2.4.2: without a predecessor acquire is one FAO, and without a successor
// release is one CAS. All else is the rank's own.
func TestUncontendedCost(t *testing.T) {
	stage(t, 2, 1, asIs, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		if c.Rank() != 0 {
			return nil
		}
		if err := l.Lock(background, 0, lock.Exclusive); err != nil {
			return err
		}
		if err := expect("Lock", n, 1, 0, 0); err != nil {
			return err
		}
		n.Reset()
		if err := l.Unlock(0, lock.Exclusive); err != nil {
			return err
		}
		if err := expect("Unlock", n, 0, 1, 0); err != nil {
			return err
		}
		if n.Flushes(hook.Far) != 1 || n.Awaits(hook.Own)+n.Awaits(hook.Far)+n.Backoffs(hook.Far) != 0 {
			return fmt.Errorf("Unlock flushed or waited more than needed:\n%v", n)
		}
		return nil
	})
}

// At its home a lock costs no remote operation.
func TestCostAtHome(t *testing.T) {
	stage(t, 2, 0, asIs, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		if c.Rank() != 0 {
			return nil
		}
		err := errors.Join(l.Lock(background, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
		return errors.Join(err, expect("Lock and Unlock", n, 0, 0, 0))
	})
}

// Section 2.4.2: with a predecessor acquire adds one Put (line 10) and waits on a
// word of its own; with a successor release is a single Put (line 14).
func TestContendedCost(t *testing.T) {
	waiting := make(chan struct{})
	decorate := func(c rma.Comm) rma.Comm {
		return hook.Delay(c, func(e hook.Event) int64 {
			if e.Step == hook.StepAwait {
				close(waiting)
			}
			return 0
		})
	}
	stage(t, 3, 2, decorate, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		switch c.Rank() {
		case 0:
			if err := l.Lock(background, 0, lock.Exclusive); err != nil {
				return err
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			n.Reset()
			<-waiting
			if err := l.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
			return expect("Unlock with a successor", n, 0, 0, 1)
		case 1:
			if err := c.Barrier(); err != nil {
				return err
			}
			if err := l.Lock(background, 0, lock.Exclusive); err != nil {
				return err
			}
			if err := expect("Lock with a predecessor", n, 1, 0, 1); err != nil {
				return err
			}
			if n.Awaits(hook.Own) != 1 || n.Awaits(hook.Far) != 0 || n.Backoffs(hook.Far) != 0 {
				return fmt.Errorf("Lock waited elsewhere than on a word of its own:\n%v", n)
			}
			return l.Unlock(0, lock.Exclusive)
		}
		return c.Barrier()
	})
}

// Listing 3, lines 9 to 14: when the successor has swapped TAIL and not linked
// itself, release is a CAS that fails, a wait on the own NEXT, and a Put.
func TestReleaseWaitsForTheLink(t *testing.T) {
	swapped, released := make(chan struct{}), make(chan struct{})
	decorate := func(c rma.Comm) rma.Comm {
		return hook.Delay(c, func(e hook.Event) int64 {
			switch {
			case e.Origin == 1 && e.Step == hook.StepIssue && e.Op.Kind == rma.KindPut && e.Target == 0: // line 10
				close(swapped)
				<-released
			case e.Origin == 0 && e.Step == hook.StepAwait:
				close(released)
			}
			return 0
		})
	}
	stage(t, 3, 2, decorate, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		switch c.Rank() {
		case 0:
			if err := l.Lock(background, 0, lock.Exclusive); err != nil {
				return err
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			<-swapped
			n.Reset()
			if err := l.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
			if n.Awaits(hook.Own) != 1 {
				return fmt.Errorf("Unlock did not wait for its successor:\n%v", n)
			}
			return expect("Unlock before the link", n, 0, 1, 1)
		case 1:
			if err := c.Barrier(); err != nil {
				return err
			}
			return errors.Join(l.Lock(background, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
		}
		return c.Barrier()
	})
}

// Listings 2 and 3 with many ranks: each acquire is one swap of TAIL, every link is
// answered by one handover, and a release without a handover is one CAS. A rank that
// waits, waits on words of its own. The lock is entered in the order of the swaps:
// each rank's predecessor is the last rank that was in, or none.
func TestEachAcquireIsOneSwapUnderLoad(t *testing.T) {
	const ranks, each = 6, 30
	var in atomic.Int32
	var order []int // of entry, written by the holder
	events := stage(t, ranks, 0, asIs, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		if err := c.Barrier(); err != nil {
			return err
		}
		for i := range each {
			if err := l.Lock(background, 0, lock.Exclusive); err != nil {
				return err
			}
			if in.Add(1) != 1 {
				return errors.New("two are in")
			}
			order = append(order, c.Rank())
			if i%8 == 0 {
				c.Sleep(20_000) // lets a queue form
			}
			in.Add(-1)
			if err := l.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
		}
		return nil
	})
	var swaps, links, handovers, cas, freed int
	preds := make([][]int, ranks) // of each rank's acquires, -1 for none
	for _, e := range events {
		word, _, _ := strings.Cut(e.Word(), "[")
		switch {
		case e.Step == hook.StepAwait && e.Target != e.Rank:
			t.Fatalf("a rank waits on a word of another: %v", e)
		case e.Step == hook.StepBackoff:
			t.Fatalf("a queued rank tries again: %v", e)
		case e.Step == hook.StepIssue && e.Op.Kind == rma.KindFetchAndOp:
			swaps++
		case e.Step == hook.StepIssue && e.Op.Kind == rma.KindCompareAndSwap:
			cas++
		case e.Step == hook.StepIssue && e.Op.Kind == rma.KindPut && word == "NEXT" && e.Target != e.Rank:
			links++
		case e.Step == hook.StepIssue && e.Op.Kind == rma.KindPut && word == "WAIT" && e.Op.Operand == 0:
			handovers++
		case e.Step == hook.StepResult && e.Op.Kind == rma.KindFetchAndOp:
			pred := -1
			if e.Value != 0 {
				pred = int(e.Value-1) / dmcs.MaxHeld
			}
			preds[e.Rank] = append(preds[e.Rank], pred)
		case e.Step == hook.StepResult && e.Op.Kind == rma.KindCompareAndSwap && e.Value == e.Op.Compare:
			freed++
		}
	}
	if swaps != ranks*each || links != handovers || freed+handovers != ranks*each || cas-freed > handovers {
		t.Errorf("%d acquires: %d swaps, %d links, %d handovers, %d of %d CASs freed the lock", ranks*each, swaps, links, handovers, freed, cas)
	}
	if links == 0 {
		t.Error("no rank ever waited: the test shows nothing")
	}
	for i, rank := range order {
		pred := preds[rank][0]
		preds[rank] = preds[rank][1:]
		if pred >= 0 && (i == 0 || order[i-1] != pred) {
			t.Fatalf("entry %d is rank %d, which swapped behind rank %d; the order was %v", i, rank, pred, order[:i+1])
		}
	}
}

// The doc: a lock costs one word at its home, a rank two words per queue node, and
// the words have the classes of the table.
func TestWords(t *testing.T) {
	err := inproc.Run(3, func(c rma.Comm) error {
		s := &spy{Comm: c}
		l, err := dmcs.New(s, dmcs.Config{Locks: 10})
		if err != nil {
			return err
		}
		if got, want := s.spec.Words(), 2*dmcs.MaxHeld+4; got != want { // 10 locks on 3 ranks
			return fmt.Errorf("a rank has %d words, want %d", got, want)
		}
		for disp := range s.spec.Words() {
			want := rma.Flag
			if disp >= 2*dmcs.MaxHeld {
				want = rma.Far
			}
			if s.spec.Class(disp) != want {
				return fmt.Errorf("word %s has class %v, want %v", s.spec.WordName(disp), s.spec.Class(disp), want)
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// spy keeps the Spec of the window that is opened through it.
type spy struct {
	rma.Comm
	spec rma.Spec
}

func (s *spy) Allocate(spec rma.Spec) (*rma.Window, error) {
	s.spec = spec
	return s.Comm.Allocate(spec)
}

// The doc: with a context that can end, Lock polls TryLock and never enters the
// queue; neither does TryLock.
func TestDeadlinesDoNotQueue(t *testing.T) {
	events := stage(t, 2, 0, asIs, func(c rma.Comm, l *dmcs.Table, n *hook.Tally) error {
		ctx, cancel := context.WithCancel(background)
		if c.Rank() == 0 {
			defer cancel()
			err := l.Lock(ctx, 0, lock.Exclusive)
			err = errors.Join(err, c.Barrier(), c.Barrier())
			return errors.Join(err, l.Unlock(0, lock.Exclusive))
		}
		err := c.Barrier()
		if got, terr := l.TryLock(0, lock.Exclusive); got || terr != nil {
			err = errors.Join(err, terr, fmt.Errorf("TryLock of a held lock: %v", got))
		}
		cancel()
		lerr := l.Lock(ctx, 0, lock.Exclusive)
		if !errors.Is(lerr, lock.ErrDeadline) || !errors.Is(lerr, context.Canceled) {
			err = errors.Join(err, fmt.Errorf("Lock with a context that has ended: %v", lerr))
		}
		return errors.Join(err, c.Barrier())
	})
	for _, e := range events {
		if e.Op.Kind == rma.KindFetchAndOp {
			t.Errorf("a rank with a deadline swapped TAIL: %v", e)
		}
	}
}

// The doc: MaxHeld locks of a table and no more.
func TestMaxHeld(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		l, err := dmcs.New(c, dmcs.Config{Locks: dmcs.MaxHeld + 1})
		if err != nil {
			return err
		}
		for id := range dmcs.MaxHeld {
			if err := l.Lock(background, id, lock.Exclusive); err != nil {
				return err
			}
		}
		if err := l.Lock(background, dmcs.MaxHeld, lock.Exclusive); !errors.Is(err, lock.ErrTooManyHeld) || !strings.Contains(err.Error(), "rank 0 holds 16 locks") {
			return fmt.Errorf("one lock too many: %v", err)
		}
		for id := range dmcs.MaxHeld {
			if err := l.Unlock(id, lock.Exclusive); err != nil {
				return err
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfig(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		for _, bad := range []struct {
			cfg  dmcs.Config
			text string
		}{
			{dmcs.Config{Locks: -1}, "dmcs: Config.Locks is -1, want at least 1"},
			{dmcs.Config{Home: 2}, "dmcs: Config.Home is 2, want a rank from 0 to 1"},
			{dmcs.Config{Home: -1}, "dmcs: Config.Home is -1, want a rank from 0 to 1"},
		} {
			if _, err := dmcs.New(c, bad.cfg); !errors.Is(err, lock.ErrConfig) || !strings.Contains(err.Error(), bad.text) {
				return fmt.Errorf("New with %+v: %v, want %q", bad.cfg, err, bad.text)
			}
		}
		l, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		if l.Len() != 1 {
			return fmt.Errorf("a table has %d locks by default, want 1", l.Len())
		}
		for _, id := range []int{-1, 1} {
			if got, want := panicOf(func() { l.Mutex(id) }), fmt.Sprintf("dmcs: lock %d of a table of 1", id); got != want {
				return fmt.Errorf("panic %q, want %q", got, want)
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// panicOf is the text with which f panics.
func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
