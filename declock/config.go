package declock

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // host of lock 0; lock id is at (Home+id) mod the number of hosts
	// Capacity is the number of entries of a lock's queue, a power of two; 0 means the
	// number of ranks, rounded up. If more ranks want a lock, it is reset.
	Capacity int
	// VersionBits is the size of an entry's version, 2 to 16; 0 means 16. A lock is reset after
	// Capacity * (2^VersionBits - 1) acquires.
	VersionBits int
	// EpochBits is the size of the count of resets, 1 to 8; 0 means 8.
	EpochBits int
	// Held is the number of locks that a rank may hold or wait for at once, at most 64; 0 means
	// 16. One more is lock.ErrTooManyHeld.
	Held int
	// Lease is how long, in nanoseconds, a holder is not taken for dead though it calls no
	// method of the table; 0 means 25 ms, less than 0 for ever: then no rank may die. After two leases
	// others take it for dead, as after the 50 ms of the public code.
	Lease int64
	// Policy says how the ranks of a node share a lock; the default is None.
	Policy Policy
	Bound  int // hand-overs inside a node in a row with LocalBound; 0 means 4
	// LocalLocks is the number of local locks of a node, of 48 bytes each; 0 means 131,072. If
	// the table has more, ranks may miss their local lock, and go to the queue by themselves.
	LocalLocks int
	StampBits  int // of a timestamp in microseconds, 2 to 16; 0 means 16
	// Detector, if not nil, says which ranks have died, in place of NewHeartbeats. Its lease is
	// Lease.
	Detector Detector
	// Window, if not nil, is a window of the caller's in which the locks lie, beside the data that they
	// guard: the words of Regions, from displacement At on. Then an Unlock completes what the caller
	// has issued in it to the lock's home before it lets go, in one doorbell; at most 60 operations
	// may be pending. Free leaves the window open.
	Window *rma.Window
	At     int
	// Stats count what the rank does. Each rank has its own; nil means one of the table.
	Stats *Stats
}

// maxHeld is the room for a rank's locks in an entry.
const maxHeld = 64

// validate refuses nonsense and fills in the defaults.
func (c *Config) validate(hosts, ranks int, node rma.Node) (header, error) {
	if c.Locks == 0 {
		c.Locks = 1
	}
	switch {
	case c.Capacity == 0 && c.Policy == None:
		c.Capacity = 1 << bits.Len(uint(ranks-1))
	case c.Capacity == 0:
		c.Capacity = nodesCapacity(node)
	}
	c.Bound, c.LocalLocks, c.StampBits = cmp.Or(c.Bound, 4), cmp.Or(c.LocalLocks, defaultLocalLocks), cmp.Or(c.StampBits, int(entryStamp.Bits))
	if c.VersionBits == 0 {
		c.VersionBits = 16
	}
	if c.EpochBits == 0 {
		c.EpochBits = maxEpochBits
	}
	if c.Held == 0 {
		c.Held = 16
	}
	if c.Lease == 0 {
		c.Lease = int64(25 * time.Millisecond)
	}
	var none header
	switch {
	case c.Locks < 0 || int64(c.Locks) > 1<<msgLock.Bits:
		return none, fmt.Errorf("declock: Config.Locks is %d, want 1 to %d: %w", c.Locks, int64(1)<<msgLock.Bits, lock.ErrConfig)
	case c.Home < 0 || c.Home >= hosts:
		return none, fmt.Errorf("declock: Config.Home is %d, want a host from 0 to %d: %w", c.Home, hosts-1, lock.ErrConfig)
	case c.Capacity < 1 || c.Capacity&(c.Capacity-1) != 0 || c.Capacity > 1<<20:
		return none, fmt.Errorf("declock: Config.Capacity is %d, want a power of two up to %d: %w", c.Capacity, 1<<20, lock.ErrConfig)
	case c.VersionBits < 2 || c.VersionBits > int(entryVersion.Bits):
		return none, fmt.Errorf("declock: Config.VersionBits is %d, want 2 to %d: %w", c.VersionBits, entryVersion.Bits, lock.ErrConfig)
	case c.EpochBits < 1 || c.EpochBits > maxEpochBits:
		return none, fmt.Errorf("declock: Config.EpochBits is %d, want 1 to %d: %w", c.EpochBits, maxEpochBits, lock.ErrConfig)
	case c.Held < 1 || c.Held > maxHeld:
		return none, fmt.Errorf("declock: Config.Held is %d, want 1 to %d: %w", c.Held, maxHeld, lock.ErrConfig)
	case c.Policy > LocalBound || c.Bound < 0:
		return none, fmt.Errorf("declock: Config.Policy is %d and Bound %d, which do not exist: %w", c.Policy, c.Bound, lock.ErrConfig)
	case c.LocalLocks < 1 || c.StampBits < 2 || c.StampBits > int(entryStamp.Bits):
		return none, fmt.Errorf("declock: Config.LocalLocks is %d, want at least 1, and StampBits %d, want 2 to %d: %w",
			c.LocalLocks, c.StampBits, entryStamp.Bits, lock.ErrConfig)
	case ranks > 1<<entryClient.Bits/maxHeld:
		return none, fmt.Errorf("declock: %d ranks, an entry has room for the names of %d: %w", ranks, 1<<entryClient.Bits/maxHeld, lock.ErrConfig)
	}
	return newHeader(ranks, c.Capacity, c.EpochBits, c.VersionBits)
}

