package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/papers"
	"github.com/rmalock/rmalock/bench/plot"
)

// papersOptions are the flags of papers.
type papersOptions struct {
	paper          string
	figures        []string
	quick, full    bool
	list, markdown bool
	json           bool
	plot           string
}

func newPapers() *cobra.Command {
	var o papersOptions
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "Make the figures of the papers again, and compare",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.paper, "paper", "", "the experiments of one paper: dslr, declock, alock, cider or rma-rw")
	f.StringSliceVar(&o.figures, "figure", nil, "the experiments of `figures`, as in the paper or by the beginnings of ids")
	f.BoolVar(&o.quick, "quick", false, "short runs, the default")
	f.BoolVar(&o.full, "full", false, "long runs, and bands over the machines' weak constants")
	f.BoolVar(&o.list, "list", false, "list the experiments and their commands, and run none")
	f.StringVar(&o.plot, "plot", "", "`folder` for the runs, which are then not made again, figures and papers.html")
	f.BoolVar(&o.json, "json", false, "print JSON, a line for each claim")
	f.BoolVar(&o.markdown, "markdown", false, "print the page docs/papers.md")
	complete(cmd, "paper", paperNames()...)
	cmd.MarkFlagsMutuallyExclusive("quick", "full")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown", "list")
	cmd.Long = text("papers")
	return cmd
}

func paperNames() (names []string) {
	for _, p := range papers.All() {
		names = append(names, p.Name)
	}
	return names
}

func (o *papersOptions) run(cmd *cobra.Command) error {
	list, err := papers.Select(o.paper, o.figures...)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.list {
		for _, p := range list {
			for _, x := range p.Experiments {
				fmt.Fprintf(out, "%-12s %-7s %s\n%20s %s\n", x.ID, p.Name, x.What, "", x.Command(o.full))
			}
		}
		return nil
	}
	w := newPaperRuns()
	if o.plot != "" {
		if w.store, err = bench.OpenStore(o.plot); err != nil {
			return fail(err)
		}
		defer w.store.Close()
	}
	rows := o.rows(cmd, w, list)
	switch {
	case o.json:
		for _, r := range rows {
			if err := writeJSON(out, r); err != nil {
				return fail(err)
			}
		}
	case o.markdown:
		err = papers.WriteMarkdown(out, list, rows)
	default:
		err = papers.WriteText(out, rows)
	}
	if err == nil && w.store != nil {
		err = o.page(w, list, rows)
	}
	if n := papers.Count(rows, papers.Red); err == nil && n > 0 {
		err = fmt.Errorf("%d claims are red: outside of their tolerance and of the gap that is known, or not run to their end", n)
	}
	return fail(err)
}

// rows makes the runs of all experiments, as many at once as there are processors, and judges
// them.
func (o *papersOptions) rows(cmd *cobra.Command, w *paperRuns, list []papers.Paper) []papers.Row {
	type job struct {
		paper string
		x     *papers.Experiment
		rows  []papers.Row
		done  chan struct{}
	}
	var jobs []*job
	for p := range list {
		for i := range list[p].Experiments {
			jobs = append(jobs, &job{paper: list[p].Name, x: &list[p].Experiments[i], done: make(chan struct{})})
		}
	}
	next := make(chan *job)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for j := range next {
				begin := time.Now()
				runs, err := w.make(j.x, o.full)
				j.rows = j.x.Judge(j.paper, o.full, runs, err)
				w.tell(cmd, fmt.Sprintf("%s: %s, %s", j.x.ID, papers.Summary(j.rows), time.Since(begin).Round(100*time.Millisecond)))
				close(j.done)
			}
		}()
	}
	go func() {
		for _, j := range jobs {
			next <- j
		}
		close(next)
	}()
	var rows []papers.Row
	for _, j := range jobs {
		<-j.done
		rows = append(rows, j.rows...)
	}
	return rows
}

