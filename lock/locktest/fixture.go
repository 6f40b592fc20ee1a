package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A fixture is a table of locks and what they guard: two plain words per lock, which
// every exclusive visitor raises by one, and a count of the visitors that are in. All
// of it lies in windows of its own, so that nothing but the lock orders it.
type fixture struct {
	p       *probe
	t       lock.Table
	tries   bool         // the lock can try
	handles []lock.Mutex // for the ways that go through them
	host    int          // of the guarded words
	data    *rma.Window  // words 2*id and 2*id+1
	inside  *rma.Window  // word id: writer for each exclusive visitor and 1 for each other
	visits  []int64      // by lock: the rank's exclusive visits
	rng     *rand.Rand
}

const writer = 1 << 32

// fixture opens a table of n locks with what they guard. Collective; nil if it cannot.
func (p *probe) fixture(n, home int) *fixture {
	t := p.table(n, home)
	if t == nil {
		return nil
	}
	h := &fixture{p: p, t: guard{t, p}, host: (home + 1) % p.Size(), visits: make([]int64, t.Len()), rng: rand.New(rand.NewPCG(7, uint64(p.Rank())))}
	for id := range t.Len() {
		h.handles = append(h.handles, t.Mutex(id))
	}
	if h.data = p.Open(rma.DataSpec("guarded", 2*t.Len())); h.data == nil {
		return nil
	}
	if h.inside = p.Open(rma.CounterSpec("inside", t.Len())); h.inside == nil {
		return nil
	}
	h.tries = p.tries(t) // and all begin together
	return h
}

// tries finds out whether the lock can try. Rank 0 tells the others.
func (p *probe) tries(t lock.Table) bool {
	can := int64(1)
	if p.Rank() == 0 {
		got, err := t.TryLock(0, lock.Exclusive)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			can = 0
		case err != nil || !got:
			p.Failf("TryLock of a new lock: %v, %v", got, err)
		default:
			p.OK(t.Unlock(0, lock.Exclusive))
		}
	}
	return p.Gather(can)[0] == 1
}

// guard is a table that is left alone once the transport has failed: its locks are
// then in an unknown state.
type guard struct {
	lock.Table
	p *probe
}

func (g guard) Unwrap() lock.Table { return g.Table }

func (g guard) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if g.p.Lost() {
		return rma.ErrPeer
	}
	err := g.Table.Lock(ctx, id, mode)
	g.note(err)
	return err
}

func (g guard) TryLock(id int, mode lock.Mode) (bool, error) {
	if g.p.Lost() {
		return false, rma.ErrPeer
	}
	got, err := g.Table.TryLock(id, mode)
	g.note(err)
	return got, err
}

func (g guard) Unlock(id int, mode lock.Mode) error {
	if g.p.Lost() {
		return rma.ErrPeer
	}
	err := g.Table.Unlock(id, mode)
	g.note(err)
	return err
}

// note notes errors after which nothing is known of the lock.
func (g guard) note(err error) {
	if errors.Is(err, rma.ErrPeer) || errors.Is(err, rma.ErrTransport) {
		g.p.OK(err)
	}
}

// close checks that no visit was lost and no rank is in, and frees everything.
// Collective.
func (h *fixture) close() {
	p := h.p
	p.Meet()
	sum := make([]int64, len(h.visits))
	for i, v := range p.GatherAll(h.visits) {
		sum[i%len(sum)] += v
	}
	for id, want := range sum {
		for word := range 2 {
			p.Equal(fmt.Sprintf("word %d that lock %d guards", word, id), p.Value(h.data.GetFlush(h.host, 2*id+word)), want)
		}
		p.Equal(fmt.Sprintf("the number of visitors left in lock %d", id), p.Value(h.inside.GetFlush(h.host, id)), 0)
	}
	p.free(h.t)
	p.Close(h.data)
	p.Close(h.inside)
}

// A way is how a visitor takes a lock.
type way int

