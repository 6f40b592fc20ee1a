package remote

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rmalock/rmalock/rma"
)

var (
	// ErrFull is wrapped by Alloc when the hosts' memory is given out and the pool has no
	// block of the size. Blocks that clients have freed may come back later.
	ErrFull = errors.New("the memory is full")
	// ErrExpired is wrapped by Leave when the section has lasted longer than the lease: what
	// it read may be garbage.
	ErrExpired = errors.New("the section has lasted longer than its lease")
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bad configuration")
)

// A Config describes a heap. All clients pass the same.
type Config struct {
	Name    string       // of the window
	Regions []rma.Region // the user's own words; the first has displacement 0
	// Words is the memory for blocks at each host, in words.
	Words int
	// Classes are the sizes of blocks in words, ascending, all multiples of the first; the
	// first is 4 at least. Sizes makes them.
	Classes []int
	// Chunk is the most words that a client keeps, and that its death loses. It is a multiple of
	// twice the first class, and at least eight times the last. 0 means 16 of the last class.
	Chunk int
	// Lease is how long a section may last, in nanoseconds; 0 means one second.
	Lease int64
	// FarWords and FarClasses are for blocks of Far words, which clients change by atomics
	// (AllocFar), as Words and Classes are for those of Plain words. Where a transport has no
	// atomic Put (rma.Caps), a Put into such a block is a loop. 0 for none.
	FarWords   int
	FarClasses []int
}

// Sizes are classes from least to most words, each at most a quarter larger than the one
// before, or by the first: so at most a quarter of a large block is wasted.
func Sizes(least, most int) []int {
	least = max(least, minClass)
	out := []int{least}
	for last := least; last < most; {
		last += max(1, last/4/least) * least
		out = append(out, last)
	}
	return out
}

const (
	minClass   = 4
	maxClasses = 64
	maxHosts   = 1 << nodeBits
)

// Validate reports what is wrong with a Config, and fills in defaults.
func (c *Config) Validate() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("remote: heap %q: Config.%s: %w", c.Name, fmt.Sprintf(format, args...), ErrConfig)
	}
	last := 0
	for name, classes := range map[string][]int{"Classes": c.Classes, "FarClasses": c.FarClasses} {
		if len(classes) == 0 && name == "FarClasses" && c.FarWords == 0 {
			continue
		}
		if len(classes) == 0 || len(c.Classes)+len(c.FarClasses) > maxClasses || !slices.IsSorted(classes) {
			return refuse("%s are %v, want 1 to %d sizes, ascending", name, classes, maxClasses)
		}
		first := classes[0]
		if first < minClass {
			return refuse("%s begin with %d words, want at least %d", name, first, minClass)
		}
		for i, size := range classes {
			if size%first != 0 || i > 0 && size == classes[i-1] {
				return refuse("%s are %v, want different multiples of %d", name, classes, first)
			}
		}
		last = max(last, classes[len(classes)-1])
	}
	first := c.Classes[0]
	if c.Chunk == 0 {
		c.Chunk = 16 * last
	}
	if c.Lease == 0 {
		c.Lease = int64(time.Second)
	}
	switch {
	case c.Chunk%(2*first) != 0 || c.Chunk < 8*last:
		return refuse("Chunk is %d words, want a multiple of %d, and at least %d, eight blocks of the largest class", c.Chunk, 2*first, 8*last)
	case c.Words < c.Chunk/2:
		return refuse("Words is %d words at each host, want at least %d, half a chunk; take more Words or a smaller Chunk", c.Words, c.Chunk/2)
	case len(c.FarClasses) > 0 && c.FarWords < c.Chunk/2:
		return refuse("FarWords is %d words at each host, want at least %d, half a chunk", c.FarWords, c.Chunk/2)
	case c.Lease < 0:
		return refuse("Lease is %d ns, want no negative time", c.Lease)
	}
	return nil
}

// The words of a client, and regions behind the user's own.
const (
	entryWord = iota
	evictedWord
	clientWords
)

func (c *Config) spec(hosts rma.Hosts, clients int) rma.Spec {
	epoch := rma.Word{Name: "EPOCH", Class: rma.Far}
	entry := []rma.Field{{Name: "section", Shift: epochBits, Bits: 64 - epochBits}, {Name: "epoch", Bits: epochBits}}
	pool := []rma.Field{{Name: "changes", Shift: refBits, Bits: 64 - refBits}, {Name: "top", Bits: refBits}}
	return rma.Spec{
		Name:  c.Name,
		Hosts: hosts,
		Regions: append(slices.Clone(c.Regions),
			rma.Region{Count: 1, Words: []rma.Word{epoch, {Name: "FREE", Class: rma.Far}, {Name: "FARFREE", Class: rma.Far}}},
			rma.Region{Count: len(c.Classes) + len(c.FarClasses), Words: []rma.Word{{Name: "POOL", Class: rma.Far, Fields: pool}}},
			rma.Region{Count: clients, Words: []rma.Word{
				entryWord:   {Name: "ENTRY", Class: rma.Plain, Fields: entry},
				evictedWord: {Name: "EVICTED", Class: rma.Plain, Fields: entry},
			}},
			rma.Region{Count: c.Words, Words: []rma.Word{{Name: "HEAP", Class: rma.Plain}}},
			rma.Region{Count: c.FarWords, Words: []rma.Word{{Name: "FARHEAP", Class: rma.Far}}}),
	}
}

// Bytes is the memory that the heap takes from each host, for a number of clients.
func (c Config) Bytes(clients int) int64 {
	s := c.spec(rma.MemoryNodes, clients)
	return 8 * int64(s.Words())
}
