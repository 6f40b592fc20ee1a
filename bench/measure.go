package bench

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

const (
	batch       = 1000   // acquires per batch in mode latency
	sampleEvery = 5000   // ns of workload per sampled acquire: the two clock readings are then about 2 %
	maxEvery    = 128    // acquires between samples at most
	maxTracked  = 100e12 // ps; a longer wait is recorded as this
)

// measured is what one rank found in the timed pass.
type measured struct {
	acquires int64
	spanNs   int64                   // between the two barriers; in mode latency, of the batches
	hist     *hdrhistogram.Histogram // ps per acquire
}

// timed runs the workload with a warm-up and measures it. Collective.
func timed(c rma.Comm, info lock.Info, cfg *Config) (*measured, error) {
	w, err := newWorker(c, c, info, cfg)
	if err != nil {
		return nil, err
	}
	m := &measured{hist: hdrhistogram.New(1, maxTracked, 3)}
	var done int
	var meanNs int64
	if w.active() {
		if done, meanNs, err = w.warmUp(); err != nil {
			return nil, err
		}
	}
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	begin := c.Now()
	if w.active() {
		if cfg.Mode == Latency {
			err = m.batches(w, done, meanNs)
		} else {
			err = m.samples(w, done, meanNs)
		}
		if err != nil {
			return nil, err
		}
		m.spanNs = c.Now() - begin
	}
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	if cfg.Mode != Latency {
		m.spanNs = c.Now() - begin
	}
	if cfg.Mode == WCSB {
		if err := w.verify(); err != nil {
			return nil, err
		}
	}
	return m, w.free()
}

// warmUp does the first tenth and returns the number of acquires and their mean
// duration, work included; 0 for none.
func (w *worker) warmUp() (done int, meanNs int64, err error) {
	begin := w.c.Now()
	now := begin
	if w.cfg.Acquires > 0 {
		done = w.cfg.Acquires / 10
		err = w.run(done)
		now = w.c.Now()
	} else {
		for end := begin + int64(w.cfg.Duration)/10; now < end && err == nil; done++ {
			_, now, err = w.sample()
		}
	}
	if done == 0 || err != nil {
		return 0, 0, err
	}
	return done, max(1, (now-begin)/int64(done)), nil
}

// samples runs a workload of all ranks and times single acquires.
func (m *measured) samples(w *worker, done int, meanNs int64) error {
	every := 1
	if meanNs > 0 {
		every = int(min(max(sampleEvery/meanNs, 1), maxEvery))
	}
	left, end := w.left(done)
	for left > 0 {
		ns, now, err := w.sample()
		if err != nil {
			return err
		}
		m.record(ns * 1000)
		n := min(every, left)
		if err := w.run(n - 1); err != nil {
			return err
		}
		m.acquires += int64(n)
		if left -= n; now >= end {
			break
		}
	}
	return nil
}

// batches times many acquires at once.
func (m *measured) batches(w *worker, done int, meanNs int64) error {
	left, end := w.left(done)
	size := batch
	if w.cfg.Acquires > 0 {
		size = min(batch, max(1, left/20))
	} else {
		size = min(batch, max(1, int(int64(w.cfg.Duration)/100/meanNs)))
	}
	for now := w.c.Now(); left > 0 && now < end; {
		n := min(size, left)
		begin := w.c.Now()
		if err := w.run(n); err != nil {
			return err
		}
		now = w.c.Now()
		m.record((now - begin) * 1000 / int64(n))
		m.acquires += int64(n)
		left -= n
	}
	return nil
}

// left is the number of acquires that remain after the warm-up and the time at
// which to stop; one of the two is out of reach.
func (w *worker) left(done int) (acquires int, end int64) {
	const never = 1<<63 - 1
	if w.cfg.Acquires > 0 {
		return w.cfg.Acquires - done, never
	}
	return never, w.c.Now() + int64(w.cfg.Duration-w.cfg.Duration/10)
}

func (m *measured) record(ps int64) {
	// In range by the clamp, which is the only error there is.
	_ = m.hist.RecordValue(min(max(ps, 1), maxTracked))
}

// verify compares the counters with the number of increments. Collective.
func (w *worker) verify() error {
	sum := int64(0)
	for d := range w.data.Words() {
		v, err := w.data.GetFlush(w.c.Rank(), d)
		if err != nil {
			return err
		}
		sum += v
	}
	all, err := w.c.Allgather([]int64{sum, w.writes})
	if err != nil {
		return err
	}
	var found, made int64
	for i := 0; i < len(all); i += 2 {
		found += all[i]
		made += all[i+1]
	}
	if found != made {
		return fmt.Errorf("%d increments of the shared counter were made under lock %q and it holds %d: %w",
			made, w.cfg.Lock, found, ErrExclusion)
	}
	return nil
}
