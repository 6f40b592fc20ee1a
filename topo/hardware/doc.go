// Package hardware lets package topo/discover see the levels inside the nodes: NUMA nodes
// and their groups, last-level caches, and cores. A program imports it for that effect:
//
//	import _ "github.com/rmalock/rmalock/topo/hardware"
//
// It is apart from topo/discover since it reads the machine by way of ghw
// (github.com/jaypipes/ghw), which brings some 30 packages into the program. The locks do
// without. On systems other than Linux it knows nothing, and says so in the notes.
//
//	level   element                                        known from
//	group   NUMA nodes nearest to each other: a socket     distances of NUMA nodes
//	numa    a NUMA node                                    ghw
//	cache   processors that share a last-level cache       ghw
//	core    a core with its hardware threads               ghw
package hardware

import "github.com/rmalock/rmalock/topo/discover"

func init() { discover.Register(readMachine) }