func init() {
	lock.Register(lock.Info{
		Name:     "declock",
		Title:    "DecLock, a queue on the memory node and hand-over between clients, for readers and writers",
		Shared:   true,
		Fair:     "first come, first served; readers between two writers in any order",
		Recovers: true,
		Params: []lock.Param{
			{Name: "CAPACITY", Help: "entries of a lock's queue, a power of two; default the number of ranks, rounded up"},
			{Name: "VERSION", Help: "bits of an entry's version, 2 to 16, the default"},
			{Name: "EPOCH", Help: "bits of the count of resets, 1 to 8, the default"},
			{Name: "HELD", Help: "locks that a rank may hold or wait for at once, 1 to 64; default 16"},
			{Name: "POLICY", Help: "how ranks of a node share a lock: none, the default; ts-tf, ts-pf, remote, local, bound"},
			{Name: "BOUND", Help: "hand-overs inside a node in a row with POLICY=bound; default 4"},
			{Name: "LOCALS", Help: "local locks of a node; default 131072"},
			{Name: "STAMP", Help: "bits of a timestamp, 2 to 16, the default"},
			{Name: "LEASE", Help: "how long a holder is not taken for dead, as in 25ms, the default; off: no rank may die"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) { return New(c, Config{Locks: n, Home: home}) },
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg, err := parse(s.Params)
			if err != nil {
				return nil, err
			}
			cfg.Locks, cfg.Home, cfg.Window, cfg.At = s.Locks, s.Home, s.Window, s.At
			return New(c, cfg)
		},
		Regions: func(c rma.Comm, s lock.Setting) ([]rma.Region, error) {
			cfg, err := parse(s.Params)
			if err != nil {
				return nil, err
			}
			cfg.Locks, cfg.Home = s.Locks, s.Home
			return Regions(c, cfg)
		},
	})
}

// policyNames are the values of POLICY.
var policyNames = [...]string{None: "none", TaskFair: "ts-tf", PhaseFair: "ts-pf", RemotePrefer: "remote", LocalPrefer: "local", LocalBound: "bound"}

// parse makes a Config of the lock's parameters.
func parse(params map[string]string) (Config, error) {
	var cfg Config
	for name, text := range params {
		var err error
		switch name {
		case "CAPACITY":
			cfg.Capacity, err = values.Number(text, 1)
		case "VERSION":
			cfg.VersionBits, err = values.Number(text, 1)
		case "EPOCH":
			cfg.EpochBits, err = values.Number(text, 1)
		case "HELD":
			cfg.Held, err = values.Number(text, 1)
		case "POLICY":
			var i int
			i, err = values.Choice(text, policyNames[:]...)
			cfg.Policy = Policy(i)
		case "BOUND":
			cfg.Bound, err = values.Number(text, 1)
		case "LOCALS":
			cfg.LocalLocks, err = values.Number(text, 1)
		case "STAMP":
			cfg.StampBits, err = values.Number(text, 1)
		case "LEASE":
			cfg.Lease, err = values.Lease(text)
		}
		if err != nil {
			return cfg, fmt.Errorf("declock: %s is %q: %w: %w", name, text, err, lock.ErrConfig)
		}
	}
	return cfg, nil
}
