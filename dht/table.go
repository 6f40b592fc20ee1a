package dht

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

var (
	// ErrFull is wrapped by Insert and Add when the key is absent, needs a heap element
	// (since its slot is taken, or its value is beyond 63 bits) and there is none. The table is unchanged and stays
	// usable: keys that are there can be added to, and others find room in slots that
	// are not taken. With atomics it may come a little early: while other ranks hold
	// the last elements and are about to give them back.
	ErrFull = errors.New("the volume's heap is full")
	// ErrCorrupt is wrapped where a chain is not what the table's operations leave.
	ErrCorrupt = errors.New("table is corrupt")
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bad configuration")
)

// MaxRecords is the largest number of slots, and of heap elements, of a volume.
const MaxRecords = math.MaxUint32 - 1

// A Config describes a table. All ranks pass the same, with their own handle on
// Locks. [Fit] proposes Slots and Heap.
type Config struct {
	// Volumes is the number of local volumes; volume v lives at rank v. 0 means one
	// per rank. The paper's benchmark has 1.
	Volumes int
	// Slots is the number of slots per volume, from 1. Recommended: keys per volume
	// divided by 0.75.
	Slots int
	// Heap is the number of elements in the overflow heap of a volume; 0 is allowed
	// and means that a second key in a slot is ErrFull. Recommended: a third of
	// the keys per volume, plus as many as there are values beyond 63 bits.
	Heap int
	// Locks guards volume v with lock v; nil means atomics alone. The table does not
	// free it. A rank must not hold lock v when it works on volume v.
	Locks lock.Table
	// Combine lets the ranks of a node that add to one key at once do so by one Add under the
	// lock. It pays where many ranks of a node add to few keys, and costs an Add that meets no
	// other one some operations on node memory. It goes with Locks: atomics alone are faster
	// without.
	Combine bool
}

func (c *Config) validate(size int) error {
	if c.Volumes == 0 {
		c.Volumes = size
	}
	if c.Volumes < 1 || c.Volumes > size {
		return fmt.Errorf("dht: Config.Volumes is %d, want 1 to %d (one per rank at most) or 0 for one per rank: %w", c.Volumes, size, ErrConfig)
	}
	if c.Slots < 1 || c.Slots > MaxRecords {
		return fmt.Errorf("dht: Config.Slots is %d, want 1 to %d slots per volume (see dht.Fit): %w", c.Slots, MaxRecords, ErrConfig)
	}
	if c.Heap < 0 || c.Heap > MaxRecords {
		return fmt.Errorf("dht: Config.Heap is %d, want 0 to %d elements per volume (see dht.Fit): %w", c.Heap, MaxRecords, ErrConfig)
	}
	if _, serves := lock.AsServer(c.Locks); serves {
		return fmt.Errorf("dht: Config.Locks has ranks that serve the others, and here every rank takes locks; choose another lock: %w", ErrConfig)
	}
	if c.Combine && c.Locks == nil {
		return fmt.Errorf("dht: Config.Combine without Locks; atomics alone are faster without it: %w", ErrConfig)
	}
	if c.Locks != nil && c.Locks.Len() < c.Volumes {
		return fmt.Errorf("dht: Config.Locks has %d locks, want one for each of the %d volumes: %w", c.Locks.Len(), c.Volumes, ErrConfig)
	}
	return nil
}

// Bytes is the memory that the table takes from every rank.
func (c Config) Bytes() int64 {
	s := c.spec()
	return 8 * int64(s.Words())
}

// Fit proposes Slots and Heap for a number of keys spread over volumes: a load
// factor of 0.75 for a volume that got six standard deviations more keys than the
// average, and a heap for the overflow to be expected there plus six standard
// deviations. That is 65 bytes per key for a thousand keys per volume, and 51 for a
// million.
func Fit(keys int64, volumes int) (slots, heap int) {
	mean := math.Max(float64(keys), 1) / float64(max(volumes, 1))
	margin := 6*math.Sqrt(mean) + 8
	most := mean + margin
	s := math.Ceil(most / 0.75)
	// Of n keys thrown into s slots, s*(1-exp(-n/s)) find one free.
	overflow := most - s*(1-math.Exp(-most/s))
	return int(s), int(math.Ceil(overflow + margin))
}

// The words, and the regions of the window.
const (
	free = iota
	spare
	headWords

	slotKey   = 0
	slotBase  = 1
	slotAdded = 2
	slotLast  = 3
	slotWords = 4

	elemKey   = 0
	elemValue = 1
	elemPrev  = 2
	elemWords = 3

	slots = 1 // region
	heap  = 2 // region
)

