package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// checkReport is the verdict in JSON.
type checkReport struct {
	Lock      string         `json:"lock"`
	OK        bool           `json:"ok"`
	Ranks     int            `json:"ranks"`
	Acquires  int            `json:"acquires"`
	Writers   int            `json:"writers"` // -1 for modes drawn
	Explore   string         `json:"explore"`
	Seed      uint64         `json:"seed"`
	Schedules int64          `json:"schedules"`
	Cut       int64          `json:"schedules_cut"`          // that came to a state seen before, or out of ticks
	Out       int64          `json:"schedules_out_of_ticks"` // that ended because a rank waits for more ticks
	Ticks     int            `json:"ticks"`                  // that were allowed
	Crashes   int            `json:"crashes"`                // the same
	Rejoins   int            `json:"rejoins"`                // the same
	All       bool           `json:"all_schedules"`
	States    int            `json:"states"`
	Steps     int64          `json:"steps"`
	Longest   int            `json:"longest"`
	Seconds   float64        `json:"seconds"`
	Most      int            `json:"most_bypasses"`
	Promises  []promised     `json:"promises"`
	Failure   *failureReport `json:"failure,omitempty"`
}

type promised struct {
	Mode    string `json:"mode"`
	Bypass  int    `json:"bypasses"` // -1 for no bound
	Acquire int    `json:"operations_acquire"`
	Release int    `json:"operations_release"`
}

type failureReport struct {
	Error     string   `json:"error"`
	Execution int64    `json:"execution"`
	Steps     int      `json:"steps"`
	Schedule  string   `json:"schedule,omitempty"` // as Trace, not in virtual time
	Trace     []string `json:"trace,omitempty"`
	Replay    string   `json:"replay"`
}

