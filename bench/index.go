package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/rmalock/rmalock/btree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Index is a Workload on the B+tree of package btree: searches, of the share Config.Readers, and
// updates of keys that are there. Config.Lock may be "vanilla" or "nh", Sherman's own locks with
// and without hierarchy.
type Index struct {
	Keys  Keys `json:"keys"`  // how often each key is used; a hash spreads them over the leaves
	Count int  `json:"count"` // keys in the tree; 0 means 1,000,000
}

func (x Index) filled() Index {
	if x.Count == 0 {
		x.Count = 1_000_000
	}
	return x
}

// String is the workload in a line.
func (x Index) String() string {
	return fmt.Sprintf("index, %d keys, keys %s", x.filled().Count, x.Keys)
}

// Check reports what is wrong with the fields.
func (x Index) Check(int) error {
	if x.filled().Count < 1 {
		return fmt.Errorf("%d keys, want at least 1: %w", x.Count, ErrConfig)
	}
	return x.Keys.check()
}

// indexLocks is the number of locks of nodes at each host.
const indexLocks = 4096

// Table is the number of locks that nodes share.
func (x Index) Table(homes int) int { return indexLocks * homes }

// Client is of Workload; an index has no visits.
func (x Index) Client(Site) (Client, error) { return nil, errNoVisits }

func (x Index) own(name string) bool { return name == btree.Vanilla || name == btree.NH }

func (x Index) open(c rma.Comm, lck *Lock, cfg *Config) (structure, error) {
	x = x.filled()
	hosts := c.MemoryNodes()
	if hosts == 0 {
		hosts = c.Size()
	}
	conf := btree.Config{Nodes: x.Count/20/hosts + 64, NodeLocks: indexLocks}
	t := &index{Index: x, c: c, cfg: cfg, keys: x.Keys.over(x.Count), stamps: newStamps(c)}
	if x.own(cfg.Lock) {
		conf.Own = cfg.Lock
	} else if err := t.locksIn(&conf, c, lck, x.Table(hosts)); err != nil {
		return nil, err
	}
	inner := max(64, 2*x.Count/1000)
	if cfg.virtual != nil { // one thread has all ranks
		if cfg.virtual.cache == nil {
			cfg.virtual.cache = btree.NewCache(64 * inner) // room for all, as Sherman's: a node has one place
		}
		conf.Cache = cfg.virtual.cache
	} else {
		conf.Cache = btree.NewCache(min(inner, 1024))
	}
	var err error
	if t.tree, err = btree.New(c, conf); err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		err = t.tree.Load(x.Count, func(i int) (key, value int64) { return int64(i), 0 })
	}
	return t, err
}

// locksIn opens locks for the tree: in its window where they can lie there, as DecLock's do.
func (t *index) locksIn(conf *btree.Config, c rma.Comm, lck *Lock, n int) (err error) {
	if lck.Regions == nil {
		t.locks, err = lck.open(c, t.cfg, n)
		conf.Locks = t.locks
		return err
	}
	s := lck.setting(t.cfg, n)
	if conf.Regions, err = lck.Regions(c, s); err != nil {
		return err
	}
	conf.Open = func(w *rma.Window, at int) (lock.Table, error) {
		s.Window, s.At = w, at
		t.locks, err = lck.openWith(c, t.cfg, s)
		return t.locks, err
	}
	return nil
}

// index is one client of the tree.
type index struct {
	Index
	c     rma.Comm
	cfg   *Config
	tree  *btree.Tree
	locks lock.Table // nil for the tree's own
	keys  source
	stamps
	lost bool
}

func (t *index) operate(rng *rand.Rand, read bool) error {
	id := int(fnv64(uint64(t.keys.next(rng))) % uint64(t.Count))
	if !read {
		err := t.tree.Set(int64(id), t.stamps.next(id))
		t.lost = t.lost || errors.Is(err, lock.ErrLeaseLost)
		return err
	}
	v, there, err := t.tree.Get(int64(id))
	if err == nil && !there {
		err = fmt.Errorf("key %d is not in the tree: %w", id, ErrExclusion)
	}
	if err != nil {
		return err
	}
	return t.stamps.check(id, v)
}

// verify goes through the tree: its invariants hold, no key is lost, and each has the last
// value of its writer.
func (t *index) verify() error {
	last, err := t.stamps.last(t.c)
	if err != nil {
		return err
	}
	lost := stamps{wrote: map[int]int64{}}
	if t.lost {
		lost.wrote[0] = 1
	}
	losses, err := lost.last(t.c)
	if err != nil || t.c.Rank() != 0 && t.cfg.virtual != nil {
		return err
	}
	if t.c.Rank() == 0 {
		any := false
		for _, m := range losses {
			any = any || len(m) > 0
		}
		err = t.compare(last, any)
	}
	return agree(t.c, t.cfg, err)
}

func (t *index) compare(last []map[int]int64, lost bool) error {
	found := 0
	var wrong error
	err := t.tree.Check(func(key, value int64) {
		found++
		if err := final(int(key), value, last); err != nil && !lost && wrong == nil {
			wrong = err
		}
	})
	if err == nil && found != t.Count {
		err = fmt.Errorf("the tree holds %d keys, want %d: %w", found, t.Count, ErrExclusion)
	}
	return errors.Join(err, wrong)
}

func (t *index) free() error {
	err := t.tree.Free()
	if t.locks != nil {
		err = errors.Join(err, t.locks.Free())
	}
	return err
}
