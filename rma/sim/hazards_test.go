package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

const tick = sim.DefaultTickNs

// both lists what parts can come to under all schedules, and what random ones find.
func both(t *testing.T, s sim.Search, spec rma.Spec, parts ...part) (all, drawn []string) {
	t.Helper()
	found := map[string]bool{}
	seen := make([][]int64, len(parts))
	_, f := s.Run(sim.Random(1, 0, 20_000), func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		me := c.Rank()
		seen[me] = nil
		if err := job.Begin(); err != nil {
			return err
		}
		if err := parts[me](job, w, func(v ...int64) { seen[me] = append(seen[me], v...) }); err != nil {
			return err
		}
		if err := job.End(); err != nil {
			return err
		}
		found[fmt.Sprint(seen)] = true
		return nil
	})
	if f != nil {
		t.Fatal(f)
	}
	return litmus(t, s, spec, parts...), slices.Sorted(maps.Keys(found))
}

// busy takes n steps.
func busy(n, target, disp int) part {
	return func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
		for range n {
			if err := w.AccumulateFlush(1, target, disp, rma.Sum); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestClockIsSeen: whatever time passes between two readings, random schedules and all
// schedules find it, and nothing else.
func TestClockIsSeen(t *testing.T) {
	s := sim.Search{Node: []int{0, 1}, Ticks: 3}
	want := []string{"[[] [0]]", "[[] [1]]", "[[] [2]]", "[[] [3]]"}
	for name, reads := range map[string]part{
		"around operations that others may change": func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
			start := job.Now()
			for range 2 {
				if _, err := w.GetFlush(0, 0); err != nil {
					return err
				}
			}
			saw((job.Now() - start) / tick)
			return nil
		},
		"around an operation of its own": func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
			if err := w.AccumulateFlush(1, 0, 2, rma.Sum); err != nil {
				return err
			}
			start := job.Now()
			if err := w.AccumulateFlush(1, 0, 1, rma.Sum); err != nil {
				return err
			}
			saw((job.Now() - start) / tick)
			return nil
		},
	} {
		all, drawn := both(t, s, rma.CounterSpec("w", 3), busy(6, 0, 0), reads)
		if !slices.Equal(all, want) || !slices.Equal(drawn, want) {
			t.Errorf("%s: all schedules %q, random ones %q, want %q", name, all, drawn, want)
		}
	}
}

// expires polls a word until it is 1, or has been another for longer than a lease.
func expires(lease int64) part {
	return func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		start := job.Now()
		for try := 0; ; try++ {
			v, err := w.GetFlush(0, 0)
			if err != nil || v == 1 {
				return err
			}
			if job.Now()-start > lease {
				saw(-1)
				return nil
			}
			if err := w.Backoff(0, 0, v, try); err != nil {
				return err
			}
		}
	}
}

// TestLeaseExpires: a search finds that a poll gives up after a lease, if so much time is
// allowed, though the word that it polls does not change.
func TestLeaseExpires(t *testing.T) {
	for lease := int64(0); lease < 4; lease++ {
		for ticks := 1; ticks <= 4; ticks++ {
			s := sim.Search{Node: []int{0, 1}, Ticks: ticks}
			want := []string{"[[] []]"}
			if int64(ticks) > lease {
				want = []string{"[[] [-1]]", "[[] []]"}
			}
			got := litmus(t, s, rma.CounterSpec("w", 2), func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				return errors.Join(w.AccumulateFlush(1, 0, 1, rma.Sum), w.PutFlush(1, 0, 0))
			}, expires(lease*tick))
			if !slices.Equal(got, want) {
				t.Errorf("a lease of %d ticks, %d allowed: %q, want %q", lease, ticks, got, want)
			}
		}
	}
}

