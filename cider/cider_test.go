package cider

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// TestOperations: each operation, also where it has nothing to do, under each scheme, with values
// of all sizes.
func TestOperations(t *testing.T) {
	for scheme := range schemes {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 2}.Run(func(c rma.Comm) error {
			s, err := New(c, Config{Keys: 3, Most: 100, Policy: Policy{Scheme: scheme, Lease: 60e9, Local: 4}})
			if err != nil {
				return err
			}
			for n := range 101 {
				key, v := n%3, bytes.Repeat([]byte{byte(n)}, n)
				for _, step := range []struct {
					what string
					do   func() (bool, error)
					want bool
				}{
					{"update of no key", func() (bool, error) { return s.Update(key, v) }, false},
					{"delete of no key", func() (bool, error) { return s.Delete(key) }, false},
					{"insert", func() (bool, error) { return s.Insert(key, v) }, true},
					{"insert again", func() (bool, error) { return s.Insert(key, nil) }, false},
					{"update", func() (bool, error) { return s.Update(key, v[:n/2]) }, true},
					{"put", func() (bool, error) { return true, s.Put(key, v) }, true},
				} {
					if got, err := step.do(); err != nil || got != step.want {
						return fmt.Errorf("%s: %v, %w", step.what, got, err)
					}
				}
				if got, there, err := s.Search(key, []byte("x")); err != nil || !there || !bytes.Equal(got[1:], v) {
					return fmt.Errorf("search: %v, %v, %w", got, there, err)
				}
				if there, err := s.Delete(key); err != nil || !there {
					return fmt.Errorf("delete: %v, %w", there, err)
				}
				if _, there, err := s.Search(key, nil); err != nil || there {
					return fmt.Errorf("search of a deleted key: %v, %w", there, err)
				}
			}
			if _, err := s.Insert(0, make([]byte, 101)); !errors.Is(err, ErrConfig) {
				return fmt.Errorf("a value that is too large: %w", err)
			}
			return s.Free()
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// TestClients: clients update and read a few keys. Each update is executed or combined; what a
// reader finds was written, and is no older than what it found before from the same writer; and
// memory for some hundred blocks is enough for any number of updates.
func TestClients(t *testing.T) {
	const clients, rounds, keys = 6, 1500, 2
	for scheme := range 2 * schemes {
		local := int(scheme/schemes) * 3
		scheme %= schemes
		err := inproc.Job{Nodes: 2, PerNode: clients / 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			s, err := New(c, Config{
				Keys: keys, Words: 6000, Section: 4,
				Policy: Policy{Scheme: scheme, Lease: 60e9, Local: local, HotnessThreshold: 1, BackoffFirst: 100, BackoffLast: 10_000},
			})
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				for k := range keys {
					if _, err := s.Insert(k, number(0, 0)); err != nil {
						return err
					}
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			seen := [keys][clients]int64{}
			for i := range rounds {
				key := i % keys
				if there, err := s.Update(key, number(c.Rank(), i+1)); err != nil || !there {
					return fmt.Errorf("update %d: %v, %w", i, there, err)
				}
				v, there, err := s.Search(key, nil)
				if err != nil || !there || len(v) != 8 {
					return fmt.Errorf("search %d: %v, %v, %w", i, v, there, err)
				}
				n := int64(binary.LittleEndian.Uint64(v))
				last := &seen[key][n%clients]
				if n/clients < *last {
					return fmt.Errorf("key %d: update %d of client %d after its update %d", key, n/clients, n%clients, *last)
				}
				*last = n / clients
			}
			if st := s.Stats(); local == 0 && st.Executed+st.Combined != rounds {
				return fmt.Errorf("%d updates: %+v", rounds, st)
			} else if st.Executed+st.Combined+st.Local < rounds {
				return fmt.Errorf("%d updates with node-mates: %+v", rounds, st)
			}
			return errors.Join(s.Rest(), c.Barrier())
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// number is a value that says which update of which client it is.
func number(client, i int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(i*6+client))
}

// TestCost: remote operations of each operation where no other client is there.
func TestCost(t *testing.T) {
	const get, bulkGet, bulkPut, cas, add, masked = rma.KindGet, rma.KindGetBulk, rma.KindPutBulk, rma.KindCompareAndSwap, rma.KindAccumulate, rma.KindMaskedSwap
	type counts = map[rma.Kind]int64
	var n hook.Tally
	for scheme, update := range map[Scheme]counts{
		Optimistic: {get: 1, bulkPut: 1, cas: 1},
		Cider:      {get: 1, bulkPut: 1, cas: 1},
		Spin:       {get: 1, bulkPut: 1, cas: 3},
		Queue:      {get: 1, bulkPut: 1, masked: 1, cas: 2, add: 1},
		Combining:  {get: 1, bulkPut: 1, masked: 1, cas: 2, add: 1},
	} {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			s, err := New(hook.Count(c, &n), Config{Keys: 2, Section: 1000, Policy: Policy{Scheme: scheme, Lease: 60e9, Local: 1}})
			if err != nil {
				return err
			}
			if _, err := s.Insert(0, data(1)[:8]); err != nil { // begins the section, and takes memory
				return err
			}
			check := func(what string, want counts) error {
				defer n.Reset()
				for k := range rma.Kinds {
					if got := n.Ops(k, hook.Far); got != want[k] {
						return fmt.Errorf("%s: %d times %v, want %d; counted are\n%v", what, got, k, want[k], &n)
					}
				}
				return nil
			}
			n.Reset()
			_, err = s.Insert(1, data(1)[:8])
			err = errors.Join(err, check("insert", counts{get: 1, bulkPut: 1, cas: 1}))
			_, uerr := s.Update(1, data(2)[:8])
			err = errors.Join(err, uerr, check("update", update))
			_, _, serr := s.Search(1, nil)
			return errors.Join(err, serr, check("search", counts{get: 1, bulkGet: 1}))
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// TestNoAllocations: no update and no search allocates.
func TestNoAllocations(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for scheme := range schemes {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			s, err := New(c, Config{Keys: 1, Section: 1 << 12, Policy: Policy{Scheme: scheme, Local: 1}})
			if err != nil {
				return err
			}
			v, buf := data(1)[:8], make([]byte, 0, 8)
			_, err = s.Insert(0, v)
			n := testing.AllocsPerRun(100, func() {
				_, uerr := s.Update(0, v)
				_, _, serr := s.Search(0, buf)
				err = errors.Join(err, uerr, serr)
			})
			if n > 1 || err != nil { // the list of freed blocks grows now and then
				return fmt.Errorf("%v allocations, %w", n, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// TestBadConfig: each nonsense is refused.
func TestBadConfig(t *testing.T) {
	for _, bad := range []Config{
		{}, {Keys: -1}, {Keys: 1, Policy: Policy{Scheme: schemes}}, {Keys: 1, Most: -1}, {Keys: 1, Most: MaxBytes + 1},
		{Keys: 1, Policy: Policy{Lease: -1}}, {Keys: 1, Policy: Policy{Factor: -1}}, {Keys: 1, Policy: Policy{Hot: -1}}, {Keys: 1, Policy: Policy{Local: -1}}, {Keys: 1, Section: -1},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := New(c, bad); return err })
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", bad, err)
		}
	}
	if _, err := ParseScheme("none"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	for s := range schemes {
		if got, err := ParseScheme(s.String()); got != s || err != nil {
			t.Error(got, err)
		}
	}
}

// TestBytes: a key takes 24 bytes beside its block, and a client keeps 8 for each hot key and no
// more, however many keys there are (4.6).
func TestBytes(t *testing.T) {
	const keys, most = 1000, 64
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		s, err := New(c, Config{Keys: keys, Policy: Policy{Scheme: Cider, Hot: most}})
		if err != nil {
			return err
		}
		count := func(w *rma.Window, names ...string) (n int) {
			for _, r := range w.Spec().Regions {
				for _, word := range r.Words {
					if slices.Contains(names, word.Name) {
						n += 8 * r.Count
					}
				}
			}
			return n
		}
		if got := count(s.w, "POINTER", "LOCK") + count(s.w, "EPOCH") - 8; got != 24*keys { // the heap has an EPOCH too
			return fmt.Errorf("%d bytes for %d keys", got, keys)
		}
		if got := count(s.heat.w, "HEAT"); got != 8*most {
			return fmt.Errorf("%d bytes for %d hot keys", got, most)
		}
		for k := range keys {
			if err := s.heat.cooled(uint64(k), 3); err != nil {
				return err
			}
		}
		return s.Free()
	})
	if err != nil {
		t.Error(err)
	}
}
