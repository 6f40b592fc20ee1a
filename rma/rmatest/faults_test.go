package rmatest_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// onIssue is a fault of the way in which a window issues operations.
func onIssue(f func(t rma.Transport, o rma.Operation)) badComm {
	return badComm{transport: func(_ rma.Comm, t rma.Transport) rma.Transport {
		return &badTransport{Transport: t, issue: f}
	}}
}

// onKind is a fault of one kind of operation.
func onKind(k rma.Kind, f func(t rma.Transport, o rma.Operation)) badComm {
	return onIssue(func(t rma.Transport, o rma.Operation) {
		if o.Kind == k {
			f(t, o)
		} else {
			t.Issue(o)
		}
	})
}

// peek reads a word through a transport, at once.
func peek(t rma.Transport, o rma.Operation) int64 {
	var r rma.Results
	t.Issue(rma.Operation{Kind: rma.KindGet, Class: o.Class, Target: o.Target, Disp: o.Disp, Slot: o.Slot})
	t.Flush(o.Target, &r)
	return r[o.Slot]
}

// poke writes a word through a transport.
func poke(t rma.Transport, o rma.Operation, v int64) {
	t.Issue(rma.Operation{Kind: rma.KindPut, Class: o.Class, Target: o.Target, Disp: o.Disp, Operand: v})
}

// torn does an update as a read and a write, with time between them.
func torn(t rma.Transport, o rma.Operation) {
	v := peek(t, o)
	if o.Kind == rma.KindCompareAndSwap {
		if v != o.Compare {
			return
		}
		v = o.Operand
	} else if o.Kind == rma.KindMaskedSwap {
		if !o.Matches(v) {
			return
		}
		v = o.Masked(v)
	} else if o.Op == rma.Sum {
		v += o.Operand
	} else if o.Op == rma.Replace {
		v = o.Operand
	}
	runtime.Gosched()
	poke(t, o, v)
}

var global any // makes things escape

