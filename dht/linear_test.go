package dht_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/rma"
)

// call is an operation of a history: what was asked.
type call struct {
	what       byte // 'I'nsert, 'A'dd, 'L'ookup
	key, value int64
}

// answer is what came back.
type answer struct {
	value int64
	ok    bool // of Lookup: there; of Insert: created
	full  bool
}

// state is one key of the model.
type state struct {
	there bool
	value int64
}

// keyModel is a map, key by key: histories are linearizable if each key's is.
var keyModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[int64][]porcupine.Operation{}
		for _, o := range history {
			k := o.Input.(call).key
			by[k] = append(by[k], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		was, c, a := s.(state), in.(call), out.(answer)
		if a.full { // refused: only a key that is absent is
			return !was.there, was
		}
		switch c.what {
		case 'I':
			if a.ok {
				return !was.there, state{true, c.value}
			}
			return was.there, was
		case 'A':
			return a.value == was.value, state{true, was.value + c.value}
		}
		return a.ok == was.there && a.value == was.value, was
	},
	DescribeOperation: func(in, out any) string {
		c, a := in.(call), out.(answer)
		return fmt.Sprintf("%c(%d, %d) -> %d, %v, full: %v", c.what, c.key, c.value, a.value, a.ok, a.full)
	},
}

// perform does an operation and records it.
func perform(table *dht.Table, rank int, clock *atomic.Int64, c call) (porcupine.Operation, error) {
	var a answer
	var err error
	o := porcupine.Operation{ClientId: rank, Input: c, Call: clock.Add(1)}
	switch c.what {
	case 'I':
		a.ok, err = table.Insert(c.key, c.value)
	case 'A':
		a.value, err = table.Add(c.key, c.value)
	case 'L':
		a.value, a.ok, err = table.Lookup(c.key)
	}
	if errors.Is(err, dht.ErrFull) {
		a.full, err = true, nil
	}
	o.Output, o.Return = a, clock.Add(1)
	return o, err
}

// history lets the ranks of a machine work on a few keys and returns what they did.
// At the end each key is looked up, in the volumes' Ranges too.
func history(way way, m machine, cfg dht.Config, keys []int64, seed uint64) ([]porcupine.Operation, error) {
	const calls = 8 // of each rank
	var clock atomic.Int64
	did := make([][]porcupine.Operation, m.nodes*m.perNode)
	err := way.with(m, cfg, shuffled(seed), func(c rma.Comm, table *dht.Table) error {
		random := rand.New(rand.NewPCG(seed, 77+uint64(c.Rank())))
		var mine []porcupine.Operation
		defer func() { did[c.Rank()] = mine }()
		note := func(in call) error {
			o, err := perform(table, c.Rank(), &clock, in)
			mine = append(mine, o)
			return err
		}
		for range calls {
			in := call{what: "IIAAL"[random.IntN(5)], key: keys[random.IntN(len(keys))], value: int64(random.IntN(5) - 2)}
			if random.IntN(3) == 0 {
				in.value += 1 << 62
			}
			if in.what == 'L' {
				in.value = 0
			}
			if err := note(in); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		found := map[int64]int64{}
		at := clock.Add(1)
		err := table.Range(func(key, value int64) error {
			if _, twice := found[key]; twice {
				return fmt.Errorf("key %d is there twice", key)
			}
			found[key] = value
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			if table.Volume(k) != c.Rank() {
				continue
			}
			v, there := found[k]
			mine = append(mine, porcupine.Operation{ClientId: c.Rank(), Input: call{what: 'L', key: k}, Output: answer{value: v, ok: there}, Call: at, Return: clock.Add(1)})
			if err := note(call{what: 'L', key: k}); err != nil {
				return err
			}
		}
		return nil
	})
	var all []porcupine.Operation
	for _, part := range did {
		all = append(all, part...)
	}
	return all, err
}

// Histories of a few ranks on a few keys are linearizable: keys that share a slot,
// keys with a slot of their own, key 0, and a heap that is too small.
func TestLinearizable(t *testing.T) {
	rounds := uint64(150)
	if testing.Short() {
		rounds = 20
	}
	each(t, func(t *testing.T, way way) {
		for _, m := range []machine{{1, 2}, {1, 4}, {2, 2}} {
			for name, cfg := range map[string]dht.Config{
				"chain": {Slots: 1, Heap: 40, Volumes: 1},
				"slots": {Slots: 64, Heap: 40},
				"full":  {Slots: 1, Heap: 2, Volumes: 1},
			} {
				t.Run(fmt.Sprintf("%s%dx%d", name, m.nodes, m.perNode), func(t *testing.T) {
					for seed := range rounds {
						all, err := history(way, m, cfg, []int64{0, 1, -1, 5}, seed)
						if err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
						if !porcupine.CheckOperations(keyModel, all) {
							for _, o := range all {
								t.Logf("rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, keyModel.DescribeOperation(o.Input, o.Output))
							}
							t.Fatalf("seed %d: not linearizable", seed)
						}
					}
				})
			}
		}
	})
}
