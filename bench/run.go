package bench

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rmalock/rmalock/rma"
)

// Run measures a lock. Collective; the Result is at rank 0, and nil elsewhere. An
// error of one rank is an error of all, unless it comes from the transport or the
// lock in the middle of the workload: then the others may wait in vain, and the
// job should end.
func Run(c rma.Comm, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Mode == DHT && c.Size() < 2 {
		return nil, fmt.Errorf("mode dht has the other ranks work on rank 0's volume, want at least 2 ranks: %w", ErrConfig)
	}
	var lck Lock
	if cfg.Lock != Atomic {
		var err error
		if lck, err = ParseLock(cfg.Lock); err != nil {
			return nil, err
		}
	}
	c, err := cfg.bound(c)
	if err != nil {
		return nil, err
	}
	if cfg.virtual != nil {
		return cfg.virtual.run(c, &lck, &cfg)
	}
	where, err := locate(c)
	if err != nil {
		return nil, err
	}
	collected := collections()
	m, err := timed(c, &lck, &cfg)
	if err != nil {
		return nil, err
	}
	collected = collections() - collected
	if !where.first {
		collected = 0 // counted by the first rank of the process
	}
	t, err := count(c, &lck, &cfg, m.acquires/10)
	if err != nil {
		return nil, err
	}

	ps, err := rma.AllgatherBytes(c, m.ps.encode())
	if err != nil {
		return nil, err
	}
	sums, err := c.Allgather([]int64{m.acquires, m.spanNs, m.busyNs, m.insideNs, collected})
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	for _, b := range ps[1:] {
		if err := m.ps.merge(b); err != nil {
			return nil, err
		}
	}
	res := newResult(c, &cfg, &lck)
	res.Cores, res.Oversubscribed, res.GOGC = where.cores, where.oversubscribed, gogc()
	for r := range c.Size() {
		res.NumGC += sums[5*r+4]
	}
	res.gather(sums, 5, m.ps.histogram())
	res.Ops, res.RemoteOps = t.perAcquire()
	return res, nil
}

// newResult is a Result of what is known before measuring.
func newResult(c rma.Comm, cfg *Config, lck *Lock) *Result {
	return &Result{
		Mode: cfg.Mode, Lock: cfg.Lock, Shared: lck.Shared, Locks: cfg.Locks, Writers: cfg.Writers(), Seed: cfg.Seed,
		Ranks: c.Size(), Nodes: c.Node().Count, Transport: c.Describe(),
	}
}

// gather fills in what follows from the acquires, the span, the busy time and the time in
// critical sections of each rank, the first four of per words in sums, and from the
// histogram of all.
func (r *Result) gather(sums []int64, per int, h *hdrhistogram.Histogram) {
	var longest, busy, inside int64
	for ; len(sums) > 0; sums = sums[per:] {
		r.PerRank = append(r.PerRank, sums[0])
		longest = max(longest, sums[1])
		busy += sums[2]
		inside += sums[3]
	}
	r.throughput(longest)
	r.latency(h)
	r.Inside = float64(inside) / float64(max(1, r.Acquires))
	if r.Mode == Latency || r.Mode == LB {
		r.Mean = float64(busy) / float64(max(1, r.Acquires))
	}
}

// round takes off what binary fractions leave: 0.2, not 0.19999999999999996.
func round(v float64) float64 { return math.Round(v*1e12) / 1e12 }