// paperRuns makes runs, and keeps them in a folder if there is one.
type paperRuns struct {
	mu    sync.Mutex
	store *bench.Store
	keys  map[string][]string // of the runs of each experiment
	made  map[string]*paperRun
}

func newPaperRuns() *paperRuns {
	return &paperRuns{keys: map[string][]string{}, made: map[string]*paperRun{}}
}

// A paperRun is made once, for all experiments that have it.
type paperRun struct {
	once sync.Once
	res  *bench.Result
	err  error
}

// tell writes a line about progress.
func (w *paperRuns) tell(cmd *cobra.Command, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(cmd.ErrOrStderr(), line)
}

// make makes the runs of an experiment, by the flags of bench.
func (w *paperRuns) make(x *papers.Experiment, full bool) (runs papers.Runs, err error) {
	for _, line := range x.Lines(full) {
		o, points, err := paperPoints(line)
		if err != nil {
			return nil, err
		}
		where := o.layout.where(o.backend.name)
		for _, p := range points {
			key := o.key(p, where) + ", build " + build()
			r := w.run(x.ID, key)
			r.once.Do(func() {
				if r.res == nil {
					r.res, r.err = o.runHere(p, nil)
				}
				if r.err == nil {
					r.err = w.keep(bench.Record{Key: key, Where: where, Command: "rmalock bench " + line, Made: time.Now().Truncate(time.Second), Host: bench.ThisHost(), Result: r.res})
				}
			})
			if r.err != nil {
				return nil, fmt.Errorf("%s: %w", p.Config.Lock, r.err)
			}
			runs = append(runs, r.res)
		}
	}
	return runs, nil
}

// paperPoints reads flags as bench does, and lists their runs.
func paperPoints(line string) (*benchOptions, []bench.Point, error) {
	o := &benchOptions{}
	cmd := &cobra.Command{Use: "bench"}
	o.flags(cmd)
	if err := cmd.ParseFlags(papers.Args(line)); err != nil {
		return nil, nil, fmt.Errorf("bench %s: %w", line, err)
	}
	points, err := o.check(cmd)
	if err != nil {
		return nil, nil, fmt.Errorf("bench %s: %w", line, err)
	}
	if o.backend.name != simulated {
		return nil, nil, fmt.Errorf("bench %s: --backend is %s, want %s: %w", line, o.backend.name, simulated, bench.ErrConfig)
	}
	return o, o.applicable(points, o.layout.nodesOf), nil
}

// run is a run by its key, with its result if the folder has it. It notes that an experiment has it.
func (w *paperRuns) run(id, key string) *paperRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[id] = append(w.keys[id], key)
	if w.made[key] == nil {
		w.made[key] = &paperRun{}
		if w.store != nil {
			if i := slices.IndexFunc(w.store.Records(), func(r bench.Record) bool { return r.Key == key }); i >= 0 {
				w.made[key].res = w.store.Records()[i].Result
			}
		}
	}
	return w.made[key]
}

// keep adds a run to the folder, if it is not there.
func (w *paperRuns) keep(r bench.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil || w.store.Has(r.Key) {
		return nil
	}
	return w.store.Add(r)
}

// page draws the figures of the folder and writes papers.html.
func (o *papersOptions) page(w *paperRuns, list []papers.Paper, rows []papers.Row) error {
	pictures := map[string][]template.HTML{} // of each experiment
	for id, keys := range w.keys {
		var records []bench.Record
		for _, r := range w.store.Records() {
			if slices.Contains(keys, r.Key) {
				records = append(records, r)
			}
		}
		for _, f := range plot.Figures(records) {
			svg, err := f.SVG()
			if err != nil {
				return err
			}
			pictures[id] = append(pictures[id], template.HTML(svg)) //nolint:gosec // plot escapes its texts
		}
	}
	f, err := os.Create(filepath.Join(o.plot, "papers.html"))
	if err != nil {
		return err
	}
	if err := papers.WriteHTML(f, list, rows, pictures); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// build names this build of the program: runs of another one may differ.
var build = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
})
