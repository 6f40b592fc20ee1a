package rmarw

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Table is one rank's handle on an array of RMA-RW locks.
type Table struct {
	tree     *queuetree.Tree
	counters *Counters
	cfg      Config
	own      int // number of the rank's counter
	lastID   int // the last lock of which findOwn was asked
	lastOwn  counter
	ownWords [2]rma.Pointer // the first words of lastOwn, those of a reader without competition
	tr       int64
	size     int

	shared  [MaxHeld]share // locks that the rank shares
	nshared int

	close, open, signal func(cs []counter) error // kept, since a method value allocates
	batchBuf            [batch]counter
	batchWords          [batch][asymWords]rma.Pointer // their words, with a barging root
	batchOf             batchName                     // what batchBuf and batchWords have
	asym                bool
	more                bool // a writer waits to take the lock again that is given to the readers
	waited              bool // and readers waited for that

	tries     int   // times that a reader tries before it waits in line, with a barging leaf
	refusedAt int64 // arrivals at the counter where the rank was last not let in

	// Of a barging root.
	quietAfter int   // tenures without a reader after which writers keep the lock
	quiet      int   // tenures of the rank's without a reader
	arrivals   int64 // of the counters when the rank last closed them

	blockedAt counter // the word that made the last Try fail, and what it held
	blockedBy int64
}

// A share is a lock that a rank shares.
type share struct {
	lock  int   // its number, plus 1
	added int64 // what the rank has added to READERS
}

var (
	_ lock.Checked       = (*Table)(nil)
	_ queuetree.RootGate = (*Table)(nil)
)

// New opens a table of locks. Collective; all ranks pass the same Config.
func New(c rma.Comm, cfg Config) (*Table, error) {
	found := cfg.Topology == nil
	var err error
	if cfg.Topology, err = queuetree.TopologyOf("rmarw", c, cfg.Topology); err != nil {
		return nil, err
	}
	if found && cfg.Leaf == Barging && len(cfg.Topology.Levels()) == 1 && c.Node().Count > 1 {
		if cfg.Topology, err = cfg.Topology.Whole().Pick("node"); err != nil {
			return nil, fmt.Errorf("rmarw: Config.Leaf is Barging: %w: %w", err, lock.ErrConfig)
		}
	}
	if cfg.Thresholds, err = cfg.Thresholds.Fill(cfg.Topology); err != nil {
		return nil, err
	}
	t := &Table{tr: cfg.Thresholds.TR, size: c.Size()}
	if t.counters, err = NewCounters(cfg.Topology, cfg.Thresholds.TDC); err != nil {
		return nil, err
	}
	t.own = t.counters.Index(c.Rank())
	d := queuetree.Config{Name: "rmarw", Locks: cfg.Locks, Home: cfg.Home, Topology: cfg.Topology, TL: cfg.Thresholds.TL, RootGate: t}
	oneQueue := len(d.TL) == 1 && !rma.Simulated(c)
	d.Barging, d.Adapt = cfg.Leaf == Barging || cfg.Leaf == Auto && oneQueue, cfg.Adapt
	wanted := cfg.DC == Asymmetric || cfg.DC != Symmetric && (c.Node().Count > 1 || d.Barging && len(d.TL) == 1)
	d.Local = wanted && t.counters.Count(t.own) <= maxReaders && t.counters.Near(t.own, c.Node())
	if err := d.Validate(c.Size()); err != nil {
		return nil, err
	}
	cfg.Locks = d.Locks
	t.cfg = cfg
	if t.tree, err = queuetree.New(c, d); err != nil {
		return nil, err
	}
	if cfg.DC == Asymmetric && !t.asym {
		return nil, errors.Join(fmt.Errorf("rmarw: Config.DC is Asymmetric, but with T_DC %q readers of a counter are on several nodes, or more than %d: take sym, or a counter per node: %w",
			t.counters.TDC(), maxReaders, lock.ErrConfig), t.Free())
	}
	if cfg.Leaf == Barging && t.tree.Leaf == 0 && !t.asym {
		return nil, errors.Join(fmt.Errorf("rmarw: Config.Leaf is Barging with one level and symmetric counters, whose readers look at the root's queue: pick the level of the node too, or take asymmetric ones: %w",
			lock.ErrConfig), t.Free())
	}
	if cfg.Leaf == Barging && !t.tree.Barging() {
		return nil, errors.Join(fmt.Errorf("rmarw: Config.Leaf is Barging, but elements of the innermost level, %s, span nodes: pick a level within them: %w",
			cfg.Topology.Levels()[t.tree.Leaf].Name, lock.ErrConfig), t.Free())
	}
	if t.cfg.Leaf = MCS; t.tree.Barging() {
		t.cfg.Leaf = Barging
		t.tries = bargingTries
	}
	t.cfg.DC = Symmetric
	if t.asym {
		t.cfg.DC = Asymmetric
	}
	t.findOwn(0)
	t.batchOf.id = -1
	return t, nil
}

// Regions are the counters' regions of the tree's window.
func (t *Table) Regions(local, barging bool) []rma.Region {
	t.asym = local
	switch {
	case barging:
		t.close, t.open, t.quietAfter = t.closeBarging, t.openBarging, quietTenures
		return t.asymRegions(rma.Near)
	case local:
		t.close, t.open = t.closeAsym, t.openAsym
		return t.asymRegions(rma.Flag)
	}
	t.close, t.open, t.signal = t.closeSym, t.openSym, t.signalOpeners
	return []rma.Region{{Count: t.hosted(), Words: []rma.Word{
		arrive:       {Name: "ARRIVE", Class: rma.Far},
		depart:       {Name: "DEPART", Class: rma.Far},
		opened:       {Name: "OPENED", Class: rma.Far},
		openerSignal: {Name: "OPENER_SIGNAL", Class: rma.Far},
	}}}
}

