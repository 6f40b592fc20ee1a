// Package topo is the machine as a tree of levels, and the place of every rank in
// it: what locks that know the hierarchy are built on. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), sections 2, 3.2 and 6.
//
// A [Topology] comes from one of these sources:
//
//   - Package topo/discover asks the system on each rank of a running job.
//   - [Parse] reads a synthetic description such as "rack:2 node:4 numa:2 core:4",
//     with ranks dealt one after the other or in turns ("by:node").
//   - [Read] and [ReadFile] take such a description, a table of ranks, or the JSON of
//     another topology, edited.
//   - [Build] takes the [Place] of every rank, recorded or written by hand.
//
// Elements may be unequal and the ranks of an element need not be consecutive.
//
// # Levels
//
//	level    element                                      known from
//	machine  all ranks of the job; always there           -
//	switch   nodes behind one switch; switch2 is outside  Slurm
//	rack     what the user says: rack, row, island        RMALOCK_RACKS
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
// A lock need not use all of them: [Topology.Pick] is a view with those that its
// user names, and [Topology.DefaultView] one with those that suit the machine.
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
//	tail_rank   t.Host(i-1, j-1) + 1        of [i,j]
//
// Elements of a level are numbered in the order of their lowest rank. The numbers
// at one level do not depend on which other levels there are, and a discovered
// node's is its rma.Node.Index.
//
// # What a lock makes of it
//
// Its tree has a queue per element of each level of a view. At the innermost level
// the ranks of the element compete in it, further out the elements one level in;
// [Topology.Arity] counts them. The queue's tail is at [Topology.Host] of the element,
// and so is the queue node with which the element competes further out: it belongs
// to the element and not to the rank that climbs for it. A writer goes from Element
// of the innermost level outwards by [Topology.Up]. [Topology.Near] tells which
// elements lie in one node of the job, where words may be near ones.
//
// Host chooses a rank of the element itself, and spreads: no rank hosts for a second
// element while another rank of that one hosts for none. Of many locks that share a
// tree each next one is a rank further on: [Topology.HostOf].
//
// What a lock adds of its own, such as counters for groups of ranks, it makes once per
// process with [Derive]. Groups that follow the order of the tree ([Topology.InOrder]) and
// not the ranks' numbers stay together where ranks were dealt round robin.
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
// # Cost
//
// A topology takes 4 bytes per rank and level and 4 more per rank, and 28 bytes and a
// label per element (about 4 MB for 65,536 ranks in five levels); one that was
// discovered, 16 bytes more per rank. A view shares these tables and adds labels
// where it leaves a level out. Ranks of one process share one of each. Look-ups are a few
// loads from tables and allocate nothing, but for those that return slices; Arity and Near
// walk an element.
package topo
