package bench

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/internal/history"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestKVHistory: what clients of a key-value store saw is linearizable, or the run fails; a client that
// is not sure of an operation leaves the check out.
func TestKVHistory(t *testing.T) {
	type event struct {
		from, to int64
		what     byte
		key      int64
		value    int64
		ok       bool
	}
	for name, k := range map[string]struct {
		of     [2][]event // by rank
		unsure bool
		want   int64 // operations; -1: not linearizable
	}{
		"a read after an update": {of: [2][]event{{{1, 2, history.Update, 0, 7, true}}, {{3, 4, history.Get, 0, 7, true}}}, want: 2},
		"a read beside it":       {of: [2][]event{{{1, 5, history.Update, 0, 7, true}}, {{3, 4, history.Get, 0, 0, true}}}, want: 2},
		"an old value after it":  {of: [2][]event{{{1, 2, history.Update, 0, 7, true}}, {{3, 4, history.Get, 0, 0, true}}}, want: -1},
		"a key that is lost":     {of: [2][]event{{{1, 2, history.Insert, 9, 7, true}}, {{3, 4, history.Get, 9, 0, false}}}, want: -1},
		"two inserts":            {of: [2][]event{{{1, 4, history.Insert, 9, 7, true}}, {{2, 3, history.Insert, 9, 8, true}}}, want: -1},
		"an absent key":          {of: [2][]event{{{1, 2, history.Get, 9, 0, false}}, nil}, want: 1},
		"unsure":                 {of: [2][]event{{{1, 2, history.Update, 0, 7, true}}, {{3, 4, history.Get, 0, 0, true}}}, unsure: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := inproc.Run(2, func(c rma.Comm) error {
				h := &kvHistory{c: c, most: 4, unsure: k.unsure}
				for _, e := range k.of[c.Rank()] {
					ok := int64(0)
					if e.ok {
						ok = 1
					}
					h.events = append(h.events, e.from, e.to, int64(e.what), e.key, e.value, ok)
				}
				n, err := h.check(1)
				switch {
				case c.Rank() != 0:
					return err
				case k.want < 0 && !errors.Is(err, history.Err):
					t.Errorf("error %v, want %v", err, history.Err)
				case k.want >= 0 && (err != nil || n != k.want):
					t.Errorf("%d operations, error %v, want %d", n, err, k.want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// staleIndex answers each second search with what it found first.
type staleIndex struct {
	kvIndex
	searches int
	first    map[uint64][]byte
}

func (x *staleIndex) Search(key, dst []byte) ([]byte, bool, error) {
	v, there, err := x.kvIndex.Search(key, dst)
	k := binary.BigEndian.Uint64(key)
	if x.first[k] == nil {
		x.first[k] = append([]byte(nil), v...)
	}
	if x.searches++; x.searches%2 == 0 {
		v = append(dst, x.first[k]...)
	}
	return v, there, err
}

// TestKVRuns: the operations of a short run are linearizable with every index, and those of searches
// that answer with old values are not.
func TestKVRuns(t *testing.T) {
	for _, index := range KVIndexes() {
		for _, stale := range []bool{false, true} {
			err := inproc.Run(3, func(c rma.Comm) error {
				cfg := &Config{Lock: "cider", Acquires: 300}
				s, err := KV{Count: 2, Index: index}.open(c, nil, cfg)
				if err := errors.Join(err, c.Barrier()); err != nil {
					return err
				}
				k := s.(*kv)
				if stale {
					k.history.kvIndex = &staleIndex{kvIndex: k.history.kvIndex, first: map[uint64][]byte{}}
				}
				rng := choices(c, cfg)
				for i := range cfg.Acquires {
					key := rng.IntN(2)
					if i%2 == 0 {
						_, err = k.store.Update(k.key(key), k.encode(k.next(key)))
					} else {
						_, _, err = k.store.Search(k.key(key), nil)
					}
					if err != nil {
						return err
					}
				}
				if err := errors.Join(k.store.Rest(), c.Barrier()); err != nil {
					return err
				}
				n, err := k.history.check(k.Count)
				switch {
				case c.Rank() != 0:
				case stale && !errors.Is(err, history.Err):
					t.Errorf("%s: stale values: error %v, want %v", index, err, history.Err)
				case !stale && (err != nil || n != 900):
					t.Errorf("%s: %d operations, error %v, want 900", index, n, err)
				}
				return k.free()
			})
			if err != nil {
				t.Errorf("%s: %v", index, err)
			}
		}
	}
}
