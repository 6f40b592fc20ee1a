package shiftlock

import (
	"fmt"
	"time"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Release says how a reader releases the lock within its lease, and what a writer does that
// another one hands the lock over to.
type Release uint8

const (
	// ReleaseByAdd is one FetchAndOp of a reader, and nothing more of a writer, as the paper has
	// it. It is safe if an operation takes effect within one lease after the rank has looked at
	// its clock.
	ReleaseByAdd Release = iota
	// ReleaseByCAS is a CompareAndSwap of a reader, and one more for each rank that comes or goes
	// meanwhile. A writer reads the lock by a Get and a CompareAndSwap before it enters. It is safe
	// however long a rank is stopped.
	ReleaseByCAS
)

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // host of lock 0; lock id is at (Home+id) mod the number of hosts
	// K is the most writers that have the lock one after the other while readers wait, up to
	// 16; 0 means 16.
	K int
	// Tries is how often a writer tries before it queues; 0 means 2, less than 0 not at all.
	Tries int
	// Lease, in nanoseconds, is how long a rank may hold a lock; 0 means 10 ms. After three
	// leases without a release other ranks take it for dead. A rank whose operations take
	// longer than a lease does not get the lock. Less than 0 is no lease: no rank may die.
	Lease   int64
	Release Release
}

// validate refuses nonsense and fills in the defaults.
func (c *Config) validate(hosts, ranks int) error {
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.K == 0 {
		c.K = 16
	}
	if c.Tries == 0 {
		c.Tries = 2
	}
	if c.Lease == 0 {
		c.Lease = int64(10 * time.Millisecond)
	}
	switch {
	case c.Locks < 0 || c.Locks > maxLocks:
		return fmt.Errorf("shiftlock: Config.Locks is %d, want 1 to %d: %w", c.Locks, maxLocks, lock.ErrConfig)
	case c.Home < 0 || c.Home >= hosts:
		return fmt.Errorf("shiftlock: Config.Home is %d, want a host from 0 to %d: %w", c.Home, hosts-1, lock.ErrConfig)
	case c.K < 1 || c.K > 16:
		return fmt.Errorf("shiftlock: Config.K is %d, want 1 to 16: %w", c.K, lock.ErrConfig)
	case c.Tries > 20:
		return fmt.Errorf("shiftlock: Config.Tries is %d, want at most 20, as each waits twice as long: %w", c.Tries, lock.ErrConfig)
	case ranks > maxRanks:
		return fmt.Errorf("shiftlock: the job has %d ranks, and a lock's word has room for %d: %w", ranks, maxRanks, lock.ErrConfig)
	case c.Release > ReleaseByCAS:
		return fmt.Errorf("shiftlock: Config.Release is %d, which does not exist: %w", c.Release, lock.ErrConfig)
	}
	return nil
}

func init() {
	lock.Register(lock.Info{
		Name:     "shiftlock",
		Title:    "ShiftLock, variant A: a queue of writers and a count of readers in one word, with leases",
		Shared:   true,
		Fair:     "writers first come, first served; a reader after at most K writers",
		Recovers: true,
		Params: []lock.Param{
			{Name: "K", Help: "writers in a row while readers wait, 1 to 16; default 16"},
			{Name: "TRIES", Help: "tries of a writer before it queues; default 2"},
			{Name: "LEASE", Help: "how long a rank may hold the lock, as in 10ms, the default; or off: no rank may die"},
			{Name: "RELEASE", Help: "add, as the paper has it, the default; or cas, safe for ranks that are stopped for long"},
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
		case "K":
			cfg.K, err = values.Number(text, 1)
		case "TRIES":
			if cfg.Tries, err = values.Number(text, 0); cfg.Tries == 0 {
				cfg.Tries = -1
			}
		case "LEASE":
			cfg.Lease, err = values.Lease(text)
		case "RELEASE":
			var i int
			i, err = values.Choice(text, "add", "cas")
			cfg.Release = Release(i)
		}
		if err != nil {
			return cfg, fmt.Errorf("shiftlock: %s is %q: %w: %w", name, text, err, lock.ErrConfig)
		}
	}
	return cfg, nil
}
