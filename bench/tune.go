package bench

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// A Tuner looks for the thresholds of rmamcs or rmarw that suit a machine and a workload. It
// varies one threshold after the other. In each round every value runs once, in a random
// order. Figures are compared within a round, since the speed of a machine varies.
//
// A larger T_L or T_R is hardly ever slower, and less fair. So a Tuner takes the smallest
// value whose throughput is within Slack of the best; of numbers of counters, the default if
// it is within Slack. At the end the result runs against the defaults, in rounds of their
// own. It is kept if it wins every round, or if it is as fast and no threshold is larger.
type Tuner struct {
	// Lock is rmamcs or rmarw, in text. Parameters that it sets stay as they are, and
	// thresholds among them are not looked for.
	Lock     string
	Topology *topo.Topology // of the lock, with the levels it is to use
	// Virtual: the runs are in virtual time, where the default leaf is another one.
	Virtual bool
	Rounds  int    // 0 means 5
	Seed    uint64 // of the orders, and of the first round's runs
	// Measure makes a run of a lock in text. In a job all ranks call it, and it returns
	// the same Sample to all.
	Measure func(lock string, seed uint64) (Sample, error)
	// Tried, if not nil, is called after each run with the number of runs so far and in all.
	Tried func(done, all int)

	lock Lock // Lock
}

// Slack is the share of throughput that a Tuner gives up for a smaller threshold.
const Slack = 0.05

// A Sample is the result of a run, for a Tuner.
type Sample struct {
	PerSecond      float64 // acquires of all ranks
	ShareDeviation float64 // as in Result
	P99            float64 // ns
}

// A Trial is a value of a threshold and its results.
type Trial struct {
	Threshold string `json:"threshold"` // "T_DC", "T_L of node", "T_R"
	Value     string `json:"value"`     // of the threshold
	Lock      string `json:"lock"`      // in text
	// PerSecond, ShareDeviation and P99 are medians of the rounds. Ratio is the median ratio to
	// the previous value in the same round; Low and High are its extremes.
	PerSecond      float64 `json:"acquires_per_second"`
	Ratio          float64 `json:"ratio"`
	Low            float64 `json:"ratio_low"`
	High           float64 `json:"ratio_high"`
	ShareDeviation float64 `json:"share_deviation"`
	P99            float64 `json:"ns_per_acquire_p99"`
	Was            bool    `json:"was"`   // the previous value
	Taken          bool    `json:"taken"` // the value that is taken
}

// Tuned is the result of a Tuner.
type Tuned struct {
	Best       string           `json:"best"`    // lock in text
	Thresholds rmarw.Thresholds `json:"-"`       // of Best
	Default    string           `json:"default"` // lock in text with the default thresholds
	Trials     []Trial          `json:"trials"`  // in the order of the search
	Final      *Trial           `json:"final"`   // the result against the defaults; nil if they are equal
}

// knob is a threshold and its values, the preferred ones first.
type knob struct {
	name   string
	values []rmarw.Thresholds
	texts  []string
}

// Run looks for the best thresholds.
func (t Tuner) Run() (*Tuned, error) {
	var err error
	if t.lock, err = ParseLock(t.Lock); err != nil {
		return nil, err
	}
	if t.lock.Name != "rmamcs" && t.lock.Name != "rmarw" {
		return nil, fmt.Errorf("tune is for rmamcs and rmarw, which have thresholds, not for %q: %w", t.Lock, ErrConfig)
	}
	if t.Rounds < 0 {
		return nil, fmt.Errorf("rounds is %d, want at least 1: %w", t.Rounds, ErrConfig)
	}
	if t.Rounds == 0 {
		t.Rounds = 5
	}
	start := rmarw.Defaults(t.Topology)
	out := &Tuned{Default: t.text(start), Thresholds: start}
	knobs := t.knobs()
	done, all := 0, 2*t.Rounds
	for _, k := range knobs {
		all += t.Rounds * len(k(start).values)
	}
	rounds := func(name string, values []rmarw.Thresholds, texts []string, was int) ([]Trial, error) {
		return t.rounds(name, values, texts, was, func() {
			if done++; t.Tried != nil {
				t.Tried(done, max(all, done))
			}
		})
	}
	for _, of := range knobs {
		k := of(out.Thresholds)
		was := slices.IndexFunc(k.values, func(th rmarw.Thresholds) bool { return t.text(th) == t.text(out.Thresholds) })
		trials, err := rounds(k.name, k.values, k.texts, was)
		if err != nil {
			return nil, err
		}
		take := pick(trials)
		trials[take].Taken = true
		out.Thresholds = k.values[take]
		out.Trials = append(out.Trials, trials...)
	}
	out.Best = t.text(out.Thresholds)
	if out.Best != out.Default {
		trials, err := rounds("all", []rmarw.Thresholds{start, out.Thresholds}, []string{"defaults", "what was found"}, 0)
		if err != nil {
			return nil, err
		}
		out.Final = &trials[1]
		if out.Final.Taken = out.Final.Low > 1 || out.Final.Ratio >= 1-Slack && smaller(out.Thresholds, start); !out.Final.Taken {
			out.Thresholds, out.Best = start, out.Default
		}
	}
	return out, nil
}

