package inproc

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/group"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// comm is the handle of one rank on its communicator.
type comm struct {
	g     *ranks
	rank  int
	world int // rank in the Run
}

var _ rma.Comm = (*comm)(nil)

func (c *comm) Rank() int      { return c.rank }
func (c *comm) Size() int      { return len(c.g.where) }
func (c *comm) Node() rma.Node { return c.g.nodes[c.g.where[c.rank]] }
func (c *comm) Now() int64     { return c.g.world.now() }

// MemoryNodes is of rma.Comm.
func (c *comm) MemoryNodes() int { return c.g.world.memoryNodes }

func (c *comm) Sleep(ns int64)   { time.Sleep(time.Duration(ns)) }
func (c *comm) Describe() string { return c.g.describe() }

func (g *ranks) describe() string {
	s := "inproc, goroutines on " + strconv.Itoa(len(g.nodes)) + " node(s)"
	if n := g.world.memoryNodes; n > 0 {
		s += " and " + strconv.Itoa(n) + " memory node(s)"
	}
	return s
}

func (c *comm) Barrier() error {
	_, err := c.g.meet(c.rank, nil, nil)
	return err
}

// Combine is for rma.Combine.
func (c *comm) Combine(v any, f func(all []any) (any, error)) (any, error) {
	return c.g.meet(c.rank, v, f)
}

func (c *comm) Allgather(words []int64) ([]int64, error) {
	mine := append([]int64(nil), words...) // the caller may change words before the last rank arrives
	all, err := c.g.meet(c.rank, mine, func(brought []any) (any, error) {
		out := make([]int64, 0, len(words)*len(brought))
		for r, v := range brought {
			if v == nil { // the rank has died
				out = append(out, make([]int64, len(words))...)
				continue
			}
			part := v.([]int64)
			if len(part) != len(words) {
				return nil, fmt.Errorf("inproc: Allgather of %d words at rank %d and of %d at rank %d: %w", len(words), c.rank, len(part), r, rma.ErrMismatch)
			}
			out = append(out, part...)
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	return all.([]int64), nil
}

func (c *comm) Split(color, key int) (rma.Comm, error) {
	made, err := c.g.meet(c.rank, group.Member{Color: color, Key: key, Rank: c.rank}, func(brought []any) (any, error) {
		return c.g.split(brought), nil
	})
	if err != nil || color < 0 {
		return nil, err
	}
	part := made.([]*comm)[c.rank]
	part.world = c.world
	c.g.world.groups[c.world] = append(c.g.world.groups[c.world], part.g)
	return part, nil
}

// split makes the new handle of every rank; nil for those with a negative color.
func (g *ranks) split(brought []any) []*comm {
	out := make([]*comm, len(brought))
	for _, part := range group.Parts(brought) {
		where := make([]int, len(part))
		for i, m := range part {
			where[i] = int(g.where[m.Rank])
		}
		made := newRanks(g.world, where)
		for i, m := range part {
			out[m.Rank] = &comm{g: made, rank: i}
		}
	}
	return out
}

func (c *comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	if err := rma.Validate(c, spec); err != nil {
		return nil, err
	}
	made, err := c.g.meet(c.rank, spec.Fingerprint(), func(brought []any) (any, error) {
		for r, v := range brought {
			if v != nil && v != brought[c.rank] {
				return nil, fmt.Errorf("inproc: window %q: rank %d and rank %d describe it differently; all ranks must pass the same Spec: %w",
					spec.Name, c.rank, r, rma.ErrMismatch)
			}
		}
		return c.g.memory(&spec)
	})
	if err != nil {
		return nil, err
	}
	return c.g.window(c, made.(*nearmem.Memory), spec, c.Barrier), nil
}

// memory makes the words of a window.
func (g *ranks) memory(spec *rma.Spec) (*nearmem.Memory, error) {
	hosts, order := len(g.where), g.order
	if spec.Hosts == rma.MemoryNodes {
		hosts, order = g.world.memoryNodes, nil
	}
	if err := rma.CheckMemory(*spec, hosts); err != nil {
		return nil, err
	}
	return nearmem.New(spec.Words(), hosts, order), nil
}

// window makes a rank's handle on a window; free ends its use.
func (g *ranks) window(c rma.Comm, m *nearmem.Memory, spec rma.Spec, free func() error) *rma.Window {
	config := rma.Config{
		Comm: c, Spec: spec, T: newTransport(m, g.world, c.Rank(), free),
		Caps: rma.Caps{
			Transport: c.Describe(), FarRanks: len(g.nodes) > 1 || spec.Hosts == rma.MemoryNodes,
			AtomicWithCPU: true, NativeSwap: true, AtomicPut: true, MaskedSwap: true, CPUReads: true,
		},
		Stride:         m.Stride(),
		Oversubscribed: c.Size() > runtime.GOMAXPROCS(0),
	}
	if spec.Hosts == rma.Ranks {
		config.Base = m.Part(c.Node().Ranks[0])
	}
	return rma.New(config)
}
