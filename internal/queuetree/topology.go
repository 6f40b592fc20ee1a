package queuetree

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// TopologyOf is the topology of a job whose user gave t: the part of it that the ranks lie in,
// or, where t is nil, the default view of what discovery finds. lockName stands before an error
// about t, which wraps lock.ErrConfig. Collective.
func TopologyOf(lockName string, c rma.Comm, t *topo.Topology) (*topo.Topology, error) {
	if t == nil {
		found, err := discover.Topology(c)
		if err != nil {
			return nil, err
		}
		return found.DefaultView(), nil
	}
	t, err := t.For(c.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: Config.Topology: %w: %w", lockName, err, lock.ErrConfig)
	}
	return t, nil
}
