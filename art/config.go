package art

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

var (
	// ErrTorn is wrapped when a block or a node is not what leads to it says. No operation of this
	// package leaves such a one.
	ErrTorn = errors.New("a block is wrong")
	// ErrConfig is wrapped by errors about a Config, and about a key or a value that is too long.
	ErrConfig = errors.New("bad configuration")
)

// Config of a Tree. All clients pass the same, but for Cache.
type Config struct {
	MostKey   int // bytes of the longest key; 0 means 8
	MostValue int // bytes of the longest value; 0 means 8
	// Keys is how many there will be at most: the memory that is not given below goes by it.
	Keys int
	// Words and FarWords are the memory at each host for values, and for nodes and leaves; 0 means
	// enough for Keys keys and what clients keep, if few of them share more than six bytes
	// that no other has.
	Words, FarWords int
	// Section is the number of operations of a client until it lets others use blocks again that
	// were freed; 0 means 32.
	Section int
	// Cache is for copies of nodes; nil for one of 1 MB of the client's own.
	Cache *Cache
	// Policy says how clients that change one key meet.
	cider.Policy

	growth []int // slots of a node, and of each extent
	keep   int   // words that a client keeps; 0: as many as it frees in some sections
}

// growth is that of an adaptive radix tree: nodes of 4, 16, 48 and all symbols.
var growth = []int{4, 12, 32, symbols - 48}

// sectionLease is how long a client may stop in the middle of an operation.
const sectionLease = int64(10 * time.Second)

// validate fills in what is 0.
func (c *Config) validate(hosts, clients int) error {
	for p, d := range map[*int]int{&c.MostKey: 8, &c.MostValue: 8, &c.Section: 32} {
		if *p == 0 {
			*p = d
		}
	}
	if c.growth == nil {
		c.growth = growth
	}
	switch {
	case c.MostKey < 0 || c.MostKey > MaxKey:
		return fmt.Errorf("art: Config.MostKey is %d, want 1 to %d bytes: %w", c.MostKey, MaxKey, ErrConfig)
	case c.MostValue < 0 || c.MostValue > MaxValue:
		return fmt.Errorf("art: Config.MostValue is %d, want 1 to %d bytes: %w", c.MostValue, MaxValue, ErrConfig)
	case c.Section < 0:
		return fmt.Errorf("art: Config.Section is %d, want at least 1: %w", c.Section, ErrConfig)
	case c.Keys < 1 && (c.Words == 0 || c.FarWords == 0):
		return fmt.Errorf("art: Config.Keys is %d, want at least 1, or Words and FarWords: %w", c.Keys, ErrConfig)
	case clients >= 1<<creator.Bits:
		return fmt.Errorf("art: %d clients, want fewer than %d: %w", clients, 1<<creator.Bits, ErrConfig)
	}
	plain, far := c.classes()
	kept := (clients/hosts + 1) * 2 * c.chunk()
	if c.Words == 0 {
		c.Words = 2*(c.Keys/hosts+1)*plain[len(plain)-1] + kept
	}
	if c.FarWords == 0 {
		longest := (leafWords + words(c.MostKey) + minLeaf - 1) / minLeaf * minLeaf
		c.FarWords = (c.Keys/hosts+1)*(longest+12) + kept + 2*far[len(far)-1]
	}
	if c.Cache == nil {
		c.Cache = NewCache(1 << 20)
	}
	return nil
}

// classes are the sizes of blocks: values; leaves, nodes and extents.
func (c *Config) classes() (plain, far []int) {
	plain = remote.Sizes(4, blockWords+words(c.MostValue))
	far = remote.Sizes(minLeaf, leafWords+words(c.MostKey))
	for i, slots := range c.growth {
		if i == 0 {
			slots += nodeWords
		}
		far = append(far, (slots+minLeaf-1)/minLeaf*minLeaf)
	}
	slices.Sort(far)
	return plain, slices.Compact(far)
}

