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
)

// backend is where the ranks of a job come from.
type backend struct {
	name  string
	ranks int
	nodes int // of the inproc backend, with ranks/nodes ranks each; 0 means 1
}

// Names of backends.
const (
	byLauncher = "auto"
	goroutines = "inproc"
	processes  = "mpi"
	simulated  = "sim" // of bench alone, whose jobs are in virtual time
)

// flags adds the flags that choose a backend.
func (b *backend) flags(cmd *cobra.Command) {
	b.nameFlag(cmd)
	cmd.Flags().IntVar(&b.ranks, "ranks", defaultRanks(), "number of ranks of the inproc backend")
}

// nameFlag adds --backend, of a command that may have more backends than most.
func (b *backend) nameFlag(cmd *cobra.Command, more ...string) {
	names := append([]string{byLauncher, goroutines, processes}, more...)
	help := "where ranks come from: mpi (processes of an MPI job), inproc (goroutines), "
	if slices.Contains(more, simulated) {
		help += "sim (virtual time), "
	}
	cmd.Flags().StringVar(&b.name, "backend", byLauncher, help+"or auto: mpi under an MPI launcher, otherwise inproc")
	complete(cmd, "backend", names...)
}

// defaultRanks is one per core, and enough to be many.
func defaultRanks() int { return max(4, runtime.NumCPU()) }

// check reports what is wrong with the flags and settles what auto means. A command
// may have more backends than most.
func (b *backend) check(cmd *cobra.Command, more ...string) error {
	names := append([]string{byLauncher, goroutines, processes}, more...)
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
	return nil
}

// telling is the time that rank 0 has to say what went wrong before the others end: a
// launcher that sees one process fail kills those that are left.
const telling = 500 * time.Millisecond

// job runs f on all ranks. Its error is a failure, which one process of the job
// has to report: an error that f returns at all ranks is rank 0's to tell, who
// knows it by rma.Agree; one of some ranks alone is told by the mpi backend, which
// then ends the job.
func (b *backend) job(f func(rma.Comm) error) error {
	// Of the ranks of this process the one that fails first knows why; the others
	// may know no more than that a peer is gone.
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
	mine := b.name == goroutines || speaks()
	var err error
	if b.name == goroutines {
		nodes := max(1, b.nodes)
		err = inproc.RunNodes(nodes, b.ranks/nodes, all)
	} else {
		err = mpi.Run(func(c rma.Comm) error {
			mine = c.Rank() == 0
			shareCores(c.Node())
			return all(c)
		})
	}
	switch {
	case err == nil:
		return nil
	case first != nil:
		err = first
	}
	if b.name == processes && !mine {
		time.Sleep(telling)
	}
	return &failure{err: err, mine: mine}
}

// shareCores gives each rank of a node its part of the cores, unless the user has
// decided. Otherwise every process would run as many threads as there are cores,
// and those of ranks that wait would hinder those that work. Where there are several
// nodes it leaves two at least: see rma/mpi.
func shareCores(node rma.Node) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(min(2, node.Count), runtime.NumCPU()/len(node.Ranks)))
	}
}

// speaks reports whether this process may tell what all processes of the job find
// wrong before they know each other: it is rank 0, or no launcher says it is not.
func speaks() bool {
	// Slurm's variable last: under mpirun it is the daemon's, the same for all.
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if rank := os.Getenv(name); rank != "" {
			return rank == "0"
		}
	}
	return true
}
