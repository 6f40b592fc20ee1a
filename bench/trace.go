package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
)

// Trace is a Workload: the locks of TATP's or TPC-C's transactions as in the traces that ShiftLock
// and cider, section 5.5, run, by the generators of FissLock's authors. A transaction acquires
// at most 16 locks in the order of their ids, reads 64 bytes at each, computes, writes 64 bytes
// at each exclusive one, and releases them.
type Trace struct {
	Of     string        `json:"of"`        // tatp or tpcc
	Inside time.Duration `json:"inside_ns"` // of computing; 0 means 2.8 us for tatp and 7 us for tpcc
	Think  time.Duration `json:"think_ns"`  // as in Visit
	// Alone says that locks have one mode: those of what a transaction reads are exclusive too, and
	// nothing is written there.
	Alone bool `json:"alone,omitempty"`
}

// Traces are the names that Trace.Of may have.
func Traces() []string { return []string{"tatp", "tpcc"} }

const (
	traceMost  = 16 // locks of a transaction
	traceWords = 8  // of data at a lock

	tatpSubscribers = 100_000
	tatpRows        = 4 // of access info, and of special facilities, of a subscriber at most
	tatpAccess      = tatpSubscribers
	tatpFacility    = tatpAccess + tatpRows*tatpSubscribers
	tatpForwarding  = tatpFacility + tatpRows*tatpSubscribers
	tatpForwardings = tatpSubscribers * 8 / 10
	tatpLocks       = tatpForwarding + tatpForwardings

	// Locks of regions of rows: so many of a warehouse, from these numbers on.
	regionDistrict  = 1
	regionCustomer  = regionDistrict + 10
	regionOrder     = regionCustomer + 30
	regionHistory   = regionOrder + 10
	regionNewOrder  = regionHistory + 10
	regionOrderLine = regionNewOrder + 10
	regionStock     = regionOrderLine + 10
	regionLocks     = regionStock + 30 + 10 // and items, which are not locked
	regionMachines  = 8
	regionOfMachine = 1200 // warehouses
)

// Table is the number of locks.
func (t Trace) Table(int) int {
	if t.Of == "tatp" {
		return tatpLocks
	}
	return regionMachines * regionOfMachine * regionLocks
}

func (t Trace) words() int { return traceWords }

func (t Trace) inside() time.Duration {
	usual := 7 * time.Microsecond
	if t.Of == "tatp" {
		usual = 2800 * time.Nanosecond
	}
	return cmp.Or(t.Inside, usual)
}

// String is the workload in a line.
func (t Trace) String() string {
	text := fmt.Sprintf("trace of %s, inside %v", t.Of, t.inside())
	if t.Think > 0 {
		text += fmt.Sprintf(", think %v", t.Think)
	}
	if t.Alone {
		text += ", all locks exclusive"
	}
	return text
}

// Check reports what is wrong with the fields.
func (t Trace) Check(int) error {
	if !slices.Contains(Traces(), t.Of) {
		return fmt.Errorf("no trace is of %q; there are: %s: %w", t.Of, strings.Join(Traces(), ", "), ErrConfig)
	}
	if t.Inside < 0 || t.Think < 0 {
		return fmt.Errorf("times of a trace are %v and %v, want 0 or more: %w", t.Inside, t.Think, ErrConfig)
	}
	return nil
}

// Client draws transactions. Those of TPC-C are of warehouses of the client's machine, its rank
// modulo 8.
func (t Trace) Client(s Site) (Client, error) {
	return &traceClient{Trace: t, rng: s.Rand, machine: s.Rank % regionMachines}, nil
}

type traceClient struct {
	Trace
	rng      *rand.Rand
	machine  int
	inserted int // orders and payments: their regions go round
	v        *Visit
}

// Next draws a transaction.
func (c *traceClient) Next(v *Visit) {
	v.Inside, v.Think, v.Words, c.v = c.inside(), c.Think, traceWords, v
	if c.Of == "tatp" {
		c.tatp()
	} else {
		c.tpcc()
	}
	slices.SortFunc(v.Locks, func(a, b Acquire) int { return a.Lock - b.Lock })
	v.Locks = v.Locks[:min(len(v.Locks), traceMost)]
	for i := range v.Locks {
		if a := &v.Locks[i]; c.Alone && a.Mode == lock.Shared {
			a.Mode, a.Reads = lock.Exclusive, true
		}
	}
}

// add adds a lock, or makes one that the transaction has exclusive.
func (c *traceClient) add(mode lock.Mode, id int) {
	for i := range c.v.Locks {
		if a := &c.v.Locks[i]; a.Lock == id {
			if mode == lock.Exclusive {
				a.Mode = mode
			}
			return
		}
	}
	c.v.Locks = append(c.v.Locks, Acquire{Lock: id, Mode: mode})
}