// faults are faults of a backend and, for each, a check that must catch it.
var faults = []struct {
	name  string
	check string
	bad   badComm
}{
	{"Put is lost", "Ops/PutGet", onKind(rma.KindPut, func(rma.Transport, rma.Operation) {})},
	{"Put writes 32 bits", "Ops/PutGet", onKind(rma.KindPut, func(t rma.Transport, o rma.Operation) {
		o.Operand = peek(t, o)&^0xFFFFFFFF | o.Operand&0xFFFFFFFF
		t.Issue(o)
	})},
	{"Accumulate is done twice", "Ops/Atomics", onKind(rma.KindAccumulate, func(t rma.Transport, o rma.Operation) {
		t.Issue(o)
		t.Issue(o)
	})},
	{"Accumulate is torn", "Atomic/Mixed", onKind(rma.KindAccumulate, torn)},
	{"FetchAndOp is torn", "Atomic/Sum", onKind(rma.KindFetchAndOp, torn)},
	{"swap is torn", "Atomic/Swap", onKind(rma.KindFetchAndOp, torn)},
	{"CompareAndSwap is torn", "Atomic/OneWinner", onKind(rma.KindCompareAndSwap, torn)},
	{"MaskedSwap is torn", "Atomic/MaskedSwap", onKind(rma.KindMaskedSwap, torn)},
	{"MaskedSwap swaps the whole word", "Ops/Atomics", onKind(rma.KindMaskedSwap, func(t rma.Transport, o rma.Operation) {
		o.SwapMask = -1
		t.Issue(o)
	})},
	{"MaskedSwap compares nothing", "Ops/Atomics", onKind(rma.KindMaskedSwap, func(t rma.Transport, o rma.Operation) {
		o.CompareMask = 0
		t.Issue(o)
	})},
	{"MaskedSwap compares the whole word", "Ops/Atomics", onKind(rma.KindMaskedSwap, func(t rma.Transport, o rma.Operation) {
		if o.CompareMask != 0 {
			o.CompareMask = -1
		}
		t.Issue(o)
	})},
	{"CompareAndSwap compares 32 bits", "Ops/Atomics", onKind(rma.KindCompareAndSwap, func(t rma.Transport, o rma.Operation) {
		if v := peek(t, o); int32(v) == int32(o.Compare) {
			o.Compare = v
		}
		t.Issue(o)
	})},
	{"SUM saturates", "Ops/Wraparound", onKind(rma.KindFetchAndOp, func(t rma.Transport, o rma.Operation) {
		if o.Op == rma.Sum && peek(t, o) > 0 && peek(t, o)+o.Operand < 0 {
			o.Operand = 0
		}
		t.Issue(o)
	})},
	{"NO_OP writes", "Ops/Atomics", onKind(rma.KindFetchAndOp, func(t rma.Transport, o rma.Operation) {
		if o.Op == rma.NoOp {
			o.Op = rma.Replace
		}
		t.Issue(o)
	})},
	{"the last word of a piece is lost", "Bulk/PutGet", onKind(rma.KindPutBulk, func(t rma.Transport, o rma.Operation) {
		if len(o.Data) > 1 {
			o.Data = o.Data[:len(o.Data)-1]
		}
		t.Issue(o)
	})},
	{"pieces are torn inside words", "Bulk/WholeWords", onKind(rma.KindPutBulk, func(t rma.Transport, o rma.Operation) {
		half := slices.Clone(o.Data)
		for i := range half {
			half[i] &= 0xFFFFFFFF
		}
		whole := o.Data
		o.Data = half
		t.Issue(o)
		time.Sleep(time.Microsecond)
		o.Data = whole
		t.Issue(o)
	})},
	{"an operation on a word is passed by the next", "Ops/OrderOnAWord", badComm{transport: lifo}},
	{"a Put takes effect one Flush late", "Order/Dekker", badComm{transport: late(rma.KindPut)}},
	{"a PutBulk takes effect one Flush late", "Order/MessagePassing", badComm{transport: late(rma.KindPutBulk)}},
	{"results move by one slot", "Ops/ManyResults", badComm{transport: func(_ rma.Comm, t rma.Transport) rma.Transport {
		return &badTransport{Transport: t, flush: func(t rma.Transport, target int, r *rma.Results) (int, error) {
			n, err := t.Flush(target, r)
			first := r[0]
			copy(r[:], r[1:])
			r[len(r)-1] = first
			return n, err
		}}
	}}},
	{"operations allocate", "Allocations", onIssue(func(t rma.Transport, o rma.Operation) {
		global = &o
		t.Issue(o)
	})},
	{"a Fence is dropped", "Order/Fence", badComm{transport: fenceless}},
	{"Await forgets the mask", "Await/Mask", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		q.Words[0].Cond.Mask = 0
		return t.Await(q)
	})},
	{"Await forgets the limit", "Await/Until", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		q.Until = rma.Forever
		return t.Await(q)
	})},
	{"Await ends before its limit", "Await/Until", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		if q.Until != rma.Forever {
			q.Until -= 250_000
		}
		return t.Await(q)
	})},
	{"Await forgets the second word", "Await/Either", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		q.N = 1
		return t.Await(q)
	})},
	{"Await mixes up the words", "Await/Either", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		which, v, err := t.Await(q)
		if q.N == 2 && which >= 0 {
			which = 1 - which
		}
		return which, v, err
	})},
	{"Await does not wait", "Await/PingPong", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		return 0, peek(t, rma.Operation{Target: q.Words[0].Target, Disp: q.Words[0].Disp}), nil
	})},
	{"Await returns the wished value", "Await/Relations", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		which, _, err := t.Await(q)
		return which, q.Words[0].Cond.Value, err
	})},
	{"Await compares without sign", "Await/Relations", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		a := &q.Words[0]
		if v := peek(t, rma.Operation{Target: a.Target, Disp: a.Disp}); a.Cond.Rel == rma.RelLess && uint64(v) >= uint64(a.Cond.Value) {
			return -1, 0, rma.ErrTransport
		}
		return t.Await(q)
	})},
	{"Await misses writes", "Await/Crowd", onAwait(func(t rma.Transport, q rma.Waiting) (int, int64, error) {
		a := &q.Words[0]
		if v := peek(t, rma.Operation{Target: a.Target, Disp: a.Disp}); a.Cond.Holds(v) {
			return 0, v, nil
		}
		a.Cond = rma.Less(-1 << 62) // for ever
		return t.Await(q)
	})},
	{"Backoff fails", "Backoff", badComm{transport: func(_ rma.Comm, t rma.Transport) rma.Transport {
		return &badTransport{Transport: t, backoff: func(t rma.Transport, target, disp int, seen int64, try int) error {
			if try > 1<<30 {
				return errors.New("too many tries")
			}
			return t.Backoff(target, disp, seen, try)
		}}
	}}},
	{"ranks are numbered backwards after a Split", "Split/Colors", badComm{split: func(c rma.Comm, color, key int) (rma.Comm, error) {
		return c.Split(color, key-c.Rank())
	}}},
	{"Split forgets the keys", "Split/Keys", badComm{split: func(c rma.Comm, color, _ int) (rma.Comm, error) {
		return c.Split(color, 0)
	}}},
	{"Split takes negative colors", "Split/Negative", badComm{split: func(c rma.Comm, color, key int) (rma.Comm, error) {
		return c.Split(max(color, -color), key)
	}}},
	{"Barrier does nothing", "Barrier", badComm{barrier: func(c rma.Comm) error {
		time.Sleep(time.Duration(c.Rank()) * 50 * time.Microsecond)
		return nil
	}}},
	{"Allgather mixes up ranks", "Allgather", badComm{allgather: func(c rma.Comm, words []int64) ([]int64, error) {
		all, err := c.Allgather(words)
		all = slices.Clone(all) // the ranks share it
		slices.Reverse(all)
		return all, err
	}}},
	{"everybody is on a node of its own", "Node", badComm{node: func(c rma.Comm) rma.Node {
		return rma.Node{Index: c.Rank(), Count: c.Size() + 1, Ranks: []int{c.Rank()}}
	}}},
	{"the node forgets the last rank", "Node", badComm{node: func(c rma.Comm) rma.Node {
		return rma.Node{Count: 1, Ranks: []int{0, 1, 2}}
	}}},
	{"the clock goes back", "Clock", badComm{now: func(c rma.Comm) int64 { return -c.Now() }}},
	{"Sleep returns at once", "Clock", badComm{sleep: func(rma.Comm, int64) {}}},
	{"memory is used again as it is", "Allocate/Zeroed", badComm{allocate: func(c rma.Comm, s rma.Spec) (*rma.Window, error) {
		w, err := c.Allocate(s)
		if err == nil {
			err = w.PutFlush(-1, c.Rank(), w.Words()-1)
		}
		return w, err
	}}},
	{"different Specs are taken", "Allocate/Mismatch", badComm{allocate: func(c rma.Comm, s rma.Spec) (*rma.Window, error) {
		return c.Allocate(rma.CounterSpec("any", s.Words()))
	}}},
	{"a bad Spec is taken", "Allocate/BadSpec", badComm{allocate: func(c rma.Comm, s rma.Spec) (*rma.Window, error) {
		if s.Validate() != nil {
			s = rma.CounterSpec("any", 1)
		}
		return c.Allocate(s)
	}}},
	{"classes are forgotten", "Errors/Class", badComm{allocate: func(c rma.Comm, s rma.Spec) (*rma.Window, error) {
		return c.Allocate(rma.CounterSpec(s.Name, s.Words()))
	}}},
	{"parts are too long", "Errors/RankAndDisplacement", badComm{allocate: func(c rma.Comm, s rma.Spec) (*rma.Window, error) {
		return c.Allocate(rma.CounterSpec(s.Name, s.Words()+1))
	}}},
}

