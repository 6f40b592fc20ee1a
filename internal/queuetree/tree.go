package queuetree

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

const (
	// MaxHeld is the number of locks of one tree that a rank may hold or wait for at
	// once.
	MaxHeld = 8
	// Slots is the number of queue nodes of a rank at every level.
	Slots = 16
	// MaxTL is the largest T_L,i.
	MaxTL = 1<<31 - 2
	// MaxRanks is the largest number of ranks.
	MaxRanks = 1 << 26

	maxLevels = 8
)

// RootGate is the protocol outside the root queue: RMA-RW's readers. It is nil for
// RMA-MCS.
type RootGate interface {
	// Regions are the gate's regions of the window; they come after the tree's. local is
	// the AND of Config.Local over all ranks. New calls it before any other method.
	Regions(local bool) []rma.Region
	// DequeueBeforeRelease reports whether a writer without a successor leaves the root
	// queue before it calls Release, and not after.
	DequeueBeforeRelease() bool
	// Acquire takes lock id from the readers.
	Acquire(id int) error
	// TryAcquire takes lock id if no reader has it.
	TryAcquire(id int) (bool, error)
	// Release gives lock id to the readers. With more, another writer waits to take it
	// again. It reports whether readers waited.
	Release(id int, more bool) (waited bool, err error)
	// Withdrawn follows a TryAcquire that failed: the writer has left the root queue.
	Withdrawn(id int) error
	// Backoff pauses before the next TryAcquire.
	Backoff(try int) error
}

// Config of a Tree.
type Config struct {
	Name     string // of the lock, for errors and the window
	Locks    int
	Home     int
	Topology *topo.Topology
	TL       []int // T_L,i by level; TL[0] is the number of passings at the root before RootGate.Release
	Crowd    bool  // the leaf is that for crowded nodes, if all ranks say so; with RootGate not if it is the root
	RootGate RootGate
	Adapt    bool // T_L,i move at run time, but for a crowded leaf's
	Local    bool // what RootGate.Regions hears of, as far as this rank knows
}

// A Tree is one rank's handle on many locks whose queues share the tree.
type Tree struct {
	W    *rma.Window
	Leaf int // innermost level

	topo      *topo.Topology
	gate      RootGate
	name      string
	rank      int
	size      int
	locks     int
	home      int
	tl        [maxLevels]int64 // as configured
	now       [maxLevels]int64 // as they are now: the same, unless adapt
	far       [maxLevels]bool  // the level's queues span nodes
	elem      [maxLevels]int   // the rank's elements
	count     [maxLevels]int   // ranks of these
	host      [maxLevels]int   // of lock 0's TAIL
	tails     [maxLevels]int   // displacement of the first TAIL
	ExtraBase int              // displacement of the first word of RootGate

	plain        bool // one level, with MCS queues, and nothing gate
	dequeueFirst bool
	adapt        bool
	wanted       bool // when the lock went outside, somebody waited there
	linger       bool // the leaf is in a node, and what is outside it is not

	busy  uint16 // nodes of locks that the rank holds or wants, a bit each
	lent  uint16 // nodes that its elements still use
	slots [Slots]slot

	crowd  bool
	states int   // displacement of the first STATE, if crowd
	most   int64 // T_L,Leaf, if crowd

	failed int  // level at which the last Try found somebody; -1 gate the root
	seen   node // whom
}

// A slot is what a rank knows of one of its nodes.
type slot struct {
	id     int
	at     [maxLevels]place // of the TAILs of the lock atID
	atID   int
	top    int               // level at which the lock came with a grant; else 0
	status [maxLevels]status // what the node got at the level; start if no grant
	queued bool              // in the queue of a crowded leaf
	left   int64             // STATE of the crowded leaf as this rank left it
	lent   uint8             // levels at which it is lent, a bit each
}

// A place is where a word is.
type place struct{ host, disp int }

// A node is the name of a queue node; 0 is none.
type node = int64

// A status is a value of STATUS.
type status = int64

const (
	null   node   = 0
	idle   status = 0
	wait   status = 1
	parent status = 2
	start  status = held // granted(0, null): ACQUIRE_START
)

// granted packs the number of passings and the node at the next level out.
func granted(passings int64, up node) status { return held | passings<<31 | up }

func passings(s status) int64 { return s >> 31 & (1<<31 - 1) }
func upper(s status) node     { return s & (1<<31 - 1) }

