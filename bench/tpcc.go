package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
)

// TPCC is a Workload: the locks of TPC-C's transactions, as dslr, section 6.1, has them. Each host
// has warehouses with a lock for every row. A transaction acquires its locks in the order of its
// statements, and not in that of ids, so deadlocks occur.
//
// Which rows a transaction locks follows the trace generator of the paper's authors: of orders,
// new orders and order lines those with the customer's number. Customers and items are drawn by
// TPC-C's NURand, clause 2.1.6. A transaction's warehouse is any, evenly. It does not compute but
// for Inside.
type TPCC struct {
	Warehouses int `json:"warehouses"` // of each host; 0 means 1
	// Hosts is the number of hosts, where they are not all memory nodes or all ranks, as with a
	// lock that some ranks serve; 0 means that they are.
	Hosts int `json:"hosts,omitempty"`
	// Scans is the share of transactions that scan the table Customer of a warehouse: section 6.4.
	// A scan shares the table's lock for a time that is normal about Hold with a deviation of half
	// of it, from half of Hold to twice. With Scans other transactions lock the table too, before
	// any row: Payment and Delivery for themselves, NewOrder and OrderStatus shared.
	Scans float64       `json:"scans"`
	Hold  time.Duration `json:"hold_ns"`
	// Lease is the lease of a slot, by which a scan knows how many it takes; 0 for one slot,
	// however long the scan.
	Lease time.Duration `json:"lease_ns"`
	// Fails is the probability with which an attempt ends with its locks held, for ever: appendix
	// A.6. It is made again.
	Fails  float64       `json:"fails"`
	Inside time.Duration `json:"inside_ns"` // as in Visit
	Think  time.Duration `json:"think_ns"`  // as in Visit
}

// The rows of a warehouse, by the number of the first lock, after those of tables.
const (
	tpccTables    = 10
	tpccWarehouse = tpccTables
	tpccDistrict  = tpccWarehouse + 1
	tpccCustomer  = tpccDistrict + tpccDistricts
	tpccOrder     = tpccCustomer + tpccCustomers
	tpccHistory   = tpccOrder + tpccCustomers
	tpccNewOrder  = tpccHistory + tpccCustomers
	tpccOrderLine = tpccNewOrder + tpccCustomers
	tpccStock     = tpccOrderLine + tpccCustomers*tpccLines
	tpccItem      = tpccStock + tpccItems

	tpccDistricts = 10
	tpccOfOne     = 3000 // customers of a district
	tpccCustomers = tpccDistricts * tpccOfOne
	tpccLines     = 10 // of an order
	tpccItems     = 100_000

	// tpccLocks is the number of locks of a warehouse, of which 620,021 have rows.
	tpccLocks = 700_000

	tpccCustomerTable = 2 // the lock of the table Customer
)

// Table is the number of locks on so many hosts.
func (w TPCC) Table(homes int) int {
	return cmp.Or(w.Hosts, homes) * max(1, w.Warehouses) * tpccLocks
}

// String is the fields that are not zero.
func (w TPCC) String() string {
	text := []string{fmt.Sprintf("tpcc, warehouses a host %d", max(1, w.Warehouses))}
	if w.Hosts > 0 {
		text = append(text, fmt.Sprintf("hosts %d", w.Hosts))
	}
	if w.Scans > 0 {
		text = append(text, fmt.Sprintf("scans %.4g %%, hold %v", 100*w.Scans, w.Hold))
		if w.Lease > 0 {
			text = append(text, fmt.Sprintf("slots of %v", w.Lease))
		}
	}
	if w.Fails > 0 {
		text = append(text, fmt.Sprintf("fails %.4g %%", 100*w.Fails))
	}
	if w.Inside > 0 {
		text = append(text, fmt.Sprintf("inside %v", w.Inside))
	}
	if w.Think > 0 {
		text = append(text, fmt.Sprintf("think %v", w.Think))
	}
	return strings.Join(text, ", ")
}

