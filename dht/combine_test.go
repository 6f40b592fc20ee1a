package dht_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/rma"
)

// TestCombine: ranks of two nodes add 1 to a few keys. Each sum is right, and no two Adds have
// found the same value; also where words take effect as late as they may.
func TestCombine(t *testing.T) {
	const ranks, keys, adds = 8, 3, 200
	for name, wrap := range map[string]func(rma.Comm) rma.Comm{"plain": nil, "shuffled": shuffled(1)} {
		for _, way := range ways[1:] {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				var mu sync.Mutex
				found := map[int64][]int64{} // by key
				cfg := dht.Config{Slots: 2, Heap: 8, Volumes: 1, Combine: true}
				err := way.with(machine{2, ranks / 2}, cfg, wrap, func(c rma.Comm, table *dht.Table) error {
					mine := map[int64][]int64{}
					for i := range adds {
						key := int64(i % keys)
						before, err := table.Add(key, 1)
						if err != nil {
							return err
						}
						mine[key] = append(mine[key], before)
					}
					mu.Lock()
					defer mu.Unlock()
					for key, values := range mine {
						found[key] = append(found[key], values...)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for key, values := range found {
					slices.Sort(values)
					for i, v := range values {
						if v != int64(i) {
							t.Fatalf("key %d: the values found are %v", key, values)
						}
					}
				}
			})
		}
	}
}

// TestCombineFull: where the volume is full each of the ranks whose Adds were combined is told.
func TestCombineFull(t *testing.T) {
	err := ways[1].with(machine{1, 4}, dht.Config{Slots: 1, Volumes: 1, Combine: true}, nil, func(_ rma.Comm, table *dht.Table) error {
		for i := range 200 {
			if _, err := table.Add(1, 1); err != nil {
				return err
			}
			if _, err := table.Add(2, 1); !errors.Is(err, dht.ErrFull) {
				return fmt.Errorf("Add %d to a key without an element: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = ways[0].with(machine{1, 2}, dht.Config{Slots: 1, Combine: true}, nil, nil)
	if !errors.Is(err, dht.ErrConfig) {
		t.Errorf("without locks: %v, want %v", err, dht.ErrConfig)
	}
}