func (c *Config) spec() rma.Spec {
	class := rma.Far
	if c.Locks != nil {
		class = rma.Flag
	}
	return rma.Spec{
		// The name makes ranks with different Volumes disagree in Allocate.
		Name: fmt.Sprintf("dht of %d volumes", c.Volumes),
		Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{
				free:  {Name: "FREE", Class: class},
				spare: {Name: "SPARE", Class: class},
			}},
			slots: {Count: c.Slots + 1, Words: []rma.Word{ // the last one is key 0's
				slotKey:   {Name: "slot.KEY", Class: class},
				slotBase:  {Name: "slot.BASE", Class: class},
				slotAdded: {Name: "slot.ADDED", Class: class},
				slotLast:  {Name: "slot.LAST", Class: class},
			}},
			heap: {Count: c.Heap, Words: []rma.Word{
				elemKey:   {Name: "heap.KEY", Class: class},
				elemValue: {Name: "heap.VALUE", Class: class},
				elemPrev:  {Name: "heap.PREV", Class: class},
			}},
		},
	}
}

// A Table is one rank's handle on a distributed hashtable. It belongs to one
// goroutine at a time and must not be copied.
type Table struct {
	w     *rma.Window
	cfg   Config
	slots int              // displacement of the first slot
	heap  int              // displacement of element 0, which is not one
	rec   [slotWords]int64 // slot or element read last
	elem  [elemWords]int64 // element written last

	combiner *combiner // with Config.Combine
}

// New opens a table. Collective.
func New(c rma.Comm, cfg Config) (*Table, error) {
	if err := cfg.validate(c.Size()); err != nil {
		return nil, err
	}
	spec := cfg.spec()
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, fmt.Errorf("dht: %w", err)
	}
	t := &Table{w: w, cfg: cfg, slots: spec.Base(slots), heap: spec.Base(heap) - elemWords}
	if cfg.Combine {
		if t.combiner, err = newCombiner(c); err != nil {
			return nil, errors.Join(fmt.Errorf("dht: %w", err), w.Free())
		}
	}
	return t, nil
}

// Free closes the table's windows. Collective. It leaves Config.Locks open.
func (t *Table) Free() error {
	if t.combiner != nil {
		return errors.Join(t.combiner.w.Free(), t.w.Free())
	}
	return t.w.Free()
}

// Volumes is the number of volumes.
func (t *Table) Volumes() int { return t.cfg.Volumes }

// Volume is the volume, and so the rank, that holds a key.
func (t *Table) Volume(key int64) int {
	v, _ := t.locate(key)
	return v
}

// locate is the volume of a key and the displacement of its slot there.
//
// The hash, taken as a fraction of 1 and multiplied by the number of volumes, has
// the volume before the point; what is behind it is again a fraction, independent
// of the volume, and gives the slot in the same way.
func (t *Table) locate(key int64) (volume, slot int) {
	v, rest := bits.Mul64(mix(uint64(key)), uint64(t.cfg.Volumes))
	s, _ := bits.Mul64(rest, uint64(t.cfg.Slots))
	if key == 0 {
		s = uint64(t.cfg.Slots)
	}
	return int(v), t.slots + int(s)*slotWords
}

// mix is one step of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators. OOPSLA 2014): a bijection in which every bit of the key
// reaches every bit of the hash.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// elementDisp is the displacement of a heap element.
func (t *Table) elementDisp(element int64) int { return t.heap + int(element)*elemWords }

// Insert creates a key with a value if it is absent and says whether it did. A key
// that is there keeps its value. Of concurrent Inserts of one key exactly one
// creates it. Errors are ErrFull, or the transport's or the lock's.
func (t *Table) Insert(key, value int64) (bool, error) {
	if t.cfg.Locks != nil {
		_, created, err := t.lockedCreate(key, value, false)
		return created, err
	}
	return t.insert(key, value)
}

// Add adds to the value of a key, wrapping around, and returns the value before. A
// key that is absent is created as if with the value 0. Errors are as Insert's.
func (t *Table) Add(key, addend int64) (int64, error) {
	if t.combiner != nil && len(t.combiner.mates) > 1 {
		return t.combine(key, addend)
	}
	if t.cfg.Locks != nil {
		return t.lockedAdd(key, addend)
	}
	return t.add(key, addend)
}

// Lookup returns the value of a key and whether the key is there.
func (t *Table) Lookup(key int64) (value int64, ok bool, err error) {
	if t.cfg.Locks != nil {
		return t.lockedLookup(key)
	}
	v, slot := t.locate(key)
	if err := t.readSlot(v, slot); err != nil {
		return 0, false, err
	}
	return t.lookup(v, key)
}

// full is the error of a volume whose heap is full.
func (t *Table) full(v int, key int64) error {
	return fmt.Errorf("dht: volume %d has no free heap element for key %d, all %d are taken (Config.Heap): %w", v, key, t.cfg.Heap, ErrFull)
}

// circular is the error of a chain that is longer than the heap.
func (t *Table) circular(v int) error {
	return fmt.Errorf("dht: a chain of volume %d leads in a circle: Config.Locks does not exclude, or the window was written by others: %w", v, ErrCorrupt)
}