// New opens a tree. Collective.
func New(c rma.Comm, cfg Config) (*Tree, error) {
	t := &Tree{
		topo: cfg.Topology, gate: cfg.RootGate, name: cfg.Name,
		rank: c.Rank(), size: c.Size(), locks: cfg.Locks, home: cfg.Home,
	}
	levels := t.topo.Levels()
	t.Leaf = len(levels) - 1
	near := uint32(0)
	if cfg.Local {
		near |= 1 << maxLevels
	}
	if cfg.Crowd {
		near |= 1 << (maxLevels + 1)
	}
	for i := range levels {
		t.elem[i] = t.topo.Element(t.rank, i)
		t.count[i] = t.topo.Count(i, t.elem[i])
		t.tl[i] = int64(cfg.TL[i])
		t.host[i] = t.topo.HostOf(i, t.elem[i], 0)
		if t.topo.Near(i, t.elem[i], c.Node()) {
			near |= 1 << i
		}
	}
	t.most = t.tl[t.Leaf]
	if cfg.RootGate == nil {
		t.tl[0] = math.MaxInt64
	}
	t.now, t.adapt = t.tl, cfg.Adapt
	t.host[0] = cfg.Home
	near, err := allOf(c, near)
	if err != nil {
		return nil, err
	}
	spec := rma.Spec{Name: cfg.Name, Regions: []rma.Region{{Count: Slots}}}
	for i := range levels {
		nodes, tail := rma.Near, rma.Near
		if t.far[i] = near>>i&1 == 0; t.far[i] {
			nodes, tail = rma.Flag, rma.Far
		}
		n := strconv.Itoa(i)
		spec.Regions[0].Words = append(spec.Regions[0].Words, rma.Word{Name: "NEXT" + n, Class: nodes}, rma.Word{Name: "STATUS" + n, Class: nodes})
		spec.Regions = append(spec.Regions, rma.Region{Count: t.hosted(i), Words: []rma.Word{{Name: "TAIL" + n, Class: tail}}})
	}
	if t.crowd = near>>(maxLevels+1)&1 != 0 && !t.far[t.Leaf]; t.crowd {
		spec.Regions = append(spec.Regions, rma.Region{Count: t.hosted(t.Leaf), Words: []rma.Word{{Name: "STATE", Class: rma.Near}}})
		t.states = spec.Base(1 + len(levels))
	}
	for i := range levels {
		t.tails[i] = spec.Base(1 + i)
	}
	if t.gate != nil {
		more := len(spec.Regions)
		spec.Regions = append(spec.Regions, t.gate.Regions(near>>maxLevels&1 != 0)...)
		t.ExtraBase = spec.Base(more)
		t.dequeueFirst = t.gate.DequeueBeforeRelease()
	}
	t.plain = t.Leaf == 0 && !t.crowd && t.gate == nil
	t.linger = t.Leaf > 0 && t.far[t.Leaf-1] && !t.far[t.Leaf]
	for k := range t.slots {
		t.locate(&t.slots[k])
		for i := range t.slots[k].status {
			t.slots[k].status[i] = start
		}
	}
	t.W, err = c.Allocate(spec)
	return t, err
}

// allOf is what all ranks have of some bits. Collective.
func allOf(c rma.Comm, bits uint32) (uint32, error) {
	return rma.Combine(c, binary.LittleEndian.AppendUint32(nil, bits), func(all [][]byte) (uint32, error) {
		common := ^uint32(0)
		for _, b := range all {
			common &= binary.LittleEndian.Uint32(b)
		}
		return common, nil
	})
}

// hosted is the most locks whose TAIL at a level one rank hosts.
func (t *Tree) hosted(level int) int {
	if t.locks == 1 {
		return 1
	}
	least := t.size
	for e := range t.topo.Elements(level) {
		least = min(least, t.topo.Count(level, e))
	}
	return (t.locks + least - 1) / least
}

