package bench

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// elements is the number of elements in the table before the workload, with keys from 1
// on. Reads look them up.
const elements = 1024

// maxTable bounds the table of a simulated job, all ranks together.
const maxTable = 8 << 30

// dhtWorker is one rank at workload dht: all ranks but 0 insert into the volume of rank
// 0 and read from it.
type dhtWorker struct {
	c     rma.Comm
	cfg   *Config
	locks lock.Table // nil for atomics alone
	table *dht.Table
	rng   *rand.Rand

	readers uint64 // of 1<<63 operations
	inserts int64
}

// newDHTWorker opens and fills the table. Collective.
func newDHTWorker(c, counted rma.Comm, lck *Lock, cfg *Config) (*dhtWorker, error) {
	v := &dhtWorker{c: c, cfg: cfg, rng: choices(c, cfg), readers: uint64(math.Round(cfg.Readers * (1 << 63)))}
	inserts := cfg.Writers() * float64(cfg.Acquires) * float64(c.Size()-1)
	// The number of inserts is random; it stays within six standard deviations of the mean.
	slots, heap := dht.Fit(elements+int64(inserts+6*math.Sqrt(inserts)), 1)
	conf := dht.Config{Volumes: 1, Slots: slots, Heap: heap}
	if all := conf.Bytes() * int64(c.Size()); cfg.virtual != nil && all > maxTable {
		return nil, fmt.Errorf("the table has room for %.0f inserts at each of %d ranks, which is %d GiB; take fewer acquires: %w", inserts, c.Size(), all>>30, ErrConfig)
	}
	var err error
	if cfg.Lock != Atomic {
		conf.Locks, err = lck.open(counted, cfg, 1)
		if err = agree(c, cfg, err); err != nil {
			return nil, err
		}
		v.locks = conf.Locks
	}
	v.table, err = dht.New(counted, conf)
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		for key := int64(1); key <= elements && err == nil; key++ {
			_, err = v.table.Insert(key, -key)
		}
	}
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	return v, c.Barrier()
}

func (v *dhtWorker) begin() {}

func (v *dhtWorker) taken(runs int64) (acquires, aborts int64, byLock lockSamples) {
	return runs, 0, nil
}

func (v *dhtWorker) leave() error { return nil }

func (v *dhtWorker) active() bool { return v.c.Rank() != 0 }

func (v *dhtWorker) run(n int) error {
	for range n {
		if err := v.operate(); err != nil {
			return err
		}
	}
	return nil
}

func (v *dhtWorker) sample() (t timing, err error) {
	begin := v.c.Now()
	err = v.operate()
	t.now = v.c.Now()
	t.ns = t.now - begin
	return t, err
}

// operate inserts a new element or reads one of those that were there at first.
func (v *dhtWorker) operate() error {
	if v.rng.Uint64()>>1 >= v.readers {
		// The key is new: no other rank has it, nor the first elements. Its place is random by
		// the table's hash.
		v.inserts++
		created, err := v.table.Insert(int64(v.c.Rank())<<32|v.inserts<<1|1, v.inserts)
		if err == nil && !created {
			err = v.wrong("element %d of rank %d was there before its insert", v.inserts, v.c.Rank())
		}
		return err
	}
	key := 1 + v.rng.Int64N(elements)
	value, ok, err := v.table.Lookup(key)
	if err == nil && (!ok || value != -key) {
		err = v.wrong("element %d was found: %v, with value %d; want %d", key, ok, value, -key)
	}
	return err
}

// verify counts the elements at rank 0. Collective.
func (v *dhtWorker) verify() error {
	all, err := v.c.Allgather([]int64{v.inserts})
	if err != nil || v.c.Rank() != 0 && v.cfg.virtual != nil {
		return err
	}
	if v.c.Rank() == 0 {
		err = v.compare(all)
	}
	return agree(v.c, v.cfg, err)
}

// compare compares the number of elements in the table with that of each rank's inserts.
func (v *dhtWorker) compare(inserts []int64) error {
	found, want := int64(0), int64(elements)
	for _, n := range inserts {
		want += n
	}
	err := v.table.Range(func(int64, int64) error { found++; return nil })
	if err == nil && found != want {
		err = v.wrong("%d elements were inserted and the table holds %d", want, found)
	}
	return err
}

func (v *dhtWorker) wrong(format string, args ...any) error {
	return fmt.Errorf("in a hashtable under %q %s: %w", v.cfg.Lock, fmt.Sprintf(format, args...), ErrExclusion)
}

func (v *dhtWorker) free() error {
	err := v.table.Free()
	if v.locks != nil {
		err = errors.Join(err, v.locks.Free())
	}
	return err
}
