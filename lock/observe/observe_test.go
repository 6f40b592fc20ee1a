package observe_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/observe"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// timeline is a file of a Trace, as a viewer reads it.
type timeline struct {
	Events []event `json:"traceEvents"`
}

type event struct {
	Name, Ph string
	Pid, Tid int
	ID       int
	Ts, Dur  json.Number
	Args     struct {
		Name, Lock, Mode string
		ID               int
		From             *int `json:"from_rank"`
	}
}

// ns reads microseconds with three decimals.
func ns(t *testing.T, n json.Number) (v int64) {
	t.Helper()
	whole, part, ok := strings.Cut(n.String(), ".")
	require.True(t, ok && len(part) == 3, n)
	_, err := fmt.Sscan(strings.TrimLeft(whole+part, "0")+"", &v)
	if err != nil {
		require.Equal(t, "", strings.TrimLeft(whole+part, "0"))
	}
	return v
}

// always records all.
var always = observe.Sampling{Period: time.Hour, Slice: time.Hour, Most: 1 << 30, Keep: 1 << 12}

// traced runs visits of all ranks under locks that are recorded.
func traced(t *testing.T, nodes, perNode int, s observe.Sampling, open func(rma.Comm) (lock.Table, error), visit func(rma.Comm, lock.Table) error) timeline {
	t.Helper()
	var out bytes.Buffer
	err := inproc.RunNodes(nodes, perNode, func(c rma.Comm) error {
		tr, err := observe.NewTrace(c, s)
		if err != nil {
			return err
		}
		inner, err := open(c)
		if err != nil {
			return err
		}
		locks := tr.Table(inner, `a "name"`)
		if err := c.Barrier(); err != nil {
			return err
		}
		if err := visit(c, locks); err != nil {
			return err
		}
		if err := locks.Free(); err != nil {
			return err
		}
		if c.Rank() != 0 {
			return tr.Write(nil)
		}
		return tr.Write(&out)
	})
	require.NoError(t, err)
	var tl timeline
	d := json.NewDecoder(&out)
	d.UseNumber()
	require.NoError(t, d.Decode(&tl))
	return tl
}

// hold is a slice of a timeline.
type hold struct{ from, to int64 }