// chunk is how many words a client keeps: enough for what it frees in some sections, so that it
// does not wait for others.
func (c *Config) chunk() int {
	plain, far := c.classes()
	least := 2 * minLeaf
	usual := c.keep
	if usual == 0 {
		usual = 32 * max(1, c.Section) * (plain[len(plain)-1] + minLeaf)
	}
	return (max(usual, 8*far[len(far)-1]) + least - 1) / least * least
}

// A Tree is one client's handle. It belongs to one goroutine at a time.
type Tree struct {
	c    rma.Comm
	cfg  Config
	heap *remote.Heap
	w    *rma.Window
	sync *cider.Sync
	root remote.Ref

	way   spot    // where the key of the operation belongs
	found found   // the leaf there
	buf   node    // read last
	raw   []int64 // its words
	block []int64 // a value's block
	draft draft   // of an insert
	write write   // of an update or a deletion
	scan  scan

	serial   int64 // of the client's leaves
	sections remote.Sections

	// Misses counts nodes that were read since no copy had what was needed, and Stale copies that
	// were no longer right.
	Misses, Stale int64
}

// New opens a tree without keys. Collective. Its only collective calls are Allocate. An error wraps
// ErrConfig or is the transport's.
func New(c rma.Comm, cfg Config) (*Tree, error) {
	hosts := c.Size()
	if c.MemoryNodes() > 0 {
		hosts = c.MemoryNodes()
	}
	if err := cfg.validate(hosts, c.Size()); err != nil {
		return nil, err
	}
	plain, far := cfg.classes()
	head := []rma.Word{{Name: "HEAD", Class: rma.Far, Fields: []rma.Field{depth, count, prefix}}}
	for range extents {
		head = append(head, rma.Word{Name: "EXTENT", Class: rma.Far})
	}
	heap, err := remote.New(c, remote.Config{
		Name: "art", Words: cfg.Words, Classes: plain, FarWords: cfg.FarWords, FarClasses: far,
		Chunk: cfg.chunk(), Lease: sectionLease,
		Regions: []rma.Region{
			{Count: 1, Words: head},
			{Count: cfg.growth[0], Words: []rma.Word{{Name: "SLOT", Class: rma.Far, Fields: []rma.Field{symbol, kind, block}}}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("art: %w", err)
	}
	y, err := cider.NewSync(c, heap.Window(), cfg.Policy)
	if err != nil {
		return nil, fmt.Errorf("art: %w", err)
	}
	all := 0
	for _, n := range cfg.growth {
		all += n
	}
	t := &Tree{
		c: c, cfg: cfg, heap: heap, w: heap.Window(), sync: y,
		raw: make([]int64, nodeWords+all), block: make([]int64, heap.Size(blockWords+words(cfg.MostValue))),
		found:  found{words: make([]int64, readWords+max(shortKey, words(cfg.MostKey)))},
		draft:  draft{leaf: make([]int64, leafWords+words(cfg.MostKey)), key: make([]byte, 0, cfg.MostKey)},
		serial: int64(rma.Generation(c)) << 30, sections: heap.Sections(cfg.Section),
	}
	t.write.t = t
	return t, nil
}

// Free closes the windows. Collective.
func (t *Tree) Free() error { return errors.Join(t.Rest(), t.heap.Unmap(), t.sync.Free()) }

// Stats is how this client's changes met others.
func (t *Tree) Stats() cider.Stats { return t.sync.Stats() }

// Usage is what the allocator has given out.
func (t *Tree) Usage() (remote.Usage, error) { return t.heap.Usage() }

// Held is the number of words that the client has in hand.
func (t *Tree) Held() int { return t.heap.Held() }

// begin begins an operation on a key.
func (t *Tree) begin(key []byte) error {
	if len(key) > t.cfg.MostKey {
		return fmt.Errorf("art: a key of %d bytes, want at most Config.MostKey, which is %d: %w", len(key), t.cfg.MostKey, ErrConfig)
	}
	return t.sections.Begin()
}

// Rest is for a client that does nothing for a while: others can use blocks again that were
// freed. The next operation ends it.
func (t *Tree) Rest() error { return t.sections.Rest() }

// again begins an operation again, whose section lasted too long.
func (t *Tree) again(key []byte) error { return errors.Join(t.Rest(), t.begin(key)) }
