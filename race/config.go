package race

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
)

var (
	// ErrTorn is wrapped where a block or a header is not what it should be. No operation of this
	// package leaves one.
	ErrTorn = errors.New("a block or a header is wrong")
	// ErrFull is wrapped by Insert when all segments are split and those of the key have no room.
	ErrFull = errors.New("the table is full")
	// ErrConfig is wrapped by errors about a Config, a key or a value.
	ErrConfig = errors.New("bad configuration")

	errAgain = errors.New("race: look again")
)

// Config of a Table. All clients pass the same.
type Config struct {
	// Keys is about how many keys there will be, if known. The defaults of Initial, Segments and
	// Words have room for them without a split, and for twice as many with splits.
	Keys int
	// Segments is the most segments that the table grows to, a power of two. Their memory, 24
	// bytes a slot, is reserved at once. 0 means twice Initial, or 64.
	Segments int
	// Initial is the segments of the start, a power of two; 0 means enough for Keys, or 1. A
	// client's first look at a segment that was split n times since takes up to n round trips more.
	Initial int
	// Groups is the groups of a segment, of 21 slots each; 0 means 64. A split moves half of the
	// keys of a segment.
	Groups int
	Most   int // bytes of the largest key and value together; 0 means 16, and MaxBytes is the most
	Words  int // memory for blocks at each host; 0 means two blocks for each key, or for three slots of four, and two chunks for each client
	// Section is the number of operations of a client until it lets others use blocks again that
	// were freed; 0 means 32.
	Section int
	cider.Policy

	slots int // of a bucket; tests have fewer
}

// sectionLease is how long a client may stop in the middle of an operation.
const sectionLease = int64(10 * time.Second)

// The limits of what the fields of words have room for.
const (
	maxDoublings = 1<<4 - 1
	maxHosts     = 1 << 6
	maxDepth     = 24
	slotsBucket  = 7
	filled       = 8 // tenths of the slots that have keys before segments are split, at least
)

func power(n int) bool { return n > 0 && n&(n-1) == 0 }

func (c *Config) validate(hosts, clients int) error {
	for p, d := range map[*int]int{&c.Groups: 64, &c.Most: 16, &c.Section: 32, &c.slots: slotsBucket} {
		if *p == 0 {
			*p = d
		}
	}
	each := c.Groups * groupBuckets * c.slots
	if c.Keys > 0 && c.Initial == 0 && each > 0 {
		for c.Initial = 1; c.Initial*each/10*filled < c.Keys; c.Initial *= 2 {
		}
		c.Segments = max(c.Segments, 2*c.Initial)
	}
	for p, d := range map[*int]int{&c.Segments: max(64, c.Initial), &c.Initial: 1} {
		if *p == 0 {
			*p = d
		}
	}
	switch {
	case c.Keys < 0:
		return fmt.Errorf("race: Config.Keys is %d, want none or more: %w", c.Keys, ErrConfig)
	case !power(c.Segments) || c.Segments > 1<<maxDepth:
		return fmt.Errorf("race: Config.Segments is %d, want a power of two up to 2^%d: %w", c.Segments, maxDepth, ErrConfig)
	case !power(c.Initial) || c.Initial > c.Segments || c.Segments/c.Initial > 1<<maxDoublings:
		return fmt.Errorf("race: Config.Initial is %d, want a power of two up to Config.Segments, %d, and at least the %dth part of it: %w",
			c.Initial, c.Segments, 1<<maxDoublings, ErrConfig)
	case c.Groups < 1:
		return fmt.Errorf("race: Config.Groups is %d, want at least 1: %w", c.Groups, ErrConfig)
	case c.Most < 0 || c.Most > MaxBytes:
		return fmt.Errorf("race: Config.Most is %d, want 1 to %d bytes: %w", c.Most, MaxBytes, ErrConfig)
	case c.Section < 0:
		return fmt.Errorf("race: Config.Section is %d, want at least 1: %w", c.Section, ErrConfig)
	case hosts > maxHosts:
		return fmt.Errorf("race: %d hosts, want at most %d: %w", hosts, maxHosts, ErrConfig)
	}
	if c.Words == 0 {
		keys := c.Keys
		if keys == 0 {
			keys = c.Segments * each * 3 / 4
		}
		c.Words = 2*(keys/hosts+1)*c.largest() + (clients/hosts+1)*2*c.chunk()
	}
	return nil
}

// blockWords is the most words of a block.
func (c *Config) blockWords() int { return headWords + wordsOf(c.Most) + 1 }

// largest is the words of the largest block, with what the allocator adds.
func (c *Config) largest() int {
	sizes := remote.Sizes(unitWords, c.blockWords())
	return sizes[len(sizes)-1]
}

// chunk is how many words a client keeps: enough for what it frees in some sections, so that it
// does not wait for others.
func (c *Config) chunk() int { return 32 * max(1, c.Section) * c.largest() }

// initialDepth is the bits that name a segment of the start.
func (c *Config) initialDepth() int { return bits.Len(uint(c.Initial)) - 1 }
