package alock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// The claims of alock, sections 4 and 5, and of the package's own doc, one test each.

// stage runs ranks on nodes, each with a counted and traced table of as many locks as ranks: lock
// id is at home at rank id.
func stage(t *testing.T, nodes, perNode int, cfg alock.Config, decorate func(rma.Comm) rma.Comm, play func(c rma.Comm, l *alock.Table, n *hook.Tally) error) []hook.Event {
	t.Helper()
	var log hook.Log
	cfg.Locks = nodes * perNode
	if decorate == nil {
		decorate = func(c rma.Comm) rma.Comm { return c }
	}
	err := inproc.RunNodes(nodes, perNode, func(c rma.Comm) error {
		var n hook.Tally
		l, err := alock.New(hook.Trace(hook.Count(decorate(c), &n), log.Add), cfg)
		if err != nil {
			return err
		}
		if err := rma.Agree(c, play(c, l, &n)); err != nil {
			return err
		}
		return errors.Join(l.Idle(), l.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
	return log.Events()
}

// expect compares a Tally with the remote operations that it should hold, and resets it.
func expect(what string, n *hook.Tally, fao, cas, put, get int64) error {
	defer n.Reset()
	far := func(k rma.Kind) int64 { return n.Ops(k, hook.Far) }
	got := [4]int64{far(rma.KindFetchAndOp), far(rma.KindCompareAndSwap), far(rma.KindPut), far(rma.KindGet)}
	if want := [4]int64{fao, cas, put, get}; got != want || n.Remote() != fao+cas+put+get {
		return fmt.Errorf("%s made %d FAOs, %d CASs, %d Puts and %d Gets of %d remote operations, want %d", what, got[0], got[1], got[2], got[3], n.Remote(), want)
	}
	return nil
}

func take(l *alock.Table, id int) error    { return l.Lock(background, id, lock.Exclusive) }
func release(l *alock.Table, id int) error { return l.Unlock(id, lock.Exclusive) }

// Section 5.1: "a lone thread requires a single rCAS to acquire the MCS lock, followed by a
// single rRead to participate in Peterson's algorithm", and section 5: Unlock is an rCAS. A
// local rank makes no remote operation, and neither does a TryLock of one.
func TestUncontendedCost(t *testing.T) {
	stage(t, 2, 1, alock.Config{}, nil, func(c rma.Comm, l *alock.Table, n *hook.Tally) error {
		if c.Rank() == 1 {
			return nil
		}
		if err := errors.Join(take(l, 1), expect("a remote Lock", n, 1, 0, 0, 1), release(l, 1), expect("a remote Unlock", n, 0, 1, 0, 0)); err != nil {
			return err
		}
		got, err := l.TryLock(1, lock.Exclusive)
		if err := errors.Join(err, expect("a remote TryLock", n, 0, 1, 0, 1), release(l, 1)); err != nil || !got {
			return fmt.Errorf("%v, %w", got, err)
		}
		n.Reset()
		err = errors.Join(take(l, 0), release(l, 0))
		got, terr := l.TryLock(0, lock.Exclusive)
		if err := errors.Join(err, terr, release(l, 0)); err != nil || !got {
			return fmt.Errorf("%v, %w", got, err)
		}
		if n.Flushes(hook.Far)+n.FlushAlls()+n.Awaits(hook.Far)+n.Backoffs(hook.Far) != 0 {
			return fmt.Errorf("a local rank speaks to the transport:\n%v", n)
		}
		return expect("a local rank", n, 0, 0, 0, 0)
	})
}

// Section 5.1: with a predecessor a rank adds one rWrite and spins on its own descriptor; a
// release with a successor is one rWrite, or an rCAS and an rWrite at worst. A used-up budget adds
// an rRead.
func TestContendedCost(t *testing.T) {
	for _, b := range []int{1, 2} {
		var waiting atomic.Bool
		decorate := func(c rma.Comm) rma.Comm {
			return hook.Delay(c, func(e hook.Event) int64 {
				if e.Step == hook.StepAwait {
					waiting.Store(true)
				}
				return 0
			})
		}
		stage(t, 3, 1, alock.Config{RemoteBudget: b}, decorate, func(c rma.Comm, l *alock.Table, n *hook.Tally) error {
			const id = 2
			switch c.Rank() {
			case 0:
				if err := errors.Join(take(l, id), c.Barrier()); err != nil {
					return err
				}
				for !waiting.Load() {
					c.Sleep(10_000)
				}
				n.Reset()
				return errors.Join(release(l, id), expect("Unlock with a successor", n, 0, 0, 1, 0))
			case 1:
				err := errors.Join(c.Barrier(), take(l, id))
				if n.Awaits(hook.Own) != 1 || n.Awaits(hook.Far)+n.Backoffs(hook.Far) != 0 {
					return fmt.Errorf("Lock waited elsewhere than on a word of its own:\n%v", n)
				}
				return errors.Join(err, expect(fmt.Sprintf("Lock with a predecessor and a budget of %d", b), n, 1, 0, 1, int64(2-b)), release(l, id))
			}
			return c.Barrier()
		})
	}
}

// Section 5: local ranks use shared memory alone, also while remote ranks compete with them.
func TestLocalRanksNeedNoTransport(t *testing.T) {
	var done atomic.Bool
	stage(t, 2, 2, alock.Config{LocalBudget: 2, RemoteBudget: 2}, nil, func(c rma.Comm, l *alock.Table, n *hook.Tally) error {
		if c.Node().Index == 1 { // remote
			var err error
			for i := 0; err == nil && (i < 50 || !done.Load()); i++ {
				err = errors.Join(take(l, 0), release(l, 0))
			}
			return err
		}
		var err error
		for i := 0; err == nil && i < 300; i++ {
			err = errors.Join(take(l, 0), release(l, 0))
		}
		done.Store(true)
		if n.Flushes(hook.Far)+n.FlushAlls()+n.Awaits(hook.Far)+n.Backoffs(hook.Far) != 0 {
			return fmt.Errorf("a local rank speaks to the transport:\n%v", n)
		}
		for k := range rma.Kinds {
			if n.Ops(k, hook.Far) != 0 {
				return fmt.Errorf("a local rank makes remote operations:\n%v", n)
			}
		}
		return err
	})
}

// Figure 2, frames 1 to 8: t1 of node n1 locks L2 of node n2, and t2 of n2 locks it meanwhile. A
// rank that finds the other TAIL null does not write VICTIM: frame 4 is without it.
func TestFigure2(t *testing.T) {
	in, waits := make(chan struct{}), make(chan struct{})
	decorate := func(c rma.Comm) rma.Comm {
		return hook.Delay(c, func(e hook.Event) int64 {
			if e.Origin == 1 && e.Step == hook.StepAwait {
				close(waits)
			}
			return 0
		})
	}
	const l2 = 1
	events := stage(t, 2, 1, alock.Config{}, decorate, func(c rma.Comm, l *alock.Table, _ *hook.Tally) error {
		if c.Rank() == 0 {
			err := take(l, l2)
			close(in)
			<-waits
			return errors.Join(err, release(l, l2))
		}
		<-in
		return errors.Join(take(l, l2), release(l, l2))
	})
	var got []string
	for _, e := range events {
		word, _, _ := strings.Cut(e.Word(), "[")
		who := fmt.Sprintf("t%d", e.Rank+1)
		switch {
		case e.Step == hook.StepResult && strings.HasSuffix(word, "_TAIL"):
			got = append(got, fmt.Sprintf("%s %v %s: finds %d", who, e.Op.Kind, word, e.Value))
		case e.Step == hook.StepIssue && e.Op.Kind == rma.KindPut && word == "VICTIM":
			got = append(got, fmt.Sprintf("%s %s = %d", who, word, e.Op.Operand))
		case e.Step == hook.StepAwait:
			got = append(got, fmt.Sprintf("%s awaits %s %v or %s %v", who, word, e.Cond, "VICTIM", e.Or.Cond))
		case e.Step == hook.StepWoke:
			got = append(got, fmt.Sprintf("%s goes on: %s is %d", who, word, e.Value))
		}
	}
	want := []string{
		"t1 FetchAndOp R_TAIL: finds 0",        // frame 3: R_TAIL is t1's RemoteDescriptor
		"t1 Get L_TAIL: finds 0",               // frames 4 and 5: the local cohort is unlocked, t1 is in
		"t2 FetchAndOp L_TAIL: finds 0",        // frame 5: L_TAIL is t2's LocalDescriptor
		"t2 Get R_TAIL: finds 1",               // the remote cohort is locked
		"t2 VICTIM = 1",                        // frame 6: VICTIM is LOCAL
		"t2 awaits R_TAIL == 0 or VICTIM != 1", // frame 6
		"t1 CompareAndSwap R_TAIL: finds 1",    // frame 7: R_TAIL is NULL
		"t2 goes on: R_TAIL is 0",              // frame 8: t2 is in
		"t2 CompareAndSwap L_TAIL: finds 9",    // t2's descriptor
	}
	// t1's CompareAndSwap has its result after t2 may have seen it. Idle reads the TAILs.
	last := got[min(6, len(got)):]
	last = slices.DeleteFunc(last, func(line string) bool { return strings.Contains(line, " Get ") })
	slices.Sort(last)
	got = append(got[:min(6, len(got))], last...)
	slices.Sort(want[6:])
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A rank holds locks of both cohorts at once, and lets them go in any order; one more than MaxHeld is
// refused.
func TestSeveralHeld(t *testing.T) {
	stage(t, 2, 5, alock.Config{}, nil, func(c rma.Comm, l *alock.Table, _ *hook.Tally) error {
		for round := range 20 {
			if err := errors.Join(take(l, 3), take(l, 4), take(l, 5), take(l, 7)); err != nil {
				return err
			}
			for i := range 4 {
				if err := release(l, []int{3, 4, 5, 7}[(i+round)%4]); err != nil {
					return err
				}
			}
		}
		if err := c.Barrier(); err != nil || c.Rank() != 0 {
			return err
		}
		for id := range alock.MaxHeld {
			if err := take(l, id); err != nil {
				return err
			}
		}
		if err := take(l, alock.MaxHeld); !errors.Is(err, lock.ErrTooManyHeld) {
			return fmt.Errorf("one lock too many: %w", err)
		}
		for id := range alock.MaxHeld {
			if err := release(l, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestConfig(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		for text, cfg := range map[string]alock.Config{
			"alock: Config.Locks is -1, want at least 1":                           {Locks: -1},
			"alock: Config.Home is 2, want a rank from 0 to 1":                     {Home: 2},
			"alock: Config.LocalBudget is -3 and RemoteBudget 20, want at least 1": {LocalBudget: -3},
			"alock: Config.LocalBudget is 5 and RemoteBudget -1, want at least 1":  {RemoteBudget: -1},
		} {
			if _, err := alock.New(c, cfg); !errors.Is(err, lock.ErrConfig) || !strings.Contains(err.Error(), text) {
				return fmt.Errorf("New with %+v: %w, want %q", cfg, err, text)
			}
		}
		info, err := lock.Lookup("alock")
		if err != nil {
			return err
		}
		if _, err := info.With(c, lock.Setting{Params: map[string]string{"LOCAL": "0"}}); !errors.Is(err, lock.ErrConfig) {
			return fmt.Errorf("LOCAL=0: %w", err)
		}
		t, err := info.With(c, lock.Setting{Params: map[string]string{"LOCAL": "2", "REMOTE": "3"}})
		if err != nil {
			return err
		}
		return t.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
