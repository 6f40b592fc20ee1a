package locktest

import (
	"context"
	"fmt"
	"regexp"

	"github.com/rmalock/rmalock/lock"
)

var misuseChecks = []check{
	{"Misuse/UnlockOfUnlocked", checkUnlockOfUnlocked},
	{"Misuse/LockOfHeld", checkLockOfHeld},
}

// panics checks that f panics with a text that says so and begins with a package.
func (p *probe) panics(what, text string, f func()) {
	if p.Lost() {
		return
	}
	defer func() {
		got := recover()
		if got == nil {
			p.Failf("%s does not panic", what)
		} else if ok, _ := regexp.MatchString("^[a-z]+: "+text, fmt.Sprint(got)); !ok {
			p.Failf("%s panics with %q, want \"<package>: %s\"", what, fmt.Sprint(got), text)
		}
	}()
	f()
}

// checkUnlockOfUnlocked: of a new lock, of one that was unlocked, and of one that
// another rank holds.
func checkUnlockOfUnlocked(p *probe) {
	const text = "unlock of unlocked lock$"
	h := p.fixture(2, 0)
	if h == nil {
		return
	}
	other := 1 % h.t.Len()
	for _, mode := range p.modes() {
		p.panics("Unlock of a new lock", text, func() { p.OK(h.t.Unlock(other, mode)) })
		h.visit(0, mode, byTable)
		p.panics("the second Unlock", text, func() { p.OK(h.t.Unlock(0, mode)) })
		p.Meet()
	}
	m := h.handles[other]
	p.panics("Unlock of a handle", text, func() { p.OK(m.Unlock()) })
	if rw, ok := m.(lock.RWMutex); ok {
		p.panics("RUnlock of a handle", text, func() { p.OK(rw.RUnlock()) })
	}
	if p.Rank() == 0 {
		h.enter(0, lock.Exclusive, byTable)
	}
	p.Meet()
	if p.Rank() != 0 {
		p.panics("Unlock of a lock that rank 0 holds", text, func() { p.OK(h.t.Unlock(0, lock.Exclusive)) })
	}
	p.Meet()
	if p.Rank() == 0 {
		h.guarded(0, lock.Exclusive)
		h.leave(0, lock.Exclusive, byTable)
	}
	h.visit(0, lock.Exclusive, byHandle) // the lock is as good as before
	h.close()
}

// checkLockOfHeld: locks are not recursive, in any mode.
func checkLockOfHeld(p *probe) {
	h := p.fixture(1, 0)
	if h == nil {
		return
	}
	p.inTurn(func() {
		for _, held := range p.modes() {
			for _, mode := range p.modes() {
				h.enter(0, held, byTable)
				p.panics(fmt.Sprintf("Lock in %v mode of a lock held in %v mode", mode, held), ".", func() {
					p.OK(h.t.Lock(context.Background(), 0, mode))
				})
				h.guarded(0, held)
				h.leave(0, held, byTable)
			}
		}
	})
	h.visit(0, lock.Exclusive, byTable)
	h.close()
}