func (t *Table) asymRegions(ofAdmission rma.Class) []rma.Region {
	return []rma.Region{{Count: t.hosted(), Words: []rma.Word{
		readers:   {Name: "READERS", Class: rma.Near},
		admission: {Name: "ADMISSION", Class: ofAdmission},
	}}}
}

// hosted is the most locks whose counter one rank hosts.
func (t *Table) hosted() int {
	if t.cfg.Locks == 1 {
		return 1
	}
	least := t.size
	for k := range t.counters.Len() {
		least = min(least, t.counters.Count(k))
	}
	return (t.cfg.Locks + least - 1) / least
}

// Config is the table's, with what was filled in.
func (t *Table) Config() Config { return t.cfg }

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Home is the rank that hosts the lock's TAIL at the root.
func (t *Table) Home(id int) int { return t.tree.Home(id) }

// findOwn makes lastOwn the rank's counter of a lock. To find it takes divisions, so the last
// one is kept. It panics for a lock that is not there.
func (t *Table) findOwn(id int) {
	t.tree.Check(id)
	t.lastID, t.lastOwn = id, t.counter(t.own, id)
	for i := range t.ownWords {
		t.ownWords[i] = t.tree.W.Pointer(t.lastOwn.host, t.lastOwn.disp+i)
	}
}

// Lock takes lock id.
func (t *Table) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if mode == lock.Exclusive {
		m := t.mutex(id)
		return m.Lock(ctx)
	}
	if t.nshared > 0 || id != t.lastID || t.tree.Busy() {
		if err := t.checkShare(id); err != nil {
			return err
		}
	}
	t.claimShared(id)
	var err error
	switch {
	case ctx.Done() != nil:
		err = t.pollEnter(ctx, t.lastOwn, id)
	case t.asym:
		err = t.enterAsym()
	default:
		err = t.enterSym(t.lastOwn, id)
	}
	if err != nil {
		t.unclaimShared(t.nshared - 1)
	}
	return err
}

// TryLock takes lock id if no rank has or wants it, or, in shared mode, if no writer has
// or wants it.
func (t *Table) TryLock(id int, mode lock.Mode) (bool, error) {
	if mode == lock.Exclusive {
		m := t.mutex(id)
		return m.TryLock()
	}
	if err := t.checkShare(id); err != nil {
		return false, err
	}
	t.claimShared(id)
	got, err := t.tryEnter(t.lastOwn, id)
	if !got {
		t.unclaimShared(t.nshared - 1)
	}
	return got, err
}

// Unlock releases lock id.
func (t *Table) Unlock(id int, mode lock.Mode) error {
	if mode == lock.Exclusive {
		m := t.mutex(id)
		return m.Unlock()
	}
	i := t.nshared - 1 // the usual case: the last one
	if s := &t.shared[uint(i)%MaxHeld]; s.lock != id+1 || id != t.lastID {
		if i = t.findShared(id); i < 0 {
			panic("rmarw: unlock of unlocked lock")
		}
		t.findOwn(id)
	}
	added := t.unclaimShared(i)
	if t.asym {
		_, err := t.ownWords[readers].Add(-added)
		return err
	}
	return t.leaveSym(t.lastOwn)
}

// checkShare reports an error if the rank may not share a lock as well. It finds the counter,
// lastOwn, and panics for a lock that is not there.
func (t *Table) checkShare(id int) error {
	if t.tree.Find(id) >= 0 || t.findShared(id) >= 0 {
		panic("rmarw: lock of a lock that this rank holds")
	}
	if err := t.checkHeld(); err != nil {
		return err
	}
	if id != t.lastID {
		t.findOwn(id)
	}
	return nil
}

// claimShared notes that the rank wants a lock in shared mode, after checkShare.
func (t *Table) claimShared(id int) {
	t.shared[uint(t.nshared)%MaxHeld] = share{id + 1, one}
	t.nshared++
}

// checkHeld reports an error if the rank holds as many locks as it may.
func (t *Table) checkHeld() error {
	if t.nshared+t.tree.Held() < MaxHeld {
		return nil
	}
	return fmt.Errorf("rmarw: rank %d holds %d locks: %w", t.tree.W.Rank(), MaxHeld, lock.ErrTooManyHeld)
}

func (t *Table) findShared(id int) int {
	for i := range t.nshared {
		if t.shared[i].lock == id+1 {
			return i
		}
	}
	return -1
}

// unclaimShared ends a claim, and returns what was added to READERS.
func (t *Table) unclaimShared(i int) (added int64) {
	s := &t.shared[uint(i)%MaxHeld]
	added = s.added
	if t.nshared--; i != t.nshared {
		*s = t.shared[t.nshared]
		s = &t.shared[t.nshared]
	}
	*s = share{}
	return added
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *Table) mutex(id int) RWMutex { return RWMutex{t, t.tree.Mutex(id), id} }

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *Table) Free() error {
	err := t.tree.W.Free()
	t.findOwn(t.lastID) // to have ErrFreed from ownWords
	return err
}
