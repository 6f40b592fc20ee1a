package bench

import (
	"errors"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
)

const (
	batch       = 1000 // acquires per batch in mode latency
	sampleEvery = 5000 // ns of usual acquires per sampled one: the two clock readings are then about 2 %
	maxEvery    = 128  // acquires between samples at most
)

// measurement is what one rank found in the timed pass.
type measurement struct {
	acquires int64
	spanNs   int64   // between the two barriers; in mode latency, of the batches
	busyNs   int64   // from the first acquire to the last release
	ps       samples // ps per acquire
	insideNs int64   // in critical sections; each sample counts for the acquires up to the next

	visits int64 // acquires in groups, as the workload has them
	aborts int64 // attempts at visits that failed
	byLock lockSamples
	kv     *cider.Stats // of all ranks
	// linearized is the number of operations of the kv that were checked, at rank 0.
	linearized int64
	// In mode clients: times in Unlock, and what the locks have counted at all ranks.
	releases samples
	counts   map[string]int64
}

// timed runs the workload with a warm-up and measures it. Collective.
func timed(c rma.Comm, lck *Lock, cfg *Config) (*measurement, error) {
	w, err := open(c, c, lck, cfg)
	if err != nil {
		return nil, err
	}
	m := &measurement{ps: samples{}}
	if err := m.measure(c, w, cfg); err != nil {
		return nil, err
	}
	if err := w.verify(); err != nil {
		return nil, err
	}
	if o, ok := w.(*operator); ok {
		if t, ok := o.s.(*kv); ok {
			m.linearized = t.checked
		}
	}
	return m, w.free()
}

// measure runs the warm-up, and between two barriers the workload. Collective.
func (m *measurement) measure(c rma.Comm, w runner, cfg *Config) (err error) {
	var done int
	var usualNs int64
	if w.active() {
		if done, usualNs, err = warmUp(c, w, cfg); err != nil {
			return err
		}
	}
	if err := errors.Join(w.leave(), c.Barrier()); err != nil {
		return err
	}
	if cfg.virtual != nil {
		cfg.virtual.begin(c)
	}
	w.begin()
	begin := c.Now()
	if w.active() {
		if cfg.Mode == Latency {
			err = m.batches(c, w, cfg, done, usualNs)
		} else {
			err = m.samples(c, w, cfg, done, usualNs)
		}
		if err != nil {
			return err
		}
		m.busyNs = c.Now() - begin
		m.spanNs = m.busyNs
	}
	if err := errors.Join(w.leave(), c.Barrier()); err != nil {
		return err
	}
	if cfg.Mode != Latency {
		m.spanNs = c.Now() - begin
	}
	m.acquires, m.aborts, m.byLock = w.taken(m.visits)
	if v, ok := w.(*visitor); ok {
		m.releases = v.releases
	}
	if m.counts, err = tableCounts(c, w); err != nil {
		return err
	}
	m.kv, err = counts(c, w)
	return err
}

// warmUp runs the first tenth. It returns the number of acquires and the usual duration of
// one with its work, 0 if there was none. With a duration the usual one is the median. The
// mean would be dominated by ranks that sleep, and running ranks would then read the clock
// too often.
func warmUp(c rma.Comm, w runner, cfg *Config) (done int, usualNs int64, err error) {
	begin := c.Now()
	if cfg.Acquires > 0 {
		done = cfg.Acquires / 10
		err = w.run(done)
		if done > 0 {
			usualNs = (c.Now() - begin) / int64(done)
		}
	} else {
		ns := samples{}
		enough, last := false, begin
		for end := begin + int64(cfg.Duration)/10; last < end && !enough && err == nil; done++ {
			var t timing
			t, err = w.sample()
			ns.record(t.now-last, 1)
			enough, last = cfg.virtual.count(1), t.now
		}
		usualNs = ns.median()
	}
	if done == 0 || err != nil {
		return 0, 0, err
	}
	return done, max(1, usualNs), nil
}

// samples runs a workload of all ranks and times single acquires.
func (m *measurement) samples(c rma.Comm, w runner, cfg *Config, done int, usualNs int64) error {
	every := 1
	if usualNs > 0 && !cfg.timesAll() {
		every = int(min(max(sampleEvery/usualNs, 1), maxEvery))
	}
	left, end := remaining(c, cfg, done)
	for left > 0 {
		t, err := w.sample()
		if err != nil {
			return err
		}
		n := min(every, left)
		m.record(t.ns*1000, n)
		m.insideNs += t.inside * int64(n)
		if err := w.run(n - 1); err != nil {
			return err
		}
		m.visits += int64(n)
		if left -= n; cfg.virtual.count(n) || t.now >= end {
			break
		}
	}
	return nil
}

// batches times many acquires at once.
func (m *measurement) batches(c rma.Comm, w runner, cfg *Config, done int, usualNs int64) error {
	left, end := remaining(c, cfg, done)
	var size int
	if cfg.Acquires > 0 {
		size = min(batch, max(1, left/20))
	} else {
		size = min(batch, max(1, int(int64(cfg.Duration)/100/usualNs)))
	}
	for now := c.Now(); left > 0 && now < end; {
		n := min(size, left)
		begin := c.Now()
		if err := w.run(n); err != nil {
			return err
		}
		now = c.Now()
		m.record((now-begin)*1000/int64(n), 1)
		m.visits += int64(n)
		if left -= n; cfg.virtual.count(n) {
			break
		}
	}
	return nil
}

// remaining is the number of acquires after the warm-up and the time at which to stop. One
// of the two is the largest int64.
func remaining(c rma.Comm, cfg *Config, done int) (acquires int, end int64) {
	const never = 1<<63 - 1
	if cfg.Acquires > 0 {
		return cfg.Acquires - done, never
	}
	return never, c.Now() + int64(cfg.Duration-cfg.Duration/10)
}

// record records a latency that stands for n acquires, so that ranks that sample more often
// do not weigh more.
func (m *measurement) record(ps int64, n int) { m.ps.record(max(ps, 1), n) }
