package store

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

var (
	// ErrTorn is wrapped by Get when the object is half written: a holder of its lock died or
	// lost its lease in a Set, or the lock does not exclude. A Set mends it.
	ErrTorn = errors.New("the object is half written")
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bad configuration")
)

// MaxBytes is the largest object.
const MaxBytes = 1<<20 - 1

// A Config describes a store. All clients pass the same, with their own handle on Locks.
type Config struct {
	// Objects is their number.
	Objects int
	// Locks guards object i with lock i modulo Locks.Len(). The store does not free it. A
	// client must not hold one of its locks when it calls the store.
	Locks lock.Table
	// Fixed is the room of every object in bytes; 0 means that objects have any size up to Most.
	Fixed int
	// Blind spares a Set of a fixed object the read of the version. Versions are then the
	// writer's count and rank, not in the order of the sets. It goes with Fixed.
	Blind bool
	// Most is the size of the largest object in bytes, where sizes are not fixed; 0 means 1024.
	Most int
	// Words is the memory for blocks at each host, in words, where sizes are not fixed; 0 means
	// enough for all objects of size Most, and a chunk for each client.
	Words int
}

func (c *Config) validate(hosts, clients int) error {
	if c.Most == 0 {
		c.Most = 1024
	}
	switch {
	case c.Objects < 1:
		return fmt.Errorf("store: Config.Objects is %d, want at least 1: %w", c.Objects, ErrConfig)
	case c.Locks == nil || c.Locks.Len() < 1:
		return fmt.Errorf("store: Config.Locks has no lock, want one for each object, or fewer: %w", ErrConfig)
	case c.Fixed < 0 || c.Fixed > MaxBytes || c.Most < 1 || c.Most > MaxBytes:
		return fmt.Errorf("store: Config.Fixed is %d and Most %d, want sizes of at most %d bytes: %w", c.Fixed, c.Most, MaxBytes, ErrConfig)
	case c.Blind && c.Fixed == 0:
		return fmt.Errorf("store: Config.Blind goes with Fixed: blocks of any size must be found before they are replaced: %w", ErrConfig)
	}
	if c.Words == 0 {
		sizes := remote.Sizes(4, headWords+words(c.Most))
		last := sizes[len(sizes)-1]
		c.Words = (c.Objects/hosts+1)*last + (clients/hosts+1)*16*last
	}
	return nil
}

// The words of an object.
const (
	headerWord = iota
	checkWord
	headWords
)

const lengthBits = 20

var headerFields = []rma.Field{{Name: "length", Bits: lengthBits}, {Name: "version", Shift: lengthBits, Bits: 64 - lengthBits}}

// words is the number of words of so many bytes.
func words(n int) int { return (n + 7) / 8 }

// A Store is one client's handle. It belongs to one goroutine at a time.
type Store struct {
	cfg   Config
	c     rma.Comm
	w     *rma.Window
	heap  *remote.Heap // nil for fixed sizes
	each  int          // words of a fixed object
	hosts int
	buf   []int64 // an object
	sets  int64   // of this client, for Blind
	died  int64
}

