package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
)

// job is what a program wants of its locks. Its JSON is stable.
type job struct {
	Backend     string        `json:"backend"` // mpi, inproc or verbs
	Machine     string        `json:"machine"` // model that stands for its network
	Ranks       int           `json:"ranks"`
	Nodes       int           `json:"nodes"`
	MemoryNodes int           `json:"memory_nodes"`
	Locks       int           `json:"locks"`
	Writers     float64       `json:"writers"`
	Locality    float64       `json:"locality_percent"` // 0 for no such rule
	Keys        string        `json:"keys"`
	Accesses    int           `json:"accesses"`
	Inside      time.Duration `json:"inside_ns"`
	Deaths      bool          `json:"deaths"` // the others go on when a rank dies
	From        string        `json:"from,omitempty"`
}

// advice is the lock for a job, with the runs that speak for it.
type advice struct {
	Job     job        `json:"job"`
	Run     job        `json:"simulated"` // the job that the runs are of: smaller, if need be
	Choice  string     `json:"choice"`
	Reason  string     `json:"reason"`
	Notes   []string   `json:"notes"`
	Runs    []evidence `json:"runs"` // the fastest first
	LeftOut []leftOut  `json:"left_out"`
	Command string     `json:"command"` // makes the runs again, and those of other locks
}

// evidence is what a run in virtual time came to.
type evidence struct {
	Lock           string  `json:"lock"`
	PerSecond      float64 `json:"acquires_per_second"`
	OfBest         float64 `json:"share_of_best"`
	Median         float64 `json:"ns_per_acquire_median"`
	P99            float64 `json:"ns_per_acquire_p99"`
	ShareDeviation float64 `json:"share_deviation"`
	RemoteOps      float64 `json:"remote_ops_per_acquire"`
}

// candidates are the locks that advise may choose: those that bound how long a rank waits. Of two
// that are as fast the one that comes first here is taken: it has fewer words and settings.
var candidates = []struct{ name, note string }{
	{"dmcs", "No setting. First come, first served."},
	{"rmamcs", "T_L says how long the lock stays in a node: rmalock tune --lock rmamcs."},
	{"rmarw", "T_DC, T_R and T_L: rmalock tune --lock rmarw."},
	{"dslr", "Set LEASE longer than any critical section: a rank that holds a lock for longer may lose it."},
	{"shiftlock", "Set LEASE longer than any critical section: a rank that holds a lock for longer may lose it."},
	{"declock", "Set LEASE longer than any critical section, and CAPACITY to the ranks that may want one lock."},
	{"alock", "The budgets LOCAL and REMOTE say how often a cohort passes the lock on."},
	{"alock-rw", "The budgets LOCAL and REMOTE say how often a cohort passes the lock on."},
}

// near is the share of the best throughput from which a lock counts as equally fast: the models
// are not better than that.
const near = 0.9

// Ranks of a simulated job: more make it slow and change little in the order of the locks.
const (
	mostRanks   = 256
	mostPerNode = 128
)

// adviseOptions are the flags of advise.
type adviseOptions struct {
	job   job
	json  bool
	table bool
}

func newAdvise() *cobra.Command {
	var o adviseOptions
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say which lock suits a job, with the runs that speak for it",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd)
	return describe(cmd)
}

