package netmodel

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// The locks of ALock's evaluation (section 6): 20 nodes with 12 threads, locks spread over the
// nodes, an empty critical section.
const (
	alockNodes, alockThreads = 20, 12
	remoteTail, localTail    = 0, 1 // words of a lock; the remote tail is MCS's and the spin lock's word too
	victim                   = 2
	budget, next             = 0, 2 // words of a queue node, for each cohort
)

// lockThread is a thread on the locks.
type lockThread struct {
	c    *sim.Comm
	lock *rma.Window // far remote tail, near local tail, plain victim
	node *rma.Window // budgets and links of queue nodes, at each rank
}

// threadLock acquires and releases the lock with words from disp on at rank home.
type threadLock struct {
	acquire, release func(t *lockThread, home, disp int) error
}

// spinLock is a CAS until it succeeds, and a release by an atomic.
var spinLock = threadLock{func(t *lockThread, home, disp int) error {
	for {
		if was, err := t.lock.CompareAndSwapFlush(1, 0, home, disp+remoteTail); err != nil || was == 0 {
			return err
		}
	}
}, func(t *lockThread, home, disp int) error {
	return t.lock.AccumulateFlush(-1, home, disp+remoteTail, rma.Sum)
}}

// enqueue puts the queue node of a cohort at a tail, and returns the budget that the
// predecessor hands over; 0 if there is none.
func (t *lockThread) enqueue(home, tail, cohort int) (int64, error) {
	me := t.c.Rank()
	t.node.Put(-1, me, budget+cohort)
	t.node.Put(0, me, next+cohort)
	if err := t.node.Flush(me); err != nil {
		return 0, err
	}
	was, err := t.lock.FetchAndOpFlush(int64(me+1), home, tail, rma.Replace)
	if err != nil || was == 0 {
		return 0, err
	}
	if err := t.node.PutFlush(int64(me+1), int(was-1), next+cohort); err != nil {
		return 0, err
	}
	return t.node.Await(me, budget+cohort, rma.AtLeast(0))
}

