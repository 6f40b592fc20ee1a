package queuetree

import (
	"encoding/binary"
	"math"
	"strconv"

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
	// the AND of Config.Local over all ranks, and barging says that the root is the barging
	// leaf. New calls it before any other method.
	Regions(local, barging bool) []rma.Region
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
	// Keep reports whether a writer that passes the lock on at a barging root should leave
	// it closed to the readers, since none has come for a while.
	Keep() bool
}

// A Tree is one rank's handle on many locks whose queues share the tree.
type Tree struct {
	W         *rma.Window // with the words of the tree and of the gate
	Leaf      int         // innermost level
	ExtraBase int         // displacement of the first word of RootGate

	topo  *topo.Topology
	gate  RootGate
	name  string // of the lock, for errors
	rank  int
	size  int
	locks int
	home  int

	maxTL  [maxLevels]int64 // T_L,i as configured; without a gate the root has none
	tl     [maxLevels]int64 // T_L,i as it is now: the same unless adapt
	leafTL int64            // T_L of the leaf as configured, for a barging leaf
	adapt  bool

	// The rank's element of each level.
	element  [maxLevels]int
	ranks    [maxLevels]int  // number of its ranks
	spans    [maxLevels]bool // some element of the level spans nodes
	tailHost [maxLevels]int  // rank that hosts TAIL of lock 0
	tailBase [maxLevels]int  // displacement of the first TAIL at a host

	oneQueue     bool // the queue of the root is all that there is: N = 1, no gate and no barging leaf
	barging      bool // the leaf is the barging one: barging.go
	stateBase    int  // displacement of the first STATE, if barging
	dequeueFirst bool // RootGate.DequeueBeforeRelease
	spinAtLeaf   bool // the leaf is in a node, and the level outside it is not

	busy  uint16 // slots of locks that the rank holds or waits for, a bit each
	lent  uint16 // slots whose nodes its elements still use
	slots [Slots]slot

	outerWaited bool // a rank waited at a level further out than the one just released

	blockedLevel int  // level at which the last try found the lock taken; gateLevel if the gate had it
	blockedBy    node // what TAIL, or STATE, held there
}

// gateLevel stands for RootGate among the levels.
const gateLevel = -1

// What ranks say of themselves when they open a tree, a bit each. A bit that one rank
// does not set counts for none. Bit i says that the rank's element of level i is in a node.
const (
	saysLocal   = 1 << maxLevels // Config.Local
	saysBarging = saysLocal << 1 // Config.Barging
)

// New opens a tree. Collective.
func New(c rma.Comm, cfg Config) (*Tree, error) {
	t := &Tree{
		topo: cfg.Topology, gate: cfg.RootGate, name: cfg.Name, adapt: cfg.Adapt,
		rank: c.Rank(), size: c.Size(), locks: cfg.Locks, home: cfg.Home,
		Leaf: len(cfg.Topology.Levels()) - 1,
	}
	t.findElements(cfg.TL)
	all, err := t.agree(c, cfg)
	if err != nil {
		return nil, err
	}
	t.barging = all&saysBarging != 0 && !t.spans[t.Leaf] &&
		(t.gate == nil || t.Leaf > 0 || all&saysLocal != 0) // readers of a symmetric counter look at the root's queue
	t.oneQueue = t.Leaf == 0 && t.gate == nil && !t.barging
	t.spinAtLeaf = t.Leaf > 0 && t.spans[t.Leaf-1] && !t.spans[t.Leaf]
	spec := t.spec(all&saysLocal != 0)
	for k := range t.slots {
		t.slots[k].init(t, k)
	}
	t.W, err = c.Allocate(spec)
	return t, err
}

// findElements fills in what the topology says of the rank's elements.
func (t *Tree) findElements(tl []int) {
	for i := range t.Leaf + 1 {
		t.element[i] = t.topo.Element(t.rank, i)
		t.ranks[i] = t.topo.Count(i, t.element[i])
		t.tailHost[i] = t.topo.HostOf(i, t.element[i], 0)
		t.maxTL[i] = int64(tl[i])
	}
	t.tailHost[0] = t.home
	t.leafTL = t.maxTL[t.Leaf]
	if t.gate == nil {
		t.maxTL[0] = math.MaxInt64 // nothing is outside the root
	}
	t.tl = t.maxTL
}

// agree is the AND of what all ranks say, and fills in spans.
func (t *Tree) agree(c rma.Comm, cfg Config) (all uint32, err error) {
	mine := uint32(0)
	if cfg.Local {
		mine |= saysLocal
	}
	if cfg.Barging {
		mine |= saysBarging
	}
	for i := range t.Leaf + 1 {
		if t.topo.Near(i, t.element[i], c.Node()) {
			mine |= 1 << i
		}
	}
	all, err = allOf(c, mine)
	for i := range t.Leaf + 1 {
		t.spans[i] = all>>i&1 == 0
	}
	return all, err
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

// spec lays out the window: the rank's nodes, the TAILs of each level, the STATEs, and
// the regions of the gate.
func (t *Tree) spec(local bool) rma.Spec {
	nodes := rma.Region{Count: Slots}
	var tails []rma.Region
	for i := range t.Leaf + 1 {
		node, tail := rma.Near, rma.Near
		if t.spans[i] {
			node, tail = rma.Flag, rma.Far
		}
		n := strconv.Itoa(i)
		nodes.Words = append(nodes.Words, rma.Word{Name: "NEXT" + n, Class: node}, rma.Word{Name: "STATUS" + n, Class: node})
		tails = append(tails, rma.Region{Count: t.hosted(i), Words: []rma.Word{{Name: "TAIL" + n, Class: tail}}})
	}
	s := rma.Spec{Name: t.name, Regions: append([]rma.Region{nodes}, tails...)}
	for i := range tails {
		t.tailBase[i] = s.Base(1 + i)
	}
	add := func(more ...rma.Region) (base int) {
		first := len(s.Regions)
		s.Regions = append(s.Regions, more...)
		return s.Base(first)
	}
	if t.barging {
		t.stateBase = add(rma.Region{Count: t.hosted(t.Leaf), Words: []rma.Word{{Name: "STATE", Class: rma.Near}}})
	}
	if t.gate != nil {
		t.ExtraBase = add(t.gate.Regions(local, t.barging && t.Leaf == 0)...)
		t.dequeueFirst = t.gate.DequeueBeforeRelease()
	}
	return s
}

// hosted is the most locks whose TAIL at a level one rank hosts.
func (t *Tree) hosted(level int) int {
	if t.locks == 1 {
		return 1
	}
	fewest := t.size
	for e := range t.topo.Elements(level) {
		fewest = min(fewest, t.topo.Count(level, e))
	}
	return (t.locks + fewest - 1) / fewest
}
