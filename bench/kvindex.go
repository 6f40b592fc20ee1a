package bench

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/rmalock/rmalock/art"
	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/race"
	"github.com/rmalock/rmalock/rma"
)

// A kvIndex is one client's handle on an index on memory nodes. Search appends to dst; the others
// report whether the key was there, or for Insert was not.
type kvIndex interface {
	Search(key, dst []byte) ([]byte, bool, error)
	Insert(key, value []byte) (bool, error)
	Update(key, value []byte) (bool, error)
	Delete(key []byte) (bool, error)
	Rest() error // the client does nothing for a while
	Stats() cider.Stats
	Free() error // collective
}

// A kvOrdered is a kvIndex that keeps keys in order.
type kvOrdered interface {
	// Range calls f for at most n keys from from on, until f returns an error.
	Range(from []byte, n int, f func(key, value []byte) error) error
}

// Names of indexes.
const (
	kvArray = "array"
	kvRace  = "race" // without an order
	kvSmart = "smart"
)

// kvIndexes open the indexes, for x.keys(c.Size()) keys of 8 bytes and values of x.Size.
var kvIndexes = map[string]func(c rma.Comm, x KV, p cider.Policy) (kvIndex, error){
	kvArray: newKVArray,
	kvRace:  newKVRace,
	kvSmart: newKVTree,
}

// KVIndexes are the names that KV.Index may have.
func KVIndexes() []string { return slices.Sorted(maps.Keys(kvIndexes)) }

// newKVRace is an extendible hash table with room for the keys.
func newKVRace(c rma.Comm, x KV, p cider.Policy) (kvIndex, error) {
	n := x.keys(c.Size())
	return race.New(c, race.Config{Keys: n, Most: 8 + x.Size, Policy: p})
}

// tree is an adaptive radix tree.
type tree struct {
	*art.Tree
}

// newKVTree is an adaptive radix tree whose clients keep copies of all its nodes, those of a job in
// virtual time together.
func newKVTree(c rma.Comm, x KV, p cider.Policy) (kvIndex, error) {
	n := x.keys(c.Size())
	t, err := art.New(c, art.Config{Keys: n, MostValue: x.Size, Policy: p, Cache: art.NewCache(1<<20 + 24*n)})
	return tree{t}, err
}

func (t tree) Range(from []byte, n int, f func(key, value []byte) error) (err error) {
	if n < 1 {
		return nil
	}
	if e := t.Scan(from, func(k, v []byte) bool {
		n--
		err = f(k, v)
		return err == nil && n > 0
	}); e != nil {
		return e
	}
	return err
}

// array is the pointer array.
type array struct {
	*cider.Store
	keys int
	got  []byte
	name [8]byte
}

func newKVArray(c rma.Comm, x KV, p cider.Policy) (kvIndex, error) {
	n := x.keys(c.Size())
	s, err := cider.New(c, cider.Config{Keys: n, Most: x.Size, Policy: p})
	return &array{Store: s, keys: n}, err
}

func number(key []byte) int { return int(binary.BigEndian.Uint64(key)) }

func (a *array) Search(key, dst []byte) ([]byte, bool, error) {
	return a.Store.Search(number(key), dst)
}

func (a *array) Insert(key, value []byte) (bool, error) { return a.Store.Insert(number(key), value) }
func (a *array) Update(key, value []byte) (bool, error) { return a.Store.Update(number(key), value) }
func (a *array) Delete(key []byte) (bool, error)        { return a.Store.Delete(number(key)) }

// Range searches one key after the other.
func (a *array) Range(from []byte, n int, f func(key, value []byte) error) error {
	for k := number(from); k < a.keys && n > 0; k++ {
		v, there, err := a.Store.Search(k, a.got[:0])
		if a.got = v; err != nil {
			return err
		}
		if !there {
			continue
		}
		n--
		binary.BigEndian.PutUint64(a.name[:], uint64(k))
		if err := f(a.name[:], v); err != nil {
			return err
		}
	}
	return nil
}