// TestHoldsAreDisjoint: the intervals in which an exclusive lock is held do not meet,
// and each handover lies between two of them. Every acquire is there.
func TestHoldsAreDisjoint(t *testing.T) {
	const nodes, perNode, visits, locks = 2, 2, 200, 2
	tl := traced(t, nodes, perNode, always,
		func(c rma.Comm) (lock.Table, error) { return dmcs.New(c, dmcs.Config{Locks: locks}) },
		func(c rma.Comm, l lock.Table) error {
			for i := range visits {
				if err := l.Lock(context.Background(), i%locks, lock.Exclusive); err != nil {
					return err
				}
				if i%20 == 0 {
					c.Sleep(100_000) // so that others wait
				}
				if err := l.Unlock(i%locks, lock.Exclusive); err != nil {
					return err
				}
			}
			return nil
		})
	holds := make([][]hold, locks)
	releases := map[int64]bool{} // moments
	names := map[string]int{}
	pid := map[int]int{}
	for _, e := range tl.Events {
		names[e.Name+" "+e.Ph]++
		if e.Ph == "X" {
			require.Equal(t, `a "name"`, e.Args.Lock)
			require.Equal(t, "exclusive", e.Args.Mode)
			pid[e.Tid] = e.Pid
		}
		if e.Name == "hold" {
			begin := ns(t, e.Ts)
			holds[e.Args.ID] = append(holds[e.Args.ID], hold{begin, begin + ns(t, e.Dur)})
			releases[begin+ns(t, e.Dur)] = true
		}
	}
	require.Equal(t, map[int]int{0: 0, 1: 0, 2: 1, 3: 1}, pid, "node by rank")
	all := nodes * perNode * visits
	for _, name := range []string{"wait X", "hold X", "release X"} {
		require.Equal(t, all, names[name], name)
	}
	require.Equal(t, nodes, names["process_name M"])
	require.Equal(t, nodes*perNode, names["thread_name M"])
	require.Greater(t, names["handover X"], 10)
	require.Equal(t, names["handover X"], names["handover s"])
	require.Equal(t, names["handover X"], names["handover f"])
	for id, of := range holds {
		require.Len(t, of, all/locks)
		slices.SortFunc(of, func(a, b hold) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
		for i := range of[1:] {
			require.LessOrEqual(t, of[i].to, of[i+1].from, "lock %d is held by two", id)
		}
	}
	for _, e := range tl.Events {
		if e.Name == "handover" && e.Ph == "X" {
			require.True(t, releases[ns(t, e.Ts)], "a handover begins where a hold ends")
			require.NotEqual(t, e.Tid, *e.Args.From)
			require.GreaterOrEqual(t, ns(t, e.Dur), int64(0))
		}
	}
}

// TestSharedAndSeveral: readers hold at once, under their own name; a rank that holds
// two locks has a lane for each, in which slices nest.
func TestSharedAndSeveral(t *testing.T) {
	tl := traced(t, 1, 2, always,
		func(c rma.Comm) (lock.Table, error) {
			return baseline.NewRW(c, baseline.Config{Locks: 2}, baseline.FoMPI)
		},
		func(c rma.Comm, l lock.Table) error {
			first, second := l.Mutex(0).(lock.RWMutex), l.Mutex(1).(lock.RWMutex)
			for _, step := range []func() error{
				func() error { return first.RLock(context.Background()) },
				func() error { ok, err := second.TryRLock(); return must(ok, err) },
				c.Barrier, // all hold both
				first.RUnlock, second.RUnlock,
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		})
	shared, lanes := 0, map[int]bool{}
	for _, e := range tl.Events {
		if e.Name == "hold shared" {
			shared++
			lanes[e.Tid] = true
			require.Equal(t, "shared", e.Args.Mode)
		}
		require.NotEqual(t, "handover", e.Name, "readers do not wait for readers")
	}
	require.Equal(t, 4, shared)
	require.Equal(t, map[int]bool{0: true, 1: true, 2: true, 3: true}, lanes)
}

// TestOneOfThree: two ranks take no lock at all.
func TestOneOfThree(t *testing.T) {
	tl := traced(t, 1, 3, always,
		func(c rma.Comm) (lock.Table, error) { return dmcs.New(c, dmcs.Config{}) },
		func(c rma.Comm, l lock.Table) error {
			if c.Rank() != 1 {
				return nil
			}
			m := l.Mutex(0)
			return errors.Join(m.Lock(context.Background()), m.Unlock())
		})
	holds := 0
	for _, e := range tl.Events {
		if e.Name == "hold" {
			holds++
			require.Equal(t, 1, e.Tid)
		}
	}
	require.Equal(t, 1, holds)
}

func must(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("a free lock was not taken")
	}
	return err
}

// TestSampling: of many quick acquires a small share is recorded, in slices; of a few
// slow ones all.
func TestSampling(t *testing.T) {
	open := func(c rma.Comm) (lock.Table, error) { return dmcs.New(c, dmcs.Config{}) }
	pairs := func(n int, pause int64) func(rma.Comm, lock.Table) error {
		return func(c rma.Comm, l lock.Table) error {
			m := l.Mutex(0)
			for range n {
				if err := m.Lock(context.Background()); err != nil {
					return err
				}
				if err := m.Unlock(); err != nil {
					return err
				}
				if pause > 0 {
					c.Sleep(pause)
				}
			}
			return nil
		}
	}
	count := func(tl timeline) (n int) {
		for _, e := range tl.Events {
			if e.Name == "hold" {
				n++
			}
		}
		return n
	}
	const quick = 2_000_000
	n := count(traced(t, 1, 1, observe.Sampling{Period: 5 * time.Millisecond, Slice: time.Millisecond, Most: 100}, open, pairs(quick, 0)))
	require.Greater(t, n, 100, "of more than one slice")
	require.Less(t, n, quick/20)
	require.GreaterOrEqual(t, count(traced(t, 1, 1, observe.Sampling{}, open, pairs(50, 100_000))), 49)
	require.Equal(t, 64, count(traced(t, 1, 1, observe.Sampling{Period: time.Hour, Slice: time.Hour, Most: 1 << 30, Keep: 64}, open, pairs(1000, 0))), "the last ones")
}

// TestCountsAreExact: acquires, failed tries and errors of each lock and mode, summed
// over the ranks of the process; they stay when the table is freed.
func TestCountsAreExact(t *testing.T) {
	const ranks, visits = 3, 100
	exact := fresh("exact")
	err := inproc.Run(ranks, func(c rma.Comm) error {
		inner, err := baseline.NewRW(c, baseline.Config{Locks: 2}, baseline.FoMPI)
		if err != nil {
			return err
		}
		l := observe.Count(c, inner, exact)
		for range visits {
			if err := l.Lock(context.Background(), 0, lock.Exclusive); err != nil {
				return err
			}
			if err := l.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
		}
		r := l.Mutex(1).(lock.RWMutex)
		if c.Rank() == 0 {
			if err := r.RLock(context.Background()); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil { // rank 0 reads
			return err
		}
		c.Sleep(2_000_000)
		if c.Rank() > 0 {
			if ok, err := r.TryLock(); ok || err != nil {
				return fmt.Errorf("a lock that rank 0 reads was taken: %v, %v", ok, err)
			}
			over, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if err := r.Lock(over); !errors.Is(err, lock.ErrDeadline) {
				return fmt.Errorf("a lock that rank 0 reads: %v", err)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := r.RUnlock(); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			if s := snapshot(exact); s.Exclusive.Acquires < visits {
				return fmt.Errorf("at run time: %+v", s)
			}
		}
		return l.Free()
	})
	require.NoError(t, err)
	s := snapshot(exact)
	require.Equal(t, 2, s.Locks)
	require.Len(t, s.Each, 2)
	times := func(c observe.Counts) observe.Counts { c.WaitNs, c.HoldNs = 0, 0; return c }
	require.Equal(t, observe.Counts{Acquires: ranks * visits}, times(s.Each[0].Exclusive))
	require.Equal(t, observe.Counts{}, s.Each[0].Shared)
	require.Equal(t, observe.Counts{TriesFailed: ranks - 1, Errors: ranks - 1}, s.Each[1].Exclusive)
	require.Equal(t, observe.Counts{Acquires: 1}, times(s.Each[1].Shared))
	require.GreaterOrEqual(t, s.Each[1].Shared.HoldNs, int64(2_000_000))
	require.Positive(t, s.Each[0].Exclusive.WaitNs)
	require.Equal(t, s.Exclusive.Acquires, s.Each[0].Exclusive.Acquires+s.Each[1].Exclusive.Acquires)

	var all []observe.Snapshot
	require.NoError(t, json.Unmarshal([]byte(expvar.Get("rmalock").String()), &all))
	require.Contains(t, all, s)
	var text bytes.Buffer
	require.NoError(t, observe.WritePrometheus(&text))
	require.Contains(t, text.String(), "# TYPE rmalock_acquires_total counter\n")
	require.Contains(t, text.String(), fmt.Sprintf(`rmalock_acquires_total{table="%s",mode="exclusive",lock="0"} %d`+"\n", exact, ranks*visits))
	require.Contains(t, text.String(), fmt.Sprintf(`rmalock_tries_failed_total{table="%s",mode="exclusive",lock="1"} %d`+"\n", exact, ranks-1))
}

// fresh is a name that nothing was counted under, however often the tests run.
func fresh(name string) string { return fmt.Sprint(name, len(observe.Snapshots())) }

func snapshot(name string) observe.Snapshot {
	for _, s := range observe.Snapshots() {
		if s.Name == name {
			return s
		}
	}
	return observe.Snapshot{}
}

// TestLargeTable: the counters of a table of many locks are their sum.
func TestLargeTable(t *testing.T) {
	large := fresh("large")
	err := inproc.Run(1, func(c rma.Comm) error {
		inner, err := dmcs.New(c, dmcs.Config{Locks: 100_000})
		if err != nil {
			return err
		}
		l := observe.Count(c, inner, large)
		for id := range 1000 {
			m := l.Mutex(id * 100)
			if _, ok := m.(lock.RWMutex); ok {
				return errors.New("a lock without a shared mode has one when it is counted")
			}
			if err := m.Lock(context.Background()); err != nil {
				return err
			}
			if err := m.Unlock(); err != nil {
				return err
			}
		}
		return l.Free()
	})
	require.NoError(t, err)
	s := snapshot(large)
	require.EqualValues(t, 1000, s.Exclusive.Acquires)
	require.Nil(t, s.Each)
	var text bytes.Buffer
	require.NoError(t, observe.WritePrometheus(&text))
	require.Contains(t, text.String(), fmt.Sprintf(`rmalock_acquires_total{table="%s",mode="exclusive"} 1000`+"\n", large))
}

// TestNoAllocation: neither wrapper allocates per acquire.
func TestNoAllocation(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		inner, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		tr, err := observe.NewTrace(c, always)
		if err != nil {
			return err
		}
		l := observe.Count(c, tr.Table(inner, "x"), "free")
		m := l.Mutex(0)
		n := testing.AllocsPerRun(1000, func() {
			if m.Lock(context.Background()) != nil || m.Unlock() != nil {
				panic("lock failed")
			}
		})
		if n != 0 {
			return fmt.Errorf("%v allocations per acquire", n)
		}
		return l.Free()
	})
	require.NoError(t, err)
}

// BenchmarkUncontended: what a pair of Lock and Unlock costs, alone.
func BenchmarkUncontended(b *testing.B) {
	for _, how := range []string{"plain", "traced", "traced-always", "counted"} {
		b.Run(how, func(b *testing.B) {
			err := inproc.Run(1, func(c rma.Comm) error {
				inner, err := dmcs.New(c, dmcs.Config{})
				if err != nil {
					return err
				}
				l := lock.Table(inner)
				s := observe.Sampling{}
				switch how {
				case "traced-always":
					s = always
					fallthrough
				case "traced":
					tr, err := observe.NewTrace(c, s)
					if err != nil {
						return err
					}
					l = tr.Table(l, "x")
				case "counted":
					l = observe.Count(c, l, "bench")
				}
				m, ctx := l.Mutex(0), context.Background()
				for b.Loop() {
					if err := m.Lock(ctx); err != nil {
						return err
					}
					if err := m.Unlock(); err != nil {
						return err
					}
				}
				return l.Free()
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
