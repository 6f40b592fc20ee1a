package dmcs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// A mutation is a mistake in Listing 2 or 3. The conformance suite must find each.
type mutation string

const (
	faithful        mutation = "none"
	nextNotFlushed  mutation = "Listing 2 as printed: line 3 is not flushed before line 6"
	waitNotSet      mutation = "line 4 is left out"
	waitAfterLink   mutation = "line 4 comes after line 10"
	tornSwap        mutation = "line 6 is a Get and a Put"
	swapNotFlushed  mutation = "line 7 is left out"
	linkNotFlushed  mutation = "line 10 is not flushed"
	doesNotWait     mutation = "lines 11 to 14 are left out"
	releaseByPut    mutation = "line 5 of Listing 3 is a Put"
	forgetsLink     mutation = "lines 9 to 11 of Listing 3 are left out"
	handoverPending mutation = "line 14 of Listing 3 is not flushed"
	handoverTwice   mutation = "line 5 of Listing 3 is not looked at"
)

// naive is D-MCS with one queue node per rank and lock, and a mutation.
type naive struct {
	w                       *rma.Window
	rank, size, locks, home int
	is                      mutation
}

const null = 0

func openNaive(m mutation) func(c rma.Comm, n, home int) (lock.Table, error) {
	return func(c rma.Comm, n, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "naive", Regions: []rma.Region{
			{Count: n, Words: []rma.Word{{Name: "NEXT", Class: rma.Flag}, {Name: "WAIT", Class: rma.Flag}}},
			{Count: n, Words: []rma.Word{{Name: "TAIL", Class: rma.Far}}},
		}})
		return &naive{w: w, rank: c.Rank(), size: c.Size(), locks: n, home: home, is: m}, err
	}
}

func (t *naive) Len() int                { return t.locks }
func (t *naive) Home(id int) int         { return (t.home + id) % t.size }
func (t *naive) Free() error             { return t.w.Free() }
func (t *naive) Mutex(id int) lock.Mutex { return &naiveMutex{t, id} }

func (t *naive) Lock(_ context.Context, id int, _ lock.Mode) error {
	w, me, self := t.w, t.rank, int64(1+t.rank)
	home, tail, next, wait := t.Home(id), 2*t.locks+id, 2*id, 2*id+1
	w.Put(null, me, next) // line 3
	if t.is != waitNotSet && t.is != waitAfterLink {
		w.Put(1, me, wait) // line 4
	}
	if t.is != nextNotFlushed {
		if err := w.Flush(me); err != nil {
			return err
		}
	}
	var swap rma.Result
	if t.is == tornSwap {
		swap = w.Get(home, tail)
		if err := w.Flush(home); err != nil {
			return err
		}
		w.Put(self, home, tail)
	} else {
		swap = w.FetchAndOp(self, home, tail, rma.Replace) // line 6
	}
	if t.is != swapNotFlushed {
		if err := w.Flush(home); err != nil { // line 7
			return err
		}
	}
	pred := int(w.Value(swap)) - 1
	if pred < 0 || pred >= t.size { // line 8; a result that was not flushed is garbage
		return nil
	}
	w.Put(self, pred, next) // line 10
	if t.is != linkNotFlushed {
		if err := w.Flush(pred); err != nil {
			return err
		}
	}
	if t.is == waitAfterLink {
		if err := w.PutFlush(1, me, wait); err != nil {
			return err
		}
	}
	if t.is == doesNotWait {
		return nil
	}
	if err := w.Flush(me); err != nil { // line 13 flushes what is pending at p
		return err
	}
	_, err := w.Await(me, wait, rma.Equal(0)) // lines 11 to 14
	return err
}

func (t *naive) Unlock(id int, _ lock.Mode) error {
	w, me, self := t.w, t.rank, int64(1+t.rank)
	home, tail, next, wait := t.Home(id), 2*t.locks+id, 2*id, 2*id+1
	succ, err := w.GetFlush(me, next) // line 2
	if err != nil {
		return err
	}
	if succ == null { // line 3
		if t.is == releaseByPut {
			return w.PutFlush(null, home, tail)
		}
		last, err := w.CompareAndSwapFlush(null, self, home, tail) // lines 5, 6
		if err != nil || last == self && t.is != handoverTwice || t.is == forgetsLink {
			return err
		}
		if succ, err = w.Await(me, next, rma.NotEqual(null)); err != nil { // lines 9 to 11
			return err
		}
	}
	w.Put(0, int(succ)-1, wait) // line 14
	if t.is == handoverPending {
		return nil
	}
	return w.Flush(int(succ) - 1)
}

func (t *naive) TryLock(id int, _ lock.Mode) (bool, error) {
	if err := t.w.PutFlush(null, t.rank, 2*id); err != nil {
		return false, err
	}
	last, err := t.w.CompareAndSwapFlush(int64(1+t.rank), null, t.Home(id), 2*t.locks+id)
	return err == nil && last == null, err
}

type naiveMutex struct {
	t  *naive
	id int
}

func (m *naiveMutex) Lock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Exclusive) }
func (m *naiveMutex) Unlock() error                  { return m.t.Unlock(m.id, lock.Exclusive) }
func (m *naiveMutex) TryLock() (bool, error)         { return m.t.TryLock(m.id, lock.Exclusive) }

// TestMutations: the faithful copy passes the checks on exclusion, each mutation
// fails one.
func TestMutations(t *testing.T) {
	for _, m := range []mutation{
		faithful, nextNotFlushed, waitNotSet, waitAfterLink, tornSwap, swapNotFlushed, linkNotFlushed,
		doesNotWait, releaseByPut, forgetsLink, handoverPending, handoverTwice,
	} {
		t.Run(strings.ReplaceAll(string(m), " ", "-"), func(t *testing.T) {
			info := lock.Info{Name: "naive", Open: openNaive(m)}
			limit := 500 * time.Millisecond // most mutations show by ranks that hang
			if m == faithful {
				limit = time.Minute
			}
			for _, k := range locktest.Checks() {
				if !strings.HasSuffix(k.Name, "Exclusion/OneLock") {
					continue
				}
				for nodes := 1; nodes <= 2; nodes++ {
					err := rmatest.Watched(nodes, 4/nodes, limit)(func(c rma.Comm) error { return k.Run(c, info) })
					if m == faithful && err != nil {
						t.Error(err)
					}
					if m != faithful && err != nil {
						t.Logf("%d nodes, %s: %s", nodes, k.Name, strings.SplitN(err.Error(), "\n", 2)[0])
						return
					}
				}
			}
			if m != faithful {
				t.Error("no check found it")
			}
		})
	}
}