// TestClockIsRefused: without ticks nothing is decided by the clock in silence.
func TestClockIsRefused(t *testing.T) {
	for name, p := range map[string]part{
		"reads the clock": func(job *sim.Comm, _ *rma.Window, _ func(...int64)) error { job.Now(); return nil },
		"waits with a limit": func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
			_, _, err := w.AwaitUntil(0, 0, rma.Equal(1), 5)
			return err
		},
		"spins": func(job *sim.Comm, _ *rma.Window, _ func(...int64)) error {
			for job.Now() < 1e9 {
			}
			return nil
		},
	} {
		for _, sched := range []sim.Scheduler{sim.Exhaustive(sim.Unbounded), sim.Random(1, 0, 10), sim.PCT(1, 3, 0, 10)} {
			_, f := sim.Search{Node: []int{0}}.Run(sched, func(c rma.Comm) error {
				job, _ := sim.Of(c)
				w, err := c.Allocate(rma.CounterSpec("w", 1))
				if err == nil {
					err = errors.Join(job.Begin(), p(job, w, nil), job.End())
				}
				return err
			})
			if f == nil || !errors.Is(f, sim.ErrClock) || !strings.Contains(f.Error(), "Search.Ticks") {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}

// TestLimits: a wait with a limit ends with the word or with the limit, both where both are
// possible, and a wait without one for a word that does not change is a deadlock, ticks or not.
func TestLimits(t *testing.T) {
	until := func(at int64) part {
		return func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
			v, held, err := w.AwaitUntil(0, 0, rma.NotEqual(0), at)
			if !held {
				v = -1
			}
			saw(v)
			return err
		}
	}
	put := func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error { return w.PutFlush(5, 0, 0) }
	for _, c := range []struct {
		name  string
		ticks int
		parts []part
		want  []string
	}{
		{"the word or the limit", 2, []part{put, until(tick)}, []string{"[[] [-1]]", "[[] [5]]"}},
		{"the limit is not reached", 2, []part{put, until(3 * tick)}, []string{"[[] [5]]"}},
		{"nothing but the limit", 2, []part{idle, until(2 * tick)}, []string{"[[] [-1]]"}},
		{"the limit is past, the word is not looked at too late", 2, []part{put, until(0)}, []string{"[[] [-1]]", "[[] [5]]"}},
		{"no limit", 2, []part{idle, until(rma.Forever)}, []string{"deadlock"}},
		{"a limit does not hide that another rank waits for ever", 1, []part{func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
			_, err := w.Await(0, 1, rma.Equal(1))
			return err
		}, until(tick)}, []string{"deadlock"}},
		{"a sleep ends with the clock", 2, []part{
			func(job *sim.Comm, _ *rma.Window, saw func(...int64)) error {
				job.Sleep(2 * tick)
				saw(job.Now() / tick)
				return nil
			}, idle,
		}, []string{"[[2] []]"}},
		{"a loop on the clock ends", 2, []part{
			func(job *sim.Comm, _ *rma.Window, saw func(...int64)) error {
				for job.Now() < tick {
				}
				saw(job.Now() / tick)
				return nil
			}, idle,
		}, []string{"[[1] []]", "[[2] []]"}},
	} {
		if got := litmus(t, sim.Search{Node: []int{0, 1}, Ticks: c.ticks}, rma.CounterSpec("w", 2), c.parts...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	held := func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
		if err := w.PutFlush(7, 0, 0); err != nil {
			return err
		}
		return until(0)(nil, w, saw)
	}
	if got := litmus(t, sim.Search{Node: []int{0}, Ticks: 1}, rma.CounterSpec("w", 1), held); !slices.Equal(got, []string{"[[7]]"}) {
		t.Errorf("a condition that holds all the time: %q", got)
	}
}

// TestTicksCount: with a bound that counts ticks the clock is early as often as the bound says, and
// ticks that must come are free.
func TestTicksCount(t *testing.T) {
	reads := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		start := job.Now()
		if err := w.PutFlush(1, 0, 0); err != nil {
			return err
		}
		saw((job.Now() - start) / tick)
		if err := w.PutFlush(2, 0, 0); err != nil {
			return err
		}
		job.Sleep(5 * tick)
		saw((job.Now() - start) / tick)
		return nil
	}
	for bound, want := range [][]string{{"[[0 5]]"}, {"[[0 5]]", "[[0 6]]", "[[1 6]]"}, {"[[0 5]]", "[[0 6]]", "[[0 7]]", "[[1 6]]", "[[1 7]]", "[[2 7]]"}} {
		x := sim.Exhaustive(bound)
		x.TicksCount = true
		if got := litmusIn(t, x, sim.Search{Node: []int{0}, Ticks: 9}, rma.CounterSpec("w", 1), reads); !slices.Equal(got, want) {
			t.Errorf("bound %d: %q, want %q", bound, got, want)
		}
	}
}

