package locktest

import (
	"context"
	"fmt"
	"time"

	"github.com/rmalock/rmalock/lock"
)

var tryChecks = []check{
	{"Shared/ReadersShare", checkReadersShare},
	{"Try/Free", checkTryFree},
	{"Try/Held", checkTryHeld},
	{"Deadline/Free", checkDeadlineFree},
	{"Deadline/Held", checkDeadlineHeld},
	{"Deadline/Contended", checkDeadlineContended},
}

// checkReadersShare: all ranks are in at once, and again after a writer was in.
func checkReadersShare(p *probe) {
	if !p.info.Shared {
		return
	}
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	for i := range p.Rounds(20, 4) {
		h.enter(0, lock.Shared, way(i%2))
		p.Meet() // with all ranks in
		h.guarded(0, lock.Shared)
		h.leave(0, lock.Shared, way(i%2))
		p.Meet()
		if p.Rank() == i%p.Size() {
			h.visit(0, lock.Exclusive, byTable)
		}
		p.Meet()
	}
	h.close()
}

// trial checks what TryLock of a quiet lock says, and lets go what it took.
func (h *fixture) trial(id int, mode lock.Mode, want bool, state string) {
	got, err := h.t.TryLock(id, mode)
	h.p.OK(err)
	if got != want {
		h.p.Failf("TryLock in %v mode of a lock that is %s: %v", mode, state, got)
	}
	if got {
		h.guarded(id, mode)
		h.p.OK(h.t.Unlock(id, mode))
	}
}

// checkTryFree: TryLock takes a free lock, however it came to be free.
func checkTryFree(p *probe) {
	h := p.fixture(2, 0)
	if h == nil {
		return
	}
	if h.tries {
		for _, mode := range p.modes() {
			p.inTurn(func() { h.trial(1%h.t.Len(), mode, true, "new") })
			for range p.Rounds(20, 2) {
				h.visit(0, mode, byTable)
			}
			p.inTurn(func() { h.trial(0, mode, true, "free after a crowd") })
		}
	}
	h.close()
}

// checkTryHeld: TryLock does not take a held lock, does not wait, and leaves no
// trace; readers are let in beside readers.
func checkTryHeld(p *probe) {
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	for _, holder := range []int{0, p.Size() - 1} {
		for _, held := range p.modes() {
			if p.Rank() == holder {
				h.enter(0, held, byTable)
			}
			for range p.Rounds(5, 1) {
				p.inTurn(func() {
					if p.Rank() == holder || !h.tries {
						return
					}
					for _, mode := range p.modes() {
						h.trial(0, mode, held == lock.Shared && mode == lock.Shared, fmt.Sprintf("held in %v mode", held))
					}
				})
			}
			if p.Rank() == holder {
				h.guarded(0, held)
				h.leave(0, held, byTable)
			}
			p.inTurn(func() {
				if h.tries {
					h.trial(0, held, true, "free after a holder and tries")
				}
			})
		}
	}
	h.visit(0, lock.Exclusive, byTable)
	h.close()
}

// checkDeadlineFree: a context that can end is no reason not to take a free lock.
func checkDeadlineFree(p *probe) {
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	if h.tries {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for _, mode := range p.modes() {
			p.inTurn(func() {
				err := h.t.Lock(ctx, 0, mode)
				if p.OK(err); err == nil {
					h.guarded(0, mode)
					p.OK(h.t.Unlock(0, mode))
				}
			})
		}
	}
	h.close()
}

// checkDeadlineHeld: Lock gives up when its context ends, at once or after some
// tries, in any mode, with all ranks at it; afterwards the lock is as it was.
func checkDeadlineHeld(p *probe) {
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, holder := range []int{0, p.Size() - 1} {
		if p.Rank() == holder {
			h.enter(0, lock.Exclusive, byTable)
		}
		p.Meet()
		if p.Rank() != holder && h.tries {
			for i := range p.Rounds(10, 3) {
				for _, mode := range p.modes() {
					for _, ctx := range []context.Context{cancelled, tries(1 + i)} {
						p.Is("Lock of a held lock with a context that ends", h.t.Lock(ctx, 0, mode), lock.ErrDeadline)
					}
				}
			}
		}
		p.Meet()
		if p.Rank() == holder {
			h.guarded(0, lock.Exclusive)
			h.leave(0, lock.Exclusive, byTable)
		}
		p.inTurn(func() {
			if h.tries {
				h.trial(0, lock.Exclusive, true, "free after deadlines passed")
			}
		})
		for i := range p.Rounds(20, 3) {
			h.visit(0, p.modes()[i%len(p.modes())], byTable)
		}
		p.Meet()
	}
	h.close()
}

// checkDeadlineContended: some ranks wait with deadlines, others without; those
// without get in as often as they want.
func checkDeadlineContended(p *probe) {
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	patient := p.Rank()%2 == 0
	in := 0
	for i := range p.visits() {
		w := byDeadline
		if patient {
			w = byTable
		}
		if h.visit(0, p.modes()[i%len(p.modes())], w) {
			in++
		}
	}
	if patient {
		p.Equal("the visits of a rank without a deadline", int64(in), int64(p.visits()))
	}
	h.close()
}
