package baseline

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// RW is foMPI-RW, the reader-writer lock of rma-rw, section 5: foMPI's
// MPI_Win_lock and MPI_Win_lock_all. A table of locks stands for the window, the
// word of each lock for the one that foMPI has at each target, and LockAll for
// MPI_Win_lock_all.
//
//	word  class  whose memory     values
//	G     far    Config.Home      low half: ranks that hold or try a lock exclusively;
//	                              high half: ranks that hold or await LockAll
//	L     far    the lock's home  bit 0: held exclusively; the rest: 2 for each rank
//	                              that holds or awaits it in shared mode
//
// An exclusive Lock adds 1 to G, and if no rank holds LockAll tries CAS(L, 0 to 1);
// if either fails it takes the 1 back and tries again. A rank that holds a lock of
// the table exclusively has its 1 in G already and needs the CAS alone. A shared
// Lock adds 2 to L and then reads L until bit 0 is clear. Unlock subtracts from L
// what Lock added, and after it, with the rank's last exclusive lock, 1 from G.
//
// Lock 0 has L beside G at Config.Home, the placement most generous to this lock;
// the others have L elsewhere, as on a window.
//
// # Flaws
//
// They are the original's. A waiting reader's 2 stays in L and fails every CAS: a
// stream of readers starves writers. Exclusive tries raise and lower G: ranks that
// await LockAll may miss every quiet moment. All exclusive Locks of a table meet in
// G, at one rank. A TryLock or TryRLock that fails is seen by others for a moment,
// and may make theirs fail or wait.
//
// # Where it differs
//
// foMPI does not wait for the subtraction from G, nor for that of a reader from L;
// here Unlock flushes them, because a window may hold back what is not flushed.
//
// # Variants
//
// Local leaves G and LockAll out. Undo is the lock of Open MPI's osc/rdma: a reader
// or LockAll that meets a writer takes back what it added before it tries again,
// and every exclusive Lock goes through G. Writers starve less and waiting costs
// more; writers, and LockAll, may make each other fail for ever.
type RW struct {
	table
	variant Variant
	g       int // displacement of G, at rank home
	nx      int // locks that this rank holds exclusively
}

var _ lock.Checked = (*RW)(nil)

// A Variant of RW.
type Variant uint8

const (
	FoMPI Variant = iota // both levels, as in foMPI
	Local                // L alone
	Undo                 // both levels, as in Open MPI's osc/rdma
)

var variants = [...]struct{ name, title string }{
	FoMPI: {"fompi-rw", "foMPI-RW, the MPI_Win_lock of foMPI"},
	Local: {"fompi-rw-local", "foMPI-RW without the word for the whole table"},
	Undo:  {"ompi-rw", "the MPI_Win_lock of Open MPI's osc/rdma"},
}

// String is the name by which lock.Lookup finds the variant.
func (v Variant) String() string { return variants[v].name }

const (
	sharedOne = 2       // what a reader adds to L
	allOne    = 1 << 32 // what LockAll adds to G
)

// What L and G must hold for a reader, for LockAll and for a writer to enter.
func noWriter(l int64) bool  { return l&1 == 0 }
func noWriters(g int64) bool { return g&(allOne-1) == 0 }
func noAlls(g int64) bool    { return g>>32 == 0 }

// NewRW opens a table of foMPI-RW locks. Collective; all ranks pass the same
// arguments.
func NewRW(c rma.Comm, cfg Config, v Variant) (*RW, error) {
	if err := cfg.validate(v.String(), c.Size()); err != nil {
		return nil, err
	}
	spec := rma.Spec{Name: v.String(), Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{{Name: "G", Class: rma.Far}}},
		{Count: perRank(cfg.Locks, c.Size()), Words: []rma.Word{{Name: "L", Class: rma.Far}}},
	}}
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return &RW{
		table: table{
			name: v.String(), c: c, w: w, size: c.Size(), locks: cfg.Locks, home: cfg.Home,
			words: spec.Base(1), backoff: cfg.Backoff, retries: cfg.Retries, random: seed(c),
		},
		variant: v, g: spec.Base(0),
	}, nil
}

func init() {
	for i, about := range variants {
		lock.Register(lock.Info{
			Name:   about.name,
			Title:  about.title,
			Shared: true,
			Fair:   "none; readers starve writers",
			Open: func(c rma.Comm, n, home int) (lock.Table, error) {
				return NewRW(c, Config{Locks: n, Home: home}, Variant(i))
			},
		})
	}
}

// Promise follows the protocol's table of costs.
func (t *RW) Promise(mode lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: lock.Unbounded, Acquire: 1, Release: 1}
	if mode == lock.Exclusive && t.variant != Local {
		p.Acquire, p.Release = 2, 2
	}
	if mode == lock.Exclusive {
		p.Acquire++ // taking the 1 back from G after a CAS that failed comes before the pause
	}
	return t.paced(p)
}

// entersG reports whether this rank's next exclusive Lock, or the Unlock that has
// just left nx locks held, goes through G.
func (t *RW) entersG() bool {
	return t.variant == Undo || t.variant == FoMPI && t.nx == 0
}

// tryExclusive is one round of X(t). If it did not get the lock, b is in the way.
func (t *RW) tryExclusive(home, disp int) (got bool, b blocker, err error) {
	through := t.entersG()
	if through {
		g, err := t.w.FetchAndOpFlush(1, t.home, t.g, rma.Sum)
		if err != nil {
			return false, b, err
		}
		if !noAlls(g) {
			return false, blocker{t.home, t.g, g}, t.w.AccumulateFlush(-1, t.home, t.g, rma.Sum)
		}
	}
	last, err := t.w.CompareAndSwapFlush(1, 0, home, disp)
	if err != nil {
		return false, b, err
	}
	if last == 0 {
		t.nx++
		return true, b, nil
	}
	if through {
		err = t.w.AccumulateFlush(-1, t.home, t.g, rma.Sum)
	}
	return false, blocker{home, disp, last}, err
}

// lockExclusive is X(t).
func (t *RW) lockExclusive(ctx context.Context, id, home, disp int) error {
	for try := 0; ; try++ {
		got, b, err := t.tryExclusive(home, disp)
		if got || err != nil {
			return err
		}
		if err := t.pause(ctx, id, b, try); err != nil {
			return err
		}
	}
}

// unlockExclusive is unX(t). L comes before G: a rank that finds no writer in G for
// LockAll must find no lock held exclusively.
func (t *RW) unlockExclusive(home, disp int) error {
	t.nx--
	err := t.w.AccumulateFlush(-1, home, disp, rma.Sum)
	if err != nil || !t.entersG() {
		return err
	}
	return t.w.AccumulateFlush(-1, t.home, t.g, rma.Sum)
}