func (o *adviseOptions) flags(cmd *cobra.Command) {
	f, j := cmd.Flags(), &o.job
	f.StringVar(&j.Backend, "backend", processes, "what the job runs on: mpi, inproc (goroutines of one node) or verbs (RDMA without MPI)")
	complete(cmd, "backend", processes, goroutines, rdma)
	f.StringVar(&j.Machine, "machine", "", "model of the network: "+strings.Join(bench.Machines(), ", ")+" (default: aries, with verbs cx6)")
	complete(cmd, "machine", bench.Machines()...)
	f.IntVar(&j.Ranks, "ranks", 0, "number of ranks (default: those of the Slurm or MPI job, or 64)")
	f.IntVar(&j.Nodes, "nodes", 0, "number of their nodes (default: those of the job, or one for each 16 ranks)")
	f.IntVar(&j.MemoryNodes, memoryFlag, 0, "number of memory nodes, which hold the locks' words; 0 for none")
	f.IntVar(&j.Locks, "locks", 1, "number of locks")
	f.Float64Var(&j.Writers, "writers", 1, "share of acquires that change what the lock guards, 0 to 1")
	f.Float64Var(&j.Locality, "locality", 0, "`percent` of acquires of locks whose home is on the rank's own node; 0 for no such rule")
	f.StringVar(&j.Keys, "keys", "uniform", "how often each lock is acquired, as in rmalock help workloads: uniform, zipf:0.99 and others")
	f.IntVar(&j.Accesses, "accesses", 1, "memory accesses at the lock's home while it is held")
	f.DurationVar(&j.Inside, "inside", 0, "time to compute while the lock is held")
	f.BoolVar(&j.Deaths, "deaths", false, "the others must go on when a rank dies")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.table, "table", false, "print the table of docs/guide.md: the choices for some jobs")
	cmd.MarkFlagsMutuallyExclusive("json", "table")
}

