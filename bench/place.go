package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// place is what the ranks have to compute on.
type place struct {
	cores          int  // that the job may use, all hosts together
	oversubscribed bool // some host has more ranks than cores for them
	first          bool // the caller is the lowest rank of its process
}

// seat is what a rank tells the others.
type seat struct {
	Host    string
	PID     int
	Threads int      // GOMAXPROCS
	CPUs    topo.Set // affinity; "" if unknown
	Count   int      // processors, for where the affinity is unknown
}

// host is what the ranks of a host may use together.
type host struct {
	ranks, threads, count int
	cpus                  map[int]bool
}

// locate counts the cores of each host that the ranks there may use: the union of
// their processes' affinities, and no more than their GOMAXPROCS together. Hosts
// are told apart by name, since ranks of one process may pretend to be on several
// nodes. Collective.
func locate(c rma.Comm) (place, error) {
	here, err := topo.Local(topo.Options{})
	if err != nil {
		here = topo.Place{}
	}
	mine, err := json.Marshal(seat{here.Host, os.Getpid(), runtime.GOMAXPROCS(0), here.CPUs, runtime.NumCPU()})
	if err != nil {
		return place{}, err
	}
	all, err := rma.AllgatherBytes(c, mine)
	if err != nil {
		return place{}, err
	}
	type process struct {
		host string
		pid  int
	}
	lowest := map[process]int{}
	hosts := map[string]*host{}
	for r, b := range all {
		var s seat
		if err := json.Unmarshal(b, &s); err != nil {
			return place{}, fmt.Errorf("bench: what rank %d says of its place is garbled (do all ranks run the same program?): %w", r, err)
		}
		h := hosts[s.Host]
		if h == nil {
			h = &host{cpus: map[int]bool{}}
			hosts[s.Host] = h
		}
		h.ranks++
		if _, ok := lowest[process{s.Host, s.PID}]; ok {
			continue
		}
		lowest[process{s.Host, s.PID}] = r
		h.threads += s.Threads
		h.count = s.Count
		for cpu := range s.CPUs.All() {
			h.cpus[cpu] = true
		}
	}
	p := place{first: lowest[process{here.Host, os.Getpid()}] == c.Rank()}
	for _, h := range hosts {
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
