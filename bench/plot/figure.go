package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

// A Figure is a diagram. Its JSON is all that is needed to draw it.
type Figure struct {
	ID     string   `json:"id"`             // names its file: "3-lb"
	Title  string   `json:"title"`          // heading
	Where  string   `json:"where"`          // what the runs were made on
	Note   string   `json:"note,omitempty"` // what a reader must know
	X      Axis     `json:"x"`              // number of ranks, or F_W
	Y      Axis     `json:"y"`              // the measured figure
	Series []Series `json:"series"`         // the lines
}

// An Axis of a Figure.
type Axis struct {
	Label string    `json:"label"`           // name and unit
	Log   bool      `json:"log"`             // logarithmic
	Ticks []float64 `json:"ticks,omitempty"` // of the x axis: where there are points
}

// A Series is a line of a Figure. Lines of one hue belong together.
type Series struct {
	Name   string  `json:"name"`   // in the legend
	Hue    int     `json:"hue"`    // colour, by number
	Dash   int     `json:"dash"`   // pattern, by number
	Points []Point `json:"points"` // by X
}

// A Point of a line: the median of runs, and the least and greatest that they or their
// bands came to.
type Point struct {
	X    float64 `json:"x"`    // on the x axis
	Y    float64 `json:"y"`    // median
	Low  float64 `json:"low"`  // least
	High float64 `json:"high"` // greatest
}

// measure is what a diagram shows of a run.
type measure struct {
	label string
	log   bool
	unit  float64 // of the figure's own in one of the diagram's
	of    func(*bench.Result) (v float64, band *bench.Range)
}

var (
	latency = measure{"latency of acquire and release, mean [µs]", true, 1e3, func(r *bench.Result) (float64, *bench.Range) {
		if r.Band != nil {
			return r.Mean, &r.Band.Mean
		}
		return r.Mean, nil
	}}
	throughput = measure{"throughput [million acquires/s]", false, 1e6, func(r *bench.Result) (float64, *bench.Range) {
		if r.Band != nil {
			return r.PerSecond, &r.Band.PerSecond
		}
		return r.PerSecond, nil
	}}
	total = measure{"total time [ms]", true, 1e-3, func(r *bench.Result) (float64, *bench.Range) {
		if r.Band != nil {
			return r.Seconds, &r.Band.Seconds
		}
		return r.Seconds, nil
	}}
)

// measureOf is what the paper shows of a workload.
func measureOf(m bench.Mode) measure {
	switch m {
	case bench.Latency, bench.LB:
		return latency
	case bench.DHT:
		return total
	}
	return throughput
}

var modeTitles = map[bench.Mode]string{
	bench.Latency: "uncontended latency",
	bench.LB:      "latency (LB)",
	bench.ECSB:    "empty critical section (ECSB)",
	bench.SOB:     "single operation (SOB)",
	bench.WCSB:    "work in the critical section (WCSB)",
	bench.WARB:    "wait after release (WARB)",
	bench.DHT:     "hashtable (DHT)",
	bench.Clients: "clients",
}

// Figures arranges runs into diagrams, those of one place together and in the order
// of the paper.
func Figures(records []bench.Record) []*Figure {
	var out []*Figure
	for _, where := range places(records) {
		out = append(out, figuresOf(where, records)...)
	}
	return out
}

// places lists where runs were made, in the order of the first.
func places(records []bench.Record) []string {
	var out []string
	for i := range records {
		if !slices.Contains(out, records[i].Where) {
			out = append(out, records[i].Where)
		}
	}
	return out
}

func figuresOf(where string, records []bench.Record) []*Figure {
	d := &drawing{where: where, figures: map[string]*builder{}}
	var here []*bench.Result
	for i := range records {
		if records[i].Where == where {
			here = append(here, records[i].Result)
		}
	}
	for _, r := range here {
		d.add(r)
	}
	d.addByWriters(here)
	d.addClients(here)
	d.addByChoice(here)
	d.thin()
	return d.done()
}

// drawing is the figures of one place.
type drawing struct {
	where   string
	figures map[string]*builder
}

// builder is a Figure that is being filled.
type builder struct {
	Figure
	measure measure
	lines   []*line
	simulated,
	band, oversubscribed, repeated bool
	distribution bool // its lines have their points, shares in per cent
}

// line is a Series that is being filled.
type line struct {
	name, hue string
	writers   float64
	at        map[float64][]*bench.Result
	points    []Point // of a distribution
}

