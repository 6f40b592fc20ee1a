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
	c     rma.Comm
	cfg   Config
	heap  *remote.Heap
	w     *rma.Window // POINTER, LOCK, EPOCH and blocks
	box   *rma.Window // NEXT and STATUS of each client
	hosts int
	each  int     // keys at a host
	buf   []int64 // a block

	inside bool  // a section of the heap
	began  int64 // when it began
	left   int   // operations until it ends

	number int64 // of the entries of this client into queues
	hot    []heat
	random uint64
	stats  Stats
}

// Stats count what a client has done.
type Stats struct {
	Optimistic  int64 // updates that began so
	Queued      int64 // entries into a queue
	Retries     int64 // CompareAndSwaps of a pointer that others were faster with
	Executed    int64 // updates and deletions that changed a pointer
	Combined    int64 // updates for which another client's stands
	Coordinated int64 // of these, the coordinators'
	Batched     int64 // updates, together, that executors stood for, their own included
	Batches     int64 // their number
	Resets      int64 // locks that were taken from the dead
}

// New opens a store of no keys. Collective.
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
			{Count: each, Words: []rma.Word{{Name: "POINTER", Class: rma.Far, Fields: []rma.Field{length, address, version}}}},
			{Count: each, Words: []rma.Word{
				{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{resets, tail, version}},
				{Name: "EPOCH", Class: rma.Far},
			}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	box, err := c.Allocate(rma.Spec{Name: "cider mail", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
		{Name: "NEXT", Class: rma.Plain, Fields: []rma.Field{forNumber, from}},
		{Name: "STATUS", Class: rma.Plain, Fields: []rma.Field{forNumber, info, result, batch}},
	}}}})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	s := &Store{
		c: c, cfg: cfg, heap: heap, w: heap.Window(), box: box, hosts: hosts, each: each,
		buf: make([]int64, heap.Size(most)), number: int64(rma.Generation(c)) << 16,
		random: uint64(c.Rank())*0x9E3779B97F4A7C15 + 1,
	}
	if cfg.Scheme.adapts() {
		s.hot = make([]heat, cfg.Hot)
	}
	return s, nil
}

// Free closes the windows. Collective.
func (s *Store) Free() error {
	return errors.Join(s.Rest(), s.heap.Unmap(), s.box.Free())
}

// Stats is what this client has done so far.
func (s *Store) Stats() Stats { return s.stats }

// Usage is what the allocator has given out.
func (s *Store) Usage() (remote.Usage, error) { return s.heap.Usage() }

func (s *Store) host(key int) int    { return key % s.hosts }
func (s *Store) pointer(key int) int { return key / s.hosts }
func (s *Store) lock(key int) int    { return s.each + key/s.hosts*2 }
func (s *Store) epoch(key int) int   { return s.lock(key) + 1 }

// begin begins an operation: in a section, which protects what it reads from being used again.
func (s *Store) begin(key int) error {
	if uint(key) >= uint(s.cfg.Keys) {
		panic(fmt.Sprintf("cider: key %d of %d", key, s.cfg.Keys))
	}
	now := s.c.Now()
	if s.inside && (s.left == 0 || now-s.began > sectionLease/4) {
		if err := s.Rest(); err != nil {
			return err
		}
	}
	if !s.inside {
		if err := s.heap.Enter(); err != nil {
			return err
		}
		s.inside, s.began, s.left = true, now, s.cfg.Section
	}
	s.left--
	return nil
}

// Rest is for a client that does nothing for a while: others can use blocks again that were
// freed. The next operation ends it.
func (s *Store) Rest() error {
	if !s.inside {
		return nil
	}
	s.inside = false
	err := s.heap.Leave()
	if errors.Is(err, remote.ErrExpired) {
		err = nil // between operations nothing that it has found is in use
	}
	return errors.Join(err, s.w.Flush(0)) // which completes it
}

// expired reports whether what the client reads may be used again already.
func (s *Store) expired() bool { return s.c.Now()-s.began > sectionLease }

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

// write writes a block for a key to memory of its own, which the next operation on the key's host
// follows.
func (s *Store) write(key int, data []byte) (remote.Ref, int, error) {
	b, err := s.fill(key, data)
	if err != nil {
		return 0, 0, err
	}
	ref, err := s.heap.Alloc(len(b))
	if err != nil {
		return 0, 0, err
	}
	s.w.PutBulk(b, ref.Node(), ref.Disp())
	if ref.Node() == s.host(key) {
		s.w.Fence(ref.Node())
		return ref, len(b), nil
	}
	return ref, len(b), s.w.Flush(ref.Node())
}
