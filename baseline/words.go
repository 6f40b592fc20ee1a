package baseline

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// openWords opens a table of one far word a lock, on the job's memory nodes if it has some,
// else on ranks. Collective; its only collective call is Allocate.
func openWords(c rma.Comm, name string, cfg Config, word rma.Word) (table, error) {
	spec, hosts := rma.Spec{Name: name}, c.Size()
	if c.MemoryNodes() > 0 {
		spec.Hosts, hosts = rma.MemoryNodes, c.MemoryNodes()
	}
	if err := cfg.validate(name, hosts); err != nil {
		return table{}, err
	}
	spec.Regions = []rma.Region{{Count: perRank(cfg.Locks, hosts), Words: []rma.Word{word}}}
	w, err := c.Allocate(spec)
	if err != nil {
		return table{}, err
	}
	return table{name: name, c: c, w: w, size: hosts, locks: cfg.Locks, home: cfg.Home, backoff: cfg.Backoff, retries: cfg.Retries, random: seed(c)}, nil
}

// seed begins a rank's random numbers.
func seed(c rma.Comm) uint64 { return uint64(c.Rank())*0x9E3779B97F4A7C15 + 1 }

// at is the place of a lock's word.
func (t *table) at(id int) place {
	home, disp := t.word(id)
	return place{home, disp}
}

// cas is a CompareAndSwap; it returns what the word held.
func (t *table) cas(at place, from, to int64) (int64, error) {
	return t.w.CompareAndSwapFlush(to, from, at.target, at.disp)
}

// add is a FetchAndOp that adds; it returns what the word held.
func (t *table) add(at place, n int64) (int64, error) {
	return t.w.FetchAndOpFlush(n, at.target, at.disp, rma.Sum)
}

// get reads a word.
func (t *table) get(at place) (int64, error) { return t.w.GetFlush(at.target, at.disp) }

// taken makes a place of a rank's set of locks free again unless the rank has got the lock.
func (t *table) taken(k int, got bool, err error) (bool, error) {
	if !got || err != nil {
		t.held.unclaim(k)
	}
	return got && err == nil, err
}

// owner is what stands for a rank in a word: not 0.
func owner(c rma.Comm) int64 { return int64(c.Rank()) + 1 }

var ownerAndReaders = rma.Word{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{fieldOwner, fieldReaders}}

var (
	fieldOwner   = rma.Field{Name: "owner", Shift: 32, Bits: 32}
	fieldReaders = rma.Field{Name: "readers", Shift: 0, Bits: 32}
)

// noOwner is what lets a reader in.
func noOwner(v int64) bool { return fieldOwner.Get(v) == 0 }

// unfair is a promise of a mode without any bound on entries of others.
func unfair(acquire, release int) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: acquire, Release: release}
}