// leave hands a budget to the successor, or empties the queue.
func (t *lockThread) leave(home, tail, cohort int, hand int64) error {
	me := t.c.Rank()
	after, err := t.node.GetFlush(me, next+cohort)
	if err == nil && after == 0 {
		was, err := t.lock.CompareAndSwapFlush(0, int64(me+1), home, tail)
		if err != nil || was == int64(me+1) {
			return err
		}
		after, err = t.node.Await(me, next+cohort, rma.NotEqual(0))
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return t.node.PutFlush(hand, int(after-1), budget+cohort)
}

// mcsLock is the queue alone.
var mcsLock = threadLock{func(t *lockThread, home, disp int) error {
	_, err := t.enqueue(home, disp+remoteTail, 0)
	return err
}, func(t *lockThread, home, disp int) error { return t.leave(home, disp+remoteTail, 0, 1) }}

// cohort is 1 on the lock's node, where the CPU does all, and 0 elsewhere.
func (t *lockThread) cohort(home int) int {
	if home/alockThreads == t.c.Rank()/alockThreads {
		return 1
	}
	return 0
}

// aLock is ALock with budgets of 20 for remote and 5 for local threads.
var aLock = threadLock{func(t *lockThread, home, disp int) error {
	c := t.cohort(home)
	left, err := t.enqueue(home, disp+remoteTail+c, c)
	if err != nil || left > 0 {
		return err
	}
	if err := t.lock.PutFlush(int64(c), home, disp+victim); err != nil { // Peterson
		return err
	}
	_, _, err = t.lock.AwaitEither(
		rma.Wait{Target: home, Disp: disp + remoteTail + 1 - c, Cond: rma.Equal(0)},
		rma.Wait{Target: home, Disp: disp + victim, Cond: rma.NotEqual(int64(c))}, rma.Forever)
	if err != nil {
		return err
	}
	return t.node.PutFlush([2]int64{20, 5}[c], t.c.Rank(), budget+c)
}, func(t *lockThread, home, disp int) error {
	c := t.cohort(home)
	left, err := t.node.GetFlush(t.c.Rank(), budget+c)
	if err != nil {
		return err
	}
	return t.leave(home, disp+remoteTail+c, c, left-1)
}}

// rate is the million acquires a second of a lock, with a share of locks of the thread's own node.
func (l threadLock) rate(t *testing.T, locks int, local float64) float64 {
	t.Helper()
	nodes := make([]int, alockNodes)
	for i := range nodes {
		nodes[i] = alockThreads
	}
	p := at(nodes...)
	p.EachRank = true
	net := network(t, load1(t, "cx3"), p)
	net.Jitter(0.1, 1)
	const from, end = 100_000, 600_000
	done, inside := 0, map[[2]int]int{} // lock -> clients
	_, err := sim.Timed{Node: p.Node, Verbs: true, Model: net}.Run(func(c rma.Comm) error {
		k := &lockThread{}
		k.c, _ = sim.Of(c)
		var errs [2]error
		k.lock, errs[0] = c.Allocate(rma.Spec{Name: "lock", Regions: []rma.Region{{
			Words: []rma.Word{{Name: "REMOTE"}, {Name: "LOCAL", Class: rma.Near}, {Name: "VICTIM", Class: rma.Plain}}, Count: locks / alockNodes,
		}}})
		k.node, errs[1] = c.Allocate(word("node", rma.Plain, rma.Ranks, 4))
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(3, uint64(c.Rank())))
		node := c.Rank() / alockThreads
		for c.Now() < end {
			at := node
			if rng.Float64() >= local {
				at = (node + 1 + rng.IntN(alockNodes-1)) % alockNodes
			}
			home, disp := at*alockThreads, 3*rng.IntN(locks/alockNodes)
			if err := l.acquire(k, home, disp); err != nil {
				return err
			}
			if inside[[2]int{home, disp}]++; inside[[2]int{home, disp}] > 1 {
				t.Error("the lock does not exclude")
			}
			c.Now() // lets time pass
			inside[[2]int{home, disp}]--
			if err := l.release(k, home, disp); err != nil {
				return err
			}
			if now := c.Now(); now >= from && now < end {
				done++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return float64(done) * 1e3 / (end - from)
}

// T5 for ALock. The CPU's part has no software cost, so 100 % local is a bound; and where the
// rivals' loopback decides the model has a third of the paper's factor or more.
func TestCalibrationALock(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	type rates struct{ a, mcs, spin float64 }
	at := func(locks int, local float64) rates {
		r := rates{aLock.rate(t, locks, local), mcsLock.rate(t, locks, local), spinLock.rate(t, locks, local)}
		t.Logf("%d locks, %g local: ALock %.1f, MCS %.1f, spin %.1f M/s", locks, local, r.a, r.mcs, r.spin)
		return r
	}
	own, few, some := at(20, 1), at(20, 0.95), at(100, 0.9)
	far, mid, near := at(1000, 0.85), at(1000, 0.9), at(1000, 0.95)
	rows := []row{
		{what: "20 locks, all local, over MCS", measured: 24, model: own.a / own.mcs, atLeast: true},
		{what: "20 locks, all local, over spin", measured: 22, model: own.a / own.spin, atLeast: true},
		{what: "20 locks, 95 % local, over MCS, a third of 29", measured: 29. / 3, model: few.a / few.mcs, atLeast: true},
		{what: "20 locks, 95 % local, over spin, a third of 24", measured: 24. / 3, model: few.a / few.spin, atLeast: true},
		{what: "100 locks, 90 % local, over spin", measured: 4, model: some.a / some.spin, atLeast: true},
		{what: "100 locks, 90 % local, over MCS: close", measured: 1, model: some.a / some.mcs, tolerance: 0.25, known: 8.17,
			unmet: "both rivals are bound by the NIC's atomic unit, and alike"},
		{what: "1000 locks, 85 % local, over MCS", measured: 3.8, model: far.a / far.mcs, tolerance: 0.25},
		{what: "1000 locks, 85 % local, over spin", measured: 3.3, model: far.a / far.spin, tolerance: 0.25},
		{what: "1000 locks, from 85 to 90 % local (5 nodes)", measured: 1.40, model: mid.a / far.a, tolerance: 0.18},
		{what: "1000 locks, from 90 to 95 % local (5 nodes)", measured: 1.75, model: near.a / mid.a, tolerance: 0.15},
	}
	for i := range rows {
		rows[i].machine, rows[i].source, rows[i].unit = "cx3", "ALock P", "x"
	}
	check(t, rows)
}

// Section 6.2 of ALock: with 8 threads on each of 10 nodes, each connected to each, a NIC maintains
// 1,280 queue pairs. A lock whose local ranks use the CPU does without those of a node to itself.
func TestConnectionsOfALock(t *testing.T) {
	const nodes, threads = 10, 8
	for _, loopback := range []bool{true, false} {
		all := make([]int, nodes)
		for i := range all {
			all[i] = threads
		}
		p := at(all...)
		p.EachRank = true
		net := network(t, load1(t, "cx3"), p)
		for from := range nodes * threads {
			for to := range nodes * threads {
				if loopback || from/threads != to/threads {
					net.Issue(0, from, to, rma.KindCompareAndSwap, 1, true)
				}
			}
		}
		want := 2 * threads * threads * nodes
		if !loopback {
			want -= 2 * threads * threads
		}
		if got := net.Live(0); got != want {
			t.Errorf("loopback %v: %d connections at a NIC, want %d", loopback, got, want)
		}
	}
}
