package inproc

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// transport is one rank's access to words of other nodes, and its way to wait.
type transport struct {
	m       *nearmem.Memory
	world   *world
	rank    int
	pending []rma.Operation // issued, not flushed
	waiter  nearmem.Waiter
	free    func() error
}

func newTransport(m *nearmem.Memory, w *world, rank int, free func() error) *transport {
	return &transport{
		m: m, world: w, rank: rank, free: free,
		waiter: nearmem.Waiter{Memory: m, Now: w.now, Ended: w.failed, Why: w.peer},
	}
}

func (t *transport) Issue(o rma.Operation) { t.pending = append(t.pending, o) }

func (t *transport) Flush(target int, r *rma.Results) (int, error) {
	kept := t.pending[:0]
	for i := range t.pending {
		o := &t.pending[i]
		if target >= 0 && o.Target != target {
			kept = append(kept, *o)
			continue
		}
		o.Apply(t.m.Word(o.Target, o.Disp), r)
		if o.Kind.Writes() && o.ParkedOn(t.m.Part(o.Target)) {
			t.m.Wake(o.Target)
		}
	}
	clear(t.pending[len(kept):])
	t.pending = kept
	return len(kept), nil
}

func (t *transport) Await(q rma.Waiting) (int, int64, error) { return t.waiter.Await(q) }

// Backoff yields. From the thousandth try in a row on it sleeps 20 us instead, so that ranks
// do not burn the processors while the holder of a lock sleeps.
func (t *transport) Backoff(_, _ int, _ int64, try int) error {
	if try >= 1000 {
		time.Sleep(20 * time.Microsecond)
	} else {
		runtime.Gosched()
	}
	select {
	case <-t.world.failed:
		return t.world.peer()
	default:
		return nil
	}
}

const briefYields = 4 // yields of a SpinBriefly

// SpinBriefly yields to other goroutines a few times.
func (t *transport) SpinBriefly(disp int, seen int64) {
	p := t.m.Word(t.rank, disp)
	for i := 0; i < briefYields && atomic.LoadInt64(p) == seen; i++ {
		runtime.Gosched()
	}
}

// SyncInboundStores has nothing to do: stores take effect at once.
func (t *transport) SyncInboundStores() error { return nil }

// HandedOver yields to other goroutines.
func (t *transport) HandedOver(int) { runtime.Gosched() }

func (t *transport) Wake(target int) { t.m.Wake(target) }

func (t *transport) Free() error { return t.free() }
