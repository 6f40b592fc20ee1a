package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/rmalock/rmalock/internal/boot"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// place is the cores of a job.
type place struct {
	cores          int             // that the job may use, all machines together
	oversubscribed bool            // some machine has more ranks than cores for them
	first          bool            // the caller is the lowest rank of its process
	lowest         map[process]int // the lowest rank of each process
}

// process identifies a process of the job.
type process struct {
	host string
	pid  int
}

// rankPlace is a rank's part of a place.
type rankPlace struct {
	Host    string
	Machine string // boot id; "" if unknown
	PID     int
	Threads int      // GOMAXPROCS
	CPUs    topo.Set // affinity; "" if unknown
	Count   int      // processors, for where the affinity is unknown
}

// machine is the cores that the ranks of a machine may use together.
type machine struct {
	ranks, threads, count int
	cpus                  map[int]bool
}

// locate counts the cores of each machine that its ranks may use: the union of their
// processes' affinities, and no more than the sum of their GOMAXPROCS. A machine is
// identified by its kernel's boot id, or by name if that is unknown. Nodes do not identify
// one: they may be pretended, or containers of one machine. Collective.
func locate(c rma.Comm) (place, error) {
	here, err := discover.Local(discover.Options{})
	if err != nil {
		here = topo.Place{}
	}
	mine, err := json.Marshal(rankPlace{here.Host, boot.ID(), os.Getpid(), runtime.GOMAXPROCS(0), here.CPUs, runtime.NumCPU()})
	if err != nil {
		return place{}, err
	}
	p, err := rma.Combine(c, mine, countCores)
	if err != nil {
		return place{}, err
	}
	p.first = p.lowest[process{here.Host, os.Getpid()}] == c.Rank()
	return p, nil
}

// countCores makes the place of all rankPlaces, in JSON.
func countCores(seats [][]byte) (place, error) {
	p := place{lowest: map[process]int{}}
	machines := map[string]*machine{}
	for r, b := range seats {
		var s rankPlace
		if err := json.Unmarshal(b, &s); err != nil {
			return place{}, fmt.Errorf("bench: what rank %d says of its place is garbled (do all ranks run the same program?): %w", r, err)
		}
		name := s.Machine
		if name == "" {
			name = s.Host
		}
		h := machines[name]
		if h == nil {
			h = &machine{cpus: map[int]bool{}}
			machines[name] = h
		}
		h.ranks++
		of := process{s.Host, s.PID}
		if _, ok := p.lowest[of]; ok {
			continue
		}
		p.lowest[of] = r
		h.threads += s.Threads
		h.count = s.Count
		for cpu := range s.CPUs.All() {
			h.cpus[cpu] = true
		}
	}
	for _, h := range machines {
		cores := len(h.cpus)
		if cores == 0 {
			cores = h.count
		}
		cores = min(cores, h.threads)
		p.cores += cores
		p.oversubscribed = p.oversubscribed || h.ranks > cores
	}
	return p, nil
}
