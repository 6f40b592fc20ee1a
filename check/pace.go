package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rmalock/rmalock/rma/sim"
)

// A Pace says when the clock of a search may advance.
type Pace uint8

const (
	// AnyTime: at any step.
	AnyTime Pace = iota
	// Forced: only where nothing else can happen.
	Forced
	// Timely: also where each rank in a visit has shown since the last tick that it lives. It does
	// when its visit begins, and when it waits no longer, since a limit has passed or it tries again.
	// So no rank is silent for two ticks, which a lock takes for two leases. Not for searches of all
	// schedules.
	Timely
	// Hasty: at any step, and often. Not for searches of all schedules.
	Hasty
)

// The errors that a check finds where living ranks are never silent for long.
var (
	ErrWaits = errors.New("ranks wait for the clock though none has died")
	ErrTaken = errors.New("a rank that lives is taken for dead")
	ErrMore  = errors.New("the lock counts more of them than there were deaths")
)

// often is the number of steps to one tick that is not forced, where it may come.
var often = [...]int{Timely: 3, Hasty: 12}

// paced is a Scheduler of ticks at a pace.
type paced struct {
	sim.Scheduler
	h    *monitor
	pace Pace
	pcg  rand.PCG
	rng  *rand.Rand
	next uint64 // execution
}

// pacedSearch is a search of all schedules with forced ticks alone.
type pacedSearch struct{ *sim.ExhaustiveSearch }

// atPace is a scheduler whose ticks come at a plan's pace.
func (p *Plan) atPace(s sim.Scheduler, h *monitor) (sim.Scheduler, error) {
	x, all := s.(*sim.ExhaustiveSearch)
	switch {
	case p.Pace == AnyTime:
		return s, nil
	case !all:
		return &paced{Scheduler: s, h: h, pace: p.Pace}, nil
	case p.Pace == Forced:
		return pacedSearch{x}, nil
	}
	return nil, fmt.Errorf("check: Plan.Pace is %d, which a search of all schedules does not have", p.Pace)
}

func (s pacedSearch) Next(st *sim.State) int {
	hideTick(st)
	return s.ExhaustiveSearch.Next(st)
}

// hideTick hides a tick that is not forced, and returns its index, or -1.
func hideTick(st *sim.State) int {
	last := len(st.Steps) - 1
	if k := &st.Steps[last]; k.Kind != sim.StepTick || k.Must {
		return -1
	}
	st.Steps = st.Steps[:last]
	return last
}

func (s *paced) Begin() bool {
	s.pcg.Seed(s.next, 1)
	s.rng = rand.New(&s.pcg)
	s.next++
	return s.Scheduler.Begin()
}

func (s *paced) Next(st *sim.State) int {
	tick := hideTick(st)
	if tick >= 0 && (s.pace == Hasty || s.pace == Timely && s.h.allTimely()) && s.rng.IntN(often[s.pace]) == 0 {
		st.Steps = st.Steps[:tick+1]
		return tick
	}
	return s.Scheduler.Next(st)
}

// visiting is a rank's visit, for Timely.
type visiting struct {
	s     *sim.Comm // nil outside
	began int64     // when
	ops   int       // operations before
}

// fresh are the operations after which a rank has shown that it lives: the first one does, and is
// complete when the second begins.
const fresh = 2

// allTimely reports whether each rank in a visit has shown at this time that it lives.
func (h *monitor) allTimely() bool {
	return !slices.ContainsFunc(h.visiting, func(v visiting) bool {
		if v.s == nil {
			return false
		}
		n, now := v.s.Counts(), h.s.Clock()
		return !(v.began == now && n.All() >= v.ops+fresh || n.Woke == now && n.All() >= n.WokeAfter+fresh)
	})
}

// visits notes that a rank begins a visit, or ends one.
func (h *monitor) visits(s *sim.Comm, begins bool) {
	v := visiting{}
	if begins {
		v = visiting{s, s.Clock(), s.Counts().All()}
	}
	h.visiting[s.WorldRank()] = v
}

// takenForDead fails a check in which no living rank is to be taken for dead.
func (h *monitor) takenForDead(c *sim.Comm, what string) {
	if h.calm {
		c.Fail(fmt.Errorf("%w: rank %d %s", ErrTaken, c.WorldRank(), what))
	}
}

// counting is a table that counts what it does.
type counting interface{ Counts() map[string]int64 }

// counted compares what tables have counted with the deaths, when all ranks have finished.
func (k *client) counted() error {
	t, ok := k.table.(counting)
	if !ok || k.p.PerDeath == "" || k.m.states {
		return nil
	}
	all, err := k.s.Allgather([]int64{t.Counts()[k.p.PerDeath]})
	if err != nil {
		return err
	}
	n := int64(0)
	for _, one := range all {
		n += one
	}
	if n > int64(k.m.deaths) {
		return fmt.Errorf("%w: %d %s after %d deaths", ErrMore, n, k.p.PerDeath, k.m.deaths)
	}
	return nil
}