// TestOutOfTicks: an execution that needs more ticks than there are is no deadlock, and is
// counted.
func TestOutOfTicks(t *testing.T) {
	stats, f := sim.Search{Node: []int{0}, Ticks: 2}.Run(sim.Exhaustive(sim.Unbounded), func(c rma.Comm) error {
		job, _ := sim.Of(c)
		if err := job.Begin(); err != nil {
			return err
		}
		job.Sleep(3 * tick)
		return job.End()
	})
	if f != nil || stats.OutOfTicks != 1 || stats.Cut != 1 {
		t.Errorf("%+v, %v", stats, f)
	}
}

// TestRetryKeepsReadings: a rank that notes when a word changed is another one than a rank that
// noted another time.
func TestRetryKeepsReadings(t *testing.T) {
	const poll = 3
	watch := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		last := int64(0)
		var when []int64
		for try := 0; ; try++ {
			v, err := w.GetFlush(0, 0)
			if err != nil {
				return err
			}
			now := job.Now() / tick
			if v != last {
				last, when = v, append(when, v, now)
			}
			if now == poll {
				saw(when...)
				return nil
			}
			if err := w.Backoff(0, 0, v, try); err != nil {
				return err
			}
		}
	}
	all, drawn := both(t, sim.Search{Node: []int{0, 1}, Ticks: poll}, rma.CounterSpec("w", 1), func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
		for _, v := range []int64{1, 2, 1} {
			if err := w.PutFlush(v, 0, 0); err != nil {
				return err
			}
		}
		return nil
	}, watch)
	for _, k := range drawn {
		if !slices.Contains(all, k) {
			t.Errorf("random schedules find %s, all schedules do not: %q", k, all)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %q", all)
	}
}

// TestDeathNeedsNobody: a rank that nobody needs may die at any step.
func TestDeathNeedsNobody(t *testing.T) {
	one := func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
		v, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum)
		saw(v)
		return err
	}
	got := litmus(t, sim.Search{Node: []int{0, 1}, Crashes: 1}, rma.CounterSpec("w", 1), one, one)
	want := []string{"[[0] [1]]", "[[0] []]", "[[1] [0]]", "[[1] []]", "[[] [0]]", "[[] [1]]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = litmus(t, sim.Search{Node: []int{0, 1}, Crashes: 1}, rma.CounterSpec("w", 1), one, func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
		_, err := w.Await(0, 0, rma.Equal(1))
		return err
	})
	if !slices.Equal(got, []string{"[[0] []]", "deadlock"}) { // the waiter dies, or the other one does
		t.Errorf("%q", got)
	}
}

// TestDeadRanksOperations: what a rank had issued takes effect or does not, in the order of its
// fences.
func TestDeadRanksOperations(t *testing.T) {
	for _, fence := range []bool{false, true} {
		got := litmus(t, sim.Search{Node: []int{0, 1}, Faults: []sim.Fault{{Rank: 1}}}, rma.CounterSpec("w", 3),
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				for _, disp := range []int{1, 0} {
					v, err := w.GetFlush(0, disp)
					if err != nil {
						return err
					}
					saw(v)
				}
				return nil
			},
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				w.Put(1, 0, 0)
				if fence {
					w.Fence(0)
				}
				w.Put(1, 0, 1)
				return w.Flush(0)
			})
		want := []string{"[[0 0] []]", "[[0 1] []]", "[[1 0] []]", "[[1 1] []]"}
		if fence {
			want = slices.Delete(want, 2, 3)
		}
		if !slices.Equal(got, want) {
			t.Errorf("fence %v: %q, want %q", fence, got, want)
		}
	}
}