// Check reports what is wrong with the fields.
func (w TPCC) Check(int) error {
	switch {
	case w.Warehouses < 0 || w.Hosts < 0:
		return fmt.Errorf("%d warehouses on each of %d hosts, want 1 or more: %w", w.Warehouses, w.Hosts, ErrConfig)
	case !(w.Scans >= 0 && w.Scans <= 1):
		return fmt.Errorf("share of scans is %g, want 0 to 1: %w", w.Scans, ErrConfig)
	case w.Scans > 0 && w.Hold <= 0:
		return fmt.Errorf("a scan takes %v, want more than 0: %w", w.Hold, ErrConfig)
	case w.Scans == 0 && (w.Hold != 0 || w.Lease != 0):
		return fmt.Errorf("there are no scans, so none takes %v or slots of %v: %w", w.Hold, w.Lease, ErrConfig)
	case !(w.Fails >= 0 && w.Fails < 1):
		return fmt.Errorf("share of attempts that fail is %g, want 0 to less than 1: %w", w.Fails, ErrConfig)
	case w.Hold < 0 || w.Lease < 0 || w.Inside < 0 || w.Think < 0:
		return fmt.Errorf("times are %v, %v, %v and %v, want 0 or more: %w", w.Hold, w.Lease, w.Inside, w.Think, ErrConfig)
	}
	return nil
}

// Client draws transactions.
func (w TPCC) Client(s Site) (Client, error) {
	hosts := cmp.Or(w.Hosts, s.Homes)
	warehouses := s.Locks / tpccLocks / hosts
	if warehouses < 1 {
		return nil, fmt.Errorf("%d locks at %d hosts, want %d for each warehouse: %w", s.Locks, hosts, tpccLocks, ErrConfig)
	}
	return &tpccClient{TPCC: w, rng: s.Rand, homes: hosts, warehouses: warehouses * hosts}, nil
}

type tpccClient struct {
	TPCC
	rng               *rand.Rand
	homes, warehouses int
}

// tpccMix are the shares of the transactions, in percent, as TPC-C has them.
var tpccMix = []struct {
	percent int
	draw    func(*tpccClient, *Visit)
}{
	{45, (*tpccClient).newOrder},
	{43, (*tpccClient).payment},
	{4, (*tpccClient).orderStatus},
	{4, (*tpccClient).delivery},
	{4, (*tpccClient).stockLevel},
}

// Next draws a transaction.
func (c *tpccClient) Next(v *Visit) {
	v.Inside, v.Think, v.Leases, v.Fails = c.Inside, c.Think, 1, 0
	if c.Scans > 0 && c.rng.Float64() < c.Scans {
		c.scan(v)
		return
	}
	for p := c.rng.IntN(100); ; {
		for _, t := range tpccMix {
			if p -= t.percent; p < 0 {
				t.draw(c, v)
				for c.Fails > 0 && c.rng.Float64() < c.Fails {
					v.Fails++
				}
				return
			}
		}
	}
}

// id is the number of a lock: those of warehouse w are at host w modulo the hosts.
func (c *tpccClient) id(w, number int) int {
	return (w/c.homes*tpccLocks+number)*c.homes + w%c.homes
}

// add adds a lock, unless the transaction has it.
func (c *tpccClient) add(v *Visit, mode lock.Mode, w, number int) {
	id := c.id(w, number)
	for _, a := range v.Locks {
		if a.Lock == id {
			return
		}
	}
	v.Locks = append(v.Locks, Acquire{Lock: id, Mode: mode})
}

// table locks the table Customer of a warehouse, where there are scans.
func (c *tpccClient) table(v *Visit, mode lock.Mode, w int) {
	if c.Scans > 0 {
		c.add(v, mode, w, tpccCustomerTable)
	}
}

// scan shares the table Customer.
func (c *tpccClient) scan(v *Visit) {
	hold := float64(c.Hold)
	v.Inside = time.Duration(min(max(hold+c.rng.NormFloat64()*hold/2, hold/2), 2*hold))
	if c.Lease > 0 {
		v.Leases = int((v.Inside+c.Lease-1)/c.Lease) + 1 // and one for its beginning
	}
	c.table(v, lock.Shared, c.rng.IntN(c.warehouses))
}

