package dht_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/rma"
)

var machines = []machine{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}}

// everywhere runs f on all machines in all ways.
func everywhere(t *testing.T, f func(t *testing.T, way way, m machine)) {
	each(t, func(t *testing.T, way way) {
		for _, m := range machines {
			t.Run(fmt.Sprintf("%dx%d", m.nodes, m.perNode), func(t *testing.T) { f(t, way, m) })
		}
	})
}

// Every Add counts, in slots and in chains.
func TestConcurrentAdd(t *testing.T) {
	everywhere(t, func(t *testing.T, way way, m machine) {
		for _, slots := range []int{1, 5, 64} {
			const keys, rounds = 12, 60
			err := way.with(m, dht.Config{Slots: slots, Heap: keys + 8}, nil, func(c rma.Comm, table *dht.Table) error {
				for i := range int64(rounds) {
					for k := range int64(keys) {
						if _, err := table.Add((k+int64(c.Rank()))%keys, i<<56+1); err != nil {
							return err
						}
					}
				}
				if err := c.Barrier(); err != nil {
					return err
				}
				want := int64(0)
				for i := range int64(rounds) {
					want += int64(c.Size()) * (i<<56 + 1) // wraps around
				}
				for k := range int64(keys) {
					if got, ok, err := table.Lookup(k); err != nil || !ok || got != want {
						return fmt.Errorf("key %d is %d, %v, %v; want %d", k, got, ok, err, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%d slots: %v", slots, err)
			}
		}
	})
}

// Of the Inserts of one key one wins, its value stays, and the key is there once.
func TestConcurrentInsert(t *testing.T) {
	everywhere(t, func(t *testing.T, way way, m machine) {
		for _, cfg := range []dht.Config{{Slots: 1, Heap: 220}, {Slots: 40, Heap: 220}} {
			const keys = 200
			for seed := range uint64(3) {
				err := way.with(m, cfg, shuffled(seed), func(c rma.Comm, table *dht.Table) error {
					return raceInserts(c, table, keys)
				})
				if err != nil {
					t.Fatalf("%d slots, seed %d: %v", cfg.Slots, seed, err)
				}
			}
		}
	})
}

func raceInserts(c rma.Comm, table *dht.Table, keys int64) error {
	// A value beyond 63 bits now and then: those need an element in any case.
	value := func(k int64, rank int) int64 { return int64(rank+1)<<8 + k%3<<62 }
	won := make([]int64, keys)
	for k := range keys {
		created, err := table.Insert(k, value(k, c.Rank()))
		if err != nil {
			return err
		}
		if created {
			won[k] = int64(c.Rank() + 1)
		}
		if v, ok, err := table.Lookup(k); err != nil || !ok || v>>8&0xff < 1 || created && v != value(k, c.Rank()) {
			return fmt.Errorf("key %d is %#x, %v, %v after an Insert that created it: %v", k, v, ok, err, created)
		}
	}
	all, err := c.Allgather(won)
	if err != nil {
		return err
	}
	winner := make([]int, keys)
	for i, w := range all {
		if w == 0 {
			continue
		}
		k := i % int(keys)
		if winner[k] != 0 {
			return fmt.Errorf("key %d was created by ranks %d and %d", k, winner[k]-1, w-1)
		}
		winner[k] = int(w)
	}
	seen := map[int64]bool{}
	err = table.Range(func(k, v int64) error {
		if seen[k] {
			return fmt.Errorf("key %d is there twice", k)
		}
		seen[k] = true
		if winner[k] == 0 || v != value(k, winner[k]-1) {
			return fmt.Errorf("key %d has value %#x, its creator was rank %d", k, v, winner[k]-1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k := range keys {
		if table.Volume(k) == c.Rank() && !seen[k] {
			return fmt.Errorf("key %d is not there", k)
		}
	}
	if free, used, spares, err := table.Elements(); err != nil || free != used+spares {
		return fmt.Errorf("of %d elements given out %d are in use and %d spare (%v)", free, used, spares, err)
	}
	return nil
}

// While others create keys, Range shows none with a value it never had, none twice
// and none under another name.
func TestConcurrentRange(t *testing.T) {
	each(t, func(t *testing.T, way way) {
		for seed := range uint64(20) {
			err := way.with(machine{1, 3}, dht.Config{Slots: 30, Heap: 60, Volumes: 1}, shuffled(seed), func(c rma.Comm, table *dht.Table) error {
				if c.Rank() > 0 {
					for k := int64(1); k < 60; k++ {
						if _, err := table.Insert(k*int64(c.Rank()), k*int64(c.Rank())); err != nil {
							return err
						}
					}
					return nil
				}
				for range 20 {
					seen := map[int64]bool{}
					err := table.Range(func(k, v int64) error {
						if k == 0 || k != v || seen[k] {
							return fmt.Errorf("Range shows key %d with value %d, shown before: %v", k, v, seen[k])
						}
						seen[k] = true
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	})
}

// A full heap refuses new keys in taken slots and nothing else.
func TestFullHeapRefusesNewKeys(t *testing.T) {
	everywhere(t, func(t *testing.T, way way, m machine) {
		const heap, keys = 5, 40
		err := way.with(m, dht.Config{Slots: 3, Heap: heap, Volumes: 1}, shuffled(1), func(c rma.Comm, table *dht.Table) error {
			there := map[int64]bool{}
			for round := range 3 {
				for k := range int64(keys) {
					v := k
					if k%4 == 0 {
						v = k + 1<<62
					}
					created, err := table.Insert(k, v)
					if err != nil && !errors.Is(err, dht.ErrFull) {
						return err
					}
					if err != nil && (round > 0 && there[k] || created) {
						return fmt.Errorf("Insert(%d) is full though the key is there", k)
					}
					if err == nil {
						there[k] = true
					}
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			return checkFull(c, table, there, heap, keys)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func checkFull(c rma.Comm, table *dht.Table, there map[int64]bool, heap, keys int64) error {
	for k := range keys {
		v, ok, err := table.Lookup(k)
		if err != nil {
			return err
		}
		if there[k] && !ok || ok && v != k && v != k+1<<62 {
			return fmt.Errorf("key %d is %d, %v; inserted: %v", k, v, ok, there[k])
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	for k := range there {
		if _, err := table.Add(k, 1); err != nil {
			return fmt.Errorf("Add to a key that is there: %w", err)
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	if c.Rank() > 0 {
		return nil
	}
	for k := range keys { // elements that came back too late for the others
		if _, err := table.Insert(k, k); err != nil && !errors.Is(err, dht.ErrFull) {
			return err
		}
	}
	free, used, spares, err := table.Elements()
	if err != nil {
		return err
	}
	if free != heap || used != heap || spares != 0 {
		return fmt.Errorf("FREE is %d, %d elements are in use and %d spare; want %d, %d and 0", free, used, spares, heap, heap)
	}
	return nil
}
