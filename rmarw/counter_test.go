package rmarw

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/topo"
)

// openTable opens a lock with one level, and one counter for all ranks of one node.
func openTable(c rma.Comm, dc DC, leaf Leaf, tr int64) (*Table, error) {
	top, err := topo.Parse(fmt.Sprintf("rank:%d", c.Size()))
	if err != nil {
		return nil, err
	}
	return New(c, Config{Topology: top, Thresholds: Thresholds{TR: tr, TDC: TDC{Ranks: c.Size()}}, DC: dc, Leaf: leaf})
}

// A role is what a rank does with a lock whose counter is at a place.
type role func(l *Table, at counter) error

// play has rank 0 share a lock, and then each rank play its role. At the end the lock is as it
// was. wrap is what hook.Delay calls at each rank.
func play(t *testing.T, dc DC, leaf Leaf, tr int64, wrap func(rank int, e hook.Event), roles [3]role) {
	t.Helper()
	err := inproc.Run(3, func(c rma.Comm) error {
		l, err := openTable(hook.Delay(c, func(e hook.Event) int64 {
			wrap(c.Rank(), e)
			return 0
		}), dc, leaf, tr)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := l.Lock(context.Background(), 0, lock.Shared); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if err := roles[c.Rank()](l, l.counter(0, 0)); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if err := l.Idle(); err != nil {
			t.Error(err)
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitWord waits until a word of a counter is as wanted.
func awaitWord(l *Table, at counter, word int, wanted func(v int64) bool) error {
	for try := 0; ; try++ {
		v, err := l.tree.W.GetFlush(at.host, at.disp+word)
		if err != nil || wanted(v) {
			return err
		}
		if err := l.tree.W.Backoff(at.host, at.disp+word, v, try); err != nil {
			return err
		}
	}
}

// writes is the role of a writer that looks at a word of the counter while it is in.
func writes(word int, look func(v int64)) role {
	return func(l *Table, at counter) error {
		if err := l.Lock(context.Background(), 0, lock.Exclusive); err != nil {
			return err
		}
		v, err := l.tree.W.GetFlush(at.host, at.disp+word)
		if err != nil {
			return err
		}
		look(v)
		return l.Unlock(0, lock.Exclusive)
	}
}

// TestTRIsGrantedAtASymmetricCounter: while a writer waits and a reader is in, the phase
// lets in T_R readers, no less and no more; then the writer is in, and then the readers
// that waited. Section 3.2.3 of rma-rw.
func TestTRIsGrantedAtASymmetricCounter(t *testing.T) {
	const tr = 4
	waits := make(chan struct{}) // closed when the writer waits for the readers
	var once sync.Once
	play(t, Symmetric, MCS, tr, func(rank int, e hook.Event) {
		if rank == 1 && (e.Step == hook.StepBackoff || e.Step == hook.StepAwait) {
			once.Do(func() { close(waits) })
		}
	}, [3]role{
		func(l *Table, at counter) error { // until the reader beyond T_R has arrived, or cannot
			if err := awaitWord(l, at, arrive, func(a int64) bool { return a&write != 0 || countOf(a) > tr }); err != nil {
				return err
			}
			return l.Unlock(0, lock.Shared)
		},
		writes(arrive, func(a int64) {
			if countOf(a) != tr+1 {
				t.Errorf("the writer is in after %d arrivals, want T_R = %d and the one that waits", countOf(a), tr)
			}
		}),
		func(l *Table, at counter) error {
			<-waits
			for i := 2; i <= tr; i++ {
				got, err := l.TryLock(0, lock.Shared)
				if err != nil {
					return err
				}
				if !got {
					return fmt.Errorf("reader %d of a phase with T_R = %d is refused", i, tr)
				}
				if err := l.Unlock(0, lock.Shared); err != nil {
					return err
				}
			}
			if got, err := l.TryLock(0, lock.Shared); got || err != nil {
				t.Errorf("reader %d of a phase with T_R = %d tries: %v, %v", tr+1, tr, got, err)
			}
			w := l.tree.W
			g, err := w.GetFlush(at.host, at.disp+opened)
			if err != nil {
				return err
			}
			if err := l.Lock(context.Background(), 0, lock.Shared); err != nil { // waits for the writer
				return err
			}
			now, err := w.GetFlush(at.host, at.disp+opened)
			if err != nil {
				return err
			}
			if now != g+1 {
				t.Errorf("the reader beyond T_R is in with OPENED %d, want %d", now, g+1)
			}
			return l.Unlock(0, lock.Shared)
		},
	})
}

// TestLateReaderSeesManyPhases: a reader that only tries may look at OPENED and DEPART any
// number of phases after it looked at ARRIVE. It must see that the phase is another one,
// or it waits for a change that does not come.
func TestLateReaderSeesManyPhases(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		l, err := openTable(c, Symmetric, MCS, 1)
		if err != nil {
			return err
		}
		ctx, w, at := context.Background(), l.tree.W, l.counter(0, 0)
		if err := l.Lock(ctx, 0, lock.Shared); err != nil {
			return err
		}
		if err := l.Unlock(0, lock.Shared); err != nil {
			return err
		}
		a, err := w.GetFlush(at.host, at.disp+arrive) // of a full phase
		if err != nil {
			return err
		}
		for phases := 1; phases <= 1000; phases++ {
			if err := l.Lock(ctx, 0, lock.Exclusive); err != nil {
				return err
			}
			if err := l.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
			over, err := l.phaseOver(at, 0, a)
			if err != nil {
				return err
			}
			if over || l.blockedAt != (counter{at.host, at.disp + arrive}) || l.blockedBy != a {
				return fmt.Errorf("%d phases later: over is %v, and the reader waits for displacement %d of rank %d to change from %#x; want ARRIVE, from %#x",
					phases, over, l.blockedAt.disp, l.blockedAt.host, l.blockedBy, a)
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPhasesDoNotComeBack: neither ARRIVE nor ADMISSION is what it was many phases before.
func TestPhasesDoNotComeBack(t *testing.T) {
	a, d := int64(0), int64(0)
	for phases := range 1 << 20 {
		if a, d = arriveAfter(a), nextOpen(d); a == 0 || d == 0 {
			t.Fatalf("after %d phases ARRIVE is %#x and ADMISSION %#x, as at the beginning", phases+1, a, d)
		}
	}
}
