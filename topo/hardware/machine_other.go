//go:build !linux

package hardware

import (
	"runtime"

	"github.com/rmalock/rmalock/topo/discover"
)

// readMachine knows nothing: ghw finds cores and caches of NUMA nodes on Linux.
func readMachine(string) discover.Machine {
	return compose(nil, []string{"NUMA nodes, caches and cores are not found out on " + runtime.GOOS + ": taken for flat inside the node"})
}
