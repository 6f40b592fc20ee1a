package dht_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/internal/history"
	"github.com/rmalock/rmalock/rma"
)

// perform does an operation and records it.
func perform(table *dht.Table, rank int, clock *atomic.Int64, c history.Call) (porcupine.Operation, error) {
	var a history.Answer
	var err error
	o := porcupine.Operation{ClientId: rank, Input: c, Call: clock.Add(1)}
	switch c.What {
	case history.Insert:
		a.OK, err = table.Insert(c.Key, c.Value)
	case history.Add:
		a.Value, err = table.Add(c.Key, c.Value)
	case history.Get:
		a.Value, a.OK, err = table.Lookup(c.Key)
	}
	if errors.Is(err, dht.ErrFull) {
		a.Full, err = true, nil
	}
	o.Output, o.Return = a, clock.Add(1)
	return o, err
}

// played lets the ranks of a machine work on a few keys and returns what they did.
// At the end each key is looked up, in the volumes' Ranges too.
func played(way way, m machine, cfg dht.Config, keys []int64, seed uint64) ([]porcupine.Operation, error) {
	const calls = 8 // of each rank
	var clock atomic.Int64
	did := make([][]porcupine.Operation, m.nodes*m.perNode)
	err := way.with(m, cfg, shuffled(seed), func(c rma.Comm, table *dht.Table) error {
		random := rand.New(rand.NewPCG(seed, 77+uint64(c.Rank())))
		var mine []porcupine.Operation
		defer func() { did[c.Rank()] = mine }()
		note := func(in history.Call) error {
			o, err := perform(table, c.Rank(), &clock, in)
			mine = append(mine, o)
			return err
		}
		for range calls {
			in := history.Call{What: "iiaag"[random.IntN(5)], Key: keys[random.IntN(len(keys))], Value: int64(random.IntN(5) - 2)}
			if random.IntN(3) == 0 {
				in.Value += 1 << 62
			}
			if in.What == history.Get {
				in.Value = 0
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
			mine = append(mine, porcupine.Operation{ClientId: c.Rank(), Input: history.Call{What: history.Get, Key: k}, Output: history.Answer{Value: v, OK: there}, Call: at, Return: clock.Add(1)})
			if err := note(history.Call{What: history.Get, Key: k}); err != nil {
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
						all, err := played(way, m, cfg, []int64{0, 1, -1, 5}, seed)
						if err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
						if !porcupine.CheckOperations(history.Model, all) {
							for _, o := range all {
								t.Logf("rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, history.Model.DescribeOperation(o.Input, o.Output))
							}
							t.Fatalf("seed %d: not linearizable", seed)
						}
					}
				})
			}
		}
	})
}