// TestDeathInCollectiveCall: the living meet without the dead.
func TestDeathInCollectiveCall(t *testing.T) {
	body := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
			return err
		}
		all, err := job.Allgather([]int64{int64(job.Rank() + 1)})
		saw(all...)
		return err
	}
	got := litmus(t, sim.Search{Node: []int{0, 1, 2}, Crashes: 1}, rma.CounterSpec("w", 1), body, body, body)
	want := []string{"[[1 0 3] [] [1 0 3]]", "[[1 2 0] [1 2 0] []]", "[[1 2 3] [1 2 3] [1 2 3]]", "[[] [0 2 3] [0 2 3]]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSuccessor: a successor runs the body anew, in its predecessor's windows, with the next
// generation, while what the predecessor has issued is still on its way.
func TestSuccessor(t *testing.T) {
	body := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		v, err := w.FetchAndOpFlush(10+int64(job.Generation()), 0, 0, rma.Replace)
		saw(int64(job.Generation()), v)
		return err
	}
	got := litmus(t, sim.Search{Node: []int{0, 1}, Crashes: 2, Rejoins: 2}, rma.CounterSpec("w", 2), busy(2, 0, 1), body)
	want := []string{
		"[[] [0 0]]", "[[] [1 0]]", "[[] [1 10]]", "[[] [2 0]]", "[[] [2 10]]", "[[] [2 11]]", "[[] []]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSuccessorMakesNoCollectiveCall: what a successor calls before Begin cannot be collective.
func TestSuccessorMakesNoCollectiveCall(t *testing.T) {
	_, f := sim.Search{Node: []int{0, 1}, Crashes: 1, Rejoins: 1}.Run(sim.Exhaustive(sim.Unbounded), func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err == nil {
			err = c.Barrier()
		}
		if err != nil {
			return err
		}
		return errors.Join(job.Begin(), w.PutFlush(1, 0, 0), job.End())
	})
	if f == nil || !errors.Is(f, errors.ErrUnsupported) {
		t.Error(f)
	}
}

// TestFailuresWithHazardsReplay: schedules with ticks, deaths and successors can be replayed
// and shrunk.
func TestFailuresWithHazardsReplay(t *testing.T) {
	found := errors.New("found")
	body := func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if err := job.Begin(); err != nil {
			return err
		}
		for range 3 {
			v, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum)
			if err != nil {
				return err
			}
			if job.Generation() == 1 && job.Now() >= 2*tick && v == 4 {
				job.Fail(found)
			}
		}
		return job.End()
	}
	s := sim.Search{Node: []int{0, 1}, Ticks: 2, Crashes: 1, Rejoins: 1}
	for name, sched := range map[string]sim.Scheduler{"all": sim.Exhaustive(sim.Unbounded), "bounded": sim.Exhaustive(1), "random": sim.Random(1, 0, 100_000), "pct": sim.PCT(1, 3, 0, 100_000)} {
		_, f := s.Run(sched, body)
		if f == nil || !errors.Is(f, found) {
			t.Errorf("%s: %v", name, f)
			continue
		}
		short, err := s.Shrink(f, 500, body)
		if err != nil {
			t.Fatal(err)
		}
		events, again, err := s.Replay(short.Schedule, body)
		if err != nil || again == nil || !errors.Is(again, found) {
			t.Fatalf("%s: %v, %v", name, again, err)
		}
		var text strings.Builder
		if err := sim.WriteTrace(&text, events); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"dies", "has a successor", "the clock advances to 2000 ns"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("%s: %q is not in the trace:\n%s", name, part, &text)
			}
		}
	}
}

// TestCarryIsReported: a sum that carries out of a field ends the search, with the fields.
func TestCarryIsReported(t *testing.T) {
	fields := []rma.Field{{Name: "n", Shift: 0, Bits: 3}, {Name: "max", Shift: 3, Bits: 3}}
	run := func(wraps bool, add ...int64) *sim.Failure {
		fields[0].Wraps = wraps
		spec := rma.Spec{Name: "w", Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "L", Fields: fields}}}}}
		_, f := sim.Search{Node: []int{0, 1}}.Run(sim.Exhaustive(sim.Unbounded), func(c rma.Comm) error {
			job, _ := sim.Of(c)
			w, err := c.Allocate(spec)
			if err != nil {
				return err
			}
			if err := job.Begin(); err != nil {
				return err
			}
			for _, v := range add {
				if c.Rank() == 1 {
					err = errors.Join(err, w.AccumulateFlush(v, 0, 0, rma.Sum))
				}
			}
			return errors.Join(err, job.End())
		})
		return f
	}
	if f := run(false, 3, 3, 1, -3, 8, 8, -9); f != nil {
		t.Error(f)
	}
	f := run(false, 3, 3, 3)
	if f == nil || !errors.Is(f, sim.ErrCarry) || !strings.Contains(f.Error(), "n=6 max=0") {
		t.Error(f)
	}
	if f := run(false, -1); f == nil || !errors.Is(f, sim.ErrCarry) {
		t.Error(f)
	}
	if f := run(true, 3, 3, 3); f != nil {
		t.Error(f)
	}
}

