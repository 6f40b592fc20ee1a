package locktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

var tableChecks = []check{
	{"Table/Describes", checkDescribes},
	{"Table/BadConfig", checkBadConfig},
	{"Table/OpenAndFree", checkOpenAndFree},
	{"Table/Independent", checkIndependent},
	{"Table/AllAtOnce", checkAllAtOnce},
	{"Table/ManyHeld", checkManyHeld},
	{"Table/TwoTables", checkTwoTables},
	{"Table/OnASplit", checkOnASplit},
	{"Allocations", checkAllocations},
}

// checkDescribes: a table has the locks that were asked for, with handles of the kind that
// the registry says, and homes.
func checkDescribes(p *probe) {
	for _, home := range []int{0, p.Size() / 2, p.Size() - 1} {
		t := p.table(100, home)
		if t == nil {
			return
		}
		if n := t.Len(); n != 100 && n != p.Size() {
			p.Failf("a table of 100 locks has %d", n)
		}
		for id := range t.Len() {
			if _, ok := t.Mutex(id).(lock.RWMutex); ok != p.info.Shared {
				p.Failf("a handle is an RWMutex: %v; the registry says shared: %v", ok, p.info.Shared)
			}
		}
		p.spread(t, p.home(home))
		p.free(t)
	}
	if p.info.Title == "" || p.info.Fair == "" {
		p.Failf("the registry has no title or fairness bound: %+v", p.info)
	}
}

// spread checks what holds of homes, however a table spreads its locks: they are hosts, lock 0's
// is the one that was asked for, all ranks are told the same, again and again, and those that
// have locks have equally many, but for one.
func (p *probe) spread(t lock.Table, first int) {
	hosts := p.homes()
	homes := make([]int64, t.Len())
	locks := map[int64]int{}
	for id := range homes {
		homes[id] = int64(t.Home(id))
		locks[homes[id]]++
		if homes[id] < 0 || homes[id] >= int64(hosts) {
			p.Failf("the home of lock %d is %d, want 0 to %d", id, homes[id], hosts-1)
		}
	}
	for id, home := range homes {
		p.Equal(fmt.Sprintf("the home of lock %d, asked again,", id), int64(t.Home(id)), home)
	}
	p.Equal("the home of lock 0", homes[0], int64(first))
	for i, home := range p.GatherAll(homes) {
		p.Equal(fmt.Sprintf("the home of lock %d, as rank %d is told,", i%len(homes), i/len(homes)), home, homes[i%len(homes)])
	}
	least, most := t.Len(), 0
	for _, n := range locks {
		least, most = min(least, n), max(most, n)
	}
	if most > least+1 {
		p.Failf("a home has %d locks and another has %d", most, least)
	}
}

// checkBadConfig: a Table that cannot be is refused on every rank, with no window
// left open that others wait for.
func checkBadConfig(p *probe) {
	for _, bad := range []struct{ n, home int }{{1, -1}, {1, p.homes()}, {-1, 0}} {
		_, err := p.info.Open(p.Comm, bad.n, bad.home)
		if errors.Is(err, errors.ErrUnsupported) {
			p.OK(err)
			return
		}
		p.Is(fmt.Sprintf("Open with %d locks and home %d", bad.n, bad.home), err, lock.ErrConfig)
	}
}

func checkOpenAndFree(p *probe) {
	for i := range p.Rounds(12, 3) {
		h := p.fixture(1+i, i%p.Size())
		if h == nil {
			return
		}
		for id := range h.t.Len() {
			h.visit(id, lock.Exclusive, byTable)
		}
		h.close()
	}
}

// checkIndependent: a rank that holds a lock keeps no other from the other locks.
func checkIndependent(p *probe) {
	h := p.fixture(100, 0)
	if h == nil {
		return
	}
	held := h.t.Len() / 2
	if p.Rank() == 0 {
		h.enter(held, lock.Exclusive, byTable)
	}
	p.Meet()
	for i := range p.Rounds(100, 10) {
		if id := i * 7 % h.t.Len(); id != held {
			h.visit(id, p.modes()[i%len(p.modes())], byTable)
		}
	}
	p.Meet()
	if p.Rank() == 0 {
		h.leave(held, lock.Exclusive, byTable)
	}
	h.close()
}

// checkAllAtOnce: every rank holds a lock of its own, or two, at the same time.
func checkAllAtOnce(p *probe) {
	h := p.fixture(2*p.Size(), 0)
	if h == nil {
		return
	}
	per := h.t.Len() / p.Size()
	for shift := range p.Rounds(5, 2) {
		for k := range per {
			h.enter(((p.Rank()+shift)%p.Size())*per+k, lock.Exclusive, byTable)
		}
		p.Meet() // no rank waits for another one's lock
		for k := range per {
			id := ((p.Rank()+shift)%p.Size())*per + k
			h.guarded(id, lock.Exclusive)
			h.leave(id, lock.Exclusive, byTable)
		}
		p.Meet()
	}
	h.close()
}

