package netmodel

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// T5: locks in virtual time, outside the fit: no constant was set by a lock's figure. The locks
// are as small as their figures need; those of a program are elsewhere.

// setting is a microbenchmark of clients on 8 compute nodes with 16 cores, and locks on a memory
// node (DecLock, section 6.1).
type setting struct {
	clients    int
	coroutines int // of a core
	locks      int
	theta      float64 // of Zipf's law
	reads      float64
	accesses   int // in a critical section, each of 8 bytes and awaited
	ms         int64
}

// found is what a run came to.
type found struct {
	rate     float64 // million acquires a second
	tries    float64 // of an acquire: operations until it held the lock
	served   float64 // million operations a second at the memory node
	p50, p99 float64 // us, of acquire, accesses and release
}

// lockClient is a client of locks.
type lockClient struct {
	c     *sim.Comm
	lock  *rma.Window
	queue *rma.Window
	mail  *rma.Window
	rng   *rand.Rand
	tries *int
}

// A protocol acquires and releases a lock of one word and, beside it, the words of a queue.
type protocol struct {
	queue            int
	acquire, release func(c *lockClient, id int, excl bool) error
}

func word(name string, class rma.Class, hosts rma.Hosts, n int) rma.Spec {
	return rma.Spec{Name: name, Hosts: hosts, Regions: []rma.Region{{Words: []rma.Word{{Name: name, Class: class}}, Count: n}}}
}

// zipf is the sums of the weights of Zipf's law.
func zipf(n int, theta float64) []float64 {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -theta)
		sums[i] = sum
	}
	return sums
}

