package rmarw

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestArrivalsWrapAtTheLimit: arrivals and limits wrap; a reader that came before the limit
// is let in, and one that reached it is not.
func TestArrivalsWrapAtTheLimit(t *testing.T) {
	for _, start := range []int64{0, 1, 1<<(limitBits-1) - 1, limitMask - 1, limitMask} {
		for _, n := range []int64{1, 2, MaxTR} {
			s := start * arrival
			d := limit(5*nextPhase, s, n)
			if d/nextPhase != 5 || d&shut != 0 || d&limited == 0 {
				t.Fatalf("limit %d after %d: ADMISSION %#x", n, start, d)
			}
			for _, c := range []struct {
				after int64
				in    bool
			}{{0, true}, {n - 1, true}, {n, false}, {n + maxReaders, false}} {
				got := s + c.after*arrival + 3*one + oddOne // readers do not matter
				if admits(d, got) != c.in || admits(d|shut, got) || !admits(d&^limited, got) {
					t.Errorf("limit %d after %d arrivals: number %d later is let in: %v", n, start, c.after, admits(d, got))
				}
			}
		}
	}
	if d := nextOpen(-nextPhase | shut | limited | 7); d != 0 {
		t.Errorf("after the last phase comes ADMISSION %#x", d)
	}
	if s := int64(-1); field(s, one) != maxReaders || field(s, oddOne) != maxReaders {
		t.Errorf("fields of %#x", s)
	}
}

// TestDepartedTellsReadersOfAnyPhase: DEPART tells what has departed from the largest T_R
// down to as many that wait, in any phase.
func TestDepartedTellsReadersOfAnyPhase(t *testing.T) {
	for _, phase := range []int64{0, 1, 1<<38 - 1, 1<<39 - 1} {
		for _, n := range []int64{MaxTR, 1, 0, -1, -MaxTR} {
			if got := departed(phase<<phaseShift + n); got != n {
				t.Errorf("phase %d, %d departed: departed says %d", phase, n, got)
			}
		}
	}
}

// TestTRIsGrantedAtAnAsymmetricCounter: once a writer's announcement has reached a counter
// with a reader in it, T_R readers come in and no more, until the writer was in; then those
// that waited are. Section 3.2.3 of rma-rw.
func TestTRIsGrantedAtAnAsymmetricCounter(t *testing.T) {
	const tr = 3
	play(t, Asymmetric, MCS, tr, func(int, hook.Event) {}, [3]role{
		func(l *Table, at counter) error { // until the other reader is refused
			if err := awaitWord(l, at, readers, func(s int64) bool { return field(s, evenOne) == 1 }); err != nil {
				return err
			}
			return l.Unlock(0, lock.Shared)
		},
		writes(readers, func(s int64) {
			if field(s, one) != 0 || field(s, evenOne) != 1 || s/arrival != 1+tr+1 {
				t.Errorf("the writer is in with READERS %#x, want T_R arrivals after the first and one that waits", s)
			}
		}),
		func(l *Table, at counter) error {
			if err := awaitWord(l, at, admission, func(d int64) bool { return d >= limited }); err != nil {
				return err
			}
			ctx := context.Background()
			for range tr {
				if got, err := l.TryLock(0, lock.Shared); got || err != nil {
					return fmt.Errorf("TryRLock while a writer waits: %v, %v", got, err)
				}
				if err := errors.Join(l.Lock(ctx, 0, lock.Shared), l.Unlock(0, lock.Shared)); err != nil {
					return err
				}
			}
			if err := l.Lock(ctx, 0, lock.Shared); err != nil { // waits for the writer
				return err
			}
			d, err := l.tree.W.GetFlush(at.host, at.disp+admission)
			if err != nil {
				return err
			}
			if d/nextPhase != 1 {
				t.Errorf("the reader beyond T_R is in with ADMISSION %#x, want phase 1", d)
			}
			return l.Unlock(0, lock.Shared)
		},
	})
}

