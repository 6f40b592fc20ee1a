//go:build cgo && verbs

package verbs

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/group"
)

// comm is the handle of one rank on its communicator.
type comm struct {
	g    *ranks
	rank int
}

var _ rma.Comm = (*comm)(nil)

func (c *comm) Rank() int        { return c.rank }
func (c *comm) Size() int        { return len(c.g.world) }
func (c *comm) Node() rma.Node   { return c.g.nodes[c.g.where[c.rank]] }
func (c *comm) MemoryNodes() int { return len(c.g.job.cfg.MemoryNodes) }
func (c *comm) Now() int64       { return monotonic() }
func (c *comm) Sleep(ns int64)   { time.Sleep(time.Duration(ns)) }
func (c *comm) Describe() string { return c.g.job.text }

// node is the rank's own.
func (c *comm) node() *node { return c.g.job.localNode(c.g.world[c.rank]) }

func (c *comm) Barrier() error {
	_, err := c.g.meet(c.rank, nil, nil)
	return err
}

func (c *comm) Allgather(words []int64) ([]int64, error) {
	mine := make([]byte, 8*len(words))
	for i, v := range words {
		binary.LittleEndian.PutUint64(mine[8*i:], uint64(v))
	}
	call, err := c.g.meet(c.rank, mine, nil)
	if err != nil {
		return nil, err
	}
	out := make([]int64, 0, len(words)*len(call.all))
	for r, part := range call.all {
		if len(part) != len(mine) {
			return nil, fmt.Errorf("verbs: Allgather of %d words at rank %d and of %d at rank %d: %w", len(words), c.rank, len(part)/8, r, rma.ErrMismatch)
		}
		for i := range words {
			out = append(out, int64(binary.LittleEndian.Uint64(part[8*i:])))
		}
	}
	return out, nil
}

func (c *comm) Split(color, key int) (rma.Comm, error) {
	mine, err := json.Marshal(group.Member{Color: color, Key: key, Rank: c.rank})
	if err != nil {
		return nil, err
	}
	call, err := c.g.meet(c.rank, mine, func(map[int][]byte) any { return c.g.calls })
	if err != nil || color < 0 {
		return nil, err
	}
	members := make([]any, len(call.all))
	for r, b := range call.all {
		var m group.Member
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, fmt.Errorf("verbs: Split: rank %d is in another collective call: %w", r, rma.ErrMismatch)
		}
		members[r] = m
	}
	for _, part := range group.Parts(members) {
		if part[0].Color != color {
			continue
		}
		world, rank := make([]int, len(part)), 0
		for i, m := range part {
			if world[i] = c.g.world[m.Rank]; m.Rank == c.rank {
				rank = i
			}
		}
		g := c.g.job.shared(fmt.Sprintf("%s/%v:%d", c.g.name, call.shared, color), world)
		return &comm{g: g, rank: rank}, nil
	}
	return nil, nil
}
