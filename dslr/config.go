package dslr

import (
	"fmt"
	"math"
	"time"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Release says how a rank releases a ticket within its lease.
type Release uint8

const (
	// ReleaseByAdd is one FetchAndOp, as the paper has it. It is safe if an operation takes
	// effect within one lease after the rank has looked at its clock.
	ReleaseByAdd Release = iota
	// ReleaseByCAS is a CompareAndSwap, and one more for each rank that draws a ticket
	// meanwhile. It is safe however long a rank is stopped.
	ReleaseByCAS
)

// A Reset says how the designated rank resets the counters: section 4.9.
type Reset uint8

const (
	// ResetDrained resets as soon as all valid tickets are released.
	ResetDrained Reset = iota
	// ResetExact is the paper's: it fails while other ranks draw tickets and take them back.
	ResetExact
)

// Config of a Table. Times are in nanoseconds.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // host of lock 0; lock id is at (Home+id) mod the number of hosts
	// Lease is how long a rank may hold a lock; 0 means 10 ms. After twice the lease without
	// a release other ranks take it for dead. A rank whose operations take longer than a lease
	// does not get the lock.
	Lease int64
	// MaxSlots is the most leases that one holder may take together (LockFor); 0 means 1.
	MaxSlots int64
	// Updates makes room for update locks: six counters in place of four.
	Updates bool
	// CountMax is the number of tickets of a kind after which the counters are reset; 0 means
	// 4,096, or 256 with Updates. With ranks times MaxSlots it is at most 32,703, or 959.
	CountMax int
	// Omega is the pause between two looks at the word for each ticket ahead. 0 leaves the
	// pace to the backend. The paper has 5 us on InfiniBand.
	Omega int64
	// BackoffFirst and BackoffLast bound the random pause after a failure, R and L of
	// appendix A.3; 0 means 10 us and 10 ms, less than 0 none.
	BackoffFirst, BackoffLast int64
	Release                   Release
	Reset                     Reset
}

// countMax is the default of CountMax.
func (c *Config) countMax() int {
	if c.Updates {
		return 256
	}
	return 4096
}

// layout is the layout of the word for so many ranks.
func (c *Config) layout(ranks int) (layout, error) {
	tickets := []kind{shared, exclusive}
	if c.Updates {
		tickets = append(tickets, update)
	}
	l, ok := layoutFor(tickets, int64(c.CountMax), int64(ranks)*c.MaxSlots)
	if !ok {
		return l, fmt.Errorf("dslr: %d tickets of Config.CountMax, and %d ranks that draw up to %d slots at once, do not fit in one of %d counters: %w",
			c.CountMax, ranks, c.MaxSlots, 2*len(tickets), lock.ErrConfig)
	}
	return l, nil
}

// validate refuses nonsense and fills in the defaults.
func (c *Config) validate(hosts int) error {
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Lease == 0 {
		c.Lease = int64(10 * time.Millisecond)
	}
	if c.MaxSlots == 0 {
		c.MaxSlots = 1
	}
	if c.CountMax == 0 {
		c.CountMax = c.countMax()
	}
	if c.BackoffFirst == 0 {
		c.BackoffFirst = int64(10 * time.Microsecond)
	}
	if c.BackoffLast == 0 {
		c.BackoffLast = int64(10 * time.Millisecond)
	}
	switch {
	case c.Locks < 0:
		return fmt.Errorf("dslr: Config.Locks is %d, want at least 1: %w", c.Locks, lock.ErrConfig)
	case c.Home < 0 || c.Home >= hosts:
		return fmt.Errorf("dslr: Config.Home is %d, want a host from 0 to %d: %w", c.Home, hosts-1, lock.ErrConfig)
	case c.Lease < 0 || c.Omega < 0:
		return fmt.Errorf("dslr: Config.Lease is %d and Omega %d, want no negative times: %w", c.Lease, c.Omega, lock.ErrConfig)
	case c.MaxSlots < 1 || c.MaxSlots > math.MaxInt16:
		return fmt.Errorf("dslr: Config.MaxSlots is %d, want 1 to %d: %w", c.MaxSlots, math.MaxInt16, lock.ErrConfig)
	case c.CountMax < 1:
		return fmt.Errorf("dslr: Config.CountMax is %d, want at least 1: %w", c.CountMax, lock.ErrConfig)
	case c.Release > ReleaseByCAS || c.Reset > ResetExact:
		return fmt.Errorf("dslr: Config.Release is %d and Reset %d, which do not exist: %w", c.Release, c.Reset, lock.ErrConfig)
	}
	return nil
}

func init() {
	lock.Register(lock.Info{
		Name:     "dslr",
		Title:    "DSLR, a bakery of tickets in one word, for readers and writers, with leases",
		Shared:   true,
		Fair:     "in the order of the tickets; readers between two writers in any order",
		Recovers: true,
		Params: []lock.Param{
			{Name: "LEASE", Help: "how long a rank may hold the lock, as in 10ms, the default"},
			{Name: "SLOTS", Help: "most leases that one holder may take together; default 1"},
			{Name: "COUNTMAX", Help: "tickets of a kind between two resets; default 4096"},
			{Name: "OMEGA", Help: "pause between two looks for each ticket ahead, as in 5us; default 0, the backend's pace"},
			{Name: "BACKOFF", Help: "longest pause after a failure, as in 10ms, the default; 0 for none"},
			{Name: "RELEASE", Help: "add, as the paper has it, the default; or cas, safe for ranks that are stopped for long"},
			{Name: "RESET", Help: "drained, the default; or exact, as the paper has it"},
			{Name: "UPDATES", Help: "on: room for update locks; default off"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) { return New(c, Config{Locks: n, Home: home}) },
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg, err := parse(s.Params)
			if err != nil {
				return nil, err
			}
			cfg.Locks, cfg.Home = s.Locks, s.Home
			return New(c, cfg)
		},
	})
}

// parse makes a Config of the lock's parameters.
func parse(params map[string]string) (Config, error) {
	var cfg Config
	for name, text := range params {
		var err error
		switch name {
		case "LEASE":
			cfg.Lease, err = values.Time(text)
		case "OMEGA":
			cfg.Omega, err = values.Time(text)
		case "BACKOFF":
			if cfg.BackoffLast, err = values.Time(text); cfg.BackoffLast == 0 {
				cfg.BackoffLast = -1
			}
		case "SLOTS":
			var n int
			n, err = values.Number(text, 0)
			cfg.MaxSlots = int64(n)
		case "COUNTMAX":
			cfg.CountMax, err = values.Number(text, 0)
		case "RELEASE":
			var i int
			i, err = values.Choice(text, "add", "cas")
			cfg.Release = Release(i)
		case "RESET":
			var i int
			i, err = values.Choice(text, "drained", "exact")
			cfg.Reset = Reset(i)
		case "UPDATES":
			var i int
			i, err = values.Choice(text, "off", "on")
			cfg.Updates = i == 1
		}
		if err != nil {
			return cfg, fmt.Errorf("dslr: %s is %q: %w: %w", name, text, err, lock.ErrConfig)
		}
	}
	return cfg, nil
}