// smaller reports whether no threshold of a is larger than that of b.
func smaller(a, b rmarw.Thresholds) bool {
	for i := range a.TL {
		if a.TL[i] > b.TL[i] {
			return false
		}
	}
	return a.TR <= b.TR && a.TDC == b.TDC
}

// pick is the first of trials within Slack of the best.
func pick(trials []Trial) int {
	best := 0.0
	for _, r := range trials {
		best = max(best, r.Ratio)
	}
	return slices.IndexFunc(trials, func(r Trial) bool { return r.Ratio >= (1-Slack)*best })
}

// rounds runs each value once a round.
func (t Tuner) rounds(name string, values []rmarw.Thresholds, texts []string, was int, tried func()) ([]Trial, error) {
	rng := rand.New(rand.NewPCG(t.Seed, uint64(len(name))))
	samples := make([][]Sample, len(values))
	for round := range t.Rounds {
		for _, i := range rng.Perm(len(values)) {
			s, err := t.Measure(t.text(values[i]), t.Seed+uint64(round))
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
			tried()
		}
	}
	trials := make([]Trial, len(values))
	for i := range values {
		of := func(f func(s, base Sample) float64) []float64 {
			var out []float64
			for round, s := range samples[i] {
				out = append(out, f(s, samples[was][round]))
			}
			slices.Sort(out)
			return out
		}
		ratios := of(func(s, base Sample) float64 { return s.PerSecond / base.PerSecond })
		trials[i] = Trial{
			Threshold: name, Value: texts[i], Lock: t.text(values[i]), Was: i == was,
			Ratio: ratios[len(ratios)/2], Low: ratios[0], High: ratios[len(ratios)-1],
			PerSecond:      of(func(s, _ Sample) float64 { return s.PerSecond })[t.Rounds/2],
			ShareDeviation: of(func(s, _ Sample) float64 { return s.ShareDeviation })[t.Rounds/2],
			P99:            of(func(s, _ Sample) float64 { return s.P99 })[t.Rounds/2],
		}
	}
	return trials, nil
}

// knobs are the lock's thresholds in the order of the search: T_DC, T_L from the leaf to the
// root, T_R. Each function returns the values of one, given the thresholds so far.
func (t Tuner) knobs() []func(rmarw.Thresholds) knob {
	var out []func(rmarw.Thresholds) knob
	if t.looksFor("TDC") {
		out = append(out, t.counters)
	}
	levels := t.Topology.Levels()
	for i := len(levels) - 1; i >= 0 && t.looksFor("TL"); i-- {
		alone := true // no element has two parts that could pass the lock on
		for e := range t.Topology.Elements(i) {
			alone = alone && t.Topology.Arity(i, e) < 2
		}
		if alone || i == 0 && t.lock.Name == "rmamcs" {
			continue
		}
		out = append(out, func(th rmarw.Thresholds) knob {
			k := knob{name: "T_L of " + levels[i].Name}
			for _, n := range with([]int{2, 5, 10, 20, 50, 100, 200}, th.TL[i]) {
				th := th
				th.TL = slices.Clone(th.TL)
				th.TL[i] = n
				k.values, k.texts = append(k.values, th), append(k.texts, strconv.Itoa(n))
			}
			return k
		})
	}
	if t.looksFor("TR") && !t.bargingRoot() {
		out = append(out, func(th rmarw.Thresholds) knob {
			k := knob{name: "T_R"}
			for _, n := range with([]int64{30, 100, 300, 1000, 4096, 16000}, th.TR) {
				th := th
				th.TR = n
				k.values, k.texts = append(k.values, th), append(k.texts, strconv.FormatInt(n, 10))
			}
			return k
		})
	}
	return out
}

