package alock

import (
	"fmt"
	"strconv"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // rank that holds lock 0; lock id is at (Home+id) mod Size
	// LocalBudget and RemoteBudget are the entries of a cohort in a row while the other one
	// waits: section 6.1. 0 means 5 and 20.
	LocalBudget, RemoteBudget int
	Shared                    bool // with a shared mode
}

// name is the registered name of the lock.
func (c *Config) name() string {
	if c.Shared {
		return "alock-rw"
	}
	return "alock"
}

// validate refuses nonsense and fills in the defaults.
func (c *Config) validate(size int) error {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Locks, 1}, {&c.LocalBudget, 5}, {&c.RemoteBudget, 20}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	switch {
	case c.Locks < 0:
		return fmt.Errorf("alock: Config.Locks is %d, want at least 1: %w", c.Locks, lock.ErrConfig)
	case c.Home < 0 || c.Home >= size:
		return fmt.Errorf("alock: Config.Home is %d, want a rank from 0 to %d: %w", c.Home, size-1, lock.ErrConfig)
	case c.LocalBudget < 0 || c.RemoteBudget < 0:
		return fmt.Errorf("alock: Config.LocalBudget is %d and RemoteBudget %d, want at least 1: %w", c.LocalBudget, c.RemoteBudget, lock.ErrConfig)
	}
	return nil
}

func init() {
	for _, shared := range []bool{false, true} {
		info := lock.Info{
			Title:  "ALock, a queue for the ranks of the lock's node and one for all others, with budgets",
			Shared: shared,
			Fair:   "first come, first served in a cohort; of the other one at most its budget for each budget of one's own, and once more",
			Params: []lock.Param{
				{Name: "LOCAL", Help: "budget of the ranks of the lock's node; default 5"},
				{Name: "REMOTE", Help: "budget of the other ranks; default 20"},
			},
			Open: func(c rma.Comm, n, home int) (lock.Table, error) {
				return New(c, Config{Locks: n, Home: home, Shared: shared})
			},
			OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
				cfg, err := parse(s)
				if err != nil {
					return nil, err
				}
				cfg.Shared = shared
				return New(c, cfg)
			},
		}
		if shared {
			info.Title = "ALock for readers and writers, with a count of readers for each of the two"
		}
		info.Name = (&Config{Shared: shared}).name()
		lock.Register(info)
	}
}

// parse makes a Config of a setting.
func parse(s lock.Setting) (Config, error) {
	cfg := Config{Locks: s.Locks, Home: s.Home}
	for name, into := range map[string]*int{"LOCAL": &cfg.LocalBudget, "REMOTE": &cfg.RemoteBudget} {
		text, ok := s.Params[name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return cfg, fmt.Errorf("alock: %s is %q, want a number from 1 on: %w", name, text, lock.ErrConfig)
		}
		*into = n
	}
	return cfg, nil
}