func onAwait(f func(t rma.Transport, q rma.Waiting) (int, int64, error)) badComm {
	return badComm{transport: func(_ rma.Comm, t rma.Transport) rma.Transport {
		return &badTransport{Transport: t, await: f}
	}}
}

// fenceless issues what is pending in the opposite order, but for operations on one word.
func fenceless(_ rma.Comm, t rma.Transport) rma.Transport {
	var held []rma.Operation
	slept := 0
	return &badTransport{Transport: t,
		issue: func(_ rma.Transport, o rma.Operation) {
			o.Epoch = 0
			held = append(held, o)
		},
		flush: func(t rma.Transport, _ int, r *rma.Results) (int, error) {
			for len(held) > 0 {
				i := len(held) - 1
				for j := i - 1; j >= 0; j-- {
					if held[i].Follows(&held[j]) {
						i = j
					}
				}
				t.Issue(held[i])
				held = slices.Delete(held, i, i+1)
				if _, err := t.Flush(-1, r); err != nil {
					return 0, err
				}
				if slept++; slept < 150 {
					time.Sleep(500 * time.Microsecond) // for other ranks to see it
				}
			}
			return t.Flush(-1, r)
		},
	}
}

// lifo issues what is pending in the opposite order.
func lifo(_ rma.Comm, t rma.Transport) rma.Transport {
	var held []rma.Operation
	return &badTransport{Transport: t,
		issue: func(_ rma.Transport, o rma.Operation) { held = append(held, o) },
		flush: func(t rma.Transport, _ int, r *rma.Results) (int, error) {
			for i := range held {
				t.Issue(held[len(held)-1-i])
			}
			held = held[:0]
			return t.Flush(-1, r)
		},
	}
}

