// Package discover finds the topology of a job: [Topology].
//
// It asks each rank's operating system and launcher. What this package tells by itself:
//
//	level   from
//	node    rma.Comm.Node: ranks that share memory
//	switch  Slurm's variables; switch2 is outside switch
//	rack    host names, by a pattern of the user: RMALOCK_RACKS
//	any     a file of the user's: RMALOCK_TOPO
//
// The levels inside a node (group, numa, cache, core) need a reader of the hardware, and
// that needs packages from outside this module. So it is a package of its own, which
// registers itself where a program imports it:
//
//	import _ "github.com/rmalock/rmalock/topo/hardware"
//
// Without this import a topology ends at the nodes, and a line of its notes says so.
// Everything else is the same. All ranks of a job run one program, or at least programs
// that import the same.
//
// # Slurm and mpirun
//
// Slurm tells each process the way to its node: SLURM_TOPOLOGY_ADDR=spine.rackA.n2
// with SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node. Under srun that is so. Under
// mpirun it may be the way to the batch node, or the variables of different nodes
// together. It counts only where all of this holds:
//
//   - it names the node that SLURM_NODEID and SLURMD_NODENAME name, or the host name where
//     they are not set;
//   - no two nodes of the job have it, unless their hosts have that name;
//   - all nodes have one.
//
// Otherwise the notes say what did not fit, and host names may tell: RMALOCK_RACKS.
//
// # When the machine does not tell
//
// Discovery never fails because of what a machine says of itself. A description
// that is missing, unreadable or broken leaves the levels concerned out, and the
// reason is in the topology's notes. In a simulation ([rma.Simulated]) the host of the
// process means nothing: there the levels are machine and node.
//
// # Cost
//
// Two Allgathers, of one word and of about 60 bytes per rank, after each process has read
// its machine once: some 50 ms where that has 256 hardware threads. With RMALOCK_TOPO each
// process reads the file, and exchanges a word to be sure that all read the same.
package discover
