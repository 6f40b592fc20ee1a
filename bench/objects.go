package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/store"
)

// Objects is a Workload on the object store of package store, a lock for each object: gets, of
// the share Config.Readers, and sets. All objects have one size.
type Objects struct {
	Keys  Keys `json:"keys"`  // how often each object is used
	Count int  `json:"count"` // objects; 0 means 100,000
	Size  int  `json:"size"`  // of each in bytes; 0 means 414
	// Counted has a set read the object's version first, so that the versions are checked to be the
	// number of its sets. The paper's sets only write.
	Counted bool `json:"counted"`
}

// Twitter14 and Twitter53 are the two traces of section 6.8 of declock: sizes, shares of gets and
// exponents of those of Twitter's clusters 14 and 53 (J. Yang et al.: A large scale analysis of
// hundreds of in-memory cache clusters at Twitter, OSDI 2020). Deletes and prepends are sets.
var (
	Twitter14 = Objects{Keys: Keys{Theta: 1.2959}, Size: 414}
	Twitter53 = Objects{Keys: Keys{Theta: 1.2061}, Size: 9213}
)

// Gets of the traces.
const (
	Twitter14Gets = 0.65
	Twitter53Gets = 0.89
)

func (o Objects) filled() Objects {
	if o.Count == 0 {
		o.Count = 100_000
	}
	if o.Size == 0 {
		o.Size = Twitter14.Size
	}
	return o
}

// String is the workload in a line.
func (o Objects) String() string {
	o = o.filled()
	text := fmt.Sprintf("store, %d objects of %d bytes, keys %s", o.Count, o.Size, o.Keys)
	if o.Counted {
		text += ", versions counted"
	}
	return text
}

// Check reports what is wrong with the fields.
func (o Objects) Check(int) error {
	if err := o.Keys.check(); err != nil {
		return err
	}
	switch o := o.filled(); {
	case o.Count < 1:
		return fmt.Errorf("%d objects, want at least 1: %w", o.Count, ErrConfig)
	case o.Size < 8 || o.Size > store.MaxBytes:
		return fmt.Errorf("objects of %d bytes, want 8 to %d: %w", o.Size, store.MaxBytes, ErrConfig)
	}
	return nil
}

// Table is a lock for each object.
func (o Objects) Table(int) int { return o.filled().Count }

// Client is of Workload; a store has no visits.
func (o Objects) Client(Site) (Client, error) { return nil, errNoVisits }

var errNoVisits = errors.New("bench: a workload with a structure has no visits")

func (o Objects) own(string) bool { return false }

func (o Objects) open(c rma.Comm, lck *Lock, cfg *Config) (structure, error) {
	o = o.filled()
	locks, err := lck.open(c, cfg, o.Count)
	if err != nil {
		return nil, err
	}
	s, err := store.New(c, store.Config{Objects: o.Count, Locks: locks, Fixed: o.Size, Blind: !o.Counted})
	if err != nil {
		return nil, err
	}
	k := &objects{Objects: o, c: c, cfg: cfg, s: s, locks: locks, keys: o.Keys.over(o.Count), stamps: newStamps(c), sets: map[int]int64{}, value: make([]byte, o.Size)}
	if cfg.virtual == nil { // in virtual time an object that was never set is as one of zeros
		for id := c.Rank(); id < o.Count && err == nil; id += c.Size() {
			err = k.set(id)
		}
	}
	return k, err
}

// objects is one client of the store.
type objects struct {
	Objects
	c     rma.Comm
	cfg   *Config
	s     *store.Store
	locks lock.Table
	keys  source
	stamps
	sets  map[int]int64 // by object
	lost  bool          // a lease
	value []byte
}

func (k *objects) operate(rng *rand.Rand, read bool) error {
	id := k.keys.next(rng)
	if !read {
		return k.set(id)
	}
	stamp, _, err := k.get(id)
	if err != nil {
		return err
	}
	return k.stamps.check(id, stamp)
}

func (k *objects) set(id int) error {
	pattern(k.value, k.stamps.next(id))
	k.sets[id]++
	_, err := k.s.Set(context.Background(), id, k.value)
	k.lost = k.lost || errors.Is(err, lock.ErrLeaseLost)
	return err
}

// get reads an object and looks at all of its bytes.
func (k *objects) get(id int) (stamp, version int64, err error) {
	b, version, there, err := k.s.Get(context.Background(), id, k.value[:0])
	if err != nil || !there {
		return 0, version, err
	}
	stamp = word(b)
	for i := 8; i+8 <= len(b); i += 8 {
		if word(b[i:]) != stamp*int64(i|1) {
			return 0, 0, fmt.Errorf("byte %d of object %d is not what its writer wrote: %w", i, id, ErrExclusion)
		}
	}
	return stamp, version, nil
}

// pattern fills an object.
func pattern(b []byte, stamp int64) {
	binary.LittleEndian.PutUint64(b, uint64(stamp))
	for i := 8; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(stamp*int64(i|1)))
	}
}

// verify looks at all objects that were set: each has the last value of its writer, and a
// version that is the number of its sets. Where a lease was lost, sets may be, too.
func (k *objects) verify() error {
	last, err := k.stamps.last(k.c)
	if err != nil {
		return err
	}
	counts := stamps{wrote: k.sets}
	if k.lost {
		counts.wrote = map[int]int64{-1: 1}
	}
	sets, err := counts.last(k.c)
	if err != nil || k.c.Rank() != 0 && k.cfg.virtual != nil {
		return err
	}
	if k.c.Rank() == 0 {
		err = k.compare(last, sets)
	}
	return agree(k.c, k.cfg, err)
}

func (k *objects) compare(last, sets []map[int]int64) error {
	total := map[int]int64{}
	for _, m := range sets {
		for id, n := range m {
			total[id] += n
		}
	}
	if total[-1] > 0 {
		return nil
	}
	for id, n := range total {
		stamp, version, err := k.get(id)
		if err == nil {
			err = final(id, stamp, last)
		}
		if err == nil && k.Counted && version != n {
			err = fmt.Errorf("object %d has version %d after %d sets: %w", id, version, n, ErrExclusion)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *objects) free() error { return errors.Join(k.s.Free(), k.locks.Free()) }

func word(b []byte) int64                 { return int64(binary.LittleEndian.Uint64(b)) }
func appendWord(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }
