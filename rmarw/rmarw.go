package rmarw

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rmalock/rmalock/internal/dt"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at
// once, in either mode. One more is lock.ErrTooManyHeld.
const MaxHeld = dt.MaxHeld

// MaxTR is the largest T_R: what DEPART can count in a phase.
const MaxTR = 1<<(phaseShift-1) - 1

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // rank that hosts the root's TAIL of lock 0; lock id is at (Home+id) mod Size
	// Topology of the ranks; its levels are those of the tree. nil means what
	// topo.Discover finds, with the levels that topo.Topology.Suited picks.
	Topology *topo.Topology
	// Thresholds; zero fields are filled in by topo.Topology.Fill. TDC says where the
	// physical counters are; TL is T_L,i by level, and TL[0] how often writers pass the
	// lock at the root before readers get it; TR is how many readers a counter lets in
	// while a writer waits, besides those that waited themselves.
	Thresholds topo.Thresholds
	DC         DC // zero: Asymmetric where there are several nodes and it can be, otherwise Symmetric
	// Crowd makes the leaf the one for nodes with more ranks than cores, as in package
	// rmamcs: writers that run pass those that wait, up to T_L,N times. It needs N of 2 or
	// more, as readers look at the root's queue, and innermost elements within nodes. With a
	// nil Topology the level of the node is picked on one node too.
	Crowd bool
}

// DC is how readers and writers meet in a physical counter.
type DC uint8

const (
	_ DC = iota
	// Symmetric is the paper's: both change the counter's words with the transport's
	// atomics, wherever they are.
	Symmetric
	// Asymmetric has readers touch only memory of their node, with CPU atomics, and
	// writers announce themselves. All readers of a counter must be on its host's node, and be
	// at most 8191.
	Asymmetric
)

var dcs = [...]string{Symmetric: "sym", Asymmetric: "asym"}

func (d DC) String() string { return dcs[d] }

func parseDC(text string) (DC, error) {
	if i := slices.Index(dcs[:], text); i >= 0 {
		return DC(i), nil
	}
	return 0, fmt.Errorf("rmarw: DC is %q, want sym or asym: %w", text, lock.ErrConfig)
}

// A Table is one rank's handle on an array of RMA-RW locks.
type Table struct {
	tree     *dt.Tree
	counters *topo.Counters
	cfg      Config
	own      int // number of the rank's counter
	lastID   int // the last lock of which mine was asked
	lastMine counter
	tr       int64
	size     int

	shared  [MaxHeld]int   // locks that the rank shares, plus 1
	added   [MaxHeld]int64 // what it has added to their READERS
	nshared int

	close, open, ring func(cs []counter) error // kept, since a method value allocates
	at                [batch]counter
	asym              bool
	more              bool // a writer waits to take the lock again that is given to the readers

	block counter // the word that made the last Try fail, and what it held
	seen  int64
}

var (
	_ lock.Checked = (*Table)(nil)
	_ dt.Beyond    = (*Table)(nil)
)