// add takes a run into the figure that it belongs to, with the number of ranks as x.
func (d *drawing) add(r *bench.Result) {
	name, options, _ := bench.SplitLock(r.Lock)
	x := float64(r.Ranks)
	mode := modeTitles[r.Mode]
	switch {
	case r.Mode == bench.Clients: // addClients has them
	case r.Mode == bench.DHT:
		each := fmt.Sprintf("%d", r.Acquires/int64(max(1, r.Ranks-1)))
		b := d.figure(fmt.Sprintf("6-dht-%s-%s", percent(r.Writers), each), "Figure 6: hashtable, F_W = "+percent(r.Writers)+" %", r.Mode)
		b.Note = each + " operations of each rank measured, on one volume"
		b.add(r, title(name)+spell(options), r.Lock, x)
	case len(options) > 0:
		if p := presetOf(r); p.name != "" {
			b := d.figure(p.name+"-"+string(r.Mode), "Figure "+p.name+": "+p.title, r.Mode)
			b.Note = mode
			label := spell(options)
			if len(p.sweep.Writers) > 1 {
				label += writers(r)
			} else {
				b.Note += writers(r)
			}
			b.add(r, strings.TrimPrefix(label, ", "), r.Lock, x)
			return
		}
		b := d.figure("4x-"+name+"-"+string(r.Mode), "Parameters of "+title(name)+": "+mode, r.Mode)
		b.add(r, strings.TrimPrefix(spell(options), ", ")+writers(r)+locks(r), r.Lock, x)
	case r.Mode == bench.Latency:
		d.figure("2-latency", "Uncontended latency, rank 0 alone", r.Mode).add(r, title(name)+locks(r), r.Lock, x)
	case r.Shared:
		b := d.figure("5-"+string(r.Mode), "Figure 5: "+mode, r.Mode)
		b.add(r, title(name)+writers(r)+locks(r), r.Lock, x)
	default:
		b := d.figure("3-"+string(r.Mode), "Figure 3: "+mode, r.Mode)
		b.add(r, title(name)+locks(r), r.Lock, x)
	}
}

// addByWriters takes runs of locks with a shared mode into figures with F_W as x,
// where there are enough of it.
func (d *drawing) addByWriters(results []*bench.Result) {
	type at struct {
		mode  bench.Mode
		ranks int
	}
	found := map[at]map[float64]bool{}
	wanted := func(r *bench.Result) bool {
		_, options, _ := bench.SplitLock(r.Lock)
		return r.Shared && len(options) == 0 && r.Mode != bench.DHT && r.Mode != bench.Clients && r.Mode != bench.Latency && r.Writers > 0
	}
	for _, r := range results {
		if wanted(r) {
			k := at{r.Mode, r.Ranks}
			if found[k] == nil {
				found[k] = map[float64]bool{}
			}
			found[k][r.Writers] = true
		}
	}
	for _, r := range results {
		if !wanted(r) || len(found[at{r.Mode, r.Ranks}]) < 4 {
			continue
		}
		name, _, _ := bench.SplitLock(r.Lock)
		b := d.figure(fmt.Sprintf("5w-%s-%04d", r.Mode, r.Ranks), fmt.Sprintf("Share of writers, P = %d: %s", r.Ranks, modeTitles[r.Mode]), r.Mode)
		b.X.Label = "F_W, share of writers [%]"
		b.add(r, title(name)+locks(r), r.Lock, 100*r.Writers)
	}
}

// thin takes lines of other shares of writers than the paper's out of figure 5, where
// there are too many to tell apart; the figures with F_W as x have them.
func (d *drawing) thin() {
	const most = 4
	papers := []float64{0.002, 0.02, 0.05}
	for id, b := range d.figures {
		shares := map[float64]bool{}
		for _, l := range b.lines {
			shares[l.writers] = true
		}
		if !strings.HasPrefix(id, "5-") || len(shares) <= most || !slices.ContainsFunc(papers, func(w float64) bool { return shares[w] }) {
			continue
		}
		b.lines = slices.DeleteFunc(b.lines, func(l *line) bool { return !slices.Contains(papers, l.writers) })
	}
}

// figure is the figure with an id, new if need be.
func (d *drawing) figure(id, title string, mode bench.Mode) *builder {
	b := d.figures[id]
	if b == nil {
		m := measureOf(mode)
		b = &builder{measure: m, Figure: Figure{
			ID: id, Title: title, Where: d.where,
			X: Axis{Label: "ranks P", Log: true}, Y: Axis{Label: m.label, Log: m.log},
		}}
		d.figures[id] = b
	}
	return b
}

