//go:build !linux

package topo

import "runtime"

// readMachine knows nothing: ghw finds cores and caches of NUMA nodes on Linux.
func readMachine(string) machine {
	return compose(nil, []string{"NUMA nodes, caches and cores are not found out on " + runtime.GOOS + ": taken for flat inside the node"})
}
