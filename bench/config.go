package bench

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

var (
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bench: bad configuration")
	// ErrExclusion is wrapped when updates made under the lock were lost.
	ErrExclusion = errors.New("bench: the lock did not exclude")
)

// A Mode says what the ranks do: one of the workloads of rma-rw, or a Workload.
type Mode string

// The workloads; see the package comment.
const (
	Latency Mode = "latency" // rank 0 alone
	LB      Mode = "lb"      // LB: all ranks; its figure is the mean latency
	ECSB    Mode = "ecsb"    // empty critical section
	SOB     Mode = "sob"     // a single operation in the critical section
	WCSB    Mode = "wcsb"    // work in the critical section
	WARB    Mode = "warb"    // work after the release
	DHT     Mode = "dht"     // a distributed hashtable
	Clients Mode = "clients" // what Config.Workload says
)

// Modes lists the workloads in the order of rma-rw, section 5, and Clients.
func Modes() []Mode { return []Mode{Latency, LB, ECSB, SOB, WCSB, WARB, DHT, Clients} }

// The length of a run without Config.Duration and Config.Acquires.
const (
	defaultDuration = time.Second
	defaultLB       = 100_000 // acquires of each rank, as in the paper
	defaultDHT      = 1000    // operations of each rank
)

// Config says what to measure. All ranks pass the same.
type Config struct {
	// Lock is the lock in text, as ParseLock reads it; in mode dht also Atomic.
	Lock string
	Mode Mode // workload

	// Duration of warm-up and measurement together. Mode dht has none.
	Duration time.Duration
	// Workload of mode clients; nil means Mix{}. The other modes have none.
	Workload Workload
	// Rate is the number of visits that begin in a second, those of all ranks together, in
	// mode clients: an open loop. Each rank's gaps between them are random, with an
	// exponential distribution, and a visit that begins late counts from when it was to
	// begin. 0 is a closed loop: a rank begins a visit when the one before has ended.
	Rate float64

	// Acquires of each rank, in mode clients visits, warm-up included. If neither is set it is
	// 100,000 in mode lb, as in the paper, 1,000 in mode dht, and otherwise Duration is 1 s; in
	// virtual time see Virtual.
	Acquires int

	// Locks in the table; each acquire takes one of them at random, in mode clients as
	// Workload says. 0 means 1.
	Locks int
	// Readers is the share of acquires in shared mode, 0 to 1; in mode dht of reads.
	// F_W of the paper is 1 - Readers.
	Readers float64
	// Mutexes says that Readers are no error for a lock without a shared mode: it takes them one
	// at a time, as it takes writers.
	Mutexes bool
	// Memory is the number of bytes that the run's windows may take at each rank, all
	// together; 0 means any. A run that would take more ends with an error that wraps
	// ErrConfig, before it begins.
	Memory int64
	// Seed of the ranks' random choices.
	Seed uint64
	// Topology is the machine of the ranks, for locks that want to know it; nil means
	// the one that is discovered.
	Topology *topo.Topology
	// Observe, if not nil, wraps the locks of the timed pass.
	Observe func(rma.Comm, lock.Table) lock.Table

	virtual *virtualRun // of a run in virtual time
}

// Validate fills in defaults and reports what is wrong. Errors wrap ErrConfig or
// lock.ErrConfig.
func (c *Config) Validate() error {
	known := false
	var names []string
	for _, m := range Modes() {
		known = known || m == c.Mode
		names = append(names, string(m))
	}
	shared := true
	if (c.Mode != DHT || c.Lock != Atomic) && !c.ownLocks() {
		lck, err := ParseLock(c.Lock)
		if err != nil {
			return err
		}
		_, any := c.structured()
		shared = lck.Shared || c.Mutexes || c.Mode == DHT || any // which lock for reading as for writing, then
	}
	switch {
	case !known:
		return fmt.Errorf("no workload is called %q; there are: %s: %w", string(c.Mode), strings.Join(names, ", "), ErrConfig)
	case c.Duration < 0:
		return fmt.Errorf("duration is %v, want more than 0: %w", c.Duration, ErrConfig)
	case c.Acquires < 0:
		return fmt.Errorf("acquires is %d, want at least 1: %w", c.Acquires, ErrConfig)
	case c.Duration > 0 && c.Acquires > 0:
		return fmt.Errorf("duration and acquires are both set, want one of them: %w", ErrConfig)
	case c.Memory < 0:
		return fmt.Errorf("memory is %d, want at least 1 byte: %w", c.Memory, ErrConfig)
	case c.Locks < 0:
		return fmt.Errorf("locks is %d, want at least 1: %w", c.Locks, ErrConfig)
	case !(c.Readers >= 0 && c.Readers <= 1):
		return fmt.Errorf("share of readers is %v, want 0 to 1: %w", c.Readers, ErrConfig)
	case c.Readers > 0 && !shared:
		return fmt.Errorf("lock %q has no shared mode, so all acquires must be exclusive: %w", c.Lock, ErrConfig)
	case c.Mode == DHT && c.Duration > 0:
		return fmt.Errorf("mode dht takes a number of acquires and no duration, since its table must have room for all inserts: %w", ErrConfig)
	case c.Mode == DHT && c.Locks > 1:
		return fmt.Errorf("locks is %d, want 1 in mode dht: all ranks work on one volume: %w", c.Locks, ErrConfig)
	}
	if err := c.checkClients(); err != nil {
		return err
	}
	if c.Duration == 0 && c.Acquires == 0 {
		switch c.Mode {
		case LB:
			c.Acquires = defaultLB
		case DHT:
			c.Acquires = defaultDHT
		default:
			c.Duration = defaultDuration
		}
	}
	return nil
}

// checkClients fills in the defaults of what mode clients has, and reports what is wrong.
func (c *Config) checkClients() error {
	c.Locks = max(c.Locks, 1)
	switch {
	case c.Mode != Clients && (c.Workload != nil || c.Rate != 0):
		return fmt.Errorf("mode %s has a workload of its own and no rate, want mode %s for another one: %w", c.Mode, Clients, ErrConfig)
	case c.Mode != Clients:
		return nil
	case !(c.Rate >= 0 && c.Rate <= math.MaxInt64):
		return fmt.Errorf("rate is %g visits per second, want more than 0, or 0 for a closed loop: %w", c.Rate, ErrConfig)
	}
	if c.Workload == nil {
		c.Workload = Mix{}
	}
	if s, ok := c.Workload.(structured); ok && c.Rate > 0 {
		return fmt.Errorf("workload %v has no rate: %w", s, ErrConfig)
	}
	return c.Workload.Check(c.Locks)
}

// timesAll reports whether each acquire is timed, and not some of them: in an open loop, where
// an acquire that is not timed may hide a late one, and where looking at a clock takes no time.
func (c *Config) timesAll() bool {
	return c.Mode == Clients && (c.Rate > 0 || c.virtual != nil)
}

// Writers is F_W of the paper, the share of exclusive acquires.
func (c *Config) Writers() float64 { return round(1 - c.Readers) }
