package hook_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// traced runs f on rank 0 as alone does and returns its events as text, without
// the times.
func traced(t *testing.T, f func(w *rma.Window) error) string {
	t.Helper()
	var b strings.Builder
	sink := hook.Text(&b)
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() != 0 {
			return c
		}
		return hook.Trace(c, func(e hook.Event) { e.Time = 0; sink(e) })
	}, f)
	return b.String()
}

func TestTraceAsText(t *testing.T) {
	got := traced(t, func(w *rma.Window) error {
		buf := make([]int64, 3)
		w.PutBulk([]int64{1, 2, 3, 4}, 1, flag)
		w.Put(9, 2, far)
		w.FetchAndOp(5, 2, far, rma.Sum)
		w.Get(0, near)
		if err := w.Flush(2); err != nil {
			return err
		}
		w.GetBulk(buf, 1, flag)
		w.CompareAndSwap(7, 8, 1, far+3)
		w.Accumulate(1, 1, far+2, rma.NoOp)
		if err := w.FlushAll(); err != nil {
			return err
		}
		if err := w.Backoff(3, flag, 6, 2); err != nil {
			return err
		}
		_, err := w.Await(1, flag+1, rma.AtLeast(2))
		return err
	})
	want := `
      0.000  rank 0     w         PutBulk         rank 1 D[0]         [1 2 3 4]
      0.000  rank 0     w         Put             rank 2 F[0]         9
      0.000  rank 0     w         FetchAndOp      rank 2 F[0]         SUM 5
      0.000  rank 0     w         Get             rank 0 N[0]
      0.000  rank 0     w         Flush           rank 2
      0.000  rank 0     w           result        rank 2 F[0]         = 9
      0.000  rank 0     w         GetBulk         rank 1 D[0]         3 words
      0.000  rank 0     w         CompareAndSwap  rank 1 F[3]         8 -> 7
      0.000  rank 0     w         Accumulate      rank 1 F[2]         NO_OP 1
      0.000  rank 0     w         Flush           all ranks
      0.000  rank 0     w           result        rank 0 N[0]         = 0
      0.000  rank 0     w           result        rank 1 D[0]         = [1 2 3]
      0.000  rank 0     w           result        rank 1 F[3]         = 0
      0.000  rank 0     w         Backoff         rank 3 D[0]         saw 6, try 2
      0.000  rank 0     w         Await           rank 1 D[1]         >= 2
      0.000  rank 0     w           woke          rank 1 D[1]         = 2
`
	if got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestTraceLogKeepsEvents(t *testing.T) {
	var log hook.Log
	err := inproc.Run(4, func(c rma.Comm) error {
		half, err := hook.Trace(c, log.Add).Split(c.Rank()/2, 0)
		if err != nil {
			return err
		}
		w, err := half.Allocate(rma.DataSpec("d", 8))
		if err != nil {
			return err
		}
		buf := []int64{int64(c.Rank()), 1}
		w.PutBulk(buf, 0, 2*half.Rank())
		if err := w.Flush(0); err != nil {
			return err
		}
		buf[0], buf[1] = -1, -1 // the log has a copy
		if err := c.Barrier(); err != nil {
			return err
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
	var puts, last [4]int64
	for _, e := range log.Events() {
		if e.Rank != e.Origin%2 || e.Window != "d" || e.Target != 0 {
			t.Errorf("event with origin %d, rank %d, window %q, target %d", e.Origin, e.Rank, e.Window, e.Target)
		}
		if e.Time < last[e.Origin] {
			t.Errorf("time of rank %d went back from %d to %d", e.Origin, last[e.Origin], e.Time)
		}
		last[e.Origin] = e.Time
		if e.Step == hook.StepIssue {
			puts[e.Origin]++
			if want := []int64{int64(e.Origin), 1}; !slices.Equal(e.Op.Data, want) {
				t.Errorf("PutBulk of rank %d logged with %v, want %v", e.Origin, e.Op.Data, want)
			}
		}
	}
	if puts != [4]int64{1, 1, 1, 1} {
		t.Errorf("puts by rank: %v, want one each", puts)
	}
}

func TestTraceShowsErrors(t *testing.T) {
	var b strings.Builder
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() == 0 {
			c = hook.Trace(hook.Fault(c, hook.Failure{Nth: 1, CutOff: true}), hook.Text(&b))
		}
		return c
	}, func(w *rma.Window) error {
		if _, err := w.FetchAndOpFlush(1, 1, far, rma.Sum); !errors.Is(err, rma.ErrPeer) {
			return fmt.Errorf("FetchAndOp of a rank that is cut off: %v", err)
		}
		if _, err := w.Await(0, flag, rma.Equal(1)); !errors.Is(err, rma.ErrPeer) {
			return fmt.Errorf("Await of a rank that is cut off: %v", err)
		}
		return nil
	})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "error: hook: window \"w\": injected fault") ||
		!strings.Contains(lines[3], "woke") || !strings.Contains(lines[3], "error:") {
		t.Errorf("want an operation, its flush in error, an await and its end in error; got\n%s", b.String())
	}
}

func TestTextEndsWithItsWriter(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	sink := hook.Text(w)
	sink(hook.Event{Step: hook.StepFlush}) // must not block or panic
	sink(hook.Event{Step: hook.StepFlush, Target: -1})
}

func TestStepNames(t *testing.T) {
	for s := hook.StepIssue; s <= hook.StepBackoff; s++ {
		if s.String() == "Step?" {
			t.Errorf("step %d has no name", s)
		}
	}
}

// TestTraceInASearch: events have times where the ranks of a search do not look at the clock.
func TestTraceInASearch(t *testing.T) {
	n := 0
	_, f := sim.Search{Node: []int{0, 1}}.Run(sim.Exhaustive(sim.Unbounded), func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := hook.Trace(c, func(hook.Event) { n++ }).Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		return errors.Join(job.Begin(), w.AccumulateFlush(1, 0, 0, rma.Sum), job.End())
	})
	if f != nil || n == 0 {
		t.Errorf("%d events, %v", n, f)
	}
}

// TestTextOfMemoryNodes: lines name memory nodes, limits, and the second word of a wait.
func TestTextOfMemoryNodes(t *testing.T) {
	var b strings.Builder
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 2}.Run(func(c rma.Comm) error {
		nodes := spec
		nodes.Hosts = rma.MemoryNodes
		nodes.Regions = []rma.Region{spec.Regions[0]}
		w, err := hook.Trace(c, hook.Text(&b)).Allocate(nodes)
		if err != nil {
			return err
		}
		w.Put(1, 1, far)
		if err := w.FlushAll(); err != nil {
			return err
		}
		_, _, err = w.AwaitEither(rma.Wait{Target: 0, Disp: far, Cond: rma.Equal(5)}, rma.Wait{Target: 1, Disp: far + 1, Cond: rma.Equal(6)}, c.Now()+1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory node 1 F[0]", "all memory nodes", "== 5 or memory node 1 F[1] == 6 until ", "time is up"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
}
