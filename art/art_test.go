package art

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// drawn is a key of 0 to 40 bytes, of few letters: some begin with others.
func drawn(rng *rand.Rand) string {
	b := make([]byte, rng.IntN(6)*rng.IntN(9))
	for i := range b {
		b[i] = "\x00a\xff"[rng.IntN(3)]
	}
	return string(b)
}

// TestModel: one client's tree is a map, with keys and values of many lengths.
func TestModel(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 3_000
	}
	for _, job := range []inproc.Job{{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 1, MemoryNodes: 3}} {
		for _, slots := range [][]int{nil, {2, 1, 1, 253}} {
			err := job.Run(func(c rma.Comm) error {
				cfg := Config{MostKey: 40, MostValue: 100, Keys: 5000, Cache: NewCache(20_000), growth: slots, Section: 3}
				tree, err := New(c, cfg)
				if err != nil {
					return err
				}
				return model(tree, n)
			})
			if err != nil {
				t.Errorf("%+v, %v: %v", job, slots, err)
			}
		}
	}
}

func model(tree *Tree, n int) error {
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	for i := range n {
		key := drawn(rng)
		has, is := want[key]
		v := fmt.Sprint(key, i)
		v = strings.Repeat(v, 1+rng.IntN(2))[:min(len(v), 100)]
		var did bool
		var got []byte
		var err error
		switch what := rng.IntN(5); what {
		case 0:
			if got, did, err = tree.Search([]byte(key), nil); string(got) != has {
				err = fmt.Errorf("it has %q, want %q; %w", got, has, err)
			}
		case 1:
			if did, err = tree.Update([]byte(key), []byte(v)); did {
				want[key] = v
			}
		case 2:
			did, err = tree.Delete([]byte(key))
			delete(want, key)
		default:
			if did, err = tree.Insert([]byte(key), []byte(v)); did {
				want[key] = v
			}
			did = !did
		}
		if err != nil || did != is {
			return fmt.Errorf("operation %d on key %q: %v, want %v; %w", i, key, did, is, err)
		}
		if i%1000 == 0 {
			if err := compare(tree, want, drawn(rng)); err != nil {
				return err
			}
		}
	}
	return errors.Join(compare(tree, want, ""), accounts(tree), tree.Free())
}

// compare scans the tree from a key on.
func compare(tree *Tree, want map[string]string, from string) error {
	var keys, got []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if k >= from {
			keys = append(keys, k)
		}
	}
	var wrong error
	err := tree.Scan([]byte(from), func(k, v []byte) bool {
		got = append(got, string(k))
		if want[string(k)] != string(v) {
			wrong = fmt.Errorf("a scan finds %q at key %q, want %q", v, k, want[string(k)])
		}
		return true
	})
	if wrong == nil && !slices.Equal(got, keys) {
		wrong = fmt.Errorf("a scan from %q finds %q, want %q", from, got, keys)
	}
	found := 0
	shape, bad := tree.Check(func(k, v []byte) { found++ })
	if bad == nil && (found != len(want) || shape.Keys != found || shape.Dead > 0) {
		bad = fmt.Errorf("%+v, want %d keys and no dead leaf", shape, len(want))
	}
	return errors.Join(err, wrong, bad)
}

// accounts compares the words that the heap has given out with those of the tree and what its only
// client has in hand.
func accounts(tree *Tree) error {
	shape, err := tree.Check(nil)
	if err != nil {
		return err
	}
	u, err := tree.Usage()
	if live := u.Taken - u.Pooled - int64(tree.Held()); err == nil && live != shape.Words {
		err = fmt.Errorf("%d words are in use, and the tree has %d", live, shape.Words)
	}
	return err
}

// schemes are those that one client needs no other for.
var schemes = []cider.Scheme{cider.Cider, cider.Optimistic, cider.Spin, cider.Queue, cider.Combining, cider.Aware}