// TestTryRLockSeesAWriterThatComesMeanwhile: between the first look of a try at ADMISSION
// and its count in READERS a writer announces itself. The try does not pass it.
func TestTryRLockSeesAWriterThatComesMeanwhile(t *testing.T) {
	counts, announced, tried := make(chan struct{}), make(chan struct{}), make(chan struct{})
	armed := false // of rank 2
	play(t, Asymmetric, MCS, 5, func(rank int, e hook.Event) {
		if rank == 2 && armed && e.Step == hook.StepIssue && e.Op.Kind == rma.KindAccumulate {
			armed = false
			close(counts)
			<-announced
		}
	}, [3]role{
		func(l *Table, at counter) error { // is in, so that the writer waits
			if err := awaitWord(l, at, admission, func(d int64) bool { return d >= limited }); err != nil {
				return err
			}
			close(announced)
			<-tried
			return l.Unlock(0, lock.Shared)
		},
		func(l *Table, _ counter) error {
			<-counts
			return errors.Join(l.Lock(context.Background(), 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
		},
		func(l *Table, _ counter) error {
			defer close(tried)
			armed = true
			got, err := l.TryLock(0, lock.Shared)
			if err != nil || !got {
				return err
			}
			t.Error("TryRLock passes a writer that waits")
			return l.Unlock(0, lock.Shared)
		},
	})
}

// TestBargingRootClosesAtOnce: a writer that has a barging root lets in no more readers,
// whatever T_R is. Those that wait are in after it.
func TestBargingRootClosesAtOnce(t *testing.T) {
	tried := make(chan struct{})
	isShut := func(d int64) bool { return d&shut != 0 }
	play(t, Asymmetric, Barging, 1000, func(int, hook.Event) {}, [3]role{
		func(l *Table, at counter) error { // is in, so that the writer waits
			<-tried
			return l.Unlock(0, lock.Shared)
		},
		writes(readers, func(s int64) {
			if field(s, one) > 1 { // one that tries again
				t.Errorf("the writer is in with READERS %#x", s)
			}
		}),
		func(l *Table, at counter) error {
			if err := awaitWord(l, at, admission, isShut); err != nil {
				return err
			}
			got, err := l.TryLock(0, lock.Shared)
			close(tried)
			if got || err != nil {
				return fmt.Errorf("TryRLock while a writer waits: %v, %v", got, err)
			}
			if err := l.Lock(context.Background(), 0, lock.Shared); err != nil { // waits for the writer
				return err
			}
			d, err := l.tree.W.GetFlush(at.host, at.disp+admission)
			if err != nil {
				return err
			}
			if d/nextPhase != 1 {
				t.Errorf("the reader is in with ADMISSION %#x, want phase 1", d)
			}
			return l.Unlock(0, lock.Shared)
		},
	})
}

// TestCountersAreAsymmetricOnSeveralNodes: the asymmetric counter is the default on several
// nodes, where counters are within them, and with a barging root. It is refused where
// counters are not within nodes.
func TestCountersAreAsymmetricOnSeveralNodes(t *testing.T) {
	for _, s := range []struct {
		nodes int
		ranks int // of each
		tdc   TDC
		leaf  Leaf
		asked DC
		want  DC
	}{
		{1, 4, TDC{}, MCS, 0, Symmetric},
		{1, 4, TDC{}, MCS, Asymmetric, Asymmetric},
		{1, 4, TDC{}, Auto, 0, Asymmetric},
		{1, 4, TDC{}, Auto, Symmetric, Symmetric},
		{1, 1, TDC{}, Auto, 0, Asymmetric},
		{2, 2, TDC{}, Auto, 0, Asymmetric},
		{2, 2, TDC{}, Auto, Symmetric, Symmetric},
		{2, 2, TDC{Ranks: 4}, Auto, 0, Symmetric},
		{2, 2, TDC{Ranks: 4}, Auto, Asymmetric, 0},
	} {
		err := inproc.RunNodes(s.nodes, s.ranks, func(c rma.Comm) error {
			l, err := New(c, Config{Thresholds: Thresholds{TDC: s.tdc}, Leaf: s.leaf, DC: s.asked})
			if s.want == 0 {
				if err == nil {
					t.Errorf("%d nodes, T_DC %v, DC %v: no error", s.nodes, s.tdc, s.asked)
				}
				return nil
			}
			if err != nil {
				return err
			}
			if got := l.Config().DC; got != s.want {
				t.Errorf("%d nodes, T_DC %v: DC is %v, want %v", s.nodes, s.tdc, got, s.want)
			}
			return l.Free()
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestReadersMakeNoFarOperation: a reader makes three operations and no far one. A writer
// that meets no reader closes two counters with three flushes of all and opens them with
// two.
func TestReadersMakeNoFarOperation(t *testing.T) {
	err := inproc.RunNodes(2, 2, func(c rma.Comm) error {
		var n hook.Tally
		l, err := New(hook.Count(c, &n), Config{Home: 1})
		if err != nil {
			return err
		}
		ctx := context.Background()
		for r := range c.Size() {
			if err := c.Barrier(); err != nil {
				return err
			}
			if r != c.Rank() {
				continue
			}
			n.Reset()
			if err := errors.Join(l.Lock(ctx, 0, lock.Shared), l.Unlock(0, lock.Shared)); err != nil {
				return err
			}
			near := n.Ops(rma.KindFetchAndOp, hook.Own) + n.Ops(rma.KindFetchAndOp, hook.Mate) +
				n.Ops(rma.KindGet, hook.Own) + n.Ops(rma.KindGet, hook.Mate) +
				n.Ops(rma.KindAccumulate, hook.Own) + n.Ops(rma.KindAccumulate, hook.Mate)
			far := n.Flushes(hook.Far) + n.FlushAlls()
			for k := rma.Kind(0); k <= rma.KindGetBulk; k++ {
				far += n.Ops(k, hook.Far)
			}
			if near != 3 || far != 0 {
				t.Errorf("rank %d: a reader made %d near operations and %d far ones and flushes, want 3 and 0:\n%v", r, near, far, &n)
			}
			n.Reset()
			if err := errors.Join(l.Lock(ctx, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive)); err != nil {
				return err
			}
			if n.FlushAlls() != 5 {
				t.Errorf("rank %d: a writer flushed all %d times, want 5:\n%v", r, n.FlushAlls(), &n)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
