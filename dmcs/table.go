package dmcs

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at
// once: its queue nodes. One more is lock.ErrTooManyHeld.
const MaxHeld = 16

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
	busy  uint16       // queue nodes in use, a bit each
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

// Len is the number of locks.
func (t *Table) Len() int { return t.locks }

// Home is the rank whose memory holds the lock's TAIL.
func (t *Table) Home(id int) int {
	home, _ := t.tailWord(id)
	return home
}

// Promise is the same for both modes. Acquire is the swap of TAIL and the Put of NEXT,
// release the CompareAndSwap of TAIL and the Put of WAIT. A rank that swaps TAIL later
// enters later. Where a swap is a loop, that holds from the try on that succeeds.
func (t *Table) Promise(lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: t.size - 1, Acquire: 2, Release: 2}
	if !t.w.Caps().NativeSwap {
		p.Acquire = lock.Unbounded
	}
	return p
}

// Idle checks that the rank's queue nodes are unused and nothing queues at its TAILs.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("dmcs: rank %d uses queue nodes %b", t.rank, t.busy)
	}
	for disp := range t.w.Words() {
		word := disp >= t.tails || disp%nodeWords == next
		if v := t.w.Peek(disp); word && v != null {
			return fmt.Errorf("dmcs: %s of rank %d is %d, want null", t.w.Spec().WordName(disp), t.rank, v)
		}
	}
	return nil
}

// Lock takes lock id, in exclusive mode whatever the mode.
func (t *Table) Lock(ctx context.Context, id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Lock(ctx)
}

// TryLock takes lock id if it is free.
func (t *Table) TryLock(id int, _ lock.Mode) (bool, error) {
	m := t.mutex(id)
	return m.TryLock()
}

// Unlock hands lock id on.
func (t *Table) Unlock(id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Unlock()
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *Table) mutex(id int) Mutex {
	home, tail := t.tailWord(id)
	return Mutex{t: t, id: id, home: home, tail: tail}
}

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *Table) Free() error { return t.w.Free() }

// tailWord is the home of a lock and the displacement of its TAIL there.
func (t *Table) tailWord(id int) (home, tail int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("dmcs: lock %d of a table of %d", id, t.locks))
	}
	return (t.home + id) % t.size, t.tails + id/t.size
}

// node names queue node k of a rank; words is where its words begin.
func node(rank, k int) int64 { return int64(1 + rank*MaxHeld + k) }

func words(node int64) (rank, disp int) {
	i := int(node - 1)
	return i / MaxHeld, i % MaxHeld * nodeWords
}

// claim finds a queue node for a lock.
func (t *Table) claim(id int) (int, error) {
	if t.find(id) >= 0 {
		panic("dmcs: lock of a lock that this rank holds")
	}
	k := bits.TrailingZeros16(^t.busy)
	if k == MaxHeld {
		return 0, fmt.Errorf("dmcs: rank %d holds %d locks: %w", t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << k
	t.held[k] = id
	return k, nil
}

// unclaim ends the use of a queue node.
func (t *Table) unclaim(k int) { t.busy &^= 1 << k }

// find is the queue node with which this rank holds a lock, or -1.
func (t *Table) find(id int) int {
	if t.busy == 1 && t.held[0] == id {
		return 0
	}
	return t.findOther(id)
}

func (t *Table) findOther(id int) int {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros16(b); t.held[k] == id {
			return k
		}
	}
	return -1
}