// Validate reports what is wrong with a configuration and fills in defaults.
func (c *Config) Validate(size int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s: %w", c.Name, fmt.Sprintf(format, args...), lock.ErrConfig)
	}
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Locks < 0 {
		return bad("Config.Locks is %d, want at least 1", c.Locks)
	}
	if c.Home < 0 || c.Home >= size {
		return bad("Config.Home is %d, want a rank from 0 to %d", c.Home, size-1)
	}
	if size > MaxRanks {
		return bad("the job has %d ranks, want at most %d", size, MaxRanks)
	}
	if err := c.Topology.Fits(size); err != nil {
		return bad("Config.Topology: %v", err)
	}
	levels := c.Topology.Levels()
	if len(levels) > maxLevels {
		return bad("Config.Topology has %d levels, want at most %d; pick some with Topology.Pick", len(levels), maxLevels)
	}
	if len(c.TL) != len(levels) {
		return bad("Config.TL has %d thresholds for %d levels, want one for each", len(c.TL), len(levels))
	}
	for i, tl := range c.TL {
		if tl < 0 || tl > MaxTL {
			return bad("Config.TL[%d] (level %s) is %d, want 0 to %d", i, levels[i].Name, tl, MaxTL)
		}
	}
	return nil
}

// tail is where the TAIL of a lock is, in the rank's element of a level.
func (t *Tree) tail(level, id int) (host, disp int) {
	switch {
	case id == 0:
		return t.host[level], t.tails[level]
	case level == 0:
		return (t.home + id) % t.size, t.tails[0] + id/t.size
	}
	return t.topo.HostOf(level, t.elem[level], id), t.tails[level] + id/t.count[level]
}

// locate finds the TAILs of a slot's lock.
func (t *Tree) locate(s *slot) {
	for i := 0; i <= t.Leaf; i++ {
		s.at[i].host, s.at[i].disp = t.tail(i, s.id)
	}
	s.atID = s.id
}

// Home is the rank that hosts the TAIL of a lock at the root.
func (t *Tree) Home(id int) int {
	t.check(id)
	return (t.home + id) % t.size
}

// Root is where that TAIL is.
func (t *Tree) Root(id int) (host, disp int) { return t.tail(0, id) }

func (t *Tree) check(id int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("%s: lock %d of a table of %d", t.name, id, t.locks))
	}
}

// node names node k of this rank; place finds a node.
func (t *Tree) node(k int) node { return int64(1 + t.rank*Slots + k) }

func (t *Tree) place(n node) (rank, disp int) {
	i := int(n - 1)
	return i / Slots, i % Slots * 2 * (t.Leaf + 1)
}

// next and stat are the displacements of NEXT and STATUS of node k.
func (t *Tree) next(level, k int) int { return k*2*(t.Leaf+1) + 2*level }
func (t *Tree) stat(level, k int) int { return k*2*(t.Leaf+1) + 2*level + 1 }

// take finds a node for a lock.
func (t *Tree) take(id int) (k int, err error) {
	t.check(id)
	if t.Find(id) >= 0 {
		panic(t.name + ": lock of a lock that this rank holds")
	}
	if t.Held() == MaxHeld {
		return 0, fmt.Errorf("%s: rank %d holds %d locks: %w", t.name, t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	k = bits.TrailingZeros16(^(t.busy | t.lent)) // there is one: lend saw to it
	t.busy |= 1 << k
	t.slots[k].id = id
	if t.slots[k].atID != id {
		t.locate(&t.slots[k])
	}
	return k, nil
}

// Held is the number of locks that the rank holds or wants.
func (t *Tree) Held() int { return bits.OnesCount16(t.busy) }

// drop ends the use of node k for a lock.
func (t *Tree) drop(k int) { t.busy &^= 1 << k }

// Find is the node with which the rank holds a lock, or -1.
func (t *Tree) Find(id int) int {
	if t.busy == 1 && t.slots[0].id == id {
		return 0
	}
	return t.find(id)
}

func (t *Tree) find(id int) int {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros16(b); t.slots[k].id == id {
			return k
		}
	}
	return -1
}

// Idle says what is wrong with the rank's part when nobody holds or wants a lock.
func (t *Tree) Idle() error {
	if err := t.back(); err != nil {
		return err
	}
	if t.busy != 0 || t.lent != 0 {
		return fmt.Errorf("%s: rank %d uses nodes %b and has lent %b", t.name, t.rank, t.busy, t.lent)
	}
	nodes := Slots * 2 * (t.Leaf + 1)
	for disp := range t.W.Words() {
		if t.ExtraBase > 0 && disp >= t.ExtraBase {
			break
		}
		if v := t.W.Peek(disp); v != 0 && (disp >= nodes || disp%2 == 0) {
			return fmt.Errorf("%s: %s of rank %d is %d, want 0", t.name, t.W.Spec().WordName(disp), t.rank, v)
		}
	}
	return nil
}
