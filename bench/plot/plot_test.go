package plot_test

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/plot"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// slow is a machine whose weak constant makes everything slower.
type slow float64

func (s slow) Name() string  { return "slow & steady" }
func (s slow) About() string { return "slow, and steady at that" }
func (s slow) Weak() []bench.Constant {
	return []bench.Constant{{Name: "factor", Low: 1, Value: float64(s), High: 4}}
}
func (s slow) With(_ string, v float64) (bench.Machine, error) { return slow(v), nil }
func (s slow) Model(*bench.Virtual, uint64) (sim.Model, error) { return model{int64(s)}, nil }

type model struct{ factor int64 }

func (m model) Name() string { return "slow" }
func (m model) Issue(now int64, _, _ int, _ rma.Kind, _ int, _ bool) (free, arrives int64) {
	return now + 10, now + 500*m.factor
}
func (m model) Serve(now int64, _, _ int, _ rma.Kind, _ int, _ uint64) int64 { return now + 50 }
func (m model) Reply(now int64, _, _ int, _ rma.Kind, _ int) int64           { return now + 500*m.factor }
func (m model) Connection(_, _ int) (id, limit int)                          { return 0, 0 }
func (m model) Near(_, _ int) int64                                          { return 20 }
func (m model) Woken(_, _ int) int64                                         { return 50 }
func (m model) Barrier(int) int64                                            { return 1000 }

// records makes the runs of a sweep in virtual time.
func records(t *testing.T, s bench.Sweep, band bool) []bench.Record {
	t.Helper()
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	var out []bench.Record
	for _, p := range points {
		tree, err := topo.Parse(fmt.Sprintf("node:%d rank:2", p.Ranks/2))
		if err != nil {
			t.Fatal(err)
		}
		res, err := bench.Virtual{Topology: tree, Machine: slow(2), Band: band}.Run(p.Config)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bench.Record{
			Key: p.Key("slow"), Where: "slow & steady, 2 ranks a node", Command: "rmalock bench --lock '<all>'", Made: time.Unix(1e9, 0).UTC(), Host: bench.ThisHost(), Result: res,
		})
	}
	return out
}

func figure(t *testing.T, figures []*plot.Figure, id string) *plot.Figure {
	t.Helper()
	for _, f := range figures {
		if f.ID == id {
			return f
		}
	}
	var ids []string
	for _, f := range figures {
		ids = append(ids, f.ID)
	}
	t.Fatalf("no figure %s; there are %v", id, ids)
	return nil
}

func names(f *plot.Figure) []string {
	var out []string
	for _, s := range f.Series {
		out = append(out, s.Name)
	}
	return out
}

// The paper's sweeps become the paper's figures, with a line for each lock and a point
// for each number of ranks, whose value is the runs'.
func TestFigures(t *testing.T) {
	var all []bench.Record
	for _, s := range []bench.Sweep{
		{Modes: []bench.Mode{bench.LB, bench.ECSB}, Locks: []string{"dmcs", "fompi-spin"}, Writers: []float64{1}, Ranks: []int{4, 8, 2}, Repeat: 3},
		{Modes: []bench.Mode{bench.SOB}, Locks: []string{"fompi-rw"}, Writers: []float64{0.002, 0.02, 0.05, 0.5, 1}, Ranks: []int{8}},
		{Modes: []bench.Mode{bench.DHT}, Locks: []string{"fompi-rw", bench.Atomic}, Writers: []float64{0.2, 0, 0.05}, Ranks: []int{4, 8}},
	} {
		s.Config.Acquires = 30
		all = append(all, records(t, s, false)...)
	}
	figures := plot.Figures(all)
	var ids []string
	for _, f := range figures {
		ids = append(ids, f.ID)
	}
	if want := []string{"3-lb", "3-ecsb", "5-sob", "5w-sob-0008", "6-dht-0-27", "6-dht-5-27", "6-dht-20-27"}; !slices.Equal(ids, want) {
		t.Fatalf("figures %v, want %v", ids, want)
	}
	lb := figure(t, figures, "3-lb")
	if got := names(lb); !slices.Equal(got, []string{"D-MCS", "foMPI-Spin"}) || !lb.X.Log || !lb.Y.Log || !slices.Equal(lb.X.Ticks, []float64{2, 4, 8}) {
		t.Errorf("figure 3, LB: lines %v, axes %+v, %+v", got, lb.X, lb.Y)
	}
	var means []float64
	for _, r := range all {
		if r.Result.Mode == bench.LB && r.Result.Lock == "dmcs" && r.Result.Ranks == 4 {
			means = append(means, r.Result.Mean/1e3)
		}
	}
	slices.Sort(means)
	if p := lb.Series[0].Points[1]; len(means) != 3 || p.X != 4 || p.Y != means[1] || p.Low != means[0] || p.High != means[2] {
		t.Errorf("point %+v of runs %v", p, means)
	}
	if ecsb := figure(t, figures, "3-ecsb"); !strings.Contains(ecsb.Y.Label, "million") || !strings.Contains(ecsb.Note, "median of runs") {
		t.Errorf("figure 3, ECSB: %+v, note %q", ecsb.Y, ecsb.Note)
	}
	// Of many shares of writers the paper's are shown, and all in a figure of their own.
	if got := names(figure(t, figures, "5-sob")); !slices.Equal(got, []string{"foMPI-RW, F_W = 0.2 %", "foMPI-RW, F_W = 2 %", "foMPI-RW, F_W = 5 %"}) {
		t.Errorf("figure 5: lines %v", got)
	}
	if by := figure(t, figures, "5w-sob-0008"); len(by.Series) != 1 || len(by.Series[0].Points) != 5 || by.Series[0].Points[4].X != 100 {
		t.Errorf("by share of writers: %+v", by.Series)
	}
	if d := figure(t, figures, "6-dht-20-27"); !slices.Equal(names(d), []string{"foMPI-RW", "foMPI-A (atomics alone)"}) || !strings.Contains(d.Title, "F_W = 20 %") || !strings.Contains(d.Y.Label, "total time") {
		t.Errorf("figure 6: %q, %v, %+v", d.Title, names(d), d.Y)
	}
}

