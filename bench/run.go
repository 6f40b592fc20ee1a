package bench

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rmalock/rmalock/lock"
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
	info, err := lock.Lookup(cfg.Lock)
	if err != nil {
		return nil, err
	}
	where, err := locate(c)
	if err != nil {
		return nil, err
	}
	collected := collections()
	m, err := timed(c, info, &cfg)
	if err != nil {
		return nil, err
	}
	collected = collections() - collected
	if !where.first {
		collected = 0 // counted by the first rank of the process
	}
	t, err := count(c, info, &cfg, m.acquires/10)
	if err != nil {
		return nil, err
	}

	hist, err := m.hist.EncodeV2()
	if err != nil {
		return nil, fmt.Errorf("bench: encoding the histogram: %w", err)
	}
	hists, err := rma.AllgatherBytes(c, hist)
	if err != nil {
		return nil, err
	}
	sums, err := c.Allgather([]int64{m.acquires, m.spanNs, collected})
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	for _, b := range hists[1:] {
		h, err := hdrhistogram.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("bench: decoding a rank's histogram: %w", err)
		}
		m.hist.Merge(h)
	}

	res := &Result{
		Mode: cfg.Mode, Lock: cfg.Lock, Locks: cfg.Locks, Writers: math.Round((1-cfg.Readers)*1e12) / 1e12, // 0.2, not 0.19999999999999996
		Ranks: c.Size(), Nodes: c.Node().Count, Cores: where.cores, Oversubscribed: where.oversubscribed,
		Transport: c.Describe(), GOGC: gogc(),
	}
	longest := int64(0)
	for r := range c.Size() {
		res.PerRank = append(res.PerRank, sums[3*r])
		longest = max(longest, sums[3*r+1])
		res.NumGC += sums[3*r+2]
	}
	res.throughput(longest)
	res.latency(m.hist)
	res.Ops, res.RemoteOps = t.perAcquire()
	return res, nil
}
