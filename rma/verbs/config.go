package verbs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// ErrFull is wrapped when a memory node has no slot for another client.
var ErrFull = errors.New("no free slot for a client")

// A Config says where the job's memory nodes are, and which of its processes this is.
type Config struct {
	MemoryNodes []string // host:port of each, in the same order in all processes
	Token       []byte   // the memory nodes' secret; nil for none
	Device      string   // name of the RDMA device; "" for the first that can be used

	// Patience is how long a memory node's machine may be silent before it counts as gone; 0 for
	// 500 ms.
	Patience time.Duration

	// A job of several processes meets at the first memory node, under the job's name. Clients of
	// Dial share windows with those of the same name, "" too.
	Job       string
	Process   int // of Processes, from 0
	Processes int // 0 for 1

	// Nodes makes the process pretend to be so many nodes, which reach each other through the
	// device; 0 for 1. It is for tests.
	Nodes int
}

// FromEnvironment reads a Config from RMALOCK_MN (see FindMemoryNodes), RMALOCK_TOKEN_FILE,
// RMALOCK_DEVICE and RMALOCK_PATIENCE (a time as 2s). The processes are those of the launcher,
// mpirun or srun; RMALOCK_PROCESS (index/number) and RMALOCK_JOB tell them where there is none.
func FromEnvironment() (Config, error) {
	c := Config{Device: os.Getenv("RMALOCK_DEVICE")}
	var err error
	if c.MemoryNodes, err = FindMemoryNodes(os.Getenv("RMALOCK_MN")); err != nil {
		return c, err
	}
	if c.Token, err = ReadToken(os.Getenv("RMALOCK_TOKEN_FILE")); err != nil {
		return c, err
	}
	if s := os.Getenv("RMALOCK_PATIENCE"); s != "" {
		if c.Patience, err = time.ParseDuration(s); err != nil {
			return c, fmt.Errorf("verbs: RMALOCK_PATIENCE is %q, want a time as 500ms or 2s: %w", s, rma.ErrRefused)
		}
	}
	return c, c.launched()
}

// launched fills in what the launcher says of the job's processes.
func (c *Config) launched() error {
	if s := os.Getenv("RMALOCK_PROCESS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d/%d", &c.Process, &c.Processes); err != nil {
			return fmt.Errorf("verbs: RMALOCK_PROCESS is %q, want index/number, as 0/4: %w", s, rma.ErrRefused)
		}
		c.Job = cmp.Or(os.Getenv("RMALOCK_JOB"), "job")
		return nil
	}
	// Slurm's variables last: under mpirun they are the daemon's, the same for all.
	for _, l := range [][3]string{
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"},
		{"PMI_RANK", "PMI_SIZE", "PMI_PORT"},
		{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"},
	} {
		index, err1 := strconv.Atoi(os.Getenv(l[0]))
		number, err2 := strconv.Atoi(os.Getenv(l[1]))
		if err1 == nil && err2 == nil {
			c.Process, c.Processes = index, number
			c.Job = cmp.Or(os.Getenv("RMALOCK_JOB"), os.Getenv(l[2])+"."+os.Getenv("SLURM_STEP_ID"))
			return nil
		}
	}
	return nil
}

// check reports what cannot be.
func (c *Config) check(n int) error {
	c.Processes, c.Nodes = max(1, c.Processes), max(1, c.Nodes)
	switch {
	case n < 1 || n > maxRanks/c.Processes:
		return fmt.Errorf("verbs: %d processes of %d ranks: want at least 1 rank and at most %d: %w", c.Processes, n, maxRanks, rma.ErrRank)
	case n%c.Nodes != 0:
		return fmt.Errorf("verbs: %d ranks on %d nodes: want the same number on each: %w", n, c.Nodes, rma.ErrRank)
	case c.Process < 0 || c.Process >= c.Processes:
		return fmt.Errorf("verbs: process %d of %d: want 0 to %d: %w", c.Process, c.Processes, c.Processes-1, rma.ErrRank)
	case c.Processes > 1 && len(c.MemoryNodes) == 0:
		return fmt.Errorf("verbs: %d processes meet at a memory node, and none is given: set RMALOCK_MN to the host:port of an rmalock mn: %w", c.Processes, rma.ErrRefused)
	}
	return nil
}

// maxRanks bounds a job: a rank's number and node cross the network with each collective call.
const maxRanks = 1 << 16

// ReadToken reads the secret of memory nodes from a file, without the blanks around it; none for
// "". A file that others may read is refused.
func ReadToken(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("verbs: the token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("verbs: others may read the token in %s; chmod 600 %s: %w", file, file, rma.ErrRefused)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("verbs: the token: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return nil, fmt.Errorf("verbs: the token in %s is empty: %w", file, rma.ErrRefused)
	}
	return b, nil
}