// New opens a store. Collective.
func New(c rma.Comm, cfg Config) (*Store, error) {
	hosts, n := rma.Ranks, c.Size()
	if c.MemoryNodes() > 0 {
		hosts, n = rma.MemoryNodes, c.MemoryNodes()
	}
	if err := cfg.validate(n, c.Size()); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, c: c, hosts: n}
	each := (cfg.Objects + n - 1) / n
	if cfg.Fixed > 0 {
		s.each = headWords + words(cfg.Fixed)
		layout := make([]rma.Word, s.each)
		for i := range layout {
			layout[i] = rma.Word{Name: "data", Class: rma.Plain}
		}
		layout[headerWord] = rma.Word{Name: "HEADER", Class: rma.Plain, Fields: headerFields}
		layout[checkWord].Name = "CHECK"
		w, err := c.Allocate(rma.Spec{Name: "store", Hosts: hosts, Regions: []rma.Region{{Count: each, Words: layout}}})
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		s.w, s.buf = w, make([]int64, s.each)
		return s, nil
	}
	h, err := remote.New(c, remote.Config{
		Name: "store", Words: cfg.Words, Classes: remote.Sizes(4, headWords+words(cfg.Most)),
		Regions: []rma.Region{{Count: each, Words: []rma.Word{{Name: "ENTRY", Class: rma.Plain}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.heap, s.w, s.buf = h, h.Window(), make([]int64, h.Size(headWords+words(cfg.Most)))
	return s, nil
}

// Free closes the store's window. Collective. It leaves Config.Locks open.
func (s *Store) Free() error { return s.w.Free() }

// Objects is the number of objects.
func (s *Store) Objects() int { return s.cfg.Objects }

// OwnersDied is how often this client's lock told it that a holder before may have died.
func (s *Store) OwnersDied() int64 { return s.died }

// Get appends the object to dst, and returns its version. An object that is absent has no bytes and
// there is false; its version is that of the Delete, 0 if it was never set. Beside the lock's
// operations it takes one round trip if sizes are fixed, else two. An error wraps ErrTorn,
// lock.ErrLeaseLost, another error of the lock, or one of the transport. id out of range panics.
func (s *Store) Get(ctx context.Context, id int, dst []byte) (value []byte, version int64, there bool, err error) {
	if err := s.lock(ctx, id, lock.Shared); err != nil {
		return dst, 0, false, err
	}
	head, data, err := s.read(id)
	err = s.unlock(id, lock.Shared, err)
	if err != nil {
		return dst, 0, false, err
	}
	version, there = head.version, head.there
	if there {
		dst = append(dst, bytesOf(data)[:head.length]...)
	}
	return dst, version, there, nil
}

// Set writes the object, and returns its version. It is complete when Set returns: a Get that begins
// later, of any client, finds this value or a later one. An error wraps ErrConfig for a value that is
// too long, remote.ErrFull, an error of the lock, or one of the transport. With lock.ErrLeaseLost the
// object may be set or not. The package comment has the cost.
func (s *Store) Set(ctx context.Context, id int, value []byte) (version int64, err error) {
	most := s.cfg.Most
	if s.cfg.Fixed > 0 {
		most = s.cfg.Fixed
	}
	if len(value) > most {
		return 0, fmt.Errorf("store: object %d of %d bytes, want at most %d: %w", id, len(value), most, ErrConfig)
	}
	if err := s.lock(ctx, id, lock.Exclusive); err != nil {
		return 0, err
	}
	if s.cfg.Fixed > 0 {
		version, err = s.put(id, value)
	} else {
		version, err = s.replace(id, value)
	}
	return version, s.unlock(id, lock.Exclusive, err)
}

// Delete makes the object absent, and reports whether it was there. Errors are those of Set.
func (s *Store) Delete(ctx context.Context, id int) (there bool, err error) {
	if err := s.lock(ctx, id, lock.Exclusive); err != nil {
		return false, err
	}
	if s.cfg.Fixed > 0 {
		there, err = s.clear(id)
	} else {
		there, err = s.remove(id)
	}
	return there, s.unlock(id, lock.Exclusive, err)
}

// lock takes the object's lock. A holder that died before leaves no harm that the checksum does
// not show.
func (s *Store) lock(ctx context.Context, id int, mode lock.Mode) error {
	if uint(id) >= uint(s.cfg.Objects) {
		panic(fmt.Sprintf("store: object %d of %d", id, s.cfg.Objects))
	}
	err := s.cfg.Locks.Lock(ctx, id%s.cfg.Locks.Len(), mode)
	if errors.Is(err, lock.ErrOwnerDied) {
		s.died++
		return nil
	}
	return err
}

// unlock ends a critical section, in which all operations are complete.
func (s *Store) unlock(id int, mode lock.Mode, err error) error {
	return errors.Join(err, s.cfg.Locks.Unlock(id%s.cfg.Locks.Len(), mode))
}

// head is what an object's first words say.
type head struct {
	length  int
	version int64
	there   bool
}

func parse(header int64) head {
	return head{length: int(header & (1<<lengthBits - 1)), version: int64(uint64(header) >> lengthBits)}
}

func header(length int, version int64) int64 { return version<<lengthBits | int64(length) }

// check is the checksum of an object's number, header and data: each word is multiplied into a
// sum that the ones before have mixed.
func check(id int, header int64, data []int64) int64 {
	sum := uint64(id)*0x9E3779B97F4A7C15 ^ 0xA0761D6478BD642F
	sum = mix(sum ^ uint64(header))
	for _, v := range data {
		sum = mix(sum ^ uint64(v))
	}
	return int64(sum | 1) // never 0
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3)
	return hi ^ lo
}

// bytesOf is the bytes of words, which all clients of a store order alike.
func bytesOf(words []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// fill writes an object into s.buf and returns its words.
func (s *Store) fill(id int, value []byte, version int64) []int64 {
	n := headWords + words(len(value))
	b := s.buf[:n]
	b[n-1] = 0 // the bytes behind the value's last
	b[headerWord] = header(len(value), version)
	copy(bytesOf(b[headWords:]), value)
	b[checkWord] = check(id, b[headerWord], b[headWords:])
	return b
}

// verify looks at an object's words.
func (s *Store) verify(id int, b []int64) (head, []int64, error) {
	h := parse(b[headerWord])
	n := words(h.length)
	if n > len(b)-headWords || b[checkWord] != check(id, b[headerWord], b[headWords:headWords+n]) {
		return h, nil, fmt.Errorf("store: object %d, version %d, %d bytes: %w", id, h.version, h.length, ErrTorn)
	}
	h.there = true
	return h, b[headWords : headWords+n], nil
}

// read reads an object under its lock.
func (s *Store) read(id int) (head, []int64, error) {
	if s.cfg.Fixed > 0 {
		return s.readFixed(id)
	}
	return s.readBlock(id)
}
