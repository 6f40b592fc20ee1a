package sim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// narrow is a Model with a limit of operations under way from a rank to a target.
type narrow struct {
	sim.Model
	limit int
}

func (n narrow) Connection(from, to int) (id, limit int) { return from<<16 | to, n.limit }

// seen is a Model that notes what it is asked to serve.
type seen struct {
	sim.Model
	kinds map[rma.Kind]int
	words map[uint64]bool
}

func (s seen) Serve(now int64, from, to int, kind rma.Kind, words int, word uint64) int64 {
	s.kinds[kind]++
	s.words[word] = true
	return s.Model.Serve(now, from, to, kind, words, word)
}

func watch() seen { return seen{sim.Uneven(1), map[rma.Kind]int{}, map[uint64]bool{}} }

// run runs rank 0 with a window of n words of a class, and the others until it is through.
func run(t *testing.T, j sim.Timed, spec rma.Spec, f func(c *sim.Comm, w *rma.Window) error) sim.Elapsed {
	t.Helper()
	e, err := j.Run(func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		if err == nil && c.Rank() == 0 {
			s, _ := sim.Of(c)
			err = f(s, w)
		}
		return errors.Join(err, c.Barrier())
	})
	require.NoError(t, err)
	return e
}

func words(name string, class rma.Class, hosts rma.Hosts, n int) rma.Spec {
	return rma.Spec{Name: name, Hosts: hosts, Regions: []rma.Region{{Words: []rma.Word{{Name: "w", Class: class}}, Count: n}}}
}

// What a window's operations on far words are for the network: atomics under MPI, and under
// verbs a READ for a Get and a loop of CAS for a Put and a swap.
func TestFarWordsOnTheWire(t *testing.T) {
	ops := func(c *sim.Comm, w *rma.Window) error {
		if _, err := w.GetFlush(0, 1); err != nil {
			return err
		}
		if err := w.PutFlush(7, 0, 1); err != nil { // of a word that is 0: the first try
			return err
		}
		if _, err := w.FetchAndOpFlush(8, 0, 1, rma.Replace); err != nil { // of one that is not: the second
			return err
		}
		if _, err := w.FetchAndOpFlush(1, 0, 1, rma.Sum); err != nil {
			return err
		}
		v, err := w.Await(0, 1, rma.Equal(9))
		if v != 9 {
			t.Errorf("the word is %d", v)
		}
		if n := c.Counts(); n.Memory == 0 || n.Mate+n.Far+n.Own > 0 || n.Others() != n.Memory {
			t.Errorf("counted %+v", n)
		}
		return err
	}
	for _, x := range []struct {
		verbs, masked bool
		want          map[rma.Kind]int
	}{
		{false, false, map[rma.Kind]int{rma.KindFetchAndOp: 4, rma.KindAccumulate: 1}},
		{true, false, map[rma.Kind]int{rma.KindGet: 2, rma.KindCompareAndSwap: 3, rma.KindFetchAndOp: 1}},
		{true, true, map[rma.Kind]int{rma.KindGet: 2, rma.KindCompareAndSwap: 1, rma.KindFetchAndOp: 2}},
	} {
		m := watch()
		e := run(t, sim.Timed{Node: layout(2, 1), MemoryNodes: 1, Verbs: x.verbs, MaskedSwap: x.masked, Model: m}, words("far", rma.Far, rma.MemoryNodes, 4), ops)
		require.Equal(t, x.want, m.kinds, "verbs: %v", x.verbs)
		require.EqualValues(t, 1, e.Memory.Polls)
		require.Zero(t, e.Ranks.Total()+e.Messages)
		poll := rma.KindFetchAndOp
		if x.verbs {
			poll = rma.KindGet
		}
		for k, n := range x.want {
			if k == poll {
				n-- // polls are apart
			}
			require.EqualValues(t, n, e.Memory.Kinds[k], "verbs: %v, %v", x.verbs, k)
		}
		require.Equal(t, sim.Elapsed{}, e.Minus(e))
	}
}

// On one node MPI does all in node memory. With verbs far words are changed through the NIC, and
// read by the CPU.
func TestLoopback(t *testing.T) {
	for _, x := range []struct {
		verbs bool
		want  map[rma.Kind]int
	}{{false, map[rma.Kind]int{}}, {true, map[rma.Kind]int{rma.KindFetchAndOp: 2}}} {
		m := watch()
		run(t, sim.Timed{Node: layout(1, 2), Verbs: x.verbs, Model: m}, words("far", rma.Far, rma.Ranks, 2), func(c *sim.Comm, w *rma.Window) error {
			for range 2 {
				w.FetchAndOp(1, 1, 0, rma.Sum)
				if err := w.Flush(1); err != nil {
					return err
				}
			}
			v, err := w.GetFlush(1, 0)
			if v != 2 {
				t.Errorf("the word is %d, want 2", v)
			}
			return err
		})
		require.Equal(t, x.want, m.kinds, "verbs: %v", x.verbs)
	}
	// A Get behind an operation on its word that is under way goes the same way.
	m := watch()
	run(t, sim.Timed{Node: layout(1, 2), Verbs: true, Model: m}, words("far", rma.Far, rma.Ranks, 2), func(c *sim.Comm, w *rma.Window) error {
		w.FetchAndOp(5, 1, 0, rma.Sum)
		r := w.Get(1, 0)
		err := w.Flush(1)
		if w.Value(r) != 5 {
			t.Errorf("read %d behind an addition of 5", w.Value(r))
		}
		return err
	})
	require.Equal(t, map[rma.Kind]int{rma.KindFetchAndOp: 1, rma.KindGet: 1}, m.kinds)
}

