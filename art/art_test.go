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

// accounts compares the words that the heap has given out with those of the tree and what its only client
// has in hand.
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
		Policy: cider.Policy{Scheme: scheme, HotnessThreshold: 1, Lease: 20e9},
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