// TestMemoryOnMemoryNodes: the locks of one memory node take the memory of one, however many
// ranks there are.
func TestMemoryOnMemoryNodes(t *testing.T) {
	spec := rma.Spec{Name: "cql", Hosts: rma.MemoryNodes, Regions: []rma.Region{{Count: 100_000, Words: make([]rma.Word, 9)}}}
	for i := range spec.Regions[0].Words {
		spec.Regions[0].Words[i].Name = fmt.Sprint("w", i)
	}
	var before, after runtime.MemStats
	_, f := sim.Search{Node: make([]int, 33), MemoryNodes: 1}.Run(sim.Random(1, 0, 1), func(c rma.Comm) error {
		if c.Rank() == 32 { // the last one to come allocates
			runtime.ReadMemStats(&before)
		}
		_, err := c.Allocate(spec)
		if c.Rank() == 32 {
			runtime.ReadMemStats(&after)
		}
		return err
	})
	if got := after.TotalAlloc - before.TotalAlloc; f != nil || got > 16<<20 {
		t.Errorf("%d MiB, %v", got>>20, f)
	}
}

// TestTwoWordWait: Peterson's wait ends when either word changes.
func TestTwoWordWait(t *testing.T) {
	for changed := range 2 {
		got := litmus(t, sim.Search{Node: []int{0, 1}}, rma.CounterSpec("w", 2),
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error { return w.PutFlush(3, 0, changed) },
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				which, v, err := w.AwaitEither(rma.Wait{Disp: 0, Cond: rma.NotEqual(0)}, rma.Wait{Disp: 1, Cond: rma.NotEqual(0)}, rma.Forever)
				saw(int64(which), v)
				return err
			})
		if want := []string{fmt.Sprintf("[[] [%d 3]]", changed)}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLimitNeedsALook: a wait whose condition has held since it began does not end with its
// limit, even if the same state is also reached after it did not hold.
func TestLimitNeedsALook(t *testing.T) {
	got := litmus(t, sim.Search{Node: []int{0, 1}, Ticks: 1}, rma.CounterSpec("w", 2),
		func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
			w.Put(1, 1, 0)
			w.Put(1, 1, 1)
			return w.Flush(1)
		},
		func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
			first, err := w.GetFlush(1, 1)
			if err != nil {
				return err
			}
			v, held, err := w.AwaitUntil(1, 0, rma.Equal(1), 0)
			if !held {
				v = -1
			}
			saw(first, v)
			return err
		})
	if want := []string{"[[] [0 -1]]", "[[] [0 1]]", "[[] [1 -1]]", "[[] [1 1]]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestMaxDelay: with a bound on it, an operation has taken effect when the clock has advanced
// oftener; without, it may not have. A dead rank's may never.
func TestMaxDelay(t *testing.T) {
	writer := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		saw(job.Now() / tick)
		return w.AccumulateFlush(1, 0, 0, rma.Sum)
	}
	reader := func(job *sim.Comm, w *rma.Window, saw func(...int64)) error {
		for range 3 { // while time passes
			if _, err := w.GetFlush(0, 1); err != nil {
				return err
			}
		}
		now := job.Now() / tick
		v, err := w.GetFlush(0, 0)
		saw(now, v)
		return err
	}
	late := func(maxDelay, crashes int) bool {
		s := sim.Search{Node: []int{0, 1}, MemoryNodes: 1, Ticks: 3, MaxDelay: maxDelay, Crashes: crashes}
		all, drawn := both(t, s, rma.CounterSpec("w", 2), writer, reader)
		if slices.ContainsFunc(drawn, func(o string) bool { return !slices.Contains(all, o) }) {
			t.Errorf("a delay of at most %d: all schedules find %v, random ones %v", maxDelay, all, drawn)
		}
		return slices.ContainsFunc(all, func(o string) bool {
			var wrote, read, v int64
			n, _ := fmt.Sscanf(o, "[[%d] [%d %d]]", &wrote, &read, &v)
			return n == 3 && v == 0 && read-wrote > int64(max(maxDelay, 1))
		})
	}
	for _, maxDelay := range []int{1, 2} {
		if late(maxDelay, 0) {
			t.Errorf("an operation takes more than %d ticks", maxDelay)
		}
	}
	if !late(0, 0) {
		t.Error("without a bound no operation takes more than a tick")
	}
	if !late(1, 1) {
		t.Error("no operation of a dead rank stays undone")
	}
}
