package queuetree

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// Config of a Tree.
type Config struct {
	Name     string         // of the lock, for errors and the window
	Locks    int            // number of locks
	Home     int            // rank that hosts the root's TAIL of lock 0
	Topology *topo.Topology // from TopologyOf
	TL       []int          // from FillTL: T_L,i by level; TL[0] is the number of passings at the root before RootGate.Release
	Barging  bool           // the leaf is the barging one, if all ranks say so and its elements lie in nodes
	RootGate RootGate       // outside the root; nil for none
	Adapt    bool           // T_L,i move at run time, but for a barging leaf's
	Local    bool           // this rank's counters lie on its node; RootGate.Regions gets the AND over all ranks
}

// Validate reports what is wrong with a configuration and fills in defaults.
func (c *Config) Validate(size int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s: %w", c.Name, fmt.Sprintf(format, args...), lock.ErrConfig)
	}
	if c.Locks == 0 {
		c.Locks = 1
	}
	if c.Locks < 0 {
		return bad("Config.Locks is %d, want at least 1", c.Locks)
	}
	if c.Home < 0 || c.Home >= size {
		return bad("Config.Home is %d, want a rank from 0 to %d", c.Home, size-1)
	}
	if size > MaxRanks {
		return bad("the job has %d ranks, want at most %d", size, MaxRanks)
	}
	if levels := c.Topology.Levels(); len(levels) > maxLevels {
		return bad("Config.Topology has %d levels, want at most %d; pick some with Topology.Pick", len(levels), maxLevels)
	}
	return nil
}
