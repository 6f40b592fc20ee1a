package race

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

var schemes = []cider.Scheme{cider.Cider, cider.Optimistic, cider.Spin, cider.Queue, cider.Combining, cider.Aware}

// with is a configuration of a scheme whose leases no busy machine lets run out.
func with(s cider.Scheme) Config { return Config{Policy: cider.Policy{Scheme: s, Lease: 60e9}} }

// TestOperations: each operation, also where it has nothing to do, under each scheme, with keys and
// values of all sizes.
func TestOperations(t *testing.T) {
	for _, scheme := range schemes {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 2}.Run(func(c rma.Comm) error {
			cfg := with(scheme)
			cfg.Groups, cfg.Segments, cfg.Most = 1, 4, 150
			r, err := New(c, cfg)
			if err != nil {
				return err
			}
			for n := range 101 {
				key, v := bytes.Repeat([]byte{byte(n)}, n%40), bytes.Repeat([]byte{byte(n)}, n)
				for _, step := range []struct {
					what string
					do   func() (bool, error)
					want bool
				}{
					{"update of no key", func() (bool, error) { return r.Update(key, v) }, false},
					{"delete of no key", func() (bool, error) { return r.Delete(key) }, false},
					{"insert", func() (bool, error) { return r.Insert(key, v) }, true},
					{"insert again", func() (bool, error) { return r.Insert(key, nil) }, false},
					{"update", func() (bool, error) { return r.Update(key, v[:n/2]) }, true},
					{"put", func() (bool, error) { return true, r.Put(key, v) }, true},
				} {
					if got, err := step.do(); err != nil || got != step.want {
						return fmt.Errorf("%s: %v, %w", step.what, got, err)
					}
				}
				if got, there, err := r.Search(key, []byte("x")); err != nil || !there || !bytes.Equal(got[1:], v) {
					return fmt.Errorf("search: %v, %v, %w", got, there, err)
				}
				if there, err := r.Delete(key); err != nil || !there {
					return fmt.Errorf("delete: %v, %w", there, err)
				}
				if _, there, err := r.Search(key, nil); err != nil || there {
					return fmt.Errorf("search of a deleted key: %v, %w", there, err)
				}
			}
			if _, err := r.Insert(nil, make([]byte, 151)); !errors.Is(err, ErrConfig) {
				return fmt.Errorf("a value that is too large: %w", err)
			}
			return r.Free()
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// TestGrow: clients insert, update, delete and search keys of their own in a table that grows from
// one segment to many, then every key is where it should be, once. When all are
// deleted all memory is free again.
func TestGrow(t *testing.T) {
	for _, scheme := range schemes {
		for _, job := range []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}} {
			t.Run(fmt.Sprintf("%v/%d", scheme, job.MemoryNodes), func(t *testing.T) {
				t.Parallel()
				if err := job.Run(func(c rma.Comm) error { return grow(hook.Relax(c, 5), scheme) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func grow(c rma.Comm, scheme cider.Scheme) error {
	cfg := with(scheme)
	cfg.Groups, cfg.Segments, cfg.Section, cfg.Words = 1, 512, 8, 60_000
	cfg.BackoffFirst, cfg.BackoffLast = 100, 10_000
	r, err := New(c, cfg)
	if err != nil {
		return err
	}
	n := 1500
	if locktest.Quick() {
		n = 300
	}
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	mine := map[int64]int64{}
	for i := range n {
		k := rng.Int64N(int64(n))*int64(c.Size()) + int64(c.Rank())
		v, was := mine[k]
		var did bool
		var err error
		switch rng.IntN(5) {
		case 0:
			did, err = r.Delete(number(k))
			delete(mine, k)
		case 1:
			var b []byte
			b, did, err = r.Search(number(k), nil)
			if did && int64(binary.LittleEndian.Uint64(b)) != v {
				return fmt.Errorf("key %d: %v, want %d", k, b, v)
			}
		case 2:
			if did, err = r.Update(number(k), number(int64(i))); did {
				mine[k] = int64(i)
			}
		default:
			if did, err = r.Insert(number(k), number(int64(i))); did {
				mine[k] = int64(i)
			}
			did = !did
		}
		if err != nil || did != was {
			return fmt.Errorf("key %d: %v, want %v, %w", k, did, was, err)
		}
	}
	if err := errors.Join(r.Rest(), c.Barrier()); err != nil {
		return err
	}
	found := map[int64]int64{}
	err = r.Check(func(key, value []byte) {
		if k := int64(binary.LittleEndian.Uint64(key)); k%int64(c.Size()) == int64(c.Rank()) {
			found[k] = int64(binary.LittleEndian.Uint64(value))
		}
	})
	if err != nil {
		return err
	}
	if len(found) != len(mine) {
		return fmt.Errorf("the table has %d keys of client %d, want %d", len(found), c.Rank(), len(mine))
	}
	for k, v := range mine {
		if found[k] != v {
			return fmt.Errorf("key %d has %d, want %d", k, found[k], v)
		}
	}
	return errors.Join(r.Rest(), c.Barrier(), leaves(c, r, mine), r.Free())
}

// leaves deletes a client's keys. When all have, no block is left in use.
func leaves(c rma.Comm, r *Table, mine map[int64]int64) error {
	for k := range mine {
		if there, err := r.Delete(number(k)); err != nil || !there {
			return fmt.Errorf("delete of key %d: %v, %w", k, there, err)
		}
	}
	if err := errors.Join(r.Rest(), c.Barrier(), r.heap.Close(), c.Barrier()); err != nil {
		return err
	}
	u, err := r.Usage()
	if err == nil && u.Taken != u.Pooled {
		err = fmt.Errorf("%d words are taken of the memory, and %d are free again", u.Taken, u.Pooled)
	}
	return errors.Join(err, c.Barrier())
}

func number(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// TestLocal: clients of a node update and read one key, and some for each other.
func TestLocal(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 4, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		cfg := with(cider.Cider)
		cfg.Local, cfg.Words = 4, 60_000
		r, err := New(hook.Relax(c, 5), cfg)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			_, err = r.Insert(number(1), number(0))
		}
		if err := errors.Join(err, r.Rest(), c.Barrier()); err != nil {
			return err
		}
		var last [4]int64
		for i := int64(1); i <= 300; i++ {
			if there, err := r.Update(number(1), number(i*4+int64(c.Rank()))); err != nil || !there {
				return fmt.Errorf("update %d: %v, %w", i, there, err)
			}
			b, there, err := r.Search(number(1), nil)
			if err != nil || !there {
				return fmt.Errorf("search %d: %v, %w", i, there, err)
			}
			v := int64(binary.LittleEndian.Uint64(b))
			if v/4 < last[v%4] {
				return fmt.Errorf("update %d of client %d after its update %d", v/4, v%4, last[v%4])
			}
			last[v%4] = v / 4
		}
		return errors.Join(r.Rest(), c.Barrier())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCost: remote operations of each operation where no other client is there.
func TestCost(t *testing.T) {
	const get, bulkGet, bulkPut, cas, add, masked = rma.KindGet, rma.KindGetBulk, rma.KindPutBulk, rma.KindCompareAndSwap, rma.KindAccumulate, rma.KindMaskedSwap
	type counts = map[rma.Kind]int64
	var n hook.Tally
	for scheme, queue := range map[cider.Scheme]counts{
		cider.Optimistic: {bulkGet: 3, bulkPut: 1, cas: 1},
		cider.Cider:      {bulkGet: 3, bulkPut: 1, cas: 1},
		cider.Spin:       {bulkGet: 3, bulkPut: 1, cas: 3},
		cider.Queue:      {bulkGet: 3, bulkPut: 1, masked: 1, cas: 2, add: 1},
		cider.Combining:  {bulkGet: 3, bulkPut: 1, masked: 1, cas: 2, add: 1},
	} {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			cfg := with(scheme)
			cfg.Section = 1000
			r, err := New(hook.Count(c, &n), cfg)
			if err != nil {
				return err
			}
			if _, err := r.Insert(number(0), number(1)); err != nil { // begins the section, and takes memory
				return err
			}
			check := func(what string, trips int64, want counts) error {
				defer n.Reset()
				for k := range rma.Kinds {
					if got := n.Ops(k, hook.Far); got != want[k] {
						return fmt.Errorf("%s: %d times %v, want %d; counted are\n%v", what, got, k, want[k], &n)
					}
				}
				got := n.FlushAlls()
				for d := range hook.Distances {
					if d == hook.Far {
						got += n.Flushes(d)
					}
				}
				if got != trips {
					return fmt.Errorf("%s: %d round trips, want %d; counted are\n%v", what, got, trips, &n)
				}
				return nil
			}
			n.Reset()
			_, err = r.Insert(number(1), number(1))
			err = errors.Join(err, check("insert", 3, counts{bulkGet: 4, bulkPut: 1, cas: 2}))
			_, ierr := r.Insert(number(1), number(1))
			err = errors.Join(err, ierr, check("insert of a key that is there", 2, counts{bulkGet: 3, bulkPut: 1}))
			_, _, serr := r.Search(number(1), nil)
			err = errors.Join(err, serr, check("search", 2, counts{bulkGet: 3}))
			_, _, serr = r.Search(number(2), nil)
			err = errors.Join(err, serr, check("search of no key", 1, counts{bulkGet: 2}))
			_, uerr := r.Update(number(1), number(2))
			trips := map[cider.Scheme]int64{cider.Spin: 5, cider.Queue: 5, cider.Combining: 5}[scheme]
			err = errors.Join(err, uerr, check("update", max(3, trips), queue))
			_, derr := r.Delete(number(1))
			gone := counts{bulkGet: 3, masked: queue[masked], cas: queue[cas], add: queue[add]}
			if scheme == cider.Cider {
				gone[masked], gone[cas], gone[add], trips = 1, 2, 1, 5
			}
			return errors.Join(err, derr, check("delete", max(3, trips), gone))
		})
		if err != nil {
			t.Errorf("%v: %v", scheme, err)
		}
	}
}

// TestNoAllocations: no operation allocates, but what one splits.
func TestNoAllocations(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, scheme := range schemes {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			cfg := with(scheme)
			cfg.Section = 1 << 12
			r, err := New(c, cfg)
			if err != nil {
				return err
			}
			k, v, buf := number(3), number(4), make([]byte, 0, 8)
			n := testing.AllocsPerRun(100, func() {
				_, ierr := r.Insert(k, v)
				_, uerr := r.Update(k, v)
				_, _, serr := r.Search(k, buf)
				_, derr := r.Delete(k)
				err = errors.Join(err, ierr, uerr, serr, derr)
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
		{Segments: 3}, {Segments: -1}, {Segments: 1 << 25}, {Initial: 3}, {Segments: 2, Initial: 4},
		{Segments: 1 << 20, Initial: 1}, {Groups: -1}, {Most: -1}, {Most: MaxBytes + 1}, {Section: -1},
		{Policy: cider.Policy{Lease: -1}},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := New(c, bad); return err })
		if !errors.Is(err, ErrConfig) && !errors.Is(err, cider.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", bad, err)
		}
	}
}

// TestFull: a table that cannot grow says so, and goes on.
func TestFull(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		r, err := New(c, Config{Groups: 1, Segments: 2})
		if err != nil {
			return err
		}
		n := int64(0)
		for ; err == nil; n++ {
			_, err = r.Insert(number(n), nil)
		}
		if !errors.Is(err, ErrFull) || n < 22 {
			return fmt.Errorf("after %d keys: %w", n, err)
		}
		for k := range n - 1 {
			if there, err := r.Delete(number(k)); err != nil || !there {
				return fmt.Errorf("key %d: %v, %w", k, there, err)
			}
		}
		_, err = r.Insert(number(n), nil)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