func (o *adviseOptions) run(cmd *cobra.Command) error {
	if !isReporter() {
		return nil
	}
	out := cmd.OutOrStdout()
	if o.table {
		return fail(writeJobs(out))
	}
	if err := o.job.check(cmd.Flags().Changed); err != nil {
		return err
	}
	a, err := advise(o.job, newProgress(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	if o.json {
		return fail(writeJSON(out, a))
	}
	return fail(a.write(out))
}

// environment is the number of ranks and nodes of the Slurm or MPI job around this process; 0 is
// unknown.
func environment() (ranks, nodes int, from string) {
	number := func(names ...string) int {
		for _, name := range names {
			if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	ranks, from = number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"), "the MPI job"
	if here := number("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"); ranks > 0 && here > 0 && ranks%here == 0 {
		nodes = ranks / here
	}
	if ranks == 0 {
		ranks, from = number("SLURM_NTASKS", "SLURM_NPROCS"), "Slurm's job"
	}
	if nodes == 0 {
		nodes = number("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
	}
	if ranks == 0 {
		return 0, 0, ""
	}
	return ranks, nodes, from
}

// check fills in defaults and reports what is wrong.
func (j *job) check(given func(string) bool) error {
	for _, name := range []string{"ranks", "nodes"} {
		if n := map[string]int{"ranks": j.Ranks, "nodes": j.Nodes}[name]; given(name) && n < 1 {
			return fmt.Errorf("--%s is %d, want at least 1", name, n)
		}
	}
	if !given("ranks") && !given("nodes") {
		j.Ranks, j.Nodes, j.From = environment()
	}
	if j.Ranks == 0 {
		j.Ranks = max(allRanks, j.Nodes)
	}
	if j.Backend == goroutines && j.Nodes == 0 {
		j.Nodes = 1
	}
	if j.Nodes == 0 {
		j.Nodes = (j.Ranks + simulatedPerNode - 1) / simulatedPerNode
	}
	if j.Machine == "" {
		j.Machine = map[bool]string{true: "cx6", false: "aries"}[j.Backend == rdma]
	}
	switch {
	case !slices.Contains([]string{processes, goroutines, rdma}, j.Backend):
		return fmt.Errorf("--backend is %q, want %s, %s or %s", j.Backend, processes, goroutines, rdma)
	case j.Ranks%j.Nodes != 0:
		return fmt.Errorf("%d ranks on %d nodes: want the same number on each; see --ranks and --nodes", j.Ranks, j.Nodes)
	case j.Backend == goroutines && j.Nodes > 1:
		return fmt.Errorf("--backend %s is one process, so --nodes %d cannot be; want 1", goroutines, j.Nodes)
	case j.MemoryNodes < 0:
		return fmt.Errorf("--%s is %d, want at least 0", memoryFlag, j.MemoryNodes)
	case j.Locks < 1:
		return fmt.Errorf("--locks is %d, want at least 1", j.Locks)
	case !(j.Writers >= 0 && j.Writers <= 1):
		return fmt.Errorf("--writers is %v, want 0 to 1", j.Writers)
	case !(j.Locality >= 0 && j.Locality <= 100):
		return fmt.Errorf("--locality is %v percent, want 0 to 100", j.Locality)
	case j.Locality > 0 && j.MemoryNodes > 0:
		return fmt.Errorf("--locality does not go with --%s: no rank is on a memory node", memoryFlag)
	case j.Locality > 0 && j.Locks < j.Ranks:
		return fmt.Errorf("--locality %v with %d locks of %d ranks: homes go round the ranks, so want --locks of at least %d", j.Locality, j.Locks, j.Ranks, j.Ranks)
	case j.Accesses < 0 || j.Inside < 0:
		return fmt.Errorf("--accesses is %d and --inside %v, want 0 or more", j.Accesses, j.Inside)
	}
	_, err := bench.ParseKeys(j.Keys)
	return err
}

// smaller is the job that is simulated: with fewer nodes if there are many ranks, and with the
// locks that go with them.
func (j job) smaller() job {
	s := j
	per := min(j.Ranks/j.Nodes, mostPerNode)
	s.Nodes = min(j.Nodes, max(2, mostRanks/per))
	s.Ranks = s.Nodes * per
	s.Locks = max(1, int(float64(j.Locks)*float64(s.Ranks)/float64(j.Ranks)))
	s.From = ""
	return s
}

// String is the job in words.
func (j job) String() string {
	text := []string{fmt.Sprintf("%s on %s", plural(j.Ranks, "rank"), plural(j.Nodes, "node"))}
	if j.MemoryNodes > 0 {
		text = append(text, plural(j.MemoryNodes, "memory node"))
	}
	text = append(text, fmt.Sprintf("%s, keys %s", plural(j.Locks, "lock"), j.Keys), fmt.Sprintf("%.4g %% writers", 100*j.Writers))
	if j.Locality > 0 {
		text = append(text, fmt.Sprintf("%.4g %% local", j.Locality))
	}
	text = append(text, fmt.Sprintf("%d memory accesses and %v inside", j.Accesses, j.Inside))
	if j.Deaths {
		text = append(text, "ranks may die")
	}
	return strings.Join(text, "; ")
}

// flags are those of bench for the job.
func (j job) flags() string {
	line := fmt.Sprintf("--lock %s --machine %s", allLocks, j.Machine)
	if j.Backend == rdma {
		line += " --verbs"
	}
	if j.MemoryNodes > 0 {
		line += fmt.Sprintf(" --%s %d", memoryFlag, j.MemoryNodes)
	}
	line += fmt.Sprintf(" --nodes %d --per-node %d --locks %d --writers %g --keys %s", j.Nodes, j.Ranks/j.Nodes, j.Locks, j.Writers, j.Keys)
	if j.Locality > 0 {
		line += fmt.Sprintf(" --locality %g", j.Locality)
	}
	if j.Accesses > 0 {
		line += fmt.Sprintf(" --accesses %d", j.Accesses)
	}
	if j.Inside > 0 {
		line += fmt.Sprintf(" --inside %v", j.Inside)
	}
	return line
}

// advise runs the candidates in virtual time, and chooses.
func advise(j job, bar *progress) (*advice, error) {
	a := &advice{Job: j, Run: j.smaller(), LeftOut: []leftOut{}, Notes: []string{}}
	line := a.Run.flags()
	a.Command = "rmalock bench " + line
	o, points, err := benchLine(line)
	if err != nil {
		return nil, err
	}
	points = slices.DeleteFunc(points, func(p bench.Point) bool { return rankOf(p.Config.Lock) < 0 || !a.allows(p.Config.Lock) })
	for _, l := range o.all.LeftOut {
		if rankOf(l.Lock) >= 0 && a.allows(l.Lock) {
			a.LeftOut = append(a.LeftOut, l)
		}
	}
	for i, p := range points {
		res, err := o.runHere(p, nil)
		if err != nil {
			bar.clear()
			return nil, err
		}
		bar.tried(i+1, len(points))
		a.Runs = append(a.Runs, evidence{
			Lock: res.Lock, PerSecond: res.Speed(), Median: res.Median, P99: res.P99, ShareDeviation: res.ShareDeviation, RemoteOps: res.RemoteOps,
		})
	}
	bar.clear()
	if len(a.Runs) == 0 {
		return nil, errors.New("no lock of the module suits such a job; see rmalock locks")
	}
	a.choose()
	return a, nil
}

// benchLine reads flags as bench does, and lists their runs.
func benchLine(line string) (*benchOptions, []bench.Point, error) {
	o := &benchOptions{}
	cmd := &cobra.Command{Use: "bench"}
	o.flags(cmd)
	if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
		return nil, nil, err
	}
	points, err := o.check(cmd)
	return o, points, err
}

// allows reports whether a candidate does what the job must have, and leaves it out otherwise.
func (a *advice) allows(name string) bool {
	i, err := lock.Lookup(name)
	ok := err == nil && (!a.Job.Deaths || i.Recovers)
	if l := (leftOut{name, "it does not go on when a rank dies"}); !ok && !slices.Contains(a.LeftOut, l) {
		a.LeftOut = append(a.LeftOut, l)
	}
	return ok
}

// rankOf is the place of a lock among the candidates, or -1.
func rankOf(name string) int {
	for i, c := range candidates {
		if c.name == name {
			return i
		}
	}
	return -1
}

// choose takes the first candidate of those that are near the fastest.
func (a *advice) choose() {
	slices.SortStableFunc(a.Runs, func(x, y evidence) int { return int(sign(y.PerSecond - x.PerSecond)) })
	best := a.Runs[0].PerSecond
	at := 0
	for i := range a.Runs {
		a.Runs[i].OfBest = a.Runs[i].PerSecond / best
		if a.Runs[i].OfBest >= near && rankOf(a.Runs[i].Lock) < rankOf(a.Runs[at].Lock) {
			at = i
		}
	}
	c := a.Runs[at]
	a.Choice = c.Lock
	switch {
	case at > 0:
		a.Reason = fmt.Sprintf("%.3g of %.3g million acquires per second, those of %s, is as much as the model can tell, and it is the simpler lock", c.PerSecond/1e6, best/1e6, a.Runs[0].Lock)
	case len(a.Runs) > 1:
		a.Reason = fmt.Sprintf("%.3g million acquires per second; the next, %s, makes %.3g", best/1e6, a.Runs[1].Lock, a.Runs[1].PerSecond/1e6)
	default:
		a.Reason = "it is the only one that suits the job"
	}
	a.Notes = append(a.Notes, candidates[rankOf(a.Choice)].note)
	if i, _ := lock.Lookup(a.Choice); a.Job.Writers < 1 && !i.Shared {
		a.Notes = append(a.Notes, "It has no shared mode: readers exclude each other.")
	}
	if a.Run.Ranks != a.Job.Ranks {
		a.Notes = append(a.Notes, fmt.Sprintf("The runs are of %s on %s with %s.", plural(a.Run.Ranks, "rank"), plural(a.Run.Nodes, "node"), plural(a.Run.Locks, "lock")))
	}
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func (a *advice) write(out io.Writer) error {
	var b strings.Builder
	hang(&b, "job      ", a.Job.String())
	if a.Job.From != "" {
		hang(&b, "         ", "ranks and nodes are those of "+a.Job.From)
	}
	hang(&b, "take     ", a.Choice)
	hang(&b, "because  ", a.Reason)
	for _, n := range a.Notes {
		hang(&b, "note     ", n)
	}
	fmt.Fprintf(&b, "\n%10s %9s %9s %9s %7s %7s  lock\n", "million/s", "% of best", "median us", "99 % us", "dev. %", "remote")
	for _, r := range a.Runs {
		fmt.Fprintf(&b, "%10.4g %9.3g %9.4g %9.4g %7.3g %7.3g  %s\n",
			r.PerSecond/1e6, 100*r.OfBest, r.Median/1e3, r.P99/1e3, 100*r.ShareDeviation, r.RemoteOps, r.Lock)
	}
	if len(a.LeftOut) > 0 {
		fmt.Fprintln(&b, "\nleft out")
	}
	for _, l := range a.LeftOut {
		hang(&b, fmt.Sprintf("  %-10s  ", l.Lock), l.Reason)
	}
	fmt.Fprintf(&b, "\nIn virtual time on the model %s. Again, and with the locks to compare with:\n  %s\n", a.Job.Machine, a.Command)
	_, err := io.WriteString(out, b.String())
	return err
}

// jobs are those of the table of docs/guide.md.
var jobs = []struct{ program, flags string }{
	{"one counter, one log, one file that all ranks append to", ""},
	{"the same, on one node", "--nodes 1 --ranks 16"},
	{"a table of settings, an index, a mesh that is read all the time and changed now and then", "--writers 0.002"},
	{"the same, where one access in five writes", "--writers 0.2"},
	{"many objects with a lock each, seldom contended", "--locks 10000"},
	{"many locks, some of them hot", "--locks 10000 --keys zipf:0.99"},
	{"many locks on an RDMA network, nine in ten acquires by ranks of the lock's own node", "--backend verbs --locks 1024 --locality 90"},
	{"ranks that may die", "--deaths --locks 1000"},
	{"locks on memory nodes, seldom contended", "--backend verbs --memory-nodes 2 --locks 10000 --writers 0.5"},
	{"locks on memory nodes, some of them hot", "--backend verbs --memory-nodes 2 --locks 10000 --keys zipf:0.99 --writers 0.5"},
	{"one lock on a memory node that all ranks write under", "--backend verbs --memory-nodes 1"},
}

// writeJobs writes the table of docs/guide.md.
func writeJobs(out io.Writer) error {
	fmt.Fprintln(out, "| your program | flags of `rmalock advise` | lock | million acquires per second, and of the next |\n|---|---|---|---|")
	for _, row := range jobs {
		var o adviseOptions
		cmd := &cobra.Command{Use: "advise"}
		o.flags(cmd)
		if err := cmd.ParseFlags(strings.Fields(row.flags)); err != nil {
			return err
		}
		given := cmd.Flags().Changed
		if !given("ranks") {
			o.job.Ranks = allRanks // whatever the environment has
		}
		if !given("nodes") {
			o.job.Nodes = allRanks / simulatedPerNode
		}
		if err := o.job.check(func(name string) bool { return name == "ranks" || name == "nodes" || given(name) }); err != nil {
			return err
		}
		a, err := advise(o.job, nil)
		if err != nil {
			return err
		}
		var speeds []string
		for _, name := range []string{a.Choice, ""} { // the choice, then the fastest other
			i := slices.IndexFunc(a.Runs, func(r evidence) bool { return r.Lock == name || name == "" && r.Lock != a.Choice })
			if i >= 0 {
				speeds = append(speeds, fmt.Sprintf("%.3g", a.Runs[i].PerSecond/1e6)+map[bool]string{true: " (`" + a.Runs[i].Lock + "`)"}[name == ""])
			}
		}
		flags := ""
		if row.flags != "" {
			flags = "`" + row.flags + "`"
		}
		fmt.Fprintf(out, "| %s | %s | `%s` | %s |\n", row.program, flags, a.Choice, strings.Join(speeds, ", "))
	}
	return nil
}
