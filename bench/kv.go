package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
)

// KV is a Workload on a key-value store whose changes package cider synchronises: searches, of the
// share Config.Readers, and updates of keys that are there. Config.Lock is a cider.Policy in text.
type KV struct {
	Keys  Keys   `json:"keys"`            // how often each key is used
	Count int    `json:"count"`           // keys; 0 means 100,000
	Index string `json:"index,omitempty"` // one of KVIndexes; "" is the pointer array
	Size  int    `json:"size,omitempty"`  // bytes of a value, at least 8; 0 means 8
	// YCSB is a core workload of YCSB with other operations than search and update. d reads what
	// was inserted last, and inserts; e scans up to 100 keys, and inserts; f reads, modifies and
	// writes. A client that has inserted 1,000 keys deletes the oldest of them before it inserts
	// another.
	YCSB string `json:"ycsb,omitempty"`
}

// The core workloads of YCSB whose operations are not searches and updates alone.
const (
	ycsbLatest = "d"
	ycsbScans  = "e"
	ycsbModify = "f"

	kvRoom = 1000 // keys that a client inserts
	kvScan = 100  // keys of the longest scan
)

func (x KV) filled() KV {
	if x.Count == 0 {
		x.Count = 100_000
	}
	if x.Index == "" {
		x.Index = kvArray
	}
	if x.Size == 0 {
		x.Size = 8
	}
	return x
}

// inserts says that keys are inserted while clients work.
func (x KV) inserts() bool { return x.YCSB == ycsbLatest || x.YCSB == ycsbScans }

// keys is the number of keys that there may be for so many clients.
func (x KV) keys(clients int) int {
	if x.inserts() {
		return x.Count + clients*kvRoom
	}
	return x.Count
}

// String is the workload in a line.
func (x KV) String() string {
	x = x.filled()
	text := fmt.Sprintf("kv, %s of %d keys, keys %s", x.Index, x.Count, x.Keys)
	if x.Size != 8 {
		text += fmt.Sprintf(", values of %d bytes", x.Size)
	}
	if x.YCSB != "" {
		text += ", YCSB " + strings.ToUpper(x.YCSB)
	}
	return text
}

// Check reports what is wrong with the fields.
func (x KV) Check(int) error {
	switch x = x.filled(); {
	case x.Count < 1:
		return fmt.Errorf("%d keys, want at least 1: %w", x.Count, ErrConfig)
	case !slices.Contains(KVIndexes(), x.Index):
		return fmt.Errorf("no index is called %q; there are: %s: %w", x.Index, strings.Join(KVIndexes(), ", "), ErrConfig)
	case x.YCSB == ycsbScans && x.Index == kvRace:
		return fmt.Errorf("YCSB workload e scans, and index %s has no order; want %s or %s: %w", kvRace, kvArray, kvSmart, ErrConfig)
	case x.Size < 8 || x.Size > 4096:
		return fmt.Errorf("values of %d bytes, want 8 to 4096: %w", x.Size, ErrConfig)
	case !slices.Contains([]string{"", ycsbLatest, ycsbScans, ycsbModify}, x.YCSB):
		return fmt.Errorf("YCSB workload is %q, want d, e, f, or none: %w", x.YCSB, ErrConfig)
	}
	return x.Keys.check()
}

// Table is the number of locks: the store has its own.
func (x KV) Table(homes int) int { return homes }

// Client is of Workload; a store has no visits.
func (x KV) Client(Site) (Client, error) { return nil, errNoVisits }

func (x KV) own(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	_, err := cider.ParseScheme(name)
	return err == nil
}

func (x KV) open(c rma.Comm, _ *Lock, cfg *Config) (structure, error) {
	x = x.filled()
	policy, err := cider.ParsePolicy(cfg.Lock)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrConfig)
	}
	s, err := kvIndexes[x.Index](c, x, policy)
	if err != nil {
		return nil, err
	}
	t := &kv{KV: x, c: c, cfg: cfg, store: s, keys: x.Keys.over(x.Count), stamps: newStamps(c), value: make([]byte, x.Size)}
	for key := c.Rank(); key < x.Count; key += c.Size() {
		if there, err := s.Insert(t.key(key), t.encode(0)); err != nil || !there {
			return nil, errors.Join(err, t.unless(there, key))
		}
	}
	t.store, t.history = newHistory(c, x, cfg, s)
	return t, s.Rest()
}

// kv is one client of the store.
type kv struct {
	KV
	c     rma.Comm
	cfg   *Config
	store kvIndex
	// history is nil if the run is too long for one, and checked is what it came to.
	history *kvHistory
	checked int64
	keys    source
	stamps
	mine  int // keys that this client has inserted
	name  [8]byte
	value []byte
	got   []byte
}

// key is a key in bytes, which a later call changes. They have the order of their numbers.
func (t *kv) key(n int) []byte {
	binary.BigEndian.PutUint64(t.name[:], uint64(n))
	return t.name[:]
}

