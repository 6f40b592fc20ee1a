package degree

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"time"
)

// A Result is what Run found. Its JSON is stable.
type Result struct {
	Source    string `json:"source"`            // the graph
	Lock      string `json:"lock"`              // Atomic, or a lock in text
	Combine   bool   `json:"combine,omitempty"` // ranks of a node combine their inserts
	Ranks     int    `json:"ranks"`             // number of ranks
	Nodes     int    `json:"nodes"`             // number of nodes
	Transport string `json:"transport"`         // as rma.Comm.Describe has it

	Vertices   int64 `json:"vertices"`             // in the table
	Edges      int64 `json:"edges"`                // of the graph
	Inserts    int64 `json:"inserts"`              // two per edge
	TableBytes int64 `json:"table_bytes_per_rank"` // without the lock's

	Seconds   float64 `json:"seconds"`               // of the timed phase, at the rank that took longest
	PerSecond float64 `json:"operations_per_second"` // inserts of all ranks

	Shares Spread    `json:"operations_per_rank"`            // inserts
	Rate   Spread    `json:"operations_per_second_per_rank"` // of each rank until it was through
	Rates  []float64 `json:"operations_per_second_by_rank"`  // by rank

	// Ops are the operations per insert, table and lock together, by kind and distance
	// of the target ("FetchAndOp.far"; own, mate or far). RemoteOps is the sum of
	// those on other ranks, flushes and waits not counted. What MPI does for its own
	// locks is not seen.
	Ops       map[string]float64 `json:"ops_per_insert"`
	RemoteOps float64            `json:"remote_ops_per_insert"` // see Ops

	NumGC int64 `json:"num_gc"` // garbage collections in the timed phase, all processes

	Verified        bool   `json:"verified"`                   // no count is wrong
	Differences     int64  `json:"differences"`                // vertices whose count is wrong
	FirstDifference string `json:"first_difference,omitempty"` // that of the smallest vertex
}

// A Spread says how even a figure is between ranks.
type Spread struct {
	Min       float64 `json:"min"`                // least
	Mean      float64 `json:"mean"`               // mean
	Max       float64 `json:"max"`                // greatest
	Deviation float64 `json:"standard_deviation"` // standard deviation
}

func spread(values []float64) Spread {
	s := Spread{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, v := range values {
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		s.Mean += v / float64(len(values))
	}
	for _, v := range values {
		s.Deviation += (v - s.Mean) * (v - s.Mean) / float64(len(values))
	}
	s.Deviation = math.Sqrt(s.Deviation)
	return s
}

// result puts everybody's figures together. Collective.
func (j *job) result(f found, ops counted) (*Result, error) {
	host, _ := os.Hostname() // unnamed hosts are told apart by process alone
	h := fnv.New64a()
	h.Write([]byte(host))
	all, err := j.c.Allgather([]int64{int64(len(j.ends)), j.elapsed, int64(h.Sum64()), int64(os.Getpid()), j.gcs})
	if err != nil {
		return nil, err
	}
	r := &Result{
		Source: j.cfg.Source.String(), Lock: j.cfg.Lock, Combine: j.cfg.Combine,
		Ranks: j.c.Size(), Nodes: j.c.Node().Count, Transport: j.c.Describe(),
		Vertices: f.vertices, Edges: j.edges,
		Verified: f.differences == 0, Differences: f.differences,
	}
	if !r.Verified {
		r.FirstDifference = f.first.String()
	}
	r.Ops, r.RemoteOps = ops.perInsert()
	type process struct{ host, pid int64 }
	gcs := map[process]int64{} // ranks of one process have one collector
	var shares []float64
	for ; len(all) > 0; all = all[5:] {
		n, seconds := all[0], time.Duration(max(1, all[1])).Seconds()
		r.Inserts += n
		r.Seconds = max(r.Seconds, seconds)
		shares = append(shares, float64(n))
		r.Rates = append(r.Rates, float64(n)/seconds)
		p := process{all[2], all[3]}
		gcs[p] = max(gcs[p], all[4])
	}
	for _, n := range gcs {
		r.NumGC += n
	}
	r.PerSecond = float64(r.Inserts) / r.Seconds
	r.Shares, r.Rate = spread(shares), spread(r.Rates)
	return r, nil
}

// collections is the number of garbage collections of the process so far. It stops
// the world for a moment: not for the timed phase.
func collections() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.NumGC)
}

// verdict is the last line of the report.
func (r *Result) verdict() string {
	if r.Verified {
		return "verified"
	}
	return fmt.Sprintf("NOT verified: first difference of %d: %s", r.Differences, r.FirstDifference)
}