// New opens a table of locks. Collective; all ranks pass the same Config.
func New(c rma.Comm, cfg Config) (*Table, error) {
	var err error
	if cfg.Topology == nil {
		t, err := topo.Discover(c)
		if err != nil {
			return nil, err
		}
		cfg.Topology = t.Suited()
		if cfg.Crowd && len(cfg.Topology.Levels()) == 1 {
			if cfg.Topology, err = t.Pick("node"); err != nil {
				return nil, fmt.Errorf("rmarw: Config.Crowd: %w (%w)", err, lock.ErrConfig)
			}
		}
	}
	if cfg.Thresholds, err = cfg.Topology.Fill(cfg.Thresholds); err != nil {
		return nil, fmt.Errorf("rmarw: Config.Thresholds: %w (%w)", err, lock.ErrConfig)
	}
	if cfg.Thresholds.TR < 1 || cfg.Thresholds.TR > MaxTR {
		return nil, fmt.Errorf("rmarw: Config.Thresholds.TR is %d, want 1 to %d: %w", cfg.Thresholds.TR, MaxTR, lock.ErrConfig)
	}
	t := &Table{tr: cfg.Thresholds.TR, size: c.Size()}
	if t.counters, err = cfg.Topology.Counters(cfg.Thresholds.TDC); err != nil {
		return nil, fmt.Errorf("rmarw: Config.Thresholds.TDC: %w (%w)", err, lock.ErrConfig)
	}
	t.own = t.counters.Index(c.Rank())
	d := dt.Config{Name: "rmarw", Locks: cfg.Locks, Home: cfg.Home, Topology: cfg.Topology, TL: cfg.Thresholds.TL, Beyond: t}
	d.Crowd = cfg.Crowd
	wanted := cfg.DC == Asymmetric || cfg.DC != Symmetric && c.Node().Count > 1
	d.Local = wanted && t.counters.Count(t.own) <= maxReaders && t.counters.Near(t.own, c.Node())
	if err := d.Validate(c.Size()); err != nil {
		return nil, err
	}
	if cfg.Crowd && len(d.TL) < 2 {
		return nil, fmt.Errorf("rmarw: Config.Crowd with one level, want two or more: readers look at the root's queue, and writers would not be in it; pick the level of the node too: %w", lock.ErrConfig)
	}
	cfg.Locks = d.Locks
	t.cfg = cfg
	if t.tree, err = dt.New(c, d); err != nil {
		return nil, err
	}
	if cfg.DC == Asymmetric && !t.asym {
		return nil, errors.Join(fmt.Errorf("rmarw: Config.DC is Asymmetric, but with T_DC %q readers of a counter are on several nodes, or more than %d: take sym, or a counter per node: %w",
			t.counters.TDC(), maxReaders, lock.ErrConfig), t.Free())
	}
	if cfg.Crowd && !t.tree.Crowded() {
		return nil, errors.Join(fmt.Errorf("rmarw: Config.Crowd, but elements of the innermost level, %s, span nodes: pick a level within them: %w",
			cfg.Topology.Levels()[t.tree.Leaf].Name, lock.ErrConfig), t.Free())
	}
	t.cfg.DC = Symmetric
	if t.asym {
		t.cfg.DC = Asymmetric
	}
	t.lastMine = t.counter(t.own, 0)
	return t, nil
}

