package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/verbs"
)

// backend says what starts the ranks of a job.
type backend struct {
	name  string
	ranks int
	nodes int // of the inproc backend, with ranks/nodes ranks each; 0 means 1

	memoryNodes int

	at        []string // memory nodes of the verbs backend
	tokenFile string
	verbs     verbs.Config
}

// Names of backends.
const (
	byLauncher = "auto"
	goroutines = "inproc"
	processes  = "mpi"
	rdma       = "verbs"
	simulated  = "sim" // of bench and tune: jobs in virtual time
)

// flags adds the flags that choose a backend.
func (b *backend) flags(cmd *cobra.Command) {
	b.nameFlag(cmd)
	cmd.Flags().IntVar(&b.ranks, "ranks", defaultRanks(), "number of ranks of the inproc backend, and of each process of the verbs backend")
}

// memoryFlag is the flag for the number of memory nodes.
const memoryFlag = "memory-nodes"

// nameFlag adds --backend and --memory-nodes. more are the command's backends beside the usual
// ones.
func (b *backend) nameFlag(cmd *cobra.Command, more ...string) {
	names := append([]string{byLauncher, goroutines, processes, rdma}, more...)
	help := "where ranks come from: mpi (processes of an MPI job), inproc (goroutines), verbs (goroutines of one process or of each of the launcher's, on an RDMA network), "
	if slices.Contains(more, simulated) {
		help += "sim (virtual time), "
	}
	cmd.Flags().StringVar(&b.name, "backend", byLauncher, help+"or auto: mpi under an MPI launcher, otherwise inproc")
	complete(cmd, "backend", names...)
	cmd.Flags().IntVar(&b.memoryNodes, memoryFlag, 0, "number of memory nodes, which have memory and run no program: in an MPI job so many of its ranks, the last ones of each host by turns; otherwise beside the ranks")
	cmd.Flags().StringSliceVar(&b.at, mnFlag, nil, "memory nodes of the verbs backend: host:port of each rmalock mn, @FILE with them, or K for the first K nodes of a Slurm job; default: RMALOCK_MN")
	cmd.Flags().StringVar(&b.tokenFile, tokenFlag, "", "file with the secret of the memory nodes; default: RMALOCK_TOKEN_FILE")
}

// Flags of the verbs backend.
const (
	mnFlag    = "mn"
	tokenFlag = "token-file"
)

// checkVerbs reads where the memory nodes are.
func (b *backend) checkVerbs(cmd *cobra.Command) error {
	if b.name != rdma {
		if cmd.Flags().Changed(mnFlag) || cmd.Flags().Changed(tokenFlag) {
			return fmt.Errorf("--%s and --%s go with --backend %s", mnFlag, tokenFlag, rdma)
		}
		return nil
	}
	if b.memoryNodes > 0 {
		return fmt.Errorf("--%s goes with the other backends; --backend %s has those of --%s", memoryFlag, rdma, mnFlag)
	}
	var err error
	if b.verbs, err = verbs.FromEnvironment(); err != nil {
		return err
	}
	if len(b.at) > 0 {
		if b.verbs.MemoryNodes, err = verbs.FindMemoryNodes(strings.Join(b.at, ",")); err != nil {
			return err
		}
	}
	if b.tokenFile != "" {
		b.verbs.Token, err = verbs.ReadToken(b.tokenFile)
	}
	return err
}

// several reports whether the job has several processes, which make all runs in one job.
func (b *backend) several() bool {
	return b.name == processes || b.name == rdma && b.verbs.Processes > 1
}

// defaultRanks is one per core, and at least 4.
func defaultRanks() int { return max(4, runtime.NumCPU()) }

// check reports what is wrong with the flags and resolves auto. more are the command's
// backends beside the usual ones.
func (b *backend) check(cmd *cobra.Command, more ...string) error {
	names := append([]string{byLauncher, goroutines, processes, rdma}, more...)
	switch {
	case b.name == byLauncher:
		b.name = goroutines
		if mpi.Launched() {
			b.name = processes
		}
	case !slices.Contains(names, b.name):
		return fmt.Errorf("no backend is called %q; there are: %s", b.name, strings.Join(names, ", "))
	}
	if cmd.Flags().Changed("ranks") && b.name == processes {
		return errors.New("--ranks goes with --backend inproc; in an MPI job the launcher sets the number of ranks (mpirun -n N)")
	}
	if b.ranks < 1 {
		return fmt.Errorf("--ranks is %d, want at least 1", b.ranks)
	}
	if b.memoryNodes < 0 {
		return fmt.Errorf("--%s is %d, want at least 0", memoryFlag, b.memoryNodes)
	}
	return b.checkVerbs(cmd)
}

// reportTime is how long the other ranks of a failed job wait for rank 0 to write the
// error. A launcher kills the remaining processes when one fails.
const reportTime = 500 * time.Millisecond

// job runs f on all ranks but memory nodes, at which it serves. Its error is a *failure that one
// process of the job reports. Rank 0 reports an error that f returns at all ranks, as after
// rma.Agree. The mpi backend reports an error of some ranks alone, and ends the job.
func (b *backend) job(f func(rma.Comm) error) error {
	// The first rank of this process that fails has the cause; the others may only see that
	// a peer is gone.
	var once sync.Once
	var first error
	all := func(c rma.Comm) error {
		err := f(c)
		if err != nil {
			once.Do(func() {
				if first = err; !errors.Is(err, rma.ErrPeer) {
					first = fmt.Errorf("rank %d: %w", c.Rank(), err)
				}
			})
		}
		return err
	}
	reports := b.name == goroutines || isReporter()
	if b.name == rdma {
		reports = b.verbs.Process == 0
	}
	var err error
	switch b.name {
	case goroutines:
		nodes := max(1, b.nodes)
		err = inproc.Job{Nodes: nodes, PerNode: b.ranks / nodes, MemoryNodes: b.memoryNodes}.Run(all)
	case rdma:
		err = b.verbs.Run(b.ranks, all)
	default:
		err = mpi.Config{MemoryNodes: b.memoryNodes}.Run(func(c rma.Comm) error {
			reports = c.Rank() == 0
			shareCores(c.Node(), c.MemoryNodes() > 0)
			return all(c)
		})
	}
	switch {
	case err == nil:
		return nil
	case first != nil:
		err = first
	}
	if b.name == processes && !reports {
		time.Sleep(reportTime)
	}
	return &failure{err: err, reports: reports}
}

// shareCores sets GOMAXPROCS to the rank's part of its node's cores, unless the user has
// set it. With one thread per core in each process, threads of ranks that wait would slow
// those that work. With several nodes, or memory nodes, GOMAXPROCS is at least 2: see rma/mpi.
func shareCores(node rma.Node, memoryNodes bool) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	least := 1
	if node.Count > 1 || memoryNodes {
		least = 2
	}
	runtime.GOMAXPROCS(max(least, runtime.NumCPU()/len(node.Ranks)))
}

// isReporter reports whether this process writes errors that all processes of the job find
// before MPI starts: it is rank 0 by the launcher's environment, or there is no launcher.
func isReporter() bool {
	// Slurm's variable last: under mpirun it is the daemon's, the same for all ranks.
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if rank := os.Getenv(name); rank != "" {
			return rank == "0"
		}
	}
	return true
}