// looksFor reports whether the lock has a threshold and Lock leaves it open.
func (t Tuner) looksFor(name string) bool {
	has := slices.ContainsFunc(t.lock.Params, func(p lock.Param) bool { return p.Name == name })
	return has && t.lock.Values[name] == ""
}

// bargingRoot reports whether the root is a barging leaf, which does not use T_R: with one level
// within a node, unless the lock has another leaf.
func (t Tuner) bargingRoot() bool {
	if len(t.Topology.Levels()) > 1 {
		return false
	}
	switch leaf := t.lock.Values["LEAF"]; leaf {
	case "barging":
		return true
	case "", "auto":
		whole := t.Topology.Whole()
		node, known := whole.Find("node")
		return !t.Virtual && known && whole.Elements(node) == 1
	}
	return false
}

// counters are values of T_DC with different numbers of counters, the present one first.
func (t Tuner) counters(th rmarw.Thresholds) knob {
	k := knob{name: "T_DC"}
	seen := map[int]bool{}
	for _, text := range []string{th.TDC.String(), "1 per node", "2 per node", "4 per node", "1", "every 2nd node"} {
		d, err := rmarw.ParseTDC(text)
		if err != nil {
			continue
		}
		next := th
		next.TDC = d
		if next, err = next.Fill(t.Topology); err != nil {
			continue
		}
		c, err := rmarw.NewCounters(t.Topology, next.TDC)
		if err != nil || seen[c.Len()] {
			continue
		}
		seen[c.Len()] = true
		k.values, k.texts = append(k.values, next), append(k.texts, next.TDC.String())
	}
	return k
}

// with adds a value to a list, which it sorts.
func with[T int | int64](ns []T, n T) []T {
	ns = append(slices.Clone(ns), n)
	slices.Sort(ns)
	return slices.Compact(ns)
}

// text is the lock with thresholds, as ParseLock reads it.
func (t Tuner) text(th rmarw.Thresholds) string {
	var tl []string
	for _, n := range th.TL {
		tl = append(tl, strconv.Itoa(n))
	}
	values := map[string]string{"TL": strings.Join(tl, "/"), "TR": strconv.FormatInt(th.TR, 10), "TDC": th.TDC.String()}
	maps.Copy(values, t.lock.Values)
	text := t.lock.Name
	for _, p := range t.lock.Params {
		if v, ok := values[p.Name]; ok {
			text += ":" + p.Name + "=" + v
		}
	}
	return text
}

// WriteText writes the trials, a line each, and the best lock.
func (r *Tuned) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "threshold\tvalue\tmillion/s\tratio\tlow\thigh\tdeviation %\t99 % us\t\t")
	line := func(r *Trial) {
		what := ""
		switch {
		case r.Was && r.Taken:
			what = "stays"
		case r.Taken:
			what = "taken"
		case r.Was:
			what = "was"
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.3f\t%.3f\t%.3f\t%.3g\t%.4g\t%s\t\n",
			r.Threshold, r.Value, r.PerSecond/1e6, r.Ratio, r.Low, r.High, 100*r.ShareDeviation, r.P99/1e3, what)
	}
	for i := range r.Trials {
		line(&r.Trials[i])
	}
	if r.Final != nil {
		line(r.Final)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	why := "what the machine's description gives is within the noise of the best"
	switch f := r.Final; {
	case f == nil:
	case f.Taken:
		why = fmt.Sprintf("%.2f times the throughput of the defaults (%.2f to %.2f),\n       %s", f.Ratio, f.Low, f.High, r.Default)
	default:
		why = fmt.Sprintf("the defaults, of which\n       %s\n       made %.2f times the throughput (%.2f to %.2f), which is not enough", f.Lock, f.Ratio, f.Low, f.High)
	}
	_, err := fmt.Fprintf(w, "\nbest   '%s'\n       %s\n", r.Best, why)
	return err
}