// failed is a failure in JSON, with its trace.
func (o *checkOptions) failed(f *sim.Failure) *failureReport {
	out := &failureReport{Error: f.Error(), Execution: f.Execution, Steps: f.Steps, Schedule: f.Schedule, Replay: o.plan.Command(f.Schedule)}
	if events, _, err := check.Replay(o.plan, f.Schedule); err == nil {
		var b strings.Builder
		_ = sim.WriteTrace(&b, events) // to memory
		out.Trace = strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	return out
}

// failedInTime is a failure in virtual time in JSON: it has a seed and no schedule.
func (o *checkOptions) failedInTime(f *sim.Failure) *failureReport {
	again := o.plan
	again.Seed += uint64(f.Execution - 1)
	return &failureReport{Error: f.Error(), Execution: f.Execution, Steps: f.Steps, Replay: again.TimeCommand()}
}

// report writes JSON.
func (o *checkOptions) report(out io.Writer, r *checkReport, f *sim.Failure) error {
	r.Ranks, r.Acquires, r.Writers, r.Explore, r.Seed = o.plan.Ranks, o.plan.Acquires, o.plan.Writers, o.explore, o.plan.Seed
	r.Ticks, r.Crashes, r.Rejoins = o.plan.Ticks, o.plan.Crashes, o.plan.Rejoins
	if !o.plan.Info.Shared {
		r.Writers = r.Ranks
	}
	if o.replay != "" {
		r.Explore = "replay"
	}
	r.Promises = o.promised()
	if err := writeJSON(out, r); err != nil {
		return fail(err)
	}
	if f != nil {
		return fail(f.Err)
	}
	return nil
}

// promised is what the lock promises, by mode.
func (o *checkOptions) promised() (out []promised) {
	all, _ := check.Promises(o.plan) // prepare has seen that it opens
	for _, m := range []lock.Mode{lock.Exclusive, lock.Shared} {
		if q, ok := all[m]; ok {
			out = append(out, promised{m.String(), q.Bypass, q.Acquire, q.Release})
		}
	}
	return out
}

// verdict writes the result of a search. A failure is shortened first.
func (o *checkOptions) verdict(out io.Writer, r *check.Result, took time.Duration) error {
	if o.json {
		report := &checkReport{
			Lock: o.lock, OK: r.Failure == nil, Schedules: r.Stats.Executions, Cut: r.Stats.Cut, Out: r.Stats.OutOfTicks, All: r.Whole, States: r.States,
			Steps: r.Stats.Steps, Longest: r.Stats.Longest, Seconds: took.Seconds(), Most: r.Most,
		}
		if r.Failure == nil {
			return o.report(out, report, nil)
		}
		if o.explore == exploreTime {
			report.Failure = o.failedInTime(r.Failure)
			return o.report(out, report, r.Failure)
		}
		short, err := check.Shrink(o.plan, r.Failure, shrinkTries)
		if err != nil {
			return fail(err)
		}
		report.Failure = o.failed(short)
		return o.report(out, report, short)
	}
	fmt.Fprintf(out, "%s: %s\n", o.lock, o.what())
	fmt.Fprintf(out, "schedules   %s\n", o.tried(r))
	fmt.Fprintf(out, "steps       %d, %d in the longest; %.2g million a second\n", r.Stats.Steps, r.Stats.Longest, float64(r.Stats.Steps)/1e6/took.Seconds())
	if r.Failure != nil {
		fmt.Fprintf(out, "verdict     FAILS in execution %d\n\n", r.Failure.Execution)
		if o.explore == exploreTime {
			f := o.failedInTime(r.Failure)
			fmt.Fprintf(out, "%s\n\nagain     %s\n", f.Error, f.Replay)
			return fail(r.Failure.Err)
		}
		short, err := check.Report(out, o.plan, r.Failure)
		if err != nil {
			return fail(err)
		}
		return fail(short.Err)
	}
	fmt.Fprintln(out, "verdict     nothing goes wrong")
	for _, q := range o.promised() {
		bypass := "no bound on bypasses"
		if q.Bypass != lock.Unbounded {
			bypass = fmt.Sprintf("at most %d bypasses, %d seen", q.Bypass, r.Most)
		}
		fmt.Fprintf(out, "promise     %s: %s; at most %d remote operations to acquire, %d to release\n", q.Mode, bypass, q.Acquire, q.Release)
	}
	return nil
}

// shrinkTries is how many schedules are tried in search of a shorter one.
const shrinkTries = 2000

// what describes the plan: ranks, acquires, modes.
func (o *checkOptions) what() string {
	p := &o.plan
	text := fmt.Sprintf("%d ranks, %d acquires each", p.Ranks, p.Acquires)
	if p.Info.Shared {
		if p.Writers == check.Mixed {
			text += ", modes drawn"
		} else {
			text += fmt.Sprintf(", %d writers", p.Writers)
		}
	}
	if p.Tries {
		text += ", some only try"
	}
	if p.Topology != nil {
		text += ", on " + p.Topology.String()
	}
	for _, n := range []struct {
		n    int
		text string
	}{
		{p.MemoryNodes, "memory nodes: %d"}, {p.Ticks, fmt.Sprintf("ticks of %d ns: up to %%d", p.TickNs)},
		{p.Crashes, "crashes: up to %d"}, {p.Rejoins, "successors: up to %d"},
	} {
		if n.n > 0 {
			text += ", " + fmt.Sprintf(n.text, n.n)
		}
	}
	for _, f := range p.Faults {
		text += ", rank " + check.FaultText(f) + " stops"
	}
	return text
}

// tried says which schedules were run.
func (o *checkOptions) tried(r *check.Result) string {
	switch {
	case o.explore == exploreRandom:
		return fmt.Sprintf("%d at random, seed %d", r.Stats.Executions, o.plan.Seed)
	case o.explore == exploreTime:
		return fmt.Sprintf("%d in virtual time, seeds from %d on", r.Stats.Executions, o.plan.Seed)
	case o.explore == explorePCT:
		return fmt.Sprintf("%d of PCT with depth %d, seed %d", r.Stats.Executions, o.depth, o.plan.Seed)
	}
	text := fmt.Sprintf("%d to the end and %d to a state seen before; %d states", r.Stats.Executions, r.Stats.Cut-r.Stats.OutOfTicks, r.States)
	if r.Stats.OutOfTicks > 0 {
		text = fmt.Sprintf("%d to where a rank waits for more ticks, ", r.Stats.OutOfTicks) + text
	}
	switch {
	case r.Failure != nil:
	case !r.Whole:
		text += "; not all"
	case o.bound >= 0:
		text = fmt.Sprintf("all with up to %d preemptions: ", o.bound) + text
	default:
		text = "all: " + text
	}
	return text
}

// checked is a progress bar of executions.
type checked struct {
	done  atomic.Int64
	every int64
	bar   *progressbar.ProgressBar
}

// newChecked returns nil unless out is a terminal.
func newChecked(out io.Writer, o *checkOptions) *checked {
	if newProgress(out) == nil {
		return nil
	}
	total := o.schedules
	if o.explore == exploreAll {
		total = -1 // unknown
	}
	return &checked{every: 100, bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription("schedules"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

func (c *checked) tick() {
	if n := c.done.Add(1); n%c.every == 0 {
		_ = c.bar.Set64(n) // the search goes on without a bar
	}
}

func (c *checked) clear() { _ = c.bar.Clear() }