// In a window of Timed.Loopback the words of node-mates are reached through the NIC, whatever their
// class; a rank's own are not, but for changes of far ones. A Put of a far word is a WRITE.
func TestLoopbackWindow(t *testing.T) {
	spec := rma.Spec{Name: "both", Regions: []rma.Region{{Words: []rma.Word{{Name: "far"}, {Name: "flag", Class: rma.Flag}}, Count: 1}}}
	m := watch()
	run(t, sim.Timed{Node: layout(1, 2), Verbs: true, Loopback: []string{"both"}, Model: m}, spec, func(c *sim.Comm, w *rma.Window) error {
		me, mate := c.Rank(), 1-c.Rank()
		errs := []error{
			w.PutFlush(1, mate, 0), w.PutFlush(1, mate, 1), // 2 WRITEs
			w.PutFlush(1, me, 0), w.PutFlush(1, me, 1), // 1 WRITE
		}
		for disp := range 2 {
			_, err := w.GetFlush(me, disp)
			_, err2 := w.GetFlush(mate, disp) // 2 READs
			errs = append(errs, err, err2)
		}
		return errors.Join(errs...)
	})
	require.Equal(t, map[rma.Kind]int{rma.KindPut: 3, rma.KindGet: 2}, m.kinds)
	_, err := sim.Timed{Node: layout(1, 2), Verbs: true, Loopback: []string{"none"}, Model: watch()}.Run(func(c rma.Comm) error { return nil })
	require.ErrorIs(t, err, rma.ErrSpec)
}

// A fence before an operation that the CPU does holds it until what came before has taken effect.
func TestFenceBeforeTheCPU(t *testing.T) {
	spec := rma.Spec{Name: "both", Regions: []rma.Region{{Words: []rma.Word{{Name: "far"}, {Name: "flag", Class: rma.Flag}}, Count: 1}}}
	_, err := sim.Timed{Node: layout(2, 2), Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		switch {
		case err != nil:
		case c.Rank() == 0:
			w.Accumulate(1, 1, 0, rma.Sum)
			w.Fence(1)
			w.Put(1, 1, 1)
			err = w.Flush(1)
		case c.Rank() == 1:
			if _, err = w.Await(1, 1, rma.Equal(1)); err == nil {
				var v int64
				if v, err = w.GetFlush(1, 0); v != 1 {
					t.Errorf("the flag is there, and the word before the fence is %d", v)
				}
			}
		}
		return errors.Join(err, c.Barrier())
	})
	require.NoError(t, err)
}

// steps is a Model in which every operation takes 1000 ns to arrive and as long back.
type steps struct {
	sim.Model
	limit, shared int
	under, most   *int
}

func (s steps) Issue(now int64, _, _ int, _ rma.Kind, _ int, _ bool) (int64, int64) {
	return now, now + 1000
}
func (s steps) Serve(now int64, _, _ int, k rma.Kind, _ int, _ uint64) int64 {
	if k == rma.KindGet {
		*s.under++
		*s.most = max(*s.most, *s.under)
	}
	return now + 1
}
func (s steps) Reply(now int64, _, _ int, k rma.Kind, _ int) int64 {
	if k == rma.KindGet {
		*s.under--
	}
	return now + 1000
}
func (s steps) Connection(from, _ int) (id, limit int) { return from / s.shared, s.limit }

// The NIC begins no more READs and atomics than may be under way on a connection; those of all
// ranks that share it count together, and Puts do not.
func TestLimitUnderWay(t *testing.T) {
	for _, x := range []struct {
		limit, shared int
		want          int64 // 32 READs of each of 2 ranks, round trips one after the other
	}{{0, 1, 1}, {16, 1, 2}, {16, 2, 4}, {1, 1, 32}, {1, 2, 64}} {
		m := steps{sim.Uneven(1), x.limit, x.shared, new(int), new(int)}
		var took [2]int64
		_, err := sim.Timed{Node: layout(2, 1), MemoryNodes: 1, Verbs: true, Model: m}.Run(func(c rma.Comm) error {
			w, err := c.Allocate(words("m", rma.Far, rma.MemoryNodes, 64))
			if err != nil {
				return err
			}
			start := c.Now()
			for i := range 32 {
				w.Get(0, i)
			}
			err = w.Flush(0)
			took[c.Rank()] = c.Now() - start
			return err
		})
		require.NoError(t, err)
		got := max(took[0], took[1])
		if got < x.want*2001 || got > x.want*2001+100 {
			t.Errorf("limit %d, %d ranks a connection: 32 READs take %d ns, want %d round trips of 2001", x.limit, x.shared, got, x.want)
		}
		if per := x.limit * 2 / x.shared; x.limit > 0 && *m.most > per {
			t.Errorf("limit %d, %d ranks a connection: %d at once", x.limit, x.shared, *m.most)
		}
	}
}