// Words are the counters' regions of the tree's window.
func (t *Table) Words(local bool) []rma.Region {
	if t.asym = local; local {
		t.close, t.open = t.doShut, t.doReopen
		return []rma.Region{{Count: t.hosted(), Words: []rma.Word{
			readers: {Name: "READERS", Class: rma.Near},
			door:    {Name: "DOOR", Class: rma.Flag},
		}}}
	}
	t.close, t.open, t.ring = t.doClose, t.doOpen, t.doRing
	return []rma.Region{{Count: t.hosted(), Words: []rma.Word{
		arrive: {Name: "ARRIVE", Class: rma.Far},
		depart: {Name: "DEPART", Class: rma.Far},
		gate:   {Name: "GATE", Class: rma.Far},
		turn:   {Name: "TURN", Class: rma.Far},
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

func init() {
	lock.Register(lock.Info{
		Name:   "rmarw",
		Title:  "RMA-RW, a topology-aware reader-writer lock",
		Shared: true,
		Fair:   "writers as rmamcs; a reader is passed by C_1 writers; a writer at the root by (3 + (F_1-1)/(T_L,1+1)) * (K*T_R + P-1) readers, K counters",
		Params: []lock.Param{
			{Name: "TL", Help: "T_L,i by level from the root in, as in 20,50"},
			{Name: "TR", Help: "T_R, readers that a counter lets in while a writer waits"},
			{Name: "TDC", Help: "T_DC, where counters are: 16, 2 per node, every 2nd node"},
			{Name: "LEAF", Help: "mcs, or crowd: for nodes with more ranks than cores, with a level below the machine"},
			{Name: "DC", Help: "sym, or asym: readers touch only their node; default on several nodes if T_DC allows"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return New(c, Config{Locks: n, Home: home})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg := Config{Locks: s.Locks, Home: s.Home}
			cfg.Topology, _ = s.Topology.(*topo.Topology)
			var err error
			if cfg.Thresholds.TL, err = dt.ParseTL("rmarw", s.Params["TL"]); err != nil {
				return nil, err
			}
			if text := s.Params["TR"]; text != "" {
				if cfg.Thresholds.TR, err = strconv.ParseInt(text, 10, 64); err != nil {
					return nil, fmt.Errorf("rmarw: TR is %q, want a number: %w", text, lock.ErrConfig)
				}
			}
			if text := s.Params["TDC"]; text != "" {
				if cfg.Thresholds.TDC, err = topo.ParseTDC(text); err != nil {
					return nil, fmt.Errorf("rmarw: TDC: %w (%w)", err, lock.ErrConfig)
				}
			}
			switch text := s.Params["LEAF"]; text {
			case "", "mcs":
			case "crowd":
				cfg.Crowd = true
			default:
				return nil, fmt.Errorf("rmarw: LEAF is %q, want mcs or crowd: %w", text, lock.ErrConfig)
			}
			if text := s.Params["DC"]; text != "" {
				if cfg.DC, err = parseDC(text); err != nil {
					return nil, err
				}
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
func (t *Table) Home(id int) int { return t.tree.Home(id) }

// mine is the rank's counter of a lock. To find it takes divisions, so the last one is kept.
func (t *Table) mine(id int) counter {
	if id != t.lastID {
		t.lastID, t.lastMine = id, t.counter(t.own, id)
	}
	return t.lastMine
}

// Promise: a reader arrives with one operation, or two if it waits, and departs with
// one, or two if it is the last of a full phase; the one that opens a phase makes nine
// more, and one for each reader that arrives meanwhile. A writer looks at each counter
// with three operations, closes it with three and opens it with six. It looks again
// where the counter is not ready; 14 for both is the most that searches found, each
// phase that readers open meanwhile may add three. The rest is the tree's.
//
// Where a swap is a loop of tries, those that fail are not in the numbers: there are none,
// and the bounds of the queues hold from the try on that succeeds.
func (t *Table) Promise(mode lock.Mode) lock.Promise {
	p := t.promise(mode)
	if !t.tree.W.Caps().NativeSwap && (mode == lock.Exclusive || !t.asym) {
		p.Acquire = lock.Unbounded
		if mode == lock.Exclusive && !t.asym {
			p.Release = lock.Unbounded
		}
	}
	return p
}

func (t *Table) promise(mode lock.Mode) lock.Promise {
	k := t.counters.Len()
	acquire, release, bounds := 2*(t.tree.Leaf+1), 2+5*t.tree.Leaf, t.tree.Bounds()
	if t.tree.Crowded() {
		acquire, release, bounds = acquire+5, release+2, []lock.Bound{t.tree.CrowdBound()}
	}
	switch passed := []lock.Bound{{After: 1, Most: int(t.tree.Tenure(0)), Of: is(lock.Exclusive)}}; {
	case t.asym && mode == lock.Shared:
		return lock.Promise{Bypass: lock.Unbounded, Bounds: passed, Acquire: 3, Release: 1}
	case t.asym:
		return lock.Promise{
			Bypass:  lock.Unbounded,
			Bounds:  bounds,
			Acquire: acquire + 7*k,
			Release: release + 3*k,
		}
	case mode == lock.Shared:
		return lock.Promise{
			Bypass:  lock.Unbounded,
			Bounds:  passed,
			Acquire: 10 + t.counters.Count(t.own),
			Release: 2,
		}
	}
	if !t.tree.Crowded() { // there the number of atomic operations does not tell when the rank is in the root's queue
		bounds = append(bounds, lock.Bound{After: t.tree.Leaf + 1, Most: t.readers(), Of: is(lock.Shared)})
	}
	return lock.Promise{Bypass: lock.Unbounded, Bounds: bounds, Acquire: acquire + 14*k, Release: release + 6*k}
}

// readers is the most readers that pass a writer in the root's queue: in the present
// phase, in one that a reader opens that has not seen the writer yet, in those that
// writers before it open, and in one that a TryLock before it opens that failed.
func (t *Table) readers() int {
	phases := 3 + int64(t.tree.Rivals())/(int64(t.cfg.Thresholds.TL[0])+1)
	each := int64(t.counters.Len())*t.tr + int64(t.size-1)
	return int(min(phases*each, math.MaxInt))
}

// is says which entries are in a mode.
func is(mode lock.Mode) func(int, lock.Mode) bool {
	return func(_ int, m lock.Mode) bool { return m == mode }
}

// Idle checks that nothing is left in the rank's part of the tree, and that the
// counters it hosts are between readers.
func (t *Table) Idle() error {
	if t.nshared != 0 {
		return fmt.Errorf("rmarw: a rank shares %d locks", t.nshared)
	}
	w := t.tree.W
	for disp := t.tree.More; disp < w.Words(); disp += t.words() {
		if t.asym {
			if err := t.asymIdle(disp); err != nil {
				return err
			}
			continue
		}
		a, d, g := w.Peek(disp+arrive), w.Peek(disp+depart), w.Peek(disp+gate)
		if a&write != 0 || countOf(a) != departs(d) || !isOf(d, a) || step(a, g) != 0 || countOf(a) > t.tr {
			return fmt.Errorf("rmarw: at rank %d ARRIVE is %#x, DEPART %d, GATE %d, T_R %d", w.Rank(), a, d, g, t.tr)
		}
	}
	return t.tree.Idle()
}

// Lock takes lock id.
func (t *Table) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if mode == lock.Exclusive {
		return t.lock(ctx, id)
	}
	if err := t.share(id); err != nil {
		return err
	}
	var err error
	switch c := t.mine(id); {
	case !t.asym:
		err = t.rlock(ctx, id)
	case ctx.Done() != nil:
		err = t.pollEnter(ctx, c, id)
	default:
		t.added[t.nshared-1], err = t.enter(c)
	}
	if err != nil {
		t.unshare(id)
	}
	return err
}

// TryLock takes lock id if nobody has or wants it, or, in shared mode, if no writer has
// or wants it.
func (t *Table) TryLock(id int, mode lock.Mode) (bool, error) {
	if mode == lock.Exclusive {
		return t.try(id)
	}
	if err := t.share(id); err != nil {
		return false, err
	}
	var got bool
	var err error
	if c := t.mine(id); t.asym {
		got, err = t.tryEnter(c)
	} else {
		got, err = t.tryRLock(c, id)
	}
	if !got {
		t.unshare(id)
	}
	return got, err
}

// Unlock lets lock id go.
func (t *Table) Unlock(id int, mode lock.Mode) error {
	if mode == lock.Exclusive {
		return t.tree.Unlock(id)
	}
	i := t.sharing(id)
	if i < 0 {
		panic("rmarw: unlock of unlocked lock")
	}
	added := t.added[i]
	t.unshare(id)
	if t.asym {
		c := t.mine(id)
		return t.tree.W.AccumulateFlush(-added, c.host, c.disp+readers, rma.Sum)
	}
	return t.runlock(id)
}

// share notes that the rank wants a lock in shared mode.
func (t *Table) share(id int) error {
	if t.tree.Find(id) >= 0 || t.sharing(id) >= 0 {
		panic("rmarw: lock of a lock that this rank holds")
	}
	if t.nshared > 0 || t.tree.Held() > 0 {
		if err := t.full(); err != nil {
			return err
		}
	}
	t.mine(id) // panics for a lock that is not there
	t.shared[t.nshared], t.added[t.nshared] = id+1, one
	t.nshared++
	return nil
}

// full is the error of a rank that holds as many locks as it may.
func (t *Table) full() error {
	if t.nshared+t.tree.Held() < MaxHeld {
		return nil
	}
	return fmt.Errorf("rmarw: rank %d holds %d locks: %w", t.tree.W.Rank(), MaxHeld, lock.ErrTooManyHeld)
}

func (t *Table) sharing(id int) int {
	for i := range t.nshared {
		if t.shared[i] == id+1 {
			return i
		}
	}
	return -1
}

func (t *Table) unshare(id int) {
	i := t.sharing(id)
	t.nshared--
	t.shared[i], t.added[i] = t.shared[t.nshared], t.added[t.nshared]
	t.shared[t.nshared], t.added[t.nshared] = 0, 0
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	if uint(id) >= uint(t.cfg.Locks) {
		panic(fmt.Sprintf("rmarw: lock %d of a table of %d", id, t.cfg.Locks))
	}
	return &RWMutex{t, id}
}

// Free closes the window. Collective. A held lock is a mistake of the caller.
func (t *Table) Free() error { return t.tree.W.Free() }
