package rmamcs

import (
	"context"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at
// once. One more is lock.ErrTooManyHeld.
const MaxHeld = queuetree.MaxHeld

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // rank that hosts the root's TAIL of lock 0; lock id is at (Home+id) mod Size
	// Topology has a place for each rank, in order; places beyond the last rank are left free.
	// Its levels are those of the tree. nil means what discover.Topology finds, with the levels
	// that topo.Topology.DefaultView picks. It finds levels inside a node only in a program
	// that imports package topo/hardware.
	Topology *topo.Topology
	// TL is T_L,i by level: how often the lock is passed within an element of the level
	// before it goes to another one. TL[0] has no meaning, as nothing is outside the
	// root, unless the root is the leaf and that is Barging. nil, and an entry of 0, stand
	// for the default of section 6 of rma-rw: a product of 1,000, larger factors further out.
	TL []int
	// Leaf is MCS, the paper's, or Barging. Auto is Barging where there are innermost elements
	// with several ranks and all are within nodes, unless the ranks are simulated: caches and
	// the scheduler are what makes it faster. Otherwise it is MCS.
	Leaf Leaf
	// Adapt moves T_L,i at run time between a sixteenth of TL and TL, but for a barging leaf's
	// (docs/decisions/0011-adapt.md). The bounds stay.
	Adapt bool
}

// A Leaf says how the ranks of an innermost element wait for each other.
type Leaf = queuetree.Leaf

const (
	// Auto chooses by the innermost elements; see Config.
	Auto = queuetree.Auto
	// MCS is a queue, first come, first served, as the paper has it.
	MCS = queuetree.MCS
	// Barging is for nodes with more ranks than cores: ranks that run pass those that wait,
	// up to T_L of the leaf times.
	Barging = queuetree.Barging
)

// A Table is one rank's handle on an array of RMA-MCS locks.
type Table struct {
	t    *queuetree.Tree
	cfg  Config
	size int
}

var _ lock.Checked = (*Table)(nil)

// New opens a table of locks. Collective; all ranks pass the same Config.
func New(c rma.Comm, cfg Config) (*Table, error) {
	var err error
	if cfg.Topology, err = queuetree.TopologyOf("rmamcs", c, cfg.Topology); err != nil {
		return nil, err
	}
	if cfg.TL, err = queuetree.FillTL("rmamcs", cfg.Topology, cfg.TL); err != nil {
		return nil, err
	}
	d := queuetree.Config{Name: "rmamcs", Locks: cfg.Locks, Home: cfg.Home, Topology: cfg.Topology, TL: cfg.TL}
	d.Adapt = cfg.Adapt
	d.Barging = cfg.Leaf == Barging || cfg.Leaf == Auto && barges(c, cfg.Topology)
	if err := d.Validate(c.Size()); err != nil {
		return nil, err
	}
	cfg.Locks = d.Locks
	t, err := queuetree.New(c, d)
	if err != nil {
		return nil, err
	}
	cfg.Leaf = MCS
	if t.Barging() {
		cfg.Leaf = Barging
	}
	return &Table{t: t, cfg: cfg, size: c.Size()}, nil
}

// barges reports whether Barging is the default: it is the faster leaf from two ranks on, at
// every ratio of ranks to cores (docs/decisions/0007-barging-leaf.md).
func barges(c rma.Comm, t *topo.Topology) bool {
	leaf := len(t.Levels()) - 1
	return !rma.Simulated(c) && t.Elements(leaf) < c.Size()
}

func init() {
	lock.Register(lock.Info{
		Name:  "rmamcs",
		Title: "RMA-MCS, a topology-aware tree of MCS queues",
		Fair:  "in the queue of level i: (F_i - 1) * C_i+1 entries, C_i = (T_L,i + 1) * C_i+1, F_i elements inside",
		Params: []lock.Param{
			{Name: "TL", Help: "T_L,i by level from the root in, as in /16: nothing is the default"},
			{Name: "ADAPT", Help: "on: T_L moves at run time, up to what TL says; default off"},
			{Name: "LEAF", Help: "mcs, or barging: a rank that runs may pass those that wait; default barging within nodes"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return New(c, Config{Locks: n, Home: home})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg := Config{Locks: s.Locks, Home: s.Home, Topology: s.Topology}
			var err error
			if cfg.TL, err = queuetree.ParseTL("rmamcs", s.Params["TL"]); err != nil {
				return nil, err
			}
			if cfg.Leaf, err = queuetree.ParseLeaf("rmamcs", s.Params["LEAF"]); err != nil {
				return nil, err
			}
			if cfg.Adapt, err = queuetree.ParseSwitch("rmamcs", "ADAPT", s.Params["ADAPT"]); err != nil {
				return nil, err
			}
			return New(c, cfg)
		},
	})
}

// Config is the table's, with what was filled in.
func (t *Table) Config() Config { return t.cfg }

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Home is the rank that hosts the lock's TAIL at the root.
func (t *Table) Home(id int) int { return t.t.Home(id) }

// Promise is the same for both modes. The bounds are those of the package comment. Each
// level may cost an acquire the swap of TAIL and the Put of NEXT, and a release the
// CompareAndSwap of TAIL and the Put of STATUS; outside the leaf a release also reads and
// returns the node that stands for the element.
func (t *Table) Promise(lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: lock.Unbounded, Bounds: t.t.Bounds(), Acquire: 2 * (t.t.Leaf + 1), Release: 2 + 5*t.t.Leaf}
	if t.t.Barging() {
		p.Acquire, p.Release = 7+2*t.t.Leaf, 4+5*t.t.Leaf
		p.Bounds = []lock.Bound{t.t.BargingBound()}
	} else if t.t.Leaf == 0 { // the doorway of the one level is the lock's
		p.Bypass, p.Bounds = t.size-1, nil
	}
	if !t.t.W.Caps().NativeSwap { // the bounds hold from the try on that succeeds
		p.Acquire = lock.Unbounded
	}
	return p
}

// Idle checks that the rank's queue nodes are unused and nothing queues at its TAILs.
func (t *Table) Idle() error { return t.t.Idle() }

// Lock takes lock id, in exclusive mode whatever the mode.
func (t *Table) Lock(ctx context.Context, id int, _ lock.Mode) error {
	m := t.t.Mutex(id)
	return m.Lock(ctx)
}

// TryLock takes lock id if it is free and no rank waits for it.
func (t *Table) TryLock(id int, _ lock.Mode) (bool, error) {
	m := t.t.Mutex(id)
	return m.TryLock()
}

// Unlock passes lock id on, or leaves it free.
func (t *Table) Unlock(id int, _ lock.Mode) error {
	m := t.t.Mutex(id)
	return m.Unlock()
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	m := t.t.Mutex(id)
	return &m
}

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *Table) Free() error { return t.t.W.Free() }