// TestClients: several clients write, delete, read and scan at once, each its own keys among those
// of others, and all some keys together; then the tree holds what they wrote last.
func TestClients(t *testing.T) {
	for i, scheme := range schemes {
		job := []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}}[i%2]
		t.Run(scheme.String(), func(t *testing.T) {
			t.Parallel()
			if err := job.Run(func(c rma.Comm) error { return use(hook.Relax(c, 5), scheme) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func use(c rma.Comm, scheme cider.Scheme) error {
	tree, err := New(c, Config{
		Keys: 3000, MostKey: 10, MostValue: 8, Cache: NewCache(10_000),
		Policy: cider.Policy{Scheme: scheme, HotnessThreshold: 1, Lease: 20e9, Local: int(scheme) % 2 * 2},
	})
	if err != nil {
		return err
	}
	n := 1500
	if testing.Short() {
		n = 300
	}
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	mine := map[string]int64{}
	var value [8]byte
	for range n {
		if rng.IntN(3) == 0 { // a key of all clients
			key, what := []byte{1, byte(rng.IntN(8))}, rng.IntN(4)
			binary.LittleEndian.PutUint64(value[:], uint64(key[1]))
			switch what {
			case 0:
				_, err = tree.Delete(key)
			case 1:
				err = tree.Put(key, value[:])
			default:
				_, err = tree.Update(key, value[:])
			}
			if err != nil {
				return err
			}
			if v, there, err := tree.Search(key, nil); err != nil || there && !bytes.Equal(v, value[:]) {
				return fmt.Errorf("key %v has %v; %w", key, v, err)
			}
			continue
		}
		key := binary.BigEndian.AppendUint16(nil, uint16(rng.IntN(n)))
		key = append(key, byte(c.Rank()))[:2+rng.IntN(2)] // some are others' too
		if len(key) == 2 {
			key = append([]byte{9, byte(c.Rank())}, key...)
		}
		k := string(key)
		was, is := mine[k]
		switch rng.IntN(4) {
		case 0:
			there, err := tree.Delete(key)
			if err != nil || there != is {
				return fmt.Errorf("delete of %q: %v, want %v; %w", k, there, is, err)
			}
			delete(mine, k)
		case 1:
			v, there, err := tree.Search(key, nil)
			if err != nil || there != is || there && int64(binary.LittleEndian.Uint64(v)) != was {
				return fmt.Errorf("key %q: %v, %v, want %d, %v; %w", k, v, there, was, is, err)
			}
		default:
			mine[k] = rng.Int64()
			binary.LittleEndian.PutUint64(value[:], uint64(mine[k]))
			if err := tree.Put(key, value[:]); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(tree.Rest(), c.Barrier()); err != nil {
		return err
	}
	found := 0
	shape, err := tree.Check(func(k, v []byte) {
		if want, is := mine[string(k)]; is && want == int64(binary.LittleEndian.Uint64(v)) {
			found++
		}
	})
	if err == nil && (found != len(mine) || shape.Dead > 0) {
		err = fmt.Errorf("the tree holds %d keys of rank %d, want %d; %+v", found, c.Rank(), len(mine), shape)
	}
	return errors.Join(err, c.Barrier(), tree.Free())
}

// TestCost: what the package comment says, where the copies are right. No search and no update
// allocates.
func TestCost(t *testing.T) {
	const get, bulkGet, bulkPut, cas = rma.KindGet, rma.KindGetBulk, rma.KindPutBulk, rma.KindCompareAndSwap
	type counts = map[rma.Kind]int64
	var n hook.Tally
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		tree, err := New(hook.Count(c, &n), Config{Keys: 1000, Section: 1 << 10, MostKey: 40, Policy: cider.Policy{Scheme: cider.Optimistic}})
		if err != nil {
			return err
		}
		for i := range 8 { // each has four children
			for _, key := range []string{"a%dx", "a%dy", "%d........................................"[:38] + "%[1]d"} {
				if _, err := tree.Insert(fmt.Appendf(nil, key, i), []byte{1}); err != nil {
					return err
				}
			}
		}
		long := fmt.Appendf(nil, "%d........................................"[:38]+"%[1]d", 3)
		var got []byte
		search := func(key string) func() error {
			return func() (err error) { got, _, err = tree.Search([]byte(key), got[:0]); return err }
		}
		for _, k := range []struct {
			name string
			do   func() error
			want counts
			trip int64
		}{
			{"the first search", search("a1x"), nil, 0},
			{"search", search("a1x"), counts{bulkGet: 2}, 2},
			{"update", func() error { _, err := tree.Update([]byte("a1x"), []byte{2}); return err }, counts{bulkGet: 1, bulkPut: 1, cas: 1}, 2},
			{"insert", func() error { _, err := tree.Insert([]byte("a1z"), []byte{2}); return err }, counts{bulkGet: 1, bulkPut: 2, cas: 1}, 2},
			{"insert that splits", func() error { _, err := tree.Insert([]byte("a1xx"), []byte{2}); return err }, counts{get: 1, bulkGet: 2, bulkPut: 3, cas: 1}, 3},
			{"search through a new node", search("a1xx"), counts{bulkGet: 3}, 3},
			{"search again", search("a1xx"), counts{bulkGet: 2}, 2},
			{"search of a leaf that moved", search("a1x"), counts{get: 1, bulkGet: 2}, 2},
			{"search of a key that is not there", search("a1w"), counts{bulkGet: 1}, 1},
			{"delete", func() error { _, err := tree.Delete([]byte("a1xx")); return err }, counts{bulkGet: 1, cas: 3}, 4},
			{"the first search of a long key", func() error { _, _, err := tree.Search(long, got[:0]); return err }, nil, 0},
			{"search of a long key", func() error { _, _, err := tree.Search(long, got[:0]); return err }, counts{bulkGet: 3}, 3},
			{"scan", func() error {
				return tree.Scan([]byte("a1x"), func(key, _ []byte) bool { return string(key) < "a1z" })
			}, nil, 0},
		} {
			n.Reset()
			if err := k.do(); err != nil {
				return err
			}
			for kind := range rma.Kinds {
				if got := n.Ops(kind, hook.Far); k.want != nil && got != k.want[kind] {
					return fmt.Errorf("%s: %d times %v, want %d; counted are\n%v", k.name, got, kind, k.want[kind], &n)
				}
			}
			if trips := n.Flushes(hook.Far) + n.FlushAlls(); k.want != nil && trips != k.trip {
				return fmt.Errorf("%s: %d round trips, want %d", k.name, trips, k.trip)
			}
		}
		key, value := []byte("a1x"), []byte{3}
		each := testing.AllocsPerRun(50, func() {
			got, _, err = tree.Search(key, got[:0])
			if err == nil {
				_, err = tree.Update(key, value)
			}
		})
		if err == nil && each > 0 {
			err = fmt.Errorf("a search and an update allocate %v times", each)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestConfig: what cannot be is refused, with the name of the field.
func TestConfig(t *testing.T) {
	for want, cfg := range map[string]Config{
		"Config.MostKey is 5000":    {MostKey: 5000, Keys: 1},
		"Config.MostValue is 99999": {MostValue: 99999, Keys: 1},
		"Config.Section is -1":      {Section: -1, Keys: 1},
		"Config.Keys is 0":          {},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := New(c, cfg); return err })
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	err := inproc.Run(1, func(c rma.Comm) error {
		tree, err := New(c, Config{Keys: 1})
		if err != nil {
			return err
		}
		_, err = tree.Insert(make([]byte, 9), nil)
		_, verr := tree.Insert(nil, make([]byte, 9))
		if !errors.Is(err, ErrConfig) || !errors.Is(verr, ErrConfig) {
			return fmt.Errorf("a key that is too long: %w; a value: %w", err, verr)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