// rows is how many rows of a kind a subscriber has: 1 to 4, always as many.
func rows(subscriber, kind int) int {
	x := uint64(subscriber*2+kind) * 0x9E3779B97F4A7C15
	return 1 + int(x>>40%tatpRows)
}

func (c *traceClient) tatp() {
	const n = tatpSubscribers
	s := (c.rng.IntN(1<<16) | (1 + c.rng.IntN(n))) % n
	forwarding := tatpForwarding + int(uint64(s*tatpRows+c.rng.IntN(tatpRows))*0xD6E8FEB86659FD93>>32%tatpForwardings)
	access := tatpAccess + s*tatpRows + c.rng.IntN(rows(s, 0))
	facility := tatpFacility + s*tatpRows + c.rng.IntN(rows(s, 1))
	switch p := c.rng.IntN(100); {
	case p < 35: // GetSubscriberData
		c.add(lock.Shared, s)
	case p < 45: // GetNewDestination
		c.add(lock.Shared, facility)
		c.add(lock.Shared, forwarding)
	case p < 80: // GetAccessData
		c.add(lock.Shared, access)
	case p < 82: // UpdateSubscriberData
		c.add(lock.Exclusive, s)
		c.add(lock.Exclusive, facility)
	case p < 96: // UpdateLocation
		c.add(lock.Exclusive, s)
	case p < 98: // InsertCallForwarding
		c.add(lock.Shared, s)
		for i := range rows(s, 1) {
			c.add(lock.Shared, tatpFacility+s*tatpRows+i)
		}
		c.add(lock.Exclusive, forwarding)
	default: // DeleteCallForwarding
		c.add(lock.Shared, s)
		c.add(lock.Exclusive, forwarding)
	}
}

// region is the lock of a region of a warehouse.
func region(machine, warehouse, number int) int {
	return (machine*regionOfMachine+warehouse)*regionLocks + number
}

// nonUniform is NURAND(a, n).
func (c *traceClient) nonUniform(a, n int) int { return (c.rng.IntN(a) | c.rng.IntN(n)) % n }

// customer is the region of a customer of a district, chosen by last name in 60 %.
func (c *traceClient) customer(district int) int {
	if c.rng.IntN(100) < 60 {
		return regionCustomer + district*3 + c.nonUniform(256, 1000)*3/1000
	}
	return regionCustomer + district*3 + c.nonUniform(1024, 3000)/1000
}

// round is the region of 10 that the next insert goes to.
func (c *traceClient) round() int {
	c.inserted++
	return c.inserted % 10
}

func (c *traceClient) tpcc() {
	m, w, d := c.machine, c.rng.IntN(regionOfMachine), c.rng.IntN(10)
	add := func(mode lock.Mode, number int) { c.add(mode, region(m, w, number)) }
	switch p := c.rng.IntN(100); {
	case p < 45: // NewOrder
		r := c.round()
		add(lock.Shared, 0)
		add(lock.Exclusive, regionDistrict+d)
		add(lock.Shared, regionCustomer+d*3+c.nonUniform(1024, 3000)/1000)
		add(lock.Exclusive, regionOrder+r)
		add(lock.Exclusive, regionNewOrder+r)
		add(lock.Exclusive, regionOrderLine+r)
		for range 10 {
			add(lock.Exclusive, regionStock+c.nonUniform(8192, 100_000)*30/100_000)
		}
	case p < 88: // Payment
		add(lock.Exclusive, 0)
		add(lock.Exclusive, regionDistrict+d)
		add(lock.Exclusive, regionHistory+c.round())
		if c.rng.IntN(100) < 15 {
			m, w = (m+1+c.rng.IntN(regionMachines-1))%regionMachines, c.rng.IntN(regionOfMachine)
		}
		add(lock.Exclusive, c.customer(d))
	case p < 92: // OrderStatus
		r := c.rng.IntN(10)
		add(lock.Shared, c.customer(d))
		add(lock.Shared, regionOrder+r)
		add(lock.Shared, regionOrderLine+r)
	case p < 96: // Delivery
		r := c.rng.IntN(10)
		add(lock.Exclusive, regionNewOrder+r)
		add(lock.Exclusive, regionOrder+r)
		add(lock.Shared, regionOrderLine+r)
		add(lock.Exclusive, c.customer(d))
	default: // StockLevel
		add(lock.Shared, regionDistrict+d)
		add(lock.Shared, regionOrderLine+c.rng.IntN(10))
		add(lock.Shared, regionStock+c.nonUniform(8192, 100_000)*30/100_000)
	}
}
