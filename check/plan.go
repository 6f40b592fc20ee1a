package check

import (
	"fmt"
	"math/rand/v2"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// A Plan is a use of a lock to check: the ranks and their acquires, the machine, and faults.
type Plan struct {
	Info     lock.Info
	Params   map[string]string // of the lock, as in lock.Setting
	Ranks    int
	Acquires int // of each rank
	// Writers is the number of ranks that take the lock exclusively, from rank 0 on; the
	// others share it. Mixed draws the mode of each acquire. It has no meaning for a lock
	// without a shared mode.
	Writers  int
	Seed     uint64         // of the modes drawn
	Tries    bool           // every other acquire is a TryLock, or a Lock that gives up
	Guard    bool           // holders change and read words that the lock guards
	Topology *topo.Topology // nil for one node
	Faults   []sim.Fault
	MaxSteps int // as of sim.Search
	// CPUFar, as of sim.Search, has the CPU's atomics and the network's on one word not atomic
	// with each other.
	CPUFar bool

	// As of sim.Search: memory nodes, advances of the clock and by how much, deaths and
	// successors, and after how many ticks operations have taken effect. An execution in which a rank dies or loses its lease is checked as
	// lock.Info.Recovers says.
	MemoryNodes      int
	Ticks            int
	TickNs           int64
	Crashes, Rejoins int
	MaxDelay         int

	// Pace says when the clock may advance. Where it is Forced or Timely no living rank is silent for
	// long: then it is a failure if one is taken for dead.
	Pace Pace
	// Prompt says that ranks never wait for the clock, where nothing else can happen, before one has
	// died. Recover, if not 0, is how many such ticks there are at most, as often as ranks die.
	Prompt  bool
	Recover int
	// PerDeath, if not "", is something that tables count, of which there is no more than there are
	// deaths. It has no effect in a search of all schedules.
	PerDeath string

	// Disturb, if not nil, decorates the Comm on which a rank opens its lock; at is the
	// rank's position in its visits.
	Disturb Disturb

	// Stands says that the lock keeps in its handle all that it knows when it reads the clock, and
	// nothing in variables of its functions. An exhaustive search then has far fewer states, and
	// does not compare operations with the promise.
	Stands bool

	// Alike says that ranks with the same visits may change places: no word holds the number of a
	// rank, and no function of the lock asks for it after the lock is opened. An exhaustive search
	// then takes states that differ by such ranks for one. It does so only for ranks whose handles are
	// equal when they are opened. A function that asks its Comm for a rank, and a window on ranks, are
	// errors (sim.ErrAlike). A function that asks its window for a rank goes unnoticed.
	Alike bool

	Tick func() // if not nil, called at the beginning of every execution

	uncounted bool // operations are not compared with the promise
	reopen    bool // the lock is opened for each execution
}

// Mixed is a Plan.Writers.
const Mixed = -1

// A Phase is a part of a visit.
type Phase uint8

const (
	Outside   Phase = iota // between visits
	Acquiring              // in Lock
	Trying                 // in TryLock
	Inside                 // the rank holds the lock
	Releasing              // in Unlock
)

func (p Phase) String() string {
	if name, ok := operations[p]; ok {
		return name
	}
	return [...]string{"outside", "acquire", "try", "inside", "release"}[p]
}

// A Position is a phase of one visit of a rank.
type Position struct {
	Visit int // of the rank, from 0
	Phase Phase
	Mode  lock.Mode
}

// validate reports what is wrong with a plan.
func (p *Plan) validate() error {
	switch {
	case p.Info.Open == nil:
		return fmt.Errorf("check: no lock: %w", lock.ErrConfig)
	case p.Ranks < 1 || p.Ranks > 1<<16:
		return fmt.Errorf("check: %d ranks, want 1 to %d: %w", p.Ranks, 1<<16, lock.ErrConfig)
	case p.Acquires < 1:
		return fmt.Errorf("check: %d acquires per rank, want at least 1: %w", p.Acquires, lock.ErrConfig)
	case p.Writers < Mixed || p.Writers > p.Ranks:
		return fmt.Errorf("check: %d writers, want 0 to %d, or %d for modes drawn at random: %w", p.Writers, p.Ranks, Mixed, lock.ErrConfig)
	}
	for _, n := range []int{p.MemoryNodes, p.Ticks, int(p.TickNs), p.Crashes, p.Rejoins, p.MaxDelay} {
		if n < 0 {
			return fmt.Errorf("check: %d memory nodes, %d ticks of %d ns, %d crashes, %d rejoins, want no negative number: %w",
				p.MemoryNodes, p.Ticks, p.TickNs, p.Crashes, p.Rejoins, lock.ErrConfig)
		}
	}
	for _, f := range p.Faults {
		if f.Rank < 0 || f.Rank >= p.Ranks || f.Step < 0 || f.For < 0 {
			return fmt.Errorf("check: a fault of rank %d after %d steps for %d, want a rank from 0 to %d and no negative numbers: %w",
				f.Rank, f.Step, f.For, p.Ranks-1, lock.ErrConfig)
		}
	}
	if p.Stands && p.Tries {
		return fmt.Errorf("check: Plan.Stands with tries: when a context ends is not in the lock's handle: %w", lock.ErrConfig)
	}
	if p.Alike && (p.Tries || p.MemoryNodes == 0 || p.Topology != nil || p.Disturb != nil || p.Guard || len(p.Faults) > 0) {
		return fmt.Errorf("check: ranks that are alike need memory nodes, and no tries, topology, Disturb, Guard or faults: %w", lock.ErrConfig)
	}
	if p.Topology != nil {
		if err := p.Topology.Fits(p.Ranks); err != nil {
			return err
		}
	}
	return nil
}

// open opens the lock on the plan's machine.
func (p *Plan) open(c rma.Comm) (lock.Table, error) {
	return p.Info.With(c, lock.Setting{Locks: 1, Topology: p.Topology, Params: p.Params})
}

// hazards reports whether ranks may die, or lose a lease.
func (p *Plan) hazards() bool { return p.Crashes > 0 || p.Ticks > 0 || len(p.Faults) > 0 }

// nodes is the node of each rank.
func (p *Plan) nodes() []int {
	out := make([]int, p.Ranks)
	if p.Topology == nil {
		return out
	}
	level, ok := p.Topology.Find("node")
	if !ok {
		return out
	}
	for r := range out {
		out[r] = p.Topology.Element(r, level)
	}
	return out
}

// machine is a topology from its text.
func machine(text string) *topo.Topology {
	if text == "" {
		return nil
	}
	t, err := topo.Parse(text)
	if err != nil {
		panic(err) // the texts are this package's
	}
	return t
}

// A visit is one acquire of a rank.
type visit struct {
	mode     lock.Mode
	try      bool
	patience int // checks of a context until it ends; 0 for one that does not end
}

// visits draws the visits of a rank.
func (p *Plan) visits(rank int) []visit {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)))
	out := make([]visit, p.Acquires)
	for i := range out {
		shared := p.Info.Shared && rank >= p.Writers
		if p.Writers == Mixed {
			shared = p.Info.Shared && rng.IntN(2) == 0
		}
		if shared {
			out[i].mode = lock.Shared
		}
		if p.Tries && (rank+i)%2 == 1 {
			if rng.IntN(2) == 0 {
				out[i].patience = 1 + rng.IntN(2)
			} else {
				out[i].try = true
			}
		}
	}
	return out
}
