package cider

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// ErrTorn is wrapped by Search when a block is not what its pointer says. No operation of this
// package leaves such a block.
var ErrTorn = errors.New("a block is wrong")

// A Store is one client's handle on a pointer array. It belongs to one goroutine at a time.
type Store struct {
	*Sync
	cfg   Config
	heap  *remote.Heap
	hosts int
	each  int     // keys at a host
	buf   []int64 // a block
	name  [8]byte // the key of the operation that is under way
	write write   // the change that is under way

	sections remote.Sections
}

// New opens a store of no keys. Collective. Its only collective calls are Allocate. An error wraps
// ErrConfig or is the transport's.
func New(c rma.Comm, cfg Config) (*Store, error) {
	hosts := c.Size()
	if c.MemoryNodes() > 0 {
		hosts = c.MemoryNodes()
	}
	if err := cfg.validate(hosts, c.Size()); err != nil {
		return nil, err
	}
	each := (cfg.Keys + hosts - 1) / hosts
	most := headWords + (cfg.Most+7)/8
	heap, err := remote.New(c, remote.Config{
		Name: "cider", Words: cfg.Words, Classes: remote.Sizes(4, most), Lease: sectionLease, Chunk: cfg.chunk(),
		Regions: []rma.Region{
			{Count: each, Words: []rma.Word{{Name: "POINTER", Class: rma.Far, Fields: []rma.Field{length, address, Version}}}},
			{Count: each, Words: LockWords()},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	y, err := NewSync(c, heap.Window(), cfg.Policy)
	if err != nil {
		return nil, err
	}
	s := &Store{Sync: y, cfg: cfg, heap: heap, hosts: hosts, each: each, buf: make([]int64, heap.Size(most)), sections: heap.Sections(cfg.Section)}
	s.write.s = s
	return s, nil
}

// Free closes the windows. Collective.
func (s *Store) Free() error {
	return errors.Join(s.Rest(), s.heap.Unmap(), s.Sync.Free())
}

// Usage is what the allocator has given out.
func (s *Store) Usage() (remote.Usage, error) { return s.heap.Usage() }

// slot is where a key's words are.
func (s *Store) slot(key int) Slot {
	i := key / s.hosts
	return Slot{Host: key % s.hosts, Pointer: i, Lock: s.each + 2*i, Key: uint64(key)}
}

// begin begins an operation: in a section, which protects what it reads from being used again.
func (s *Store) begin(key int) error {
	if uint(key) >= uint(s.cfg.Keys) {
		panic(fmt.Sprintf("cider: key %d of %d", key, s.cfg.Keys))
	}
	return s.sections.Begin()
}

// Rest is for a client that does nothing for a while: others can use blocks again that were
// freed. The next operation ends it.
func (s *Store) Rest() error { return s.sections.Rest() }

// fill writes a block into s.buf and returns its words.
func (s *Store) fill(key int, value []byte) ([]int64, error) {
	if len(value) > s.cfg.Most {
		return nil, fmt.Errorf("cider: key %d: a value of %d bytes, want at most Config.Most, which is %d: %w", key, len(value), s.cfg.Most, ErrConfig)
	}
	b := s.buf[:headWords+(len(value)+7)/8]
	b[len(b)-1] = 0 // the bytes behind the value's last
	b[keyWord], b[sizeWord] = int64(key), int64(len(value))
	copy(bytesOf(b[headWords:]), value)
	b[sumWord] = checksum(b)
	return b, nil
}

// value is the value in a block.
func value(key int, b []int64) ([]byte, bool) {
	if len(b) < headWords || b[keyWord] != int64(key) || b[sumWord] != checksum(b) {
		return nil, false
	}
	return bytesOf(b[headWords:])[:b[sizeWord]], true
}

// A write is the Writer of a change of a key.
type write struct {
	s       *Store
	at      Slot
	data    []byte
	deletes bool
	ref     remote.Ref
	words   int // 0: the block is not written
}

// Next writes the block for a key to memory of its own.
func (x *write) Next(int64) (int64, error) {
	if x.deletes {
		return 0, nil
	}
	if x.words == 0 {
		if err := x.put(); err != nil {
			return 0, err
		}
	}
	return pointer(x.ref, x.words), nil
}

// put writes the block, which the next operation on the slot's host follows.
func (x *write) put() error {
	s := x.s
	b, err := s.fill(int(x.at.Key), x.data)
	if err != nil {
		return err
	}
	if x.ref, err = s.heap.Alloc(len(b)); err != nil {
		return err
	}
	x.words = len(b)
	s.w.PutBulk(b, x.ref.Node(), x.ref.Disp())
	if x.ref.Node() == x.at.Host {
		s.w.Fence(x.at.Host)
		return nil
	}
	return s.w.Flush(x.ref.Node())
}

// Replaced frees the block that was there.
func (x *write) Replaced(p int64) { x.s.heap.Free(block(p)) }

// Discard takes the block back.
func (x *write) Discard() error {
	if x.words == 0 {
		return nil
	}
	if err := x.s.w.Flush(x.ref.Node()); err != nil {
		return err
	}
	x.s.heap.Return(x.ref, x.words)
	return nil
}
