package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
)

// KV is a Workload on the key-value store of package cider: searches, of the share
// Config.Readers, and updates of keys that are there. Config.Lock is the name of a scheme.
type KV struct {
	Keys  Keys `json:"keys"`  // how often each key is used
	Count int  `json:"count"` // keys; 0 means 100,000
}

func (x KV) filled() KV {
	if x.Count == 0 {
		x.Count = 100_000
	}
	return x
}

// String is the workload in a line.
func (x KV) String() string { return fmt.Sprintf("kv, %d keys, keys %s", x.filled().Count, x.Keys) }

// Check reports what is wrong with the fields.
func (x KV) Check(int) error {
	if x.filled().Count < 1 {
		return fmt.Errorf("%d keys, want at least 1: %w", x.Count, ErrConfig)
	}
	return x.Keys.check()
}

// Table is the number of locks: the store has its own.
func (x KV) Table(homes int) int { return homes }

// Client is of Workload; a store has no visits.
func (x KV) Client(Site) (Client, error) { return nil, errNoVisits }

func (x KV) own(name string) bool {
	_, err := cider.ParseScheme(name)
	return err == nil
}

func (x KV) open(c rma.Comm, _ *Lock, cfg *Config) (structure, error) {
	x = x.filled()
	scheme, err := cider.ParseScheme(cfg.Lock)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrConfig)
	}
	s, err := cider.New(c, cider.Config{Keys: x.Count, Policy: cider.Policy{Scheme: scheme}})
	if err != nil {
		return nil, err
	}
	t := &kv{KV: x, c: c, cfg: cfg, store: s, keys: x.Keys.over(x.Count), stamps: newStamps(c)}
	for key := c.Rank(); key < x.Count; key += c.Size() {
		if _, err := s.Insert(key, t.encode(0)); err != nil {
			return nil, err
		}
	}
	return t, s.Rest()
}

// kv is one client of the store.
type kv struct {
	KV
	c     rma.Comm
	cfg   *Config
	store *cider.Store
	keys  source
	stamps
	buf [8]byte // a value
	got []byte
}

func (t *kv) encode(stamp int64) []byte {
	binary.LittleEndian.PutUint64(t.buf[:], uint64(stamp))
	return t.buf[:]
}

func (t *kv) operate(rng *rand.Rand, read bool) error {
	key := t.keys.next(rng)
	if read {
		v, err := t.search(key)
		if err != nil {
			return err
		}
		return t.stamps.check(key, v)
	}
	there, err := t.store.Update(key, t.encode(t.stamps.next(key)))
	if err == nil && !there {
		err = fmt.Errorf("key %d is not there: %w", key, ErrExclusion)
	}
	return err
}

func (t *kv) search(key int) (int64, error) {
	v, there, err := t.store.Search(key, t.got[:0])
	if err == nil && (!there || len(v) != 8) {
		err = fmt.Errorf("key %d is not there, or has %d bytes: %w", key, len(v), ErrExclusion)
	}
	if err != nil {
		return 0, err
	}
	t.got = v
	return int64(binary.LittleEndian.Uint64(v)), nil
}

// verify looks at every key that was written. Its value is one that a client wrote; the last one
// of that client unless it was combined with another's.
func (t *kv) verify() error {
	if err := t.store.Rest(); err != nil {
		return err
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
	for key := range t.Count {
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
