// Package topo is the machine as a tree of levels, and the place of every rank in
// it: what locks that know the hierarchy are built on. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 2 and section 3.2.3.
//
// A [Topology] comes from one of three sources: [Discover] asks the system on each
// rank of a running job, [Parse] reads a synthetic description such as
// "rack:2 node:4 numa:2 core:4", and [Build] takes the [Place] of every rank,
// recorded or written by hand. Elements may be unequal and the ranks of an element
// need not be consecutive.
//
// # Levels
//
//	level    element                                      known from
//	machine  all ranks of the job; always there           -
//	rack     nodes in one rack, behind one switch         Place.Above
//	node     ranks that share memory; always discovered   rma.Comm.Node
//	group    NUMA nodes nearest to each other: a socket   distances of NUMA nodes
//	numa     a NUMA node                                  ghw, affinity
//	cache    processors that share a last-level cache     ghw, affinity
//	core     a core with its hardware threads             ghw, affinity
//
// Levels are ordered from the outside in, as the paper's 1 to N, and their names
// are free but for the order of those above. Discovered levels that split nothing
// are left out: on a machine whose NUMA nodes have one last-level cache each there
// is numa and no cache. Only elements that have ranks are elements.
//
// # Counting
//
// Ranks, levels and elements count from 0 here, from 1 in the paper.
//
//	paper       here
//	P           t.Size()
//	N           len(t.Levels())
//	N_i         t.Elements(i-1)
//	e(p,i)      t.Element(p-1, i-1) + 1
//
// Elements of a level are numbered in the order of their lowest rank. The numbers
// at one level do not depend on which other levels there are, and a node's is its
// rma.Node.Index.
//
// # Ranks without a single place
//
// A lock needs every rank in exactly one element per level. But a rank whose
// affinity mask spans two cores is in neither. The rule: a level splits an element
// only if every rank of the element is bound to exactly one part of that level.
// Otherwise all ranks of the element stay together in one element of the level,
// which is merged ([Topology.Merged]) and labelled with all that it stands for,
// "any of 0-3", or "unknown" where a rank's machine does not tell. A level at which
// all elements are merged is left out, and [Topology.Notes] says so. Ranks that are
// not bound at all, such as goroutines of one process, thus have the levels machine
// and node. Bind ranks (mpirun --bind-to core) to get more.
//
// # When the machine does not tell
//
// Discovery never fails because of what a machine says of itself. A description
// that is missing, unreadable or broken leaves the levels concerned out, and the
// reason is in Notes. On systems other than Linux that is always so. Virtual
// machines may show other NUMA nodes and distances than there are; then describe
// the machine with Parse or Build.
//
// # Cost
//
// A topology takes 4 bytes per rank and level, and 24 bytes and a label per element
// (about 3 MB for 65,536 ranks in five levels); one that was discovered, 16 bytes
// more per rank. Element is one load from a table. Discover is two Allgathers, of
// one word and of about 60 bytes per rank, after each process has read its machine
// once: some 50 ms where that has 256 hardware threads.
package topo
