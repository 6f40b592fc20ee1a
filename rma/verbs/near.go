//go:build cgo && verbs

package verbs

import (
	"runtime"
	"sync/atomic"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// near is the transport of a window whose ranks are all of this process: the Window does the
// operations itself, and near waits.
type near struct {
	m      *nearmem.Memory
	life   *life
	rank   int
	waiter nearmem.Waiter
	free   func() error
	held   []rma.Operation // of a window that is decorated
}

func newNear(m *nearmem.Memory, l *life, rank int, free func() error) *near {
	return &near{m: m, life: l, rank: rank, free: free, waiter: nearmem.Waiter{Memory: m, Now: monotonic, Ended: l.failed, Why: l.why}}
}

func (t *near) Issue(o rma.Operation) { t.held = append(t.held, o) }

func (t *near) Flush(target int, r *rma.Results) (int, error) {
	kept := t.held[:0]
	for _, o := range t.held {
		if target >= 0 && o.Target != target {
			kept = append(kept, o)
			continue
		}
		o.Apply(t.m.Word(o.Target, o.Disp), r)
		if o.Kind.Writes() && o.ParkedOn(t.m.Part(o.Target)) {
			t.m.Wake(o.Target)
		}
	}
	clear(t.held[len(kept):])
	t.held = kept
	return len(kept), nil
}

func (t *near) Await(q rma.Waiting) (int, int64, error) { return t.waiter.Await(q) }

func (t *near) Backoff(_, _ int, _ int64, try int) error {
	pace(try, yields)
	return t.life.check()
}

func (t *near) SpinBriefly(disp int, seen int64) {
	p := t.m.Word(t.rank, disp)
	for i := 0; i < 4 && atomic.LoadInt64(p) == seen; i++ {
		runtime.Gosched()
	}
}

func (t *near) SyncInboundStores() error { return nil }
func (t *near) HandedOver(int)           { runtime.Gosched() }
func (t *near) Wake(target int)          { t.m.Wake(target) }
func (t *near) Free() error              { return t.free() }
