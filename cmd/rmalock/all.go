package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// allLocks is the --lock that means every lock of the registry.
const allLocks = "all"

// allRanks is the number of ranks of --lock all in virtual time.
const allRanks = 64

// A comparison is what bench --lock all prints; in JSON it is the object.
type comparison struct {
	Runs    []*bench.Result `json:"runs"`     // by workload, the fastest lock first
	LeftOut []leftOut       `json:"left_out"` // locks without a run
}

// leftOut is a lock that does not fit a workload or a machine.
type leftOut struct {
	Lock   string `json:"lock"`
	Reason string `json:"reason"`
}

// checkAll sets the defaults of --lock all, and reports what does not go with it.
func (o *benchOptions) checkAll(given func(string) bool) error {
	if !slices.Contains(o.sweep.Locks, allLocks) {
		return nil
	}
	if !given("backend") {
		o.backend.name = simulated
	}
	if !given("mode") {
		o.modes = []string{string(bench.Clients)}
	}
	if o.backend.name == simulated && !given("ranks") && !given("nodes") && !given("topology") {
		o.layout.ranks = []int{allRanks}
	}
	switch {
	case len(o.sweep.Locks) > 1:
		return fmt.Errorf("--lock has %q beside %q, which means every lock already", strings.Join(slices.DeleteFunc(slices.Clone(o.sweep.Locks), func(l string) bool { return l == allLocks }), ","), allLocks)
	case o.figure != "":
		return fmt.Errorf("--lock %s does not go with --figure, which has locks of its own", allLocks)
	case slices.Contains(o.modes, tpcc):
		return fmt.Errorf("--lock %s does not go with --mode %s: its transactions deadlock under locks that never give way; name the locks", allLocks, tpcc)
	case o.sweep.Repeat > 1:
		return fmt.Errorf("--lock %s does not go with --repeat; name the locks that are near each other", allLocks)
	}
	o.sweep.Config.Mutexes = true
	o.all = &comparison{Runs: []*bench.Result{}, LeftOut: []leftOut{}}
	return nil
}

// fill puts every lock that fits the job into the sweep.
func (a *comparison) fill(o *benchOptions) error {
	if o.backend.several() {
		return fmt.Errorf("--lock %s goes with --backend %s or %s; in a job of several processes name the locks", allLocks, simulated, goroutines)
	}
	o.sweep.Locks = nil
	for _, i := range lock.All() {
		if reason := unfit(i, o.backend.memoryNodes); reason != "" {
			a.LeftOut = append(a.LeftOut, leftOut{i.Name, reason})
		} else {
			o.sweep.Locks = append(o.sweep.Locks, i.Name)
		}
	}
	return nil
}

// unfit is why a lock cannot be compared with the others in a job with so many memory nodes; "" if
// it can, or if its run will say so. It opens the lock in a small job.
func unfit(i lock.Info, memoryNodes int) (reason string) {
	if i.Serves {
		return "its ranks serve others by messages: name it, with --servers; see rmalock help " + workloads
	}
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: memoryNodes}.Run(func(c rma.Comm) error {
		t, err := i.With(c, lock.Setting{Locks: 1})
		if err != nil {
			return err
		}
		if c.Rank() == 0 && memoryNodes > 0 && lock.HostsOf(t) == rma.Ranks {
			reason = "its words lie in the memory of ranks, and the job has memory nodes"
		}
		return t.Free()
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // of that the run itself says more
		return message(err)
	}
	return reason
}

// ofRank is where an error begins that a rank had.
var ofRank = regexp.MustCompile(`^rank \d+: `)

// leaves reports whether an error says that a lock does not fit, and leaves the lock out.
func (a *comparison) leaves(name string, err error) bool {
	if a == nil || !errors.Is(err, lock.ErrConfig) && !errors.Is(err, lock.ErrTooManyHeld) && !errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	l := leftOut{name, ofRank.ReplaceAllString(message(err), "")}
	if !slices.Contains(a.LeftOut, l) {
		a.LeftOut = append(a.LeftOut, l)
	}
	return true
}

// kept takes a run of the folder.
func (a *comparison) kept(store *bench.Store, key string) {
	if a == nil {
		return
	}
	for _, r := range store.Records() {
		if r.Key == key {
			a.Runs = append(a.Runs, r.Result)
			return
		}
	}
}

// task names the workload and the ranks of a run.
func task(r *bench.Result) string {
	text := fmt.Sprintf("%s, %s on %s: ", r.Mode, plural(r.Ranks, "rank"), plural(r.Nodes, "node"))
	if r.Workload != "" {
		text += r.Workload + ", "
	}
	text += fmt.Sprintf("%s, %.4g %% writers", plural(r.Locks, "lock"), 100*r.Writers)
	if r.Offered > 0 {
		text += fmt.Sprintf(", %.4g visits/s offered", r.Offered)
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sort orders runs by their tasks, as they were made, and those of a task by throughput.
func (a *comparison) sort() {
	order := map[string]int{}
	for _, r := range a.Runs {
		if _, there := order[task(r)]; !there {
			order[task(r)] = len(order)
		}
	}
	slices.SortStableFunc(a.Runs, func(x, y *bench.Result) int {
		return cmp.Or(cmp.Compare(order[task(x)], order[task(y)]), cmp.Compare(y.Speed(), x.Speed()))
	})
}

// write writes the comparison as the flags say.
func (a *comparison) write(out io.Writer, o *benchOptions) error {
	a.sort()
	switch {
	case o.json:
		return writeJSON(out, a)
	case o.csv:
		for i, r := range a.Runs {
			write := r.WriteCSVRow
			if i == 0 {
				write = r.WriteCSV
			}
			if err := write(out); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", o.layout.where(o.backend.name))
	best, mutex := 0.0, false
	for i, r := range a.Runs {
		if i == 0 || task(r) != task(a.Runs[i-1]) {
			best = r.Speed()
			fmt.Fprintln(&b)
			hang(&b, "", task(r))
			fmt.Fprintf(&b, "%10s %9s %9s %9s %7s %7s  %s\n", "million/s", "% of best", "median us", "99 % us", "dev. %", "remote", "lock")
		}
		mark := ""
		if r.Writers < 1 && !r.Shared {
			mark, mutex = " *", true
		}
		fmt.Fprintf(&b, "%10.4g %9.3g %9.4g %9.4g %7.3g %7.3g  %s%s\n",
			r.Speed()/1e6, 100*r.Speed()/best, r.Median/1e3, r.P99/1e3, 100*r.ShareDeviation, r.RemoteOps, r.Lock, mark)
	}
	if mutex {
		fmt.Fprintln(&b, "\n* has no shared mode: readers exclude each other")
	}
	if len(a.LeftOut) > 0 {
		fmt.Fprintln(&b, "\nleft out")
	}
	for _, l := range a.LeftOut {
		hang(&b, fmt.Sprintf("  %-14s  ", l.Lock), l.Reason)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
