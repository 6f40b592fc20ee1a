package sim

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
	groups "github.com/rmalock/rmalock/rma/internal/group"
)

// A Comm is the handle of one rank on a group of the simulated job.
type Comm struct {
	r    *rank
	g    *group
	rank int
}

var _ rma.Comm = (*Comm)(nil)

// group is a communicator.
type group struct {
	ranks   []*rank
	nodes   []rma.Node
	where   []int32 // rank -> index in nodes
	arrived int
	brought []any
	combine func(brought []any) any // of the collective call
}

// newGroup makes a group whose rank i lies on the node named node[i].
func newGroup(ranks []*rank, node []int) *group {
	g := &group{ranks: ranks}
	g.nodes, g.where = groups.Nodes(node)
	return g
}

// mates reports whether two ranks share memory.
func (g *group) mates(a, b int) bool { return g.where[a] == g.where[b] }

// meet is a collective call: the last living rank to enter it runs combine on the values of
// all, nil for the dead, and all return its result. An error of combine is every rank's.
func (c *Comm) meet(v any, combine func(brought []any) any) (any, error) {
	g, w := c.g, c.r.w
	if c.r.generation > 0 && !c.r.begun {
		return nil, fmt.Errorf("sim: rank %d is a successor, whose collective calls before Begin the others have made: %w", c.r.id, errors.ErrUnsupported)
	}
	w.engine.enter(c.r)
	if w.failed != nil {
		return nil, w.peer()
	}
	if g.arrived == 0 {
		g.brought = make([]any, len(g.ranks)) // not reused: slow ranks still read the last one
	}
	g.brought[c.rank], g.combine = v, combine
	g.arrived++
	if g.arrived < g.living() {
		c.r.park(meeting)
	} else {
		g.finish(c.r)
	}
	if w.failed != nil {
		return nil, w.peer()
	}
	if err, ok := c.r.met.(error); ok {
		return nil, err
	}
	return c.r.met, nil
}

// finish ends a collective call; last is the rank that entered it last, or nil.
func (g *group) finish(last *rank) {
	g.arrived = 0
	var out any
	if g.combine != nil {
		out = g.combine(g.brought)
	}
	g.brought, g.combine = nil, nil
	for _, r := range g.ranks {
		r.met = out
	}
	g.ranks[0].w.engine.met(g, last)
}

// living is the number of ranks that have not died.
func (g *group) living() int {
	n := len(g.ranks)
	if g.ranks[0].w.dead == 0 {
		return n
	}
	for _, r := range g.ranks {
		if r.state == dead {
			n--
		}
	}
	return n
}

// Rank is of rma.Comm.
func (c *Comm) Rank() int { return c.rank }

// Size is of rma.Comm.
func (c *Comm) Size() int { return len(c.g.ranks) }

// Node is of rma.Comm.
func (c *Comm) Node() rma.Node { return c.g.nodes[c.g.where[c.rank]] }

// MemoryNodes is of rma.Comm.
func (c *Comm) MemoryNodes() int { return c.r.w.memoryNodes }

// Simulated is for rma.Simulated.
func (c *Comm) Simulated() bool { return true }

// Describe names the engine.
func (c *Comm) Describe() string { return c.r.w.engine.name() }

// Barrier is of rma.Comm.
func (c *Comm) Barrier() error {
	_, err := c.meet(nil, nil)
	return err
}

// Combine is for rma.Combine.
func (c *Comm) Combine(v any, f func(all []any) (any, error)) (any, error) {
	return c.meet(v, func(brought []any) any {
		out, err := f(brought)
		if err != nil {
			return err
		}
		return out
	})
}

// Allgather returns one slice to all ranks; it is not to be changed. Ranks that have died bring
// zeros.
func (c *Comm) Allgather(words []int64) ([]int64, error) {
	out, err := c.meet(append([]int64(nil), words...), func(brought []any) any {
		all := make([]int64, 0, len(words)*len(brought))
		for r, v := range brought {
			part, ok := v.([]int64)
			if !ok {
				part = make([]int64, len(words))
			}
			if len(part) != len(words) {
				return fmt.Errorf("sim: Allgather of %d words at rank %d and of %d at rank %d: %w", len(words), c.rank, len(part), r, rma.ErrMismatch)
			}
			all = append(all, part...)
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	return out.([]int64), nil
}

// Split is of rma.Comm.
func (c *Comm) Split(color, key int) (rma.Comm, error) {
	out, err := c.meet(groups.Member{Color: color, Key: key, Rank: c.rank}, func(brought []any) any { return split(c.g, brought) })
	if err != nil || color < 0 {
		return nil, err
	}
	part := out.([]*Comm)[c.rank]
	return part, nil
}

// split makes the new handle of every rank; nil for those with a negative color.
func split(g *group, brought []any) []*Comm {
	out := make([]*Comm, len(brought))
	for _, part := range groups.Parts(brought) {
		ranks, node := make([]*rank, len(part)), make([]int, len(part))
		for i, m := range part {
			ranks[i], node[i] = g.ranks[m.Rank], int(g.where[m.Rank])
		}
		made := newGroup(ranks, node)
		ranks[0].w.groups = append(ranks[0].w.groups, made)
		for i, m := range part {
			out[m.Rank] = &Comm{r: ranks[i], g: made, rank: i}
		}
	}
	return out
}

// Allocate is of rma.Comm.
func (c *Comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	err := rma.Validate(c, spec)
	if err != nil {
		return nil, err
	}
	if c.r.generation > 0 {
		return c.attach(spec)
	}
	out, err := c.meet(spec.Fingerprint(), func(brought []any) any {
		for r, v := range brought {
			if v != nil && v != brought[c.rank] {
				return fmt.Errorf("sim: window %q: rank %d and rank %d describe it differently; all ranks must pass the same Spec: %w",
					spec.Name, c.rank, r, rma.ErrMismatch)
			}
		}
		s, err := c.r.w.newSegment(spec, c.g)
		if err != nil {
			return err
		}
		return s
	})
	if err != nil {
		return nil, err
	}
	return c.window(spec, out.(*segment)), nil
}

// window is the caller's handle on a segment.
func (c *Comm) window(spec rma.Spec, s *segment) *rma.Window {
	t, caps := c.r.w.engine.open(c, s)
	caps.Transport, caps.FarRanks = c.Describe(), len(c.g.nodes) > 1 || spec.Hosts == rma.MemoryNodes
	return rma.New(rma.Config{Comm: c, Spec: spec, T: t, Caps: caps})
}

// attach opens, for a successor, the window that its predecessor opened by the same call.
func (c *Comm) attach(spec rma.Spec) (*rma.Window, error) {
	n := 0
	for _, s := range c.r.w.segments {
		if s.group != c.g {
			continue
		}
		if n++; n <= c.r.attached {
			continue
		}
		if s.spec.Fingerprint() != spec.Fingerprint() {
			return nil, fmt.Errorf("sim: window %q: rank %d, a successor, describes it in another way than its predecessor did window %q: %w",
				spec.Name, c.r.id, s.spec.Name, rma.ErrMismatch)
		}
		c.r.attached++
		return c.window(spec, s), nil
	}
	return nil, fmt.Errorf("sim: window %q: rank %d, a successor, opens more windows than its predecessor: %w", spec.Name, c.r.id, rma.ErrMismatch)
}

// Of finds the simulated rank under any decorators of a Comm.
func Of(c rma.Comm) (*Comm, bool) {
	for c != nil {
		if s, ok := c.(*Comm); ok {
			return s, true
		}
		u, ok := c.(rma.Unwrapper)
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	return nil, false
}
