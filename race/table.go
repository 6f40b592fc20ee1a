package race

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// A Table is one client's handle. It belongs to one goroutine at a time.
type Table struct {
	sync  *cider.Sync
	c     rma.Comm
	cfg   Config
	heap  *remote.Heap
	w     *rma.Window
	hosts int

	initial                        int     // depth of the segments of the start
	width                          int     // words of a bucket
	directoryAt, locksAt, blocksAt int     // displacements
	depths                         []uint8 // the directory, as this client knows it: depths of segments
	to                             target  // of the operation that is under way
	img, next                      image
	ahead                          bool // the block of an insert is on its way, to any host
	write, clear                   write
	buf                            []int64 // a block to write
	blocks                         [][]int64
	hits                           [reads]int
	old                            []int64 // a bucket that is split
	wrong                          int64   // the slot whose block was wrong at the last look

	sections remote.Sections

	stats Stats
}

// Stats count what a client has done beside cider.Stats.
type Stats struct {
	Splits int64 // segments that this client has finished to split
	Moved  int64 // keys that it has frozen for that
	Torn   int64 // images that it has read again, since a split came by
	Undone int64 // tentative inserts that it took back, for another client's or a split
	Lost   int64 // tentative inserts that others took back
}

// New opens a table of no keys. Collective. Its only collective calls are Allocate. An error wraps
// ErrConfig or is the transport's.
func New(c rma.Comm, cfg Config) (*Table, error) {
	hosts := c.Size()
	if c.MemoryNodes() > 0 {
		hosts = c.MemoryNodes()
	}
	if err := cfg.validate(hosts, c.Size()); err != nil {
		return nil, err
	}
	regions := cfg.regions(hosts)
	heap, err := remote.New(c, remote.Config{
		Name: "race", Words: cfg.Words, Classes: remote.Sizes(unitWords, cfg.blockWords()), Lease: sectionLease,
		Chunk: cfg.chunk(), Regions: regions,
	})
	if err != nil {
		return nil, fmt.Errorf("race: %w", err)
	}
	y, err := cider.NewSync(c, heap.Window(), cfg.Policy)
	if err != nil {
		return nil, fmt.Errorf("race: %w", err)
	}
	spec := heap.Window().Spec()
	t := &Table{
		sync: y, c: c, cfg: cfg, heap: heap, w: heap.Window(), hosts: hosts, initial: cfg.initialDepth(), width: cfg.slots + 1,
		directoryAt: spec.Base(1), locksAt: spec.Base(2), blocksAt: spec.Base(len(regions) + 3),
		depths: make([]uint8, cfg.Segments), buf: make([]int64, cfg.largest()), old: make([]int64, cfg.slots+1),
		sections: heap.Sections(cfg.Section),
	}
	t.img.w, t.next.w = make([]int64, 4*t.width), make([]int64, 4*t.width)
	for range reads {
		t.blocks = append(t.blocks, make([]int64, cfg.largest()))
	}
	return t, nil
}

// Free closes the windows. Collective.
func (t *Table) Free() error {
	return errors.Join(t.Rest(), t.heap.Unmap(), t.sync.Free())
}

// Stats is what this client has done so far.
func (t *Table) Stats() cider.Stats { return t.sync.Stats() }

// TableStats is what this client has done so far for the table's structure.
func (t *Table) TableStats() Stats { return t.stats }

// Usage is what the allocator has given out.
func (t *Table) Usage() (remote.Usage, error) { return t.heap.Usage() }

// begin begins an operation: in a section, which protects what it reads from being used again.
func (t *Table) begin() error { return t.sections.Begin() }

// stay begins the section anew if it has expired, and only then: node-mates may wait for the client,
// which would wait for memory.
func (t *Table) stay() error {
	if !t.sections.Expired() {
		return nil
	}
	return t.begin()
}

// Rest is for a client that does nothing for a while: others can use blocks again that were
// freed. The next operation ends it.
func (t *Table) Rest() error { return t.sections.Rest() }
