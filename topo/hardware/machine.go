package hardware

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/topo/discover"
)

// maxCPUs bounds the processors of a node.
const maxCPUs = 1 << 18

// numaNode is what the system tells of one NUMA node.
type numaNode struct {
	id        int
	cpus      []int
	cores     []core
	caches    []cache
	distances []int // to the NUMA nodes in the order of their ids
}

type core struct {
	id   int // unique in its package at best; negative when unknown
	cpus []int
}

type cache struct {
	level int // 1 is the nearest to the core; not of instructions
	cpus  []int
}

// compose makes a machine from its NUMA nodes, which are sorted by id. NUMA nodes
// keep their number; a cache or core is named by its lowest processor, since the
// system's numbers of cores are not unique in a node. The cache of a processor is
// its last-level cache.
func compose(nodes []numaNode, notes []string) discover.Machine {
	m := discover.Machine{Notes: notes}
	numa := discover.Partition{Level: "numa", Part: map[int]int{}}
	caches := discover.Partition{Level: "cache", Part: map[int]int{}}
	cores := discover.Partition{Level: "core", Part: map[int]int{}}
	for i := range nodes {
		n := &nodes[i]
		for _, c := range n.cpus {
			if was, ok := numa.Part[c]; ok && was != n.id {
				m.Notes = append(m.Notes, fmt.Sprintf("processor %d is listed in NUMA nodes %d and %d: counted for the first", c, was, n.id))
				continue
			}
			numa.Part[c] = n.id
		}
		first, last := n.caching()
		for _, c := range n.cores {
			if c.id < 0 {
				continue
			}
			// Cores of two packages in one NUMA node may have one number; their
			// first-level caches tell them apart.
			lowest := map[int]int{}
			slices.Sort(c.cpus)
			for _, cpu := range c.cpus {
				l1, ok := first[cpu]
				if !ok {
					l1 = -1
				}
				if _, ok := lowest[l1]; !ok {
					lowest[l1] = cpu
				}
				cores.Part[cpu] = lowest[l1]
			}
		}
		// Where each core has a last-level cache of its own, the level says no more
		// than the cores: all count to one.
		lowest, private := maxCPUs, true
		for cpu, l := range last {
			mine, ok := cores.Part[cpu]
			private = private && ok && mine == cores.Part[l]
			lowest = min(lowest, cpu)
		}
		for cpu, l := range last {
			if private {
				l = lowest
			}
			caches.Part[cpu] = l
		}
	}
	m.Levels = []discover.Partition{groups(nodes), numa, caches, cores}
	return m
}

// caching maps processors to their first-level and last-level caches, which are
// named by their lowest processor.
func (n *numaNode) caching() (first, last map[int]int) {
	first, last = map[int]int{}, map[int]int{}
	slices.SortStableFunc(n.caches, func(a, b cache) int { return a.level - b.level })
	for _, c := range n.caches {
		for _, cpu := range c.cpus {
			last[cpu] = slices.Min(c.cpus)
			if c.level == 1 {
				first[cpu] = slices.Min(c.cpus)
			}
		}
	}
	return first, last
}

// groups joins NUMA nodes that are nearest to each other: those at the smallest
// distance between any two, such as the NUMA nodes of one socket. Where that does
// not fall into groups in which all are that near, or distances are unknown, all
// are one group. A group is named by its lowest NUMA node.
func groups(nodes []numaNode) discover.Partition {
	var home []int // nodes with processors
	told := true
	for i := range nodes {
		if len(nodes[i].cpus) > 0 {
			home = append(home, i)
			told = told && len(nodes[i].distances) == len(nodes)
		}
	}
	group := make([]int, len(home))
	if told {
		group = nearest(len(home), func(a, b int) int {
			i, j := home[a], home[b]
			return max(nodes[i].distances[j], nodes[j].distances[i])
		})
	}
	p := discover.Partition{Level: "group", Part: map[int]int{}}
	for a, i := range home {
		for _, c := range nodes[i].cpus {
			p.Part[c] = nodes[home[group[a]]].id
		}
	}
	return p
}

// nearest gives each of n things the lowest one at the smallest distance between
// any two, or all of them 0 where that is not an equivalence.
func nearest(n int, far func(a, b int) int) []int {
	group := make([]int, n)
	if n < 2 {
		return group
	}
	least := far(0, 1)
	for a := range n {
		for b := range a {
			least = min(least, far(a, b))
		}
	}
	for a := range n {
		group[a] = a
		for b := range a {
			if far(a, b) <= least {
				group[a] = group[b]
				break
			}
		}
	}
	for a := range n {
		for b := range a {
			if (far(a, b) <= least) != (group[a] == group[b]) {
				return make([]int, n)
			}
		}
	}
	return group
}
