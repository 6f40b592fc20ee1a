package bench

import (
	"errors"
	"fmt"
	"math"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// Run measures a lock. Collective; the Result is at rank 0, and nil elsewhere. An error of one rank
// is an error of all, unless it comes from the transport or the lock in the workload. Then the
// others may wait in vain, and the job should end.
func Run(c rma.Comm, cfg Config) (*Result, error) {
	lck, c, err := prepare(c, &cfg)
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
	return collect(c, &cfg, &lck, where, m, collected, t)
}

// prepare checks a Config, finds its lock, and binds ranks. It returns the Comm to measure on.
func prepare(c rma.Comm, cfg *Config) (lck Lock, bound rma.Comm, err error) {
	if err := cfg.Validate(); err != nil {
		return lck, nil, err
	}
	if cfg.Mode == DHT && c.Size() < 2 {
		return lck, nil, fmt.Errorf("mode dht has the other ranks work on rank 0's volume, want at least 2 ranks: %w", ErrConfig)
	}
	if cfg.Lock != Atomic && !cfg.ownLocks() {
		if lck, err = ParseLock(cfg.Lock); err != nil {
			return lck, nil, err
		}
	}
	if _, ok := cfg.structured(); lck.Serves && (cfg.Mode == DHT || ok) {
		return lck, nil, fmt.Errorf("some ranks of lock %q serve the others, and in this mode every rank takes locks; choose another lock or mode: %w", cfg.Lock, ErrConfig)
	}
	if s, ok := cfg.Workload.(Sized); ok {
		homes := c.Size()
		if c.MemoryNodes() > 0 {
			homes = c.MemoryNodes()
		}
		cfg.Locks = s.Table(homes)
	}
	bound, err = cfg.bound(c)
	return lck, bound, err
}

// collect makes the Result of all ranks' measurements at rank 0. Collective.
func collect(c rma.Comm, cfg *Config, lck *Lock, where place, m *measurement, collected int64, t *opCounts) (*Result, error) {
	ps, err := rma.AllgatherBytes(c, m.ps.encode())
	if err != nil {
		return nil, err
	}
	locks, err := rma.AllgatherBytes(c, m.byLock.encode())
	if err != nil {
		return nil, err
	}
	releases, err := rma.AllgatherBytes(c, m.releases.encode())
	if err != nil {
		return nil, err
	}
	const perRank = 7
	sums, err := c.Allgather([]int64{m.acquires, m.spanNs, m.busyNs, m.insideNs, m.visits, m.aborts, collected})
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	byRank, all, byLock, release := make([]samples, c.Size()), samples{}, lockSamples{}, samples{}
	for r := range byRank {
		byRank[r] = samples{}
		if err := errors.Join(byRank[r].merge(ps[r]), byLock.merge(locks[r], cfg.Locks), release.merge(releases[r])); err != nil {
			return nil, err
		}
		all.add(byRank[r])
	}
	res := newResult(c, cfg, lck)
	res.Cores, res.Oversubscribed, res.GOGC = where.cores, where.oversubscribed, gogc()
	for r := range c.Size() {
		res.NumGC += sums[perRank*r+perRank-1]
	}
	res.KV, res.Linearized = m.kv, m.linearized
	res.gather(sums, perRank, byRank, all, byLock, cfg.Duration > 0)
	res.released(release)
	res.tableCounts(m.counts)
	res.count(t)
	return res, nil
}

// newResult is a Result of what is known before measuring.
func newResult(c rma.Comm, cfg *Config, lck *Lock) *Result {
	res := &Result{
		Mode: cfg.Mode, Lock: cfg.Lock, Shared: lck.Shared, Locks: cfg.Locks, Writers: cfg.Writers(), Seed: cfg.Seed,
		Ranks: c.Size(), Nodes: c.Node().Count, Transport: c.Describe(), Offered: cfg.Rate,
	}
	if cfg.Workload != nil {
		res.Workload = cfg.Workload.String()
		if m, ok := cfg.Workload.(Mix); ok {
			res.Mix = &m
		}
	}
	return res
}

// gather fills in what follows from the samples and from six numbers of each rank: acquires, span,
// busy time, time in critical sections, visits and aborts. They are the first six of per words in
// sums. In mode clients these are by rank and by lock, otherwise together. timed says that each
// rank stopped by its clock: there the rates of mode clients are sums of the ranks' own.
func (r *Result) gather(sums []int64, per int, byRank []samples, all samples, byLock lockSamples, timed bool) {
	var longest, busy, inside, visits, aborts int64
	var acquireRate, visitRate float64 // a second
	for ; len(sums) > 0; sums = sums[per:] {
		r.PerRank = append(r.PerRank, sums[0])
		acquireRate += float64(sums[0]) / float64(max(1, sums[2])) * 1e9
		visitRate += float64(sums[4]) / float64(max(1, sums[2])) * 1e9
		longest = max(longest, sums[1])
		busy += sums[2]
		inside += sums[3]
		visits += sums[4]
		aborts += sums[5]
	}
	r.throughput(longest)
	if r.Mode == Clients {
		r.Visits, r.VisitsPerSecond = visits, float64(visits)/r.Seconds
		if timed {
			r.PerSecond, r.VisitsPerSecond = acquireRate, visitRate
		}
		r.Aborts = float64(aborts) / float64(max(1, visits))
		r.spread(all, byRank, byLock)
	}
	r.latency(all.histogram())
	r.Inside = float64(inside) / float64(max(1, visits))
	if r.Mode == Latency || r.Mode == LB {
		r.Mean = float64(busy) / float64(max(1, r.Acquires))
	}
}

// count fills in what was counted.
func (r *Result) count(t *opCounts) {
	r.Ops, r.RemoteOps = t.perAcquire()
	for d := range hook.Distances {
		r.Retries += r.Ops["Backoff."+d.String()]
	}
}

// round takes off what binary fractions leave: 0.2, not 0.19999999999999996.
func round(v float64) float64 { return math.Round(v*1e12) / 1e12 }