const (
	byTable    way = iota // Table.Lock
	byHandle              // Mutex.Lock or RWMutex.RLock
	byTry                 // TryLock
	byDeadline            // Table.Lock with a context that ends after some tries
	ways
)

// visit takes a lock, does what visitors do, lets it go, and stays outside for a
// moment. On one processor ranks that wait would otherwise only see the lock while
// it is held. It reports whether it was let in.
func (h *fixture) visit(id int, mode lock.Mode, w way) bool {
	in := h.enter(id, mode, w)
	if in {
		h.guarded(id, mode)
		h.leave(id, mode, w)
	}
	h.stay()
	return in
}

// enter takes a lock. Once the transport has failed it does not: the state of the
// lock is unknown.
func (h *fixture) enter(id int, mode lock.Mode, w way) bool {
	if h.p.Lost() {
		return false
	}
	var err error
	in := true
	shared, _ := h.handles[id].(lock.RWMutex)
	switch {
	case w == byHandle && mode == lock.Shared && shared != nil:
		err = shared.RLock(context.Background())
	case w == byHandle:
		err = h.handles[id].Lock(context.Background())
	case w == byTry && h.tries:
		in, err = h.t.TryLock(id, mode)
	case w == byDeadline && h.tries:
		if err = h.t.Lock(tries(1+h.rng.IntN(4)), id, mode); errors.Is(err, lock.ErrDeadline) {
			return false
		}
	default:
		err = h.t.Lock(context.Background(), id, mode)
	}
	h.p.OK(err)
	return in && err == nil
}

// leave lets a lock go in the way in which it was taken.
func (h *fixture) leave(id int, mode lock.Mode, w way) {
	if h.p.Lost() {
		return
	}
	shared, _ := h.handles[id].(lock.RWMutex)
	switch {
	case w == byHandle && mode == lock.Shared && shared != nil:
		h.p.OK(shared.RUnlock())
	case w == byHandle:
		h.p.OK(h.handles[id].Unlock())
	default:
		h.p.OK(h.t.Unlock(id, mode))
	}
}

// guarded is what a visitor does inside: it checks that no rank is in that must not
// be, and raises the guarded words or compares them.
func (h *fixture) guarded(id int, mode lock.Mode) {
	p, me := h.p, int64(1)
	if mode == lock.Exclusive || !p.info.Shared {
		me = writer
	}
	others := p.Value(h.inside.FetchAndOpFlush(me, h.host, id, rma.Sum))
	if me == writer && others != 0 || others >= writer {
		p.Failf("a visitor in %v mode met %d exclusive and %d shared ones in lock %d", mode, others/writer, others%writer, id)
	}
	a, b := p.Value(h.data.GetFlush(h.host, 2*id)), p.Value(h.data.GetFlush(h.host, 2*id+1))
	if a != b {
		p.Failf("the words that lock %d guards were %d and %d", id, a, b)
	}
	if me == writer {
		h.visits[id]++
		p.OK(h.data.PutFlush(a+1, h.host, 2*id))
		h.stay()
		p.OK(h.data.PutFlush(b+1, h.host, 2*id+1))
	} else {
		h.stay()
	}
	p.OK(h.inside.AccumulateFlush(-me, h.host, id, rma.Sum))
}

// stay stays for a moment, often or long enough for others to run into an open
// door on the same processor.
func (h *fixture) stay() {
	switch n := h.rng.IntN(32); {
	case n == 0:
		h.p.Sleep(20_000)
	case n < 12:
		runtime.Gosched()
	}
}

// tries is a context that ends when it was looked at a number of times: a deadline
// that needs no clock.
func tries(n int) context.Context {
	return &countdown{Context: context.Background(), left: n, done: make(chan struct{})}
}

type countdown struct {
	context.Context
	left int
	done chan struct{}
}

func (c *countdown) look() {
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// Done is a look too, for locks that wait for it.
func (c *countdown) Done() <-chan struct{} {
	c.look()
	return c.done
}

func (c *countdown) Err() error {
	c.look()
	if c.left > 0 {
		return nil
	}
	return context.DeadlineExceeded
}
