package dht_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// odd are keys and values at the edges of what a word holds.
var odd = []int64{0, 1, -1, 2, 1<<62 - 1, 1 << 62, -1 << 62, -1<<62 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 0x9e3779b97f4a7c15 >> 1}

// One rank does what a map does, also with all keys in one slot.
func TestActsAsAMap(t *testing.T) {
	each(t, func(t *testing.T, way way) {
		for _, cfg := range []dht.Config{{Slots: 1, Heap: 200}, {Slots: 7, Heap: 200}, {Slots: 300, Heap: 200}, {Slots: 16, Heap: 200, Volumes: 1}} {
			for _, m := range []machine{{1, 1}, {1, 3}, {2, 1}} {
				t.Run(fmt.Sprintf("%dslots%dx%d", cfg.Slots, m.nodes, m.perNode), func(t *testing.T) {
					err := way.with(m, cfg, nil, func(c rma.Comm, table *dht.Table) error {
						if c.Rank() != c.Size()-1 {
							return nil
						}
						return model(table, rand.New(rand.NewPCG(1, uint64(cfg.Slots))))
					})
					if err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	})
}

// model compares random operations with a map.
func model(table *dht.Table, random *rand.Rand) error {
	want := map[int64]int64{}
	pick := func() int64 {
		if random.IntN(3) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return int64(random.IntN(80)) - 40
	}
	for i := range 4000 {
		key, v := pick(), pick()
		before, there := want[key]
		switch random.IntN(3) {
		case 0:
			created, err := table.Insert(key, v)
			if err != nil {
				return err
			}
			if created == there {
				return fmt.Errorf("step %d: Insert(%d) created: %v, the key was there: %v", i, key, created, there)
			}
			if created {
				want[key] = v
			}
		case 1:
			got, err := table.Add(key, v)
			if err != nil {
				return err
			}
			if got != before {
				return fmt.Errorf("step %d: Add(%d) says %d, want %d", i, key, got, before)
			}
			want[key] = before + v
		case 2:
			got, ok, err := table.Lookup(key)
			if err != nil {
				return err
			}
			if got != before || ok != there {
				return fmt.Errorf("step %d: Lookup(%d) is %d, %v; want %d, %v", i, key, got, ok, before, there)
			}
		}
	}
	return nil
}

// The volumes' Ranges together are the table, and each key is in the volume that
// Volume names.
func TestRangesTogetherAreTheTable(t *testing.T) {
	each(t, func(t *testing.T, way way) {
		err := way.with(machine{2, 2}, dht.Config{Slots: 50, Heap: 200, Volumes: 3}, nil, func(c rma.Comm, table *dht.Table) error {
			var keys []int64
			for k := int64(-100); k < 100; k++ {
				keys = append(keys, k*k*k)
			}
			keys = append(keys, odd...)
			slices.Sort(keys)
			keys = slices.Compact(keys)
			for i, k := range keys {
				if i%c.Size() == c.Rank() {
					if _, err := table.Insert(k, ^k); err != nil {
						return err
					}
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			var got []int64
			err := table.Range(func(key, value int64) error {
				if value != ^key || table.Volume(key) != c.Rank() {
					return fmt.Errorf("key %d of volume %d in volume %d has value %d", key, table.Volume(key), c.Rank(), value)
				}
				got = append(got, key)
				return nil
			})
			if err != nil {
				return err
			}
			if (len(got) == 0) != (c.Rank() == 3) {
				return fmt.Errorf("rank %d of 3 volumes has %d keys", c.Rank(), len(got))
			}
			stop := errors.New("stop")
			calls := 0
			if err := table.Range(func(_, _ int64) error { calls++; return stop }); len(got) > 0 && (err != stop || calls != 1) {
				return fmt.Errorf("Range stopped with %v after %d calls", err, calls)
			}
			var all []int64
			for r := range c.Size() {
				words := make([]int64, len(keys)+1)
				if r == c.Rank() {
					words[0] = int64(copy(words[1:], got))
				}
				words, err := c.Allgather(words)
				if err != nil {
					return err
				}
				part := words[r*(len(keys)+1):]
				all = append(all, part[1:1+part[0]]...)
			}
			if slices.Sort(all); !slices.Equal(all, keys) {
				return fmt.Errorf("the volumes hold %d keys, want %d", len(all), len(keys))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A panic in Range's function does not leave the volume locked.
func TestRangePanicUnlocks(t *testing.T) {
	err := ways[1].with(machine{1, 1}, dht.Config{Slots: 1}, nil, func(_ rma.Comm, table *dht.Table) error {
		if _, err := table.Insert(7, 7); err != nil {
			return err
		}
		func() {
			defer func() { _ = recover() }()
			_ = table.Range(func(_, _ int64) error { panic("f") })
		}()
		before, err := table.Add(7, 1)
		if err == nil && before != 7 {
			err = fmt.Errorf("7 became %d", before)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigRefused(t *testing.T) {
	cases := []struct {
		cfg  dht.Config
		want string
	}{
		{dht.Config{}, "Config.Slots is 0"},
		{dht.Config{Slots: -3}, "Config.Slots is -3"},
		{dht.Config{Slots: dht.MaxRecords + 1}, "Config.Slots is"},
		{dht.Config{Slots: 1, Heap: -1}, "Config.Heap is -1"},
		{dht.Config{Slots: 1, Heap: dht.MaxRecords + 1}, "Config.Heap is"},
		{dht.Config{Slots: 1, Volumes: 3}, "Config.Volumes is 3, want 1 to 2"},
		{dht.Config{Slots: 1, Volumes: -1}, "Config.Volumes is -1"},
	}
	err := inproc.Run(2, func(c rma.Comm) error {
		locks, err := dmcs.New(c, dmcs.Config{Locks: 1})
		if err != nil {
			return err
		}
		for _, tc := range append(cases, struct {
			cfg  dht.Config
			want string
		}{dht.Config{Slots: 1, Locks: lock.Table(locks)}, "Config.Locks has 1 locks"}) {
			if _, err := dht.New(c, tc.cfg); !errors.Is(err, dht.ErrConfig) || !strings.Contains(err.Error(), tc.want) {
				return fmt.Errorf("%+v: error is %v, want one with %q", tc.cfg, err, tc.want)
			}
		}
		// Ranks that disagree are told.
		if _, err := dht.New(c, dht.Config{Slots: 8, Volumes: 1 + c.Rank()}); !errors.Is(err, rma.ErrMismatch) {
			return fmt.Errorf("ranks disagree about Volumes: error is %v", err)
		}
		return locks.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBytes(t *testing.T) {
	cfg := dht.Config{Volumes: 1, Slots: 100, Heap: 10}
	if got := cfg.Bytes(); got != 8*(2+4*101+3*10) {
		t.Errorf("Bytes is %d", got)
	}
	for keys, most := range map[int64]int64{1000: 65, 1_000_000: 51} {
		slots, heap := dht.Fit(keys, 1)
		cfg := dht.Config{Volumes: 1, Slots: slots, Heap: heap}
		if per := cfg.Bytes() / keys; per > most {
			t.Errorf("Fit(%d, 1) takes %d bytes per key, want at most %d", keys, per, most)
		}
	}
}

// Fit is enough: for few keys and many, consecutive ones and scattered ones.
func TestFitIsEnough(t *testing.T) {
	for _, volumes := range []int{1, 4} {
		for _, keys := range []int64{0, 1, 2, 10, 100, 1000, 30000} {
			for name, key := range map[string]func(i int64) int64{
				"consecutive": func(i int64) int64 { return i },
				"strided":     func(i int64) int64 { return i << 32 },
				"negative":    func(i int64) int64 { return -i * i },
			} {
				slots, heap := dht.Fit(keys, volumes)
				err := ways[0].with(machine{1, volumes}, dht.Config{Slots: slots, Heap: heap}, nil, func(c rma.Comm, table *dht.Table) error {
					for i := int64(c.Rank()); i < keys; i += int64(c.Size()) {
						if _, err := table.Insert(key(i), i); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("%d %s keys in %d volumes: %v", keys, name, volumes, err)
				}
			}
		}
	}
}

// Volumes and slots are used evenly, and independently of each other.
func TestPlacement(t *testing.T) {
	const keys, volumes = 40000, 4
	err := ways[0].with(machine{1, volumes}, dht.Config{Slots: keys / volumes, Heap: keys}, nil, func(c rma.Comm, table *dht.Table) error {
		var in [volumes]int
		for k := range int64(keys) {
			in[table.Volume(k)]++
			if table.Volume(k) == c.Rank() {
				if _, err := table.Insert(k, 0); err != nil {
					return err
				}
			}
		}
		for v, n := range in {
			if n < keys/volumes*9/10 || n > keys/volumes*11/10 {
				return fmt.Errorf("volume %d has %d of %d keys", v, n, keys)
			}
		}
		// As many slots as keys: 1/e of them stay empty, so that many keys overflow.
		heap, _, _, err := table.Elements()
		if err != nil {
			return err
		}
		if part := float64(heap) / float64(in[c.Rank()]); part < 0.34 || part > 0.40 {
			return fmt.Errorf("volume %d: %.3f of the keys are in the heap, want 0.368", c.Rank(), part)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
