package locktest

import (
	"context"
	"errors"
	"fmt"

	search "github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/rmatest"
)

var errorChecks = []check{
	{"Errors/Transport", checkTransportErrors},
}

// aim is a Failure of the n'th step that a rank makes while armed.
type aim struct {
	nth   int
	armed bool
	seen  int
}

func (a *aim) failure(cutOff bool) hook.Failure {
	return hook.Failure{Nth: a.nth, CutOff: cutOff, Match: func(hook.Event) bool {
		if a.armed {
			a.seen++
		}
		return a.armed
	}}
}

// hit reports whether the step was made.
func (a *aim) hit() bool { return a.seen >= a.nth }

// limit bounds the steps of an uncontended round trip: more is a lock that loops.
const limit = 1000

// checkTransportErrors: whatever step of a rank fails while no other rank wants the
// lock, its call returns the error, without a panic. Every step fails
// once, or some of them where opening a table takes long.
func checkTransportErrors(p *probe) {
	for nth := 1; nth <= limit; nth += p.Rounds(1, 4) {
		a := &aim{nth: nth}
		c := p.Comm
		if p.Rank() == 0 {
			c = hook.Fault(c, a.failure(false))
		}
		t := p.tableOn(c, 1, p.Size()-1)
		if t == nil {
			return
		}
		p.Meet()
		if p.Rank() == 0 {
			a.armed = true
			err := p.roundTrip(t)
			a.armed = false
			if a.hit() && !errors.Is(err, rma.ErrTransport) {
				p.Failf("step %d failed, and no call said so: %v", nth, err)
			}
			if !a.hit() {
				p.OK(err)
			}
		}
		more := int64(0)
		if a.hit() {
			more = 1
		}
		p.free(t)
		if p.Gather(more)[0] == 0 {
			return
		}
	}
	p.Failf("more than %d steps for an uncontended round trip", limit)
}

// roundTrip locks and unlocks in all modes and ways, until something fails.
func (p *probe) roundTrip(t lock.Table) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.Failf("panic after a step failed: %v", r)
		}
	}()
	for _, mode := range p.modes() {
		for range 2 {
			if err := t.Lock(context.Background(), 0, mode); err != nil {
				return err
			}
			if err := t.Unlock(0, mode); err != nil {
				return err
			}
		}
		got, err := t.TryLock(0, mode)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			return err
		}
		if !got {
			p.Failf("TryLock of a free lock in %v mode failed", mode)
			return nil
		}
		if err := t.Unlock(0, mode); err != nil {
			return err
		}
	}
	return nil
}

// deaths is how many steps CheckDeath tries. A rank that polls makes any number.
const deaths = 60

// CheckDeath runs nodes times perNode ranks on rma/inproc through a lock, and cuts
// rank 0 off from the others at its first step, then at its second, and so on: its
// own calls then return errors, and so do those of all ranks that wait for it when it has
// left. No rank hangs and none panics.
func CheckDeath(nodes, perNode int, info lock.Info) error {
	for nth := 1; nth <= deaths; nth++ {
		a := &aim{nth: nth}
		errs := make([]error, nodes*perNode)
		err := rmatest.Watched(nodes, perNode, hung)(func(c rma.Comm) error {
			rank := c.Rank()
			errs[rank] = death(c, info, a)
			return errs[rank]
		})
		if errors.Is(err, errors.ErrUnsupported) || !a.hit() { // then no rank died
			return err
		}
		if err == nil || errs[0] == nil {
			return fmt.Errorf("rank 0 was cut off at step %d, and no call of it said so: %v", nth, err)
		}
		for rank, err := range errs {
			if err != nil && !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("rank 0 was cut off at step %d: rank %d got %w, want an error that wraps %q", nth, rank, err, rma.ErrPeer)
			}
		}
	}
	return nil
}

// CheckRecovery checks a lock that recovers (lock.Info.Recovers) on rma/sim, whose clock advances
// by tickNs: a few of these are the lock's leases and limits. Ranks die at any step, are slower
// than their leases, and have successors; see check.Recovery. It returns the first failure.
func CheckRecovery(info lock.Info, size search.Size, tickNs int64) error {
	if !info.Recovers {
		return fmt.Errorf("locktest: %s does not say that it recovers: %w", info.Name, errors.ErrUnsupported)
	}
	for _, i := range search.Recovery(info, size, tickNs) {
		r, err := i.Run()
		if err == nil && r.Failure != nil {
			err = r.Failure
		}
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name, err)
		}
	}
	return nil
}

// death is one rank's part in CheckDeath.
func death(c rma.Comm, info lock.Info, a *aim) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	d := c
	if c.Rank() == 0 {
		d = hook.Fault(c, a.failure(true))
	}
	t, err := info.Open(d, 1, c.Size()-1)
	if err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	if c.Rank() == 0 {
		a.armed = true
	}
	for range 4 {
		for mode := lock.Exclusive; mode <= lock.Shared; mode++ {
			if err := t.Lock(context.Background(), 0, mode); err != nil {
				return err
			}
			if err := t.Unlock(0, mode); err != nil {
				return err
			}
		}
	}
	if c.Rank() == 0 {
		a.armed = false
	}
	return t.Free()
}
