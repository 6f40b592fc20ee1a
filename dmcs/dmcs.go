package dmcs

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at
// once: its queue nodes. One more is lock.ErrTooManyHeld.
const MaxHeld = 8

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // rank that holds TAIL of lock 0; lock id is at (Home+id) mod Size
}

func (c *Config) validate(size int) error {
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Locks < 0 {
		return fmt.Errorf("dmcs: Config.Locks is %d, want at least 1: %w", c.Locks, lock.ErrConfig)
	}
	if c.Home < 0 || c.Home >= size {
		return fmt.Errorf("dmcs: Config.Home is %d, want a rank from 0 to %d: %w", c.Home, size-1, lock.ErrConfig)
	}
	return nil
}

// The words of a queue node, and the regions of the window.
const (
	next = iota
	wait
	nodeWords

	nodes = 0 // region of the rank's queue nodes
	tails = 1 // region of the TAILs of the locks whose home the rank is
)

const null = 0 // no queue node: the paper's ∅

// A Table is one rank's handle on an array of D-MCS locks.
type Table struct {
	w     *rma.Window
	rank  int
	size  int
	locks int
	home  int
	tails int          // displacement of the first TAIL
	busy  uint8        // queue nodes in use, a bit each
	held  [MaxHeld]int // lock of each queue node in use
}

var _ lock.Checked = (*Table)(nil)

// New opens a table of locks. Collective; all ranks pass the same Config.
func New(c rma.Comm, cfg Config) (*Table, error) {
	if err := cfg.validate(c.Size()); err != nil {
		return nil, err
	}
	spec := rma.Spec{Name: "dmcs", Regions: []rma.Region{
		nodes: {Count: MaxHeld, Words: []rma.Word{
			next: {Name: "NEXT", Class: rma.Flag},
			wait: {Name: "WAIT", Class: rma.Flag},
		}},
		tails: {Count: (cfg.Locks + c.Size() - 1) / c.Size(), Words: []rma.Word{
			{Name: "TAIL", Class: rma.Far},
		}},
	}}
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	return &Table{w: w, rank: c.Rank(), size: c.Size(), locks: cfg.Locks, home: cfg.Home, tails: spec.Base(tails)}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:  "dmcs",
		Title: "D-MCS, a distributed MCS queue lock",
		Fair:  "first come, first served",
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return New(c, Config{Locks: n, Home: home})
		},
	})
}

// node names queue node k of a rank; place finds it again.
func node(rank, k int) int64 { return int64(1 + rank*MaxHeld + k) }

func place(node int64) (rank, disp int) {
	i := int(node - 1)
	return i / MaxHeld, i % MaxHeld * nodeWords
}

// enqueue links queue node k behind its predecessor and waits.
func (t *Table) enqueue(k int, pred int64) error {
	w, me, mine := t.w, t.rank, k*nodeWords
	// Before line 10 shows us to the predecessor, who will clear it.
	w.Put(1, me, mine+wait) // line 4
	if err := w.Flush(me); err != nil {
		return err
	}
	r, his := place(pred)
	w.Put(node(me, k), r, his+next) // line 10
	if err := w.Flush(r); err != nil {
		return err
	}
	_, err := w.Await(me, mine+wait, rma.Equal(0)) // lines 11 to 14
	return err
}

// handOver gives the lock to the successor of queue node k, who is known or has
// swapped TAIL and will link itself.
func (t *Table) handOver(k int, succ int64) error {
	w, me, mine := t.w, t.rank, k*nodeWords
	if succ == null { // lines 9 to 11
		var err error
		if succ, err = w.Await(me, mine+next, rma.NotEqual(null)); err != nil {
			return err
		}
	}
	r, his := place(succ)
	w.Put(0, r, his+wait) // line 14
	if err := w.Flush(r); err != nil {
		return err
	}
	// Listing 2, line 3, for the next time: nobody writes NEXT until a swap of TAIL
	// shows the node again. Flushed here, as that swap would not order it.
	w.Put(null, me, mine+next)
	w.HandedOver(r)
	return w.Flush(me)
}

// try takes a free lock without entering the queue.
func (t *Table) try(k, home, tail int) (got bool, last int64, err error) {
	last, err = t.w.CompareAndSwapFlush(node(t.rank, k), null, home, tail)
	return err == nil && last == null, last, err
}