// add takes a run into a line. Lines of one hue have one colour.
func (b *builder) add(r *bench.Result, name, hue string, x float64) {
	i := slices.IndexFunc(b.lines, func(l *line) bool { return l.name == name })
	if i < 0 {
		i = len(b.lines)
		b.lines = append(b.lines, &line{name: name, hue: hue, writers: r.Writers, at: map[float64][]*bench.Result{}})
	}
	l := b.lines[i]
	l.at[x] = append(l.at[x], r)
	b.simulated = b.simulated || r.Simulated
	b.band = b.band || r.Band != nil
	b.oversubscribed = b.oversubscribed || r.Oversubscribed
	b.repeated = b.repeated || len(l.at[x]) > 1
}

// done finishes the figures, in the order of their ids.
func (d *drawing) done() []*Figure {
	var out []*Figure
	for _, b := range d.figures {
		out = append(out, b.done())
	}
	slices.SortFunc(out, func(a, b *Figure) int { return cmp.Compare(order(a.ID), order(b.ID)) })
	return out
}

// order has the workloads in the order of the paper.
func order(id string) string {
	figure, rest, _ := strings.Cut(id, "-")
	for i, m := range bench.Modes() {
		if more, ok := strings.CutPrefix(rest, string(m)); ok {
			if share, ok := strings.CutPrefix(more, "-"); ok && m == bench.DHT {
				share, _, _ = strings.Cut(share, "-")
				v, _ := strconv.ParseFloat(share, 64)
				more = fmt.Sprintf("%08.3f", v) + more
			}
			return fmt.Sprintf("%s-%d%s", figure, i, more)
		}
	}
	return id
}

func (b *builder) done() *Figure {
	f := b.Figure
	var notes []string
	if f.Note != "" {
		notes = append(notes, f.Note)
	}
	if b.band {
		notes = append(notes, "band: weak constants of the machine, from the low to the high ends of their ranges")
	}
	if b.repeated {
		notes = append(notes, "median of runs; band: least to greatest")
	}
	if b.oversubscribed {
		notes = append(notes, "some runs had more ranks than cores")
	}
	f.Note = strings.Join(notes, "; ")
	var hues []string
	dashes := map[string]int{}
	low, high := math.Inf(1), 0.0
	for _, l := range b.lines {
		if !slices.Contains(hues, l.hue) {
			hues = append(hues, l.hue)
		}
	}
	slices.SortStableFunc(b.lines, func(l, m *line) int { return cmp.Compare(slices.Index(hues, l.hue), slices.Index(hues, m.hue)) })
	for _, l := range b.lines {
		s := Series{Name: l.name, Hue: hueOf(l.hue, hues), Dash: dashes[l.hue]}
		dashes[l.hue]++
		s.Points = append(s.Points, l.points...)
		for x, results := range l.at {
			p := b.point(x, results)
			if !(p.Low > 0) && f.Y.Log {
				continue // no acquires: a logarithmic axis has no place for 0
			}
			s.Points = append(s.Points, p)
			low, high = min(low, p.Y), max(high, p.Y)
			if !slices.Contains(f.X.Ticks, x) {
				f.X.Ticks = append(f.X.Ticks, x)
			}
		}
		slices.SortFunc(s.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		f.Series = append(f.Series, s)
	}
	slices.Sort(f.X.Ticks)
	// Where lines lie far apart, a linear axis would show one of them alone.
	if low > 0 && high > 30*low && !b.distribution {
		f.Y.Log = true
	}
	return &f
}

// point puts the runs of a point together.
func (b *builder) point(x float64, results []*bench.Result) Point {
	p := Point{X: x, Low: math.Inf(1), High: math.Inf(-1)}
	var all []float64
	for _, r := range results {
		v, band := b.measure.of(r)
		v /= b.measure.unit
		all = append(all, v)
		p.Low, p.High = min(p.Low, v), max(p.High, v)
		if band != nil {
			p.Low, p.High = min(p.Low, band.Min/b.measure.unit), max(p.High, band.Max/b.measure.unit)
		}
	}
	slices.Sort(all)
	p.Y = (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return p
}

// percent is a share without needless digits.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 6, 64) }

// writers is F_W for a legend.
func writers(r *bench.Result) string {
	return ", F_W = " + percent(r.Writers) + " %"
}

// locks is the number of locks for a legend, where there is more than one.
func locks(r *bench.Result) string {
	if r.Locks < 2 {
		return ""
	}
	return fmt.Sprintf(", %d locks", r.Locks)
}

// parameters are what the paper calls them.
var parameters = map[string]string{"tdc": "T_DC", "tl": "T_L", "tr": "T_R", "tw": "T_W"}

// spell writes parameters for a legend.
func spell(options []bench.Option) string {
	text := ""
	for _, o := range options {
		name := o.Name
		if p, ok := parameters[name]; ok {
			name = p
		}
		text += ", " + name + " = " + o.Value
	}
	return text
}