// encode is a value with a stamp at both ends, so that a torn one shows.
func (t *kv) encode(stamp int64) []byte {
	binary.LittleEndian.PutUint64(t.value[len(t.value)-8:], uint64(stamp))
	binary.LittleEndian.PutUint64(t.value, uint64(stamp))
	return t.value
}

func (t *kv) decode(v []byte) (int64, error) {
	if len(v) != t.Size {
		return 0, fmt.Errorf("a value of %d bytes, want %d: %w", len(v), t.Size, ErrExclusion)
	}
	a, b := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[len(v)-8:])
	if t.Size >= 16 && a != b {
		return 0, fmt.Errorf("a torn value, %#x and %#x: %w", a, b, ErrExclusion)
	}
	return int64(a), nil
}

// unless is an error for a key that is not there.
func (t *kv) unless(there bool, key int) error {
	if there {
		return nil
	}
	return fmt.Errorf("key %d is not as it must be, there or absent: %w", key, ErrExclusion)
}

func (t *kv) operate(rng *rand.Rand, read bool) error {
	key := t.keys.next(rng)
	switch {
	case read && t.YCSB == ycsbScans:
		return t.scan(key, 1+rng.IntN(kvScan))
	case read && t.YCSB == ycsbLatest:
		return t.latest(key)
	case read:
		return t.read(key)
	case t.inserts():
		return t.insert()
	case t.YCSB == ycsbModify:
		if err := t.read(key); err != nil {
			return err
		}
	}
	return t.update(key)
}

func (t *kv) read(key int) error {
	v, err := t.search(key)
	if err != nil {
		return err
	}
	return t.stamps.check(key, v)
}

func (t *kv) update(key int) error {
	there, err := t.store.Update(t.key(key), t.encode(t.stamps.next(key)))
	return errors.Join(err, t.unless(there || err != nil, key))
}

// insert inserts a key: client r's n-th is Count + n*clients + r, and from the 1,000th on those
// before in turn.
func (t *kv) insert() error {
	key := t.Count + t.mine%kvRoom*t.c.Size() + t.c.Rank()
	if t.mine++; t.mine > kvRoom {
		if there, err := t.store.Delete(t.key(key)); err != nil || !there {
			return errors.Join(err, t.unless(there, key))
		}
	}
	there, err := t.store.Insert(t.key(key), t.encode(t.stamps.next(key)))
	return errors.Join(err, t.unless(there || err != nil, key))
}

// latest searches the key that was inserted so many keys before this client's last.
func (t *kv) latest(back int) error {
	key := t.Count + t.mine%kvRoom*t.c.Size() + t.c.Rank() - back
	if key < 0 {
		key += t.Count
	}
	v, there, err := t.store.Search(t.key(key), t.got[:0])
	if t.got = v; err != nil || !there { // another client has not yet inserted it
		return errors.Join(err, t.unless(there || key >= t.Count || err != nil, key))
	}
	stamp, err := t.decode(v)
	if err != nil {
		return err
	}
	return t.stamps.check(key, stamp)
}

// scan looks at keys in their order.
func (t *kv) scan(from, n int) error {
	last := -1
	return t.store.(kvOrdered).Range(t.key(from), n, func(key, value []byte) error {
		k := int(binary.BigEndian.Uint64(key))
		if k < from || k <= last {
			return fmt.Errorf("a scan from %d finds %d after %d: %w", from, k, last, ErrExclusion)
		}
		last = k
		stamp, err := t.decode(value)
		if err != nil {
			return err
		}
		return t.stamps.check(k, stamp)
	})
}

func (t *kv) search(key int) (int64, error) {
	v, there, err := t.store.Search(t.key(key), t.got[:0])
	if err != nil || !there {
		return 0, errors.Join(err, t.unless(there || err != nil, key))
	}
	t.got = v
	return t.decode(v)
}

// verify looks at every key. Its value is one that a client wrote; the last one of that client
// unless it was combined with another's. The operations of a short run are linearizable.
func (t *kv) verify() error {
	if err := t.store.Rest(); err != nil {
		return err
	}
	if t.history != nil {
		n, err := t.history.check(t.Count)
		if err = agree(t.c, t.cfg, err); err != nil {
			return err
		}
		t.checked, t.history.over = n, true
	}
	last, err := t.stamps.last(t.c)
	if err != nil || t.c.Rank() != 0 && t.cfg.virtual != nil {
		return err
	}
	if t.c.Rank() == 0 {
		err = errors.Join(t.compare(last), t.store.Rest())
	}
	return agree(t.c, t.cfg, err)
}

func (t *kv) compare(last []map[int]int64) error {
	for key := range t.KV.keys(t.c.Size()) {
		if key >= t.Count && last[(key-t.Count)%t.c.Size()][key] == 0 {
			continue // never inserted
		}
		v, err := t.search(key)
		if err == nil {
			err = final(key, v, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *kv) free() error { return t.store.Free() }

// rest ends the client's section, for which those wait that need blocks.
func (t *kv) rest() error { return t.store.Rest() }

// counts are the store's Stats.
func (t *kv) counts() cider.Stats { return t.store.Stats() }
