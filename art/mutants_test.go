package art

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// sized is a Tree whose values have two sizes: a block that is lost, and another that is freed
// twice, are not the same number of words.
type sized struct{ asMap }

func (sized) data(v int64) []byte { return data(v)[:8+8*((v+v/100)%2)] }

func (m sized) Get(key int64) (int64, bool, error) {
	b, there, err := m.Search([]byte(names[key]), nil)
	if err != nil || !there {
		return 0, false, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil // checksums show torn blocks
}

func (m sized) Set(key, value int64) error { return m.Tree.Put([]byte(names[key]), m.data(value)) }
func (m sized) Insert(key, v int64) (bool, error) {
	return m.Tree.Insert([]byte(names[key]), m.data(v))
}
func (m sized) Update(key, v int64) (bool, error) {
	return m.Tree.Update([]byte(names[key]), m.data(v))
}

func (m sized) Scan(from int64, f func(key, value int64) bool) error { panic("no scans") }

var errLost = errors.New("memory is lost")

// whole is an error if something is wrong with the tree, or words are given out, less those that
// clients hold, that it does not have.
func whole(all []kvtest.Map) error {
	t := all[0].(sized).Tree
	shape, err := t.Check(nil)
	if err != nil {
		return err
	}
	if shape.Dead > 0 {
		return fmt.Errorf("%w: %d dead leaves", errLost, shape.Dead)
	}
	u, err := t.Usage()
	if err != nil {
		return err
	}
	used := u.Taken - u.Pooled
	for _, m := range all {
		used -= int64(m.(sized).Held())
	}
	if used != shape.Words {
		return fmt.Errorf("%w: %d words", errLost, used-shape.Words)
	}
	return nil
}

// TestMutants: the searches find what the generator breaks in a tree whose updates are optimistic.
// The allocator, and the queues of package cider, have mutants of their own.
func TestMutants(t *testing.T) {
	pct5 := func(executions int64) sim.Scheduler { return sim.PCT(1, 5, 0, executions) }
	var uses []kvtest.Use
	for _, k := range []struct {
		name         string
		scripts      []string
		loaded, went []int
		bound        int
	}{
		{"a leaf splits", []string{"i1 g2 u1", "i2 g1 d1"}, nil, nil, 0},
		{"a leaf goes and splits", []string{"i1 d1 g2", "i2 u1 d2"}, nil, nil, 0},
		{"a leaf goes and comes", []string{"i1 d1 u1", "i1 d1 g1"}, nil, nil, 0},
		{"a leaf is used again", []string{"i1 d1 i2", "g1 u1 g2"}, nil, nil, 0},
		{"a node grows", []string{"i9 g10 u10", "i10 g9 d9"}, []int{0, 1}, nil, 0},
		{"a row of nodes", []string{"i5 g6", "i6 d5"}, nil, nil, 0},
		{"a node above", []string{"i4 g3", "i3 g4 u4"}, []int{1, 2}, nil, 0},
		{"two nodes above", []string{"i7 g8", "i8 d7"}, []int{5, 6}, nil, 0},
		{"a leaf moves", []string{"i1 u1 d1", "i2 u1 g1"}, nil, nil, 0},
		{"updates", []string{"i1 u1 u1", "i1 u1 u1"}, nil, nil, 0},
		{"a leaf below", []string{"i1 d1 g1 u1", "i1 g1 u1"}, []int{2, 3}, nil, 0},
		{"a leaf comes again below", []string{"i1 d1 i1", "i1 d1 g1"}, []int{2, 3}, nil, 0},
		{"a leaf comes again", []string{"i1 d1 i1", "i1 g1"}, nil, nil, 0},
		{"a node and the root", []string{"i1 i9", "i1 g9"}, []int{2, 3}, nil, 0},
		{"three at a leaf", []string{"i1 d1", "i1 g1", "i1 u1"}, nil, nil, 0},
		{"three at a leaf below", []string{"i1 d1", "i1 g1", "i1 u1"}, []int{2, 3}, nil, 0},
		{"three", []string{"i1 u1", "i2 d1", "i1 g2"}, nil, nil, 0},
	} {
		p := plan(k.scripts, k.loaded, k.went, optimistic)
		open := p.Open
		p.Open = func(c rma.Comm) (kvtest.Map, error) {
			m, err := open(c)
			if err != nil {
				return nil, err
			}
			return sized{m.(asMap)}, nil
		}
		p.Rest, p.RestAll = nil, whole
		p.Search.Ticks, p.Search.MaxDelay = 1, 1
		drawn := p
		drawn.Search.Ticks, drawn.Search.Ascending, drawn.Pace = 300, false, 1
		uses = append(uses,
			kvtest.Use{Plan: drawn, Name: k.name + ", pct", By: kvtest.PCT, Part: 15},
			kvtest.Use{Plan: drawn, Name: k.name + ", pct of 5", By: pct5, Part: 15},
			kvtest.Use{Plan: drawn, Name: k.name + ", random", By: kvtest.Random, Part: 5},
			kvtest.Use{Plan: p, Name: k.name + ", dfs", By: kvtest.Bounded(k.bound), Part: 50})
	}
	e := check.Effort{Budget: 20_000, Every: 12, Leave: []string{
		".ENTRY", ".POOL", "FREE", ".EVICTED", "art.EPOCH",
		"Flush of PutBulk", "after Flush of Get art.POOL", "after Flush of CompareAndSwap art.POOL", // its lists
	}}
	kvtest.Mutants(t, "art", e, equivalentMutants(), uses...)
}

// equivalentMutants are those that change nothing, or are not caught.
func equivalentMutants() (out []check.Equivalent) {
	const (
		life  = "no block is used again in a section: a leaf that is read before its slot is dead, and its key was absent then, or it is the one that the slot leads to"
		reuse = "not caught: it takes a leaf that is used again at the same slot between the two reads"
		guess = "0 is taken for the slot: the CompareAndSwap that follows fails, and finds what it has"
	)
	for op, why := range map[check.Phase]string{'g': life, 'u': life, 'd': life, 'i': reuse} {
		for _, word := range []string{"SLOT", "FARHEAP"} {
			out = append(out, check.Equivalent{Phase: op, Step: "GetBulk art.FARHEAP", Before: "Get art." + word, Mutation: check.NoFence, Why: why})
			if op == 'i' {
				out = append(out, check.Equivalent{Phase: op, Step: "Flush of Get art." + word, Mutation: check.NoFlush, Why: guess})
			}
		}
	}
	return out
}