// nonUniform is NURand(a, n), from 0 to n-1.
func (c *tpccClient) nonUniform(a, n int) int {
	return (c.rng.IntN(a+1) | c.rng.IntN(n)) % n
}

// customer draws a customer of a district: its number in the warehouse.
func (c *tpccClient) customer(district int) int {
	return district*tpccOfOne + c.nonUniform(1023, tpccOfOne)
}

func (c *tpccClient) newOrder(v *Visit) {
	w, d := c.rng.IntN(c.warehouses), c.rng.IntN(tpccDistricts)
	customer := c.customer(d)
	c.table(v, lock.Shared, w)
	c.add(v, lock.Shared, w, tpccWarehouse)
	c.add(v, lock.Exclusive, w, tpccDistrict+d)
	c.add(v, lock.Shared, w, tpccCustomer+customer)
	c.add(v, lock.Exclusive, w, tpccOrder+customer)
	c.add(v, lock.Exclusive, w, tpccNewOrder+customer)
	for line := range tpccLines {
		item := c.nonUniform(8191, tpccItems)
		c.add(v, lock.Shared, w, tpccItem+item)
		c.add(v, lock.Exclusive, w, tpccStock+item)
		c.add(v, lock.Exclusive, w, tpccOrderLine+customer*tpccLines+line)
	}
}

func (c *tpccClient) payment(v *Visit) {
	w, d := c.rng.IntN(c.warehouses), c.rng.IntN(tpccDistricts)
	of, at := w, d // of the customer
	if c.warehouses > 1 && c.rng.IntN(100) < 15 {
		of = (w + 1 + c.rng.IntN(c.warehouses-1)) % c.warehouses
		at = c.rng.IntN(tpccDistricts)
	}
	c.table(v, lock.Exclusive, of)
	c.add(v, lock.Exclusive, w, tpccWarehouse)
	c.add(v, lock.Exclusive, w, tpccDistrict+d)
	for range c.named() {
		customer := c.customer(at)
		c.add(v, lock.Exclusive, of, tpccCustomer+customer)
		c.add(v, lock.Exclusive, of, tpccHistory+customer)
	}
}

// named is how many customers a transaction locks: two with a last name, in 60 %, or one.
func (c *tpccClient) named() int {
	if c.rng.IntN(100) < 60 {
		return 2
	}
	return 1
}

func (c *tpccClient) orderStatus(v *Visit) {
	w, d := c.rng.IntN(c.warehouses), c.rng.IntN(tpccDistricts)
	c.table(v, lock.Shared, w)
	for range c.named() {
		customer := c.customer(d)
		c.add(v, lock.Shared, w, tpccCustomer+customer)
		c.add(v, lock.Shared, w, tpccOrder+customer)
		c.orderLines(v, lock.Shared, w, customer)
	}
}

func (c *tpccClient) delivery(v *Visit) {
	w := c.rng.IntN(c.warehouses)
	customer := c.customer(c.rng.IntN(tpccDistricts))
	c.table(v, lock.Exclusive, w)
	c.add(v, lock.Exclusive, w, tpccNewOrder+customer)
	c.add(v, lock.Exclusive, w, tpccOrder+customer)
	c.orderLines(v, lock.Exclusive, w, customer)
	c.add(v, lock.Exclusive, w, tpccCustomer+customer)
}

func (c *tpccClient) stockLevel(v *Visit) {
	w, d := c.rng.IntN(c.warehouses), c.rng.IntN(tpccDistricts)
	c.add(v, lock.Shared, w, tpccDistrict+d)
	c.orderLines(v, lock.Shared, w, c.customer(d))
	for range tpccLines {
		c.add(v, lock.Shared, w, tpccStock+c.nonUniform(8191, tpccItems))
	}
}

func (c *tpccClient) orderLines(v *Visit, mode lock.Mode, w, order int) {
	for line := range tpccLines {
		c.add(v, mode, w, tpccOrderLine+order*tpccLines+line)
	}
}