// Runs with parameters are figure 4, each setting a line.
func TestFiguresOfParameters(t *testing.T) {
	run := func(mode bench.Mode, lock string, writers float64, ranks int, perSecond float64) bench.Record {
		return bench.Record{Where: "x", Result: &bench.Result{Mode: mode, Lock: lock, Shared: true, Locks: 1, Writers: writers, Ranks: ranks, PerSecond: perSecond, Mean: 1000,
			Band: &bench.Band{PerSecond: bench.Range{Min: perSecond / 2, Max: perSecond * 2}}}}
	}
	var all []bench.Record
	for i, ranks := range []int{16, 32} {
		v := float64(i+1) * 1e6
		all = append(all,
			run(bench.SOB, "rmarw:tdc=1 per node", 0.002, ranks, v), run(bench.SOB, "rmarw:tdc=every 2nd node", 0.002, ranks, 2*v),
			run(bench.ECSB, "rmarw:tr=3000", 0.02, ranks, v), run(bench.ECSB, "rmarw:tr=3000", 0.05, ranks, v),
			run(bench.WARB, "rmarw:tr=77", 0.02, ranks, v))
	}
	figures := plot.Figures(all)
	a := figure(t, figures, "4a-sob")
	if got := names(a); !slices.Equal(got, []string{"T_DC = 1 per node", "T_DC = every 2nd node"}) || a.Series[0].Hue == a.Series[1].Hue || !strings.Contains(a.Note, "F_W = 0.2 %") {
		t.Errorf("4a: lines %v of hues %d and %d, note %q", got, a.Series[0].Hue, a.Series[1].Hue, a.Note)
	}
	if p := a.Series[0].Points[1]; p != (plot.Point{X: 32, Y: 2, Low: 1, High: 4}) || !strings.Contains(a.Note, "weak constants") {
		t.Errorf("4a: point %+v, note %q", p, a.Note)
	}
	if got := names(figure(t, figures, "4f-ecsb")); !slices.Equal(got, []string{"T_R = 3000, F_W = 2 %", "T_R = 3000, F_W = 5 %"}) {
		t.Errorf("4f: lines %v", got)
	}
	if got := names(figure(t, figures, "4x-rmarw-warb")); !slices.Equal(got, []string{"T_R = 77, F_W = 2 %"}) {
		t.Errorf("a setting of no figure: lines %v", got)
	}
}

