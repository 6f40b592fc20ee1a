package degree

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Atomic is the Config.Lock that means none: a table of atomics alone.
const Atomic = bench.Atomic

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("bad configuration")

// A Config describes a run. All ranks pass the same, but for Progress.
type Config struct {
	Source graph.Source // the graph
	// Lock guards the volumes: Atomic, or a lock in text, as bench.ParseLock reads it.
	Lock string
	// Progress, if not nil, is called every few thousand inserts of the timed phase,
	// and at its end, with the inserts that the caller's rank has done and will do.
	Progress func(done, total int64)
	// Slots and Heap are those of dht.Config, per volume. 0 derives them from the
	// number of distinct vertices, which is estimated while reading.
	Slots, Heap int
	// Combine is dht.Config.Combine.
	Combine bool
	// Observe, if not nil, wraps the locks of the timed phase.
	Observe func(rma.Comm, lock.Table) lock.Table
}

func (cfg *Config) validate() error {
	if cfg.Source == nil {
		return fmt.Errorf("degree: Config.Source is nil, want a source of edges: %w", ErrConfig)
	}
	if cfg.Slots < 0 || cfg.Heap < 0 {
		return fmt.Errorf("degree: Config.Slots is %d and Config.Heap %d, want at least 1, or 0 to have them derived: %w", cfg.Slots, cfg.Heap, ErrConfig)
	}
	if cfg.Lock == Atomic {
		return nil
	}
	if _, err := bench.ParseLock(cfg.Lock); err != nil {
		return fmt.Errorf("degree: Config.Lock is neither %q nor a lock: %w", Atomic, err)
	}
	return nil
}

// job is one rank's part of a run.
type job struct {
	c       rma.Comm
	cfg     Config
	ends    []int64 // the ends of the share's edges, two by two
	edges   int64   // of all ranks
	most    int64   // an upper estimate of the number of vertices
	elapsed int64   // nanoseconds of this rank's timed phase
	gcs     int64   // collections in this process meanwhile
}

// Run counts and checks. Collective: all ranks return the same Result, or each an
// error. A wrong count is no error; see Result.Verified.
func Run(c rma.Comm, cfg Config) (*Result, error) {
	if err := rma.Agree(c, cfg.validate()); err != nil {
		return nil, err
	}
	j := &job{c: c, cfg: cfg}
	if err := j.read(); err != nil {
		return nil, err
	}
	t, err := open(c, cfg.Lock, j.tableConfig(j.most), cfg.Observe)
	if err != nil {
		return nil, err
	}
	found, err := j.count(t.dht)
	if err := errors.Join(err, t.free()); err != nil {
		return nil, err
	}
	ops, err := j.sample()
	if err != nil {
		return nil, err
	}
	res, err := j.result(found, ops)
	if err != nil {
		return nil, err
	}
	res.TableBytes = t.bytes
	return res, nil
}

// count counts in the open table and checks it. Errors are agreed on.
func (j *job) count(t *dht.Table) (found, error) {
	if err := j.insert(t); err != nil {
		return found{}, err
	}
	return j.check(t)
}

// progressEvery is the number of inserts between two calls of Config.Progress.
const progressEvery = 1 << 12

// insert is the timed phase.
func (j *job) insert(t *dht.Table) error {
	before := collections()
	if err := j.c.Barrier(); err != nil {
		return err
	}
	start := j.c.Now()
	err := j.add(t)
	j.elapsed = j.c.Now() - start
	err = rma.Agree(j.c, err)
	j.gcs = collections() - before
	return err
}

func (j *job) add(t *dht.Table) error {
	total := int64(len(j.ends))
	for i, v := range j.ends {
		if j.cfg.Progress != nil && i%progressEvery == 0 && i > 0 {
			j.cfg.Progress(int64(i), total)
		}
		if _, err := t.Add(v, 1); err != nil {
			return fmt.Errorf("degree: insert %d of %d of the rank: %w", i+1, total, err)
		}
	}
	if j.cfg.Progress != nil {
		j.cfg.Progress(total, total)
	}
	return nil
}

// tableConfig is the table for a number of vertices.
func (j *job) tableConfig(vertices int64) dht.Config {
	slots, heap := dht.Fit(vertices, j.c.Size())
	if j.cfg.Slots > 0 {
		slots = j.cfg.Slots
	}
	if j.cfg.Heap > 0 {
		heap = j.cfg.Heap
	}
	return dht.Config{Volumes: j.c.Size(), Slots: slots, Heap: heap, Combine: j.cfg.Combine}
}

// table is an open table with its locks, if it has any.
type table struct {
	dht   *dht.Table
	locks lock.Table
	bytes int64
}

// open opens a table and the locks for it. Collective; errors are agreed on.
func open(c rma.Comm, name string, cfg dht.Config, observe func(rma.Comm, lock.Table) lock.Table) (*table, error) {
	if name != Atomic {
		l, err := bench.ParseLock(name)
		if err == nil {
			cfg.Locks, err = l.With(c, lock.Setting{Locks: cfg.Volumes, Params: l.Values})
		}
		if err != nil {
			err = fmt.Errorf("degree: opening %d locks %s: %w", cfg.Volumes, name, err)
		}
		if err := rma.Agree(c, err); err != nil {
			return nil, err
		}
		if observe != nil {
			cfg.Locks = observe(c, cfg.Locks)
		}
	}
	t := &table{locks: cfg.Locks, bytes: cfg.Bytes()}
	var err error
	if t.dht, err = dht.New(c, cfg); err != nil {
		err = fmt.Errorf("degree: opening a table of %d volumes, %d bytes each: %w", cfg.Volumes, t.bytes, err)
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	return t, nil
}

// free closes both. Collective.
func (t *table) free() error {
	err := t.dht.Free()
	if t.locks != nil {
		err = errors.Join(err, t.locks.Free())
	}
	return err
}