// run runs the clients in closed loops, and measures after a fifth of the time.
func (s setting) run(t *testing.T, m *Machine, p protocol) found {
	t.Helper()
	const nodes = 8
	per := max(1, s.clients/nodes)
	place := Placement{Coroutines: s.coroutines > 1}
	core := map[[2]int]int{}
	for r := range s.clients {
		n, k := r/per, r%per/max(1, s.coroutines)
		if _, ok := core[[2]int{n, k}]; !ok {
			core[[2]int{n, k}] = r
		}
		place.Node, place.Core, place.Pair = append(place.Node, n), append(place.Core, k), append(place.Pair, core[[2]int{n, k}])
	}
	ranks := slices.Clone(place.Node)
	place.Node, place.Core, place.Pair = append(place.Node, nodes), append(place.Core, 0), append(place.Pair, s.clients)
	net := network(t, m, place)
	net.Jitter(0.1, 1)

	sums := zipf(s.locks, s.theta)
	end := s.ms * 1e6
	var from, to sim.Elapsed // of the measurement
	var times []int64
	inside := make([]int, s.locks) // readers, or -1
	tries, tried := 0, 0           // so far, and in the measurement
	_, err := sim.Timed{Node: ranks, MemoryNodes: 1, Verbs: true, Messages: []string{"mail"}, Model: net}.Run(func(c rma.Comm) error {
		k := &lockClient{tries: &tries, rng: rand.New(rand.NewPCG(1, uint64(c.Rank())))}
		k.c, _ = sim.Of(c)
		var data *rma.Window
		var errs [4]error
		k.lock, errs[0] = c.Allocate(word("lock", rma.Far, rma.MemoryNodes, s.locks))
		k.queue, errs[1] = c.Allocate(word("queue", rma.Plain, rma.MemoryNodes, max(1, s.locks*p.queue)))
		k.mail, errs[2] = c.Allocate(word("mail", rma.Plain, rma.Ranks, 1))
		data, errs[3] = c.Allocate(word("data", rma.Plain, rma.MemoryNodes, s.locks))
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		c.Sleep(int64(c.Rank()) * 37)
		for c.Now() < end {
			id := sort.SearchFloat64s(sums, k.rng.Float64()*sums[s.locks-1])
			excl := k.rng.Float64() >= s.reads
			start := c.Now()
			if from.Now == 0 && start >= end/5 {
				from, tries = k.c.Elapsed(), 0
			}
			if err := p.acquire(k, id, excl); err != nil {
				return err
			}
			if inside[id] != 0 && (excl || inside[id] < 0) {
				t.Error("the lock does not exclude")
			}
			if excl {
				inside[id] = -1
			} else {
				inside[id]++
			}
			for range s.accesses {
				if excl {
					data.Put(1, 0, id)
				} else {
					data.Get(0, id)
				}
				if err := data.Flush(0); err != nil {
					return err
				}
			}
			if excl {
				inside[id] = 0
			} else {
				inside[id]--
			}
			if err := p.release(k, id, excl); err != nil {
				return err
			}
			if now := c.Now(); from.Now > 0 && now < end {
				times = append(times, now-start)
			}
		}
		if to.Now == 0 {
			to, tried = k.c.Elapsed(), tries
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := to.Minus(from)
	slices.Sort(times)
	us, done := float64(e.Now)/1e3, float64(len(times))
	return found{
		rate: done / us, tries: float64(tried) / done, served: float64(e.Memory.Total()) / us,
		p50: float64(times[len(times)/2]) / 1e3, p99: float64(times[len(times)*99/100]) / 1e3,
	}
}

// casLock is DecLock's CASLock: an owner in the upper half, readers in the lower, no back-off.
var casLock = protocol{acquire: func(c *lockClient, id int, excl bool) error {
	me := int64(c.c.Rank()+1) << 32
	if excl {
		for {
			*c.tries++
			was, err := c.lock.CompareAndSwapFlush(me, 0, 0, id)
			if err != nil || was == 0 {
				return err
			}
		}
	}
	*c.tries++
	v, err := c.lock.FetchAndOpFlush(1, 0, id, rma.Sum)
	for err == nil && v>>32 != 0 {
		*c.tries++
		v, err = c.lock.GetFlush(0, id)
	}
	return err
}, release: func(c *lockClient, id int, excl bool) error {
	if !excl {
		return c.lock.AccumulateFlush(-1, 0, id, rma.Sum)
	}
	for v := int64(c.c.Rank()+1) << 32; ; {
		was, err := c.lock.CompareAndSwapFlush(v&0xffffffff, v, 0, id)
		if err != nil || was == v {
			return err
		}
		v = was
	}
}}

// dslr is DSLR+: tickets and a back-off of 100 ns to 3.2 us plus 0 to 2 us between polls.
var dslr = protocol{acquire: func(c *lockClient, id int, excl bool) error {
	const nX, nS, maxX, maxS = 48, 32, 16, 0
	field := func(v int64, shift int) int64 { return v >> shift & 0xffff }
	add := int64(1 << maxS)
	if excl {
		add = 1 << maxX
	}
	*c.tries++
	mine, err := c.lock.FetchAndOpFlush(add, 0, id, rma.Sum)
	for v, back := mine, int64(100); err == nil; back = min(2*back, 3200) {
		if field(v, nX) == field(mine, maxX) && (!excl || field(v, nS) == field(mine, maxS)) {
			return nil
		}
		c.c.Sleep(back + c.rng.Int64N(2000))
		*c.tries++
		v, err = c.lock.GetFlush(0, id)
	}
	return err
}, release: func(c *lockClient, id int, excl bool) error {
	if excl {
		return c.lock.AccumulateFlush(1<<48, 0, id, rma.Sum)
	}
	return c.lock.AccumulateFlush(1<<32, 0, id, rma.Sum)
}}

// The queue of cql has room for all clients: no local locks gather those of a node. tries are
// as DecLock counts them: the FAA of the acquire, and the WRITE of an entry.
const cqlRoom = 256

var cql = protocol{queue: cqlRoom, acquire: func(c *lockClient, id int, excl bool) error {
	add := int64(1 << 16) // head 32 bits, size 16, writers 16
	if excl {
		add++
	}
	*c.tries++
	o, err := c.lock.FetchAndOpFlush(add, 0, id, rma.Sum)
	size, writers := o>>16&0xffff, o&0xffff
	if err != nil || size == 0 || !excl && writers == 0 {
		return err
	}
	*c.tries++
	place := o>>32 + size
	entry := (place+1)<<16 | int64(c.c.Rank())
	if excl {
		entry |= 1 << 15
	}
	if err := c.queue.PutFlush(entry, 0, id*cqlRoom+int(place%cqlRoom)); err != nil {
		return err
	}
	_, err = c.mail.Await(c.c.Rank(), 0, rma.Equal(int64(id)<<32|place+1))
	return err
}, release: func(c *lockClient, id int, excl bool) error {
	leave := int64(1<<32 - 1<<16)
	if excl {
		leave--
	}
	var queue [cqlRoom]int64
	r := c.lock.FetchAndOp(leave, 0, id, rma.Sum)
	c.queue.GetBulk(queue[:], 0, id*cqlRoom) // right behind the FAA, in its doorbell
	if err := errors.Join(c.lock.Flush(0), c.queue.Flush(0)); err != nil {
		return err
	}
	o := c.lock.Value(r)
	first, last, writers := o>>32+1, o>>32+o>>16&0xffff-1, int(o&0xffff)
	entry := func(i int64) (v int64, there bool) {
		v = queue[i%cqlRoom]
		return v, v>>16 == i+1
	}
	tell := func(i, v int64) { c.mail.Put(int64(id)<<32|i+1, int(v&0x7fff), 0) }
	for i := first; i <= last; {
		v, there := entry(i)
		known := 0 // writers in the queue
		for j := first; j <= last && !excl; j++ {
			if w, ok := entry(j); ok && w>>15&1 == 1 {
				known++
			}
		}
		switch {
		case v>>16 > i+1, !excl && writers == 0, !excl && !there && known == writers:
			return c.mail.FlushAll() // a reader beside this one is in already
		case !there:
			if err := refetch(c, queue[:], id); err != nil {
				return err
			}
			continue
		case v>>15&1 == 1:
			if i == first {
				tell(i, v)
			}
			return c.mail.FlushAll()
		case !excl:
			return c.mail.FlushAll() // a reader, in already
		}
		tell(i, v)
		i++
	}
	return c.mail.FlushAll()
}}

// refetch reads the queue of a lock again.
func refetch(c *lockClient, queue []int64, id int) error {
	c.queue.GetBulk(queue, 0, id*cqlRoom)
	return c.queue.Flush(0)
}

// T5 for DecLock: 100,000 locks, Zipf 0.99, half reads, one access unless the row says otherwise.
// Allowed is 25 % for what round trips decide, and half where one side is in a storm of retries.
func TestCalibrationDecLock(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	m := load1(t, "cx4")
	at := func(m *Machine, p protocol, clients, accesses int, ms int64) found {
		s := setting{clients: clients, coroutines: 2, locks: 100_000, theta: 0.99, reads: 0.5, accesses: accesses, ms: ms}
		f := s.run(t, m, p)
		t.Logf("%d clients, %d accesses: %.3f M/s, %.2f tries, %.1f M/s served, p50 %.1f, p99 %.0f us",
			clients, accesses, f.rate, f.tries, f.served, f.p50, f.p99)
		return f
	}
	cas24, cas := at(m, casLock, 24, 1, 10), at(m, casLock, 256, 1, 60)
	cas0, cas32 := at(m, casLock, 256, 0, 60), at(m, casLock, 256, 32, 60)
	plus24, plus := at(m, dslr, 24, 1, 10), at(m, dslr, 256, 1, 10)
	plus0, plus32 := at(m, dslr, 256, 0, 10), at(m, dslr, 256, 32, 20)
	cql24, cql256, cql0 := at(m, cql, 24, 1, 10), at(m, cql, 256, 1, 10), at(m, cql, 256, 0, 10)
	free := at(with(t, m, "holBlocking", 0), casLock, 256, 1, 60)
	hot := at(with(t, m, "lineReadNs", 217), dslr, 256, 1, 10)

	less := func(a, b float64) float64 { return 100 * (1 - a/b) }
	const ratio, storm = 0.25, 0.5
	rows := []row{
		{what: "CASLock, 24 clients", measured: 1.61, unit: "M/s", model: cas24.rate, tolerance: ratio},
		{what: "CASLock", measured: 0.20, unit: "M/s", model: cas.rate, tolerance: storm, known: 0.0958,
			unmet: "with holBlocking; without, the other end of the band, see the next row"},
		{what: "CASLock, holBlocking 0", measured: 0.20, unit: "M/s", model: free.rate, tolerance: storm},
		{what: "CASLock, tries", measured: 37.8, model: cas.tries, tolerance: storm},
		{what: "CASLock, operations at the memory node", measured: 8, unit: "M/s", model: cas.served, tolerance: storm, known: 2.76,
			unmet: "follows from rate and tries"},
		{what: "CASLock, 32 accesses, tries", measured: 387.9, model: cas32.tries, tolerance: storm, known: 128,
			unmet: "an access that waits behind atomics is not slow enough"},
		{what: "DSLR+, tries", measured: 27.4, model: plus.tries, tolerance: storm},
		{what: "DSLR+, of its peak", measured: 1 - 0.389, model: plus.rate / plus24.rate, tolerance: ratio},
		{what: "DSLR+, of its peak, lineReadNs 217", measured: 1 - 0.389, model: hot.rate / plus24.rate, tolerance: ratio, known: 0.3065,
			unmet: "the other end of the band"},
		{what: "DSLR+, 32 accesses, tries", measured: 349.2, model: plus32.tries, tolerance: storm, known: 81.2,
			unmet: "polls slow those of their line, and no other access"},
		{what: "CQL, operations an acquire", measured: 1.10, model: cql256.tries, atMost: true, known: 1.123,
			unmet: "without local locks, which DecLock's figure has"},
		{what: "CQL over CASLock, no access", measured: 43.47, unit: "x", model: cql0.rate / cas0.rate, tolerance: storm},
		{what: "CQL over DSLR+, no access", measured: 4.35, unit: "x", model: cql0.rate / plus0.rate, tolerance: storm},
		{what: "CQL over DSLR+", measured: 1.74, unit: "x", model: cql256.rate / plus.rate, tolerance: ratio},
		{what: "CASLock over CQL, 24 clients", measured: 1.25, unit: "x", model: cas24.rate / cql24.rate, tolerance: ratio, known: 0.853,
			unmet: "DecLock's maps and mutexes take CPU time, which the model has not"},
		{what: "CQL's median below CASLock's", measured: 95.8, unit: "%", model: less(cql256.p50, cas.p50), tolerance: 0.1},
		{what: "CQL's median below DSLR+'s", measured: 64.3, unit: "%", model: less(cql256.p50, plus.p50), tolerance: 0.15, known: 0.563,
			unmet: "the median client meets no other, and a NIC at 24 of 135 M/s has no queue"},
		{what: "CQL's 99 % below CASLock's", measured: 98.2, unit: "%", model: less(cql256.p99, cas.p99), tolerance: 0.1},
		{what: "CQL's 99 % below DSLR+'s", measured: 67.8, unit: "%", model: less(cql256.p99, plus.p99), tolerance: 0.15, known: 48.66,
			unmet: "without local locks, whose hand-overs need no round trip"},
	}
	for i := range rows {
		rows[i].machine, rows[i].source = "cx4", "DecLock P"
	}
	check(t, rows)
}

// T5 for DSLR: its clients use less than 15 % of the network's capacity, polling without pauses.
// 64 clients that do nothing but poll, at 16 servers, are a bound.
func TestCalibrationDSLR(t *testing.T) {
	m := load1(t, "cx3")
	polls := func(each, window int) float64 {
		var nodes []int
		for range 16 {
			nodes = append(nodes, 1) // the memory of a server
		}
		for range 16 {
			nodes = append(nodes, each)
		}
		l := load{net: network(t, m, at(nodes...))}
		for r := range 16 * each {
			l.clients = append(l.clients, &client{rank: 16 + r, kind: rma.KindGet, words: 1, window: window,
				next: func(rng *rand.Rand) (int, uint64) { return rng.IntN(16), rng.Uint64() >> 1 }})
		}
		rate, _ := l.run(1e6)
		return rate / 16
	}
	check(t, []row{
		{machine: "cx3", what: "share of a server's READs while 64 clients poll", source: "DSLR P", measured: 15, unit: "%",
			model: 100 * polls(4, 1) / 22, atMost: true},
		{machine: "cx3", what: "READ in, 4 clients a NIC with 16 under way", source: "RB S", measured: 22, unit: "M/s",
			model: polls(4, 16), tolerance: 0.05},
	})
}