// late holds operations of a kind on Flag words back until the next Flush but one.
func late(kind rma.Kind) func(_ rma.Comm, t rma.Transport) rma.Transport {
	return func(_ rma.Comm, t rma.Transport) rma.Transport {
		var fresh, held []rma.Operation
		return &badTransport{Transport: t,
			issue: func(t rma.Transport, o rma.Operation) {
				if o.Kind == kind && o.Class == rma.Flag {
					o.Data = slices.Clone(o.Data)
					fresh = append(fresh, o)
				} else {
					t.Issue(o)
				}
			},
			flush: func(t rma.Transport, _ int, r *rma.Results) (int, error) {
				runtime.Gosched()
				for _, o := range held {
					t.Issue(o)
				}
				held, fresh = append(held[:0], fresh...), fresh[:0]
				return t.Flush(-1, r)
			},
		}
	}
}

// TestFaultsAreCaught: a suite is worth what it finds.
func TestFaultsAreCaught(t *testing.T) {
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			if rmatest.RaceEnabled && f.check == "Allocations" {
				t.Skip("the race detector allocates: the check is off")
			}
			limit := 20 * time.Second
			if strings.HasPrefix(f.name, "Await forgets") || f.name == "Await misses writes" {
				limit = 200 * time.Millisecond // it must hang
			}
			i := slices.IndexFunc(rmatest.Checks(), func(k rmatest.Check) bool { return k.Name == f.check })
			if i < 0 {
				t.Fatalf("there is no check %s", f.check)
			}
			err := rmatest.Watched(1, 4, limit)(func(c rma.Comm) error {
				bad := f.bad
				bad.Comm = c
				return rmatest.Checks()[i].Run(&bad)
			})
			if err == nil {
				t.Errorf("check %s did not catch it", f.check)
			} else {
				t.Log(strings.SplitN(err.Error(), "\n", 2)[0])
			}
		})
	}
}

// TestOneFailureFailsAll: when one rank fails, all fail with its text.
func TestOneFailureFailsAll(t *testing.T) {
	var errs [4]error
	err := inproc.Run(4, func(c rma.Comm) error {
		var bad badComm
		bad.Comm = c
		if c.Rank() == 2 {
			bad.now = func(c rma.Comm) int64 { return -c.Now() }
		}
		for _, k := range rmatest.Checks() {
			if k.Name == "Clock" {
				errs[c.Rank()] = k.Run(&bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "the clock went back") {
			t.Errorf("rank %d: %v", r, err)
		}
		if errors.Is(err, rma.ErrPeer) != (r != 2) {
			t.Errorf("rank %d: error %v, want ErrPeer on the ranks without a fault of their own", r, err)
		}
	}
}