// TestClients: runs of mode clients become figures by what they did: throughput by ranks, and
// distribution functions of latency, of the busiest lock and of the ranks' shares.
func TestClients(t *testing.T) {
	var all []bench.Record
	for _, m := range []bench.Mix{{Keys: bench.Keys{Theta: 0.99}, Accesses: 1}, {Keys: bench.Keys{HotSet: 0.1, HotShare: 0.9}}} {
		s := bench.Sweep{Modes: []bench.Mode{bench.Clients}, Locks: []string{"dmcs", "fompi-spin"}, Writers: []float64{1}, Ranks: []int{2, 8}}
		s.Config.Acquires, s.Config.Locks, s.Config.Workload = 100, 50, m
		all = append(all, records(t, s, false)...)
	}
	var ids []string
	for _, f := range plot.Figures(all) {
		ids = append(ids, f.ID)
		if svg, err := f.SVG(); err != nil || !strings.Contains(string(svg), "foMPI-Spin") {
			t.Errorf("%s: %v", f.ID, err)
		}
		if !slices.Equal(names(f), []string{"D-MCS", "foMPI-Spin"}) || !strings.Contains(f.Title, "50 locks, F_W = 100 %") {
			t.Errorf("%s: %q, lines %v", f.ID, f.Title, names(f))
		}
		if f.ID == "7-clients-1" || f.ID == "7-clients-2" {
			if !slices.Equal(f.X.Ticks, []float64{2, 8}) {
				t.Errorf("%s: ticks %v", f.ID, f.X.Ticks)
			}
			continue
		}
		for _, s := range f.Series {
			if last := s.Points[len(s.Points)-1]; f.Y.Log || last.Y != 100 || !slices.IsSortedFunc(s.Points, func(a, b plot.Point) int { return cmp.Compare(a.Y, b.Y) }) {
				t.Errorf("%s: %s is no distribution function: %+v", f.ID, s.Name, s.Points)
			}
		}
	}
	want := []string{"7-clients-1", "7-clients-1-latency", "7-clients-1-lock", "7-clients-1-shares", "7-clients-2", "7-clients-2-latency", "7-clients-2-lock", "7-clients-2-shares"}
	if !slices.Equal(ids, want) {
		t.Errorf("figures %v, want %v", ids, want)
	}
	// Choices with three values have figures of their own.
	var swept []bench.Record
	s := bench.Sweep{Modes: []bench.Mode{bench.Clients}, Locks: []string{"dmcs"}, Writers: []float64{1}, Ranks: []int{8}, Tables: []int{50, 500}, Rates: []float64{1e5, 1e6, 1e7}}
	s.Config.Acquires = 50
	for _, theta := range []float64{0, 0.9, 0.99} {
		s.Workloads = append(s.Workloads, bench.Mix{Keys: bench.Keys{Theta: theta}})
	}
	swept = records(t, s, false)
	drawn := plot.Figures(swept)
	for id, want := range map[string]struct {
		x   []float64
		log bool
	}{"8-skew-1": {[]float64{0, 0.9, 0.99}, false}, "8-skew-6": {[]float64{0, 0.9, 0.99}, false}, "8-offered-6": {[]float64{0.1, 1, 10}, true}} {
		f := figure(t, drawn, id)
		if !slices.Equal(f.X.Ticks, want.x) || f.X.Log != want.log || len(f.Series) != 1 || len(f.Series[0].Points) != 3 {
			t.Errorf("%s: axis %+v, lines %+v", id, f.X, f.Series)
		}
		if _, err := f.SVG(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if slices.ContainsFunc(drawn, func(f *plot.Figure) bool { return strings.HasPrefix(f.ID, "8-locks") || f.ID == "7-clients-1" }) {
		t.Errorf("two numbers of locks, or one of ranks, are a figure")
	}
	var r *bench.Result
	for i := range all {
		if all[i].Result.Lock == "dmcs" && all[i].Result.Ranks == 8 {
			r = all[i].Result
			break
		}
	}
	// Half of the visits take no longer than the median.
	for _, p := range figure(t, plot.Figures(all), "7-clients-1-latency").Series[0].Points {
		if above := p.X*1e3 > r.Median*1.01; above && p.Y < 50 || !above && p.X*1e3 < r.Median*0.99 && p.Y > 50 {
			t.Errorf("%.3g %% of the visits take %g µs at most; the median is %g ns", p.Y, p.X, r.Median)
		}
	}
}

// Extremes of what may come are drawn: no run, one point, a lock without acquires.
func TestOddFigures(t *testing.T) {
	one := func(mode bench.Mode, perSecond float64) []bench.Record {
		return []bench.Record{{Where: "x", Result: &bench.Result{Mode: mode, Lock: "dmcs", Ranks: 1, PerSecond: perSecond}}}
	}
	for _, records := range [][]bench.Record{one(bench.ECSB, 0), one(bench.ECSB, 1e-9), one(bench.ECSB, 1e12), one(bench.LB, 5), append(one(bench.ECSB, 1), one(bench.ECSB, 1e9)...)} {
		for _, f := range plot.Figures(records) {
			if svg, err := f.SVG(); err != nil || len(svg) == 0 {
				t.Errorf("%+v: %v", f, err)
			}
		}
	}
}

func TestWrite(t *testing.T) {
	s := bench.Sweep{Modes: []bench.Mode{bench.LB, bench.ECSB, bench.SOB}, Locks: []string{"dmcs", "fompi-spin"}, Writers: []float64{1}, Ranks: []int{2, 4, 8}, Config: bench.Config{Acquires: 30}}
	dir := t.TempDir()
	paths, err := plot.Write(dir, records(t, s, true), true, "A note <for> the reader.")
	if err != nil {
		t.Fatal(err)
	}
	svgs := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(path) {
		case ".svg":
			svgs++
			texts := wellFormed(t, path, b)
			for _, want := range []string{"D-MCS", "foMPI-Spin", "ranks P", "slow & steady, 2 ranks a node", "8"} {
				if !slices.Contains(texts, want) {
					t.Errorf("%s shows no %q but %q", path, want, texts)
				}
			}
			// Of each line its stroke, its points and its band.
			if n := bytes.Count(b, []byte("#0072B2")); n < 5 {
				t.Errorf("%s has %d strokes in the colour of D-MCS, want its line, points and band", path, n)
			}
		case ".png":
			if m, err := png.Decode(bytes.NewReader(b)); err != nil || m.Bounds().Dx() < 800 {
				t.Errorf("%s: %v", path, err)
			}
		case ".html":
			page(t, path, b)
		}
	}
	if svgs != 3 || len(paths) != 7 || filepath.Base(paths[0]) != "report.html" {
		t.Errorf("wrote %v, want a report and three figures twice", paths)
	}
}

// page checks the report: whole, and without anything from elsewhere.
func page(t *testing.T, path string, b []byte) {
	t.Helper()
	texts := strings.Join(wellFormed(t, path, b), "\n")
	for _, want := range []string{"slow & steady, 2 ranks a node", "simulated", "A note <for> the reader.", "rmalock bench --lock '<all>'", "factor", "slow, and steady at that", "D-MCS",
		"Figure 3: latency (LB)", "Figure 3: empty critical section (ECSB)", "At P = 8: latency (LB)", "18 runs"} {
		if !strings.Contains(texts, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if n := bytes.Count(b, []byte("<svg")); n != 3 {
		t.Errorf("the report has %d figures, want 3", n)
	}
	rest := regexp.MustCompile(`xmlns(:\w+)?="[^"]*"`).ReplaceAll(b, nil)
	for _, outside := range []string{"http:", "https:", "//", " src=", " href=", "@import", "url(", "<script", "<link", "<iframe"} {
		if i := bytes.Index(rest, []byte(outside)); i >= 0 {
			t.Errorf("the report refers to something outside: %q", rest[max(0, i-40):min(len(rest), i+60)])
		}
	}
	if !bytes.HasPrefix(b, []byte("<!DOCTYPE html>")) || bytes.Contains(b, []byte("ZgotmplZ")) {
		t.Error("the report is no page of HTML, or has something that the template refused")
	}
}

// wellFormed parses a document, in which every element must be closed, and returns its
// texts.
func wellFormed(t *testing.T, path string, b []byte) []string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Entity = xml.HTMLEntity
	var texts []string
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if text, ok := token.(xml.CharData); ok && len(bytes.TrimSpace(text)) > 0 {
			texts = append(texts, string(bytes.TrimSpace(text)))
		}
	}
}

func TestPresets(t *testing.T) {
	sweeps, absent, err := plot.Preset("3")
	if err != nil || len(sweeps) != 1 || !slices.Contains(sweeps[0].Locks, "dmcs") || len(sweeps[0].Modes) != 5 {
		t.Errorf("figure 3: %+v without %v, error %v", sweeps, absent, err)
	}
	if _, _, err := plot.Preset("7"); !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), "4a") {
		t.Errorf("figure 7: %v, want an error that lists the figures", err)
	}
	for _, name := range append(plot.Presets(), "4", "all") {
		sweeps, absent, err := plot.Preset(name)
		if err != nil && len(absent) == 0 {
			t.Errorf("figure %s: %v", name, err)
		}
		for _, s := range sweeps {
			if _, err := s.Points(); err != nil {
				t.Errorf("figure %s: %v", name, err)
			}
		}
	}
}
