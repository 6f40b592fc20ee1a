package inproc

import (
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// comm is the handle of one rank on a group.
type comm struct {
	g     *group
	rank  int
	world int // rank in the Run
}

var _ rma.Comm = (*comm)(nil)

func (c *comm) Rank() int      { return c.rank }
func (c *comm) Size() int      { return len(c.g.where) }
func (c *comm) Node() rma.Node { return c.g.nodes[c.g.where[c.rank]] }
func (c *comm) Now() int64     { return int64(time.Since(c.g.world.start)) }
func (c *comm) Sleep(ns int64) { time.Sleep(time.Duration(ns)) }
func (c *comm) Describe() string {
	return "inproc, goroutines on " + strconv.Itoa(len(c.g.nodes)) + " node(s)"
}

func (c *comm) Barrier() error {
	_, err := c.g.exchange(c.rank, nil)
	return err
}

func (c *comm) Allgather(words []int64) ([]int64, error) {
	mine := append([]int64(nil), words...) // the caller may change words when this rank is through, others read on
	all, err := c.g.exchange(c.rank, mine)
	if err != nil {
		return nil, err
	}
	out := make([]int64, 0, len(words)*len(all))
	for r, v := range all {
		part := v.([]int64)
		if len(part) != len(words) {
			return nil, fmt.Errorf("inproc: Allgather of %d words at rank %d and of %d at rank %d: %w", len(words), c.rank, len(part), r, rma.ErrMismatch)
		}
		out = append(out, part...)
	}
	return out, nil
}

// member is what a rank brings to a Split.
type member struct{ color, key, rank int }

func (c *comm) Split(color, key int) (rma.Comm, error) {
	all, err := c.g.exchange(c.rank, member{color, key, c.rank})
	if err != nil {
		return nil, err
	}
	var mine []member // computed by the first of each color alone and handed on
	first := -1
	for r, v := range all {
		if m := v.(member); m.color == color {
			if first < 0 {
				first = r
			}
			if first != c.rank {
				break
			}
			mine = append(mine, m)
		}
	}
	var made *split
	if color >= 0 && first == c.rank {
		sort.SliceStable(mine, func(i, j int) bool { return mine[i].key < mine[j].key })
		where := make([]int, len(mine))
		made = &split{ranks: make(map[int]int, len(mine))}
		for i, m := range mine {
			where[i] = int(c.g.where[m.rank])
			made.ranks[m.rank] = i
		}
		made.g = newGroup(c.g.world, where)
	}
	all, err = c.g.exchange(c.rank, made)
	if err != nil || color < 0 {
		return nil, err
	}
	s := all[first].(*split)
	c.g.world.groups[c.world] = append(c.g.world.groups[c.world], s.g)
	return &comm{g: s.g, rank: s.ranks[c.rank], world: c.world}, nil
}

// split is one part of a Split and the new ranks in it.
type split struct {
	g     *group
	ranks map[int]int
}

func (c *comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	print := spec.Fingerprint()
	all, err := c.g.exchange(c.rank, print)
	if err != nil {
		return nil, err
	}
	for r, v := range all {
		if v.(int64) != print {
			return nil, fmt.Errorf("inproc: window %q: rank %d and rank %d describe it differently; all ranks must pass the same Spec: %w",
				spec.Name, c.rank, r, rma.ErrMismatch)
		}
	}
	var made *segment
	if c.rank == 0 {
		made = newSegment(c.g, &spec)
	}
	if all, err = c.g.exchange(c.rank, made); err != nil {
		return nil, err
	}
	s := all[0].(*segment)
	node := c.Node()
	return rma.New(rma.Config{
		Comm: c, Spec: spec, T: &transport{c: c, s: s},
		Caps: rma.Caps{
			Transport: c.Describe(), FarRanks: len(c.g.nodes) > 1, AtomicWithCPU: true, NativeSwap: true,
		},
		Base: s.part(node.Ranks[0]), Stride: s.stride,
		Crowded: c.Size() > runtime.GOMAXPROCS(0),
	}), nil
}

// RanksPerCore is for rma.RanksPerCore.
func (c *comm) RanksPerCore() int { return len(c.g.where) / runtime.GOMAXPROCS(0) }