// checkManyHeld: a rank takes locks until it may hold no more. The one too many is
// refused and unchanged, and all is well after the rank has let one go.
func checkManyHeld(p *probe) {
	h := p.fixture(100, 0)
	if h == nil {
		return
	}
	n := h.t.Len()
	p.inTurn(func() {
		held := 0
		for ; held < n; held++ {
			err := h.t.Lock(context.Background(), held, lock.Exclusive)
			if errors.Is(err, lock.ErrTooManyHeld) {
				break
			}
			p.OK(err)
		}
		if held == 0 {
			p.Failf("not even one lock may be held")
			return
		}
		if held < n {
			for _, mode := range p.modes() {
				p.Is("Lock of one too many", h.t.Lock(context.Background(), held, mode), lock.ErrTooManyHeld)
				if h.tries {
					got, err := h.t.TryLock(held, mode)
					p.Is("TryLock of one too many", err, lock.ErrTooManyHeld)
					if got {
						p.Failf("TryLock of one too many took it")
					}
				}
			}
			p.OK(h.t.Unlock(0, lock.Exclusive))
			h.visit(held, lock.Exclusive, byTable)
			p.OK(h.t.Lock(context.Background(), 0, lock.Exclusive))
		}
		for id := range held { // neither in the order of locking nor backwards
			id = (id + held/2) % held
			p.OK(h.t.Unlock(id, lock.Exclusive))
		}
	})
	for id := range n {
		h.visit((id+p.Rank())%n, lock.Exclusive, byTable)
	}
	h.close()
}

// checkTwoTables: two tables of the same lock know nothing of each other.
func checkTwoTables(p *probe) {
	a, b := p.fixture(2, 0), p.fixture(2, 0)
	if a == nil || b == nil {
		return
	}
	for i := range p.visits() {
		if i%2 == 0 {
			a.enter(0, lock.Exclusive, byTable)
			b.visit(0, lock.Exclusive, byTable)
			a.guarded(0, lock.Exclusive)
			a.leave(0, lock.Exclusive, byTable)
		} else {
			b.visit(0, lock.Exclusive, byHandle)
		}
	}
	b.close()
	a.close()
}

// checkOnASplit: a table on a part of the ranks is theirs alone.
func checkOnASplit(p *probe) {
	if p.Lost() {
		return
	}
	part, err := p.Split(p.Rank()%2, -p.Rank())
	if !p.Agreed(err) {
		return
	}
	t := p.tableOn(part, 1, part.Size()-1)
	if t == nil {
		return
	}
	w, err := part.Allocate(rma.DataSpec("part", 1))
	if !p.Agreed(err) {
		return
	}
	for range p.visits() {
		err := t.Lock(context.Background(), 0, lock.Exclusive)
		p.OK(err)
		if err == nil {
			p.OK(w.PutFlush(p.Value(w.GetFlush(0, 0))+1, 0, 0))
			p.OK(t.Unlock(0, lock.Exclusive))
		}
	}
	p.Meet()
	p.Equal("the visits of a part", p.Value(w.GetFlush(0, 0)), int64(p.visits()*part.Size()))
	p.free(t)
	p.Close(w)
}

// checkAllocations: an uncontended Lock and Unlock does not allocate, in any mode
// and way, with the lock at home or elsewhere.
func checkAllocations(p *probe) {
	h := p.fixture(2, 0)
	if h == nil {
		return
	}
	ctx := context.Background()
	p.inTurn(func() {
		for id := range h.t.Len() {
			for _, mode := range p.modes() {
				p.NoAllocations(fmt.Sprintf("Lock of a table in %v mode", mode), func() error {
					return errors.Join(h.t.Lock(ctx, id, mode), h.t.Unlock(id, mode))
				})
				if h.tries {
					p.NoAllocations(fmt.Sprintf("TryLock of a table in %v mode", mode), func() error {
						_, err := h.t.TryLock(id, mode)
						return errors.Join(err, h.t.Unlock(id, mode))
					})
				}
			}
			m := h.handles[id]
			p.NoAllocations("Lock of a handle", func() error { return errors.Join(m.Lock(ctx), m.Unlock()) })
			if rw, ok := m.(lock.RWMutex); ok {
				p.NoAllocations("RLock of a handle", func() error { return errors.Join(rw.RLock(ctx), rw.RUnlock()) })
			}
		}
	})
	h.close()
}