// What a connection holds back keeps its order: a Put on a word behind a READ of it.
func TestLimitKeepsOrder(t *testing.T) {
	m := steps{sim.Uneven(1), 1, 1, new(int), new(int)}
	run(t, sim.Timed{Node: layout(1, 1), MemoryNodes: 1, Verbs: true, Model: m}, words("m", rma.Plain, rma.MemoryNodes, 8), func(c *sim.Comm, w *rma.Window) error {
		var r [4]rma.Result
		for i := range r {
			r[i] = w.Get(0, i)
			w.Put(9, 0, i)
		}
		err := w.Flush(0)
		for i := range r {
			if v := w.Value(r[i]); v != 0 {
				t.Errorf("READ %d found %d, which was put after it", i, v)
			}
		}
		return err
	})
}

// Windows in mailboxes and in NIC memory.
func TestMessagesAndDeviceMemory(t *testing.T) {
	m := watch()
	j := sim.Timed{Node: layout(2, 1), MemoryNodes: 1, Verbs: true, Messages: []string{"mail"}, Model: m}
	e := run(t, j, words("mail", rma.Plain, rma.Ranks, 2), func(c *sim.Comm, w *rma.Window) error { return w.PutFlush(3, 1, 1) })
	require.EqualValues(t, 1, e.Messages)
	require.Zero(t, e.Ranks.Total()+e.Memory.Total())
	require.Equal(t, map[rma.Kind]int{sim.Message: 1}, m.kinds)
	require.Equal(t, map[uint64]bool{3: true}, m.words)

	m = watch()
	j.Model, j.Messages, j.Device = m, nil, []string{"nic"}
	run(t, j, words("nic", rma.Far, rma.MemoryNodes, 2), func(c *sim.Comm, w *rma.Window) error { return w.AccumulateFlush(3, 0, 1, rma.Sum) })
	require.Equal(t, map[uint64]bool{1 | sim.Device: true}, m.words)

	j.Device = []string{"nik"}
	_, err := j.Run(func(c rma.Comm) error {
		_, err := c.Allocate(words("nic", rma.Far, rma.MemoryNodes, 2))
		return err
	})
	require.ErrorIs(t, err, rma.ErrSpec)
	require.ErrorContains(t, err, `"nik"`)
}

// TestTenMillionLocks: 10 million locks of 8 bytes on 4 memory nodes, all of them taken, by 256
// clients, in at most 200 MiB; and a billion of which some are taken.
func TestTenMillionLocks(t *testing.T) {
	for _, x := range []struct {
		locks, most int
		sweep       bool
	}{{10_000_000, 200 << 20, true}, {1_600_000_000, 100 << 20, false}} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const clients, nodes = 256, 4
		taken := 0
		_, err := sim.Timed{Node: layout(8, clients/8), MemoryNodes: nodes, Verbs: true, Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
			w, err := c.Allocate(words("locks", rma.Far, rma.MemoryNodes, x.locks/nodes))
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
			for range 50 {
				id := rng.IntN(x.locks)
				for {
					was, err := w.CompareAndSwapFlush(1, 0, id%nodes, id/nodes)
					if err != nil {
						return err
					}
					if was == 0 {
						break
					}
				}
				taken++
				if err := w.AccumulateFlush(-1, id%nodes, id/nodes, rma.Sum); err != nil {
					return err
				}
			}
			for id := c.Rank() * 500; x.sweep && id < x.locks/nodes; id += clients * 500 { // every page
				for node := range nodes {
					w.Accumulate(0, node, id, rma.Sum)
				}
				if err := w.FlushAll(); err != nil {
					return err
				}
			}
			if err := c.Barrier(); err != nil || c.Rank() > 0 {
				return err
			}
			for at, all := 0, make([]int64, 1<<16); at+len(all) <= w.Words() && !x.sweep; at += 100 * len(all) {
				w.GetBulk(all, 0, at) // of untouched words, which stay that
				if err := w.Flush(0); err != nil || slices.Max(all) != 0 {
					return errors.Join(err, fmt.Errorf("some of %d locks from %d on are taken", len(all), at))
				}
			}
			runtime.ReadMemStats(&after)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, clients*50, taken)
		used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
		t.Logf("%d locks: %d MiB", x.locks, used>>20)
		if used > uint64(x.most) {
			t.Errorf("%d locks take %d MiB, want at most %d", x.locks, used>>20, x.most>>20)
		}
	}
}
