package bench_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// machine is a lock on a machine whose speed follows from its parameters.
func machine(t *testing.T, speed func(tl []string, tr, tdc string) float64) func(string, uint64) (bench.Sample, error) {
	return func(text string, _ uint64) (bench.Sample, error) {
		if _, err := bench.ParseLock(text); err != nil {
			t.Error(err)
		}
		_, options, err := bench.SplitLock(text)
		if err != nil {
			t.Error(err)
		}
		p := map[string]string{}
		for _, o := range options {
			p[o.Name] = o.Value
		}
		return bench.Sample{PerSecond: speed(strings.Split(p["TL"], "/"), p["TR"], p["TDC"])}, nil
	}
}

func parse(t *testing.T, text string) *topo.Topology {
	t.Helper()
	tree, err := topo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTune(t *testing.T) {
	tree := parse(t, "node:4 rank:8")
	const start = "rmarw:TL=20/50:TR=4096:TDC=1 per node"
	for _, c := range []struct {
		name, lock, best string
		speed            func(tl []string, tr, tdc string) float64
	}{
		{"nothing matters: the smallest of all but T_DC", "rmarw", "rmarw:TL=2/2:TR=30:TDC=1 per node",
			func([]string, string, string) float64 { return 7 }},
		{"the defaults are best", "rmarw", start, func(tl []string, tr, tdc string) float64 {
			v := 1.0
			for i, want := range []string{"20", "50"} {
				if tl[i] != want {
					v *= 0.9
				}
			}
			if tr != "4096" || tdc != "1 per node" {
				v *= 0.8
			}
			return v
		}},
		{"one by one to the best", "rmarw", "rmarw:TL=100/5:TR=300:TDC=4 per node", func(tl []string, tr, tdc string) float64 {
			v := 100.0
			for i, want := range []string{"100", "5"} {
				if tl[i] == want {
					v *= 2
				}
			}
			if tr == "300" {
				v *= 3
			}
			if tdc == "4 per node" {
				v *= 1.2
			}
			return v
		}},
		{"within the slack the smaller one", "rmamcs", "rmamcs:TL=20/10", func(tl []string, _, _ string) float64 {
			return map[string]float64{"2": 50, "5": 80, "10": 96, "20": 99, "50": 100, "100": 100, "200": 100}[tl[1]]
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs, last, total := 0, 0, 0
			measure := machine(t, c.speed)
			tuner := bench.Tuner{Lock: c.lock, Topology: tree, Rounds: 3,
				Measure: func(l string, seed uint64) (bench.Sample, error) { runs++; return measure(l, seed) },
				Tried: func(done, all int) {
					if done != last+1 || total != 0 && all != total {
						t.Errorf("%d of %d runs after %d of %d", done, all, last, total)
					}
					last, total = done, all
				}}
			r, err := tuner.Run()
			if err != nil {
				t.Fatal(err)
			}
			if r.Best != c.best {
				t.Errorf("best is %s, want %s\n%+v", r.Best, c.best, r.Trials)
			}
			if runs != last {
				t.Errorf("%d runs, %d were told", runs, last)
			}
			if (r.Final == nil) != (r.Best == r.Default) {
				t.Errorf("the best is %s, the default %s, and the final %+v", r.Best, r.Default, r.Final)
			}
		})
	}
}

// TestTuneBargingRoot: T_R is not looked for where the root barges, which does not use it.
func TestTuneBargingRoot(t *testing.T) {
	for _, k := range []struct {
		lock, machine string
		virtual, want bool
	}{
		{"rmarw", "node:1 rank:4", false, false},
		{"rmarw:LEAF=barging", "node:1 rank:4", true, false},
		{"rmarw", "node:1 rank:4", true, true},
		{"rmarw:LEAF=mcs", "node:1 rank:4", false, true},
		{"rmarw", "node:4 rank:1", false, true},
		{"rmarw", "node:2 rank:2", false, true},
	} {
		tuner := bench.Tuner{
			Lock: k.lock, Topology: parse(t, k.machine).DefaultView(), Rounds: 1, Virtual: k.virtual,
			Measure: func(string, uint64) (bench.Sample, error) { return bench.Sample{PerSecond: 1}, nil },
		}
		r, err := tuner.Run()
		if err != nil {
			t.Fatal(err)
		}
		tried := slices.ContainsFunc(r.Trials, func(t bench.Trial) bool { return t.Threshold == "T_R" })
		if tried != k.want {
			t.Errorf("%s on %s, virtual %v: T_R was tried: %v", k.lock, k.machine, k.virtual, tried)
		}
	}
}

// TestTuneNoise: what is noise is not taken for a gain.
func TestTuneNoise(t *testing.T) {
	tree := parse(t, "node:4 rank:8")
	wrong := 0
	const tries = 40
	for seed := range uint64(tries) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tuner := bench.Tuner{Lock: "rmarw", Topology: tree, Seed: seed, Measure: func(string, uint64) (bench.Sample, error) {
			return bench.Sample{PerSecond: 100 * (1 + rng.Float64())}, nil
		}}
		r, err := tuner.Run()
		if err != nil {
			t.Fatal(err)
		}
		if r.Final != nil && r.Final.Taken && r.Final.Low > 1 {
			wrong++
		}
	}
	if wrong > tries/8 { // 1 in 32 wins five rounds by chance
		t.Errorf("%d of %d times noise was taken for a gain", wrong, tries)
	}
}

// TestTuneGoodAndBadMoments: a machine that is slow from time to time does not mislead.
func TestTuneGoodAndBadMoments(t *testing.T) {
	moment, runs := 1.0, 0
	steady := machine(t, func(tl []string, _, _ string) float64 {
		if tl[1] == "100" {
			return 150
		}
		return 100
	})
	tuner := bench.Tuner{Lock: "rmamcs", Topology: parse(t, "node:4 rank:8"), Measure: func(l string, seed uint64) (bench.Sample, error) {
		if runs++; runs%7 == 0 {
			moment *= 0.7 // between rounds of seven values
		}
		s, err := steady(l, seed)
		s.PerSecond *= moment
		return s, err
	}}
	r, err := tuner.Run()
	if err != nil {
		t.Fatal(err)
	}
	if want := "rmamcs:TL=20/100"; r.Best != want {
		t.Errorf("best is %s, want %s", r.Best, want)
	}
}

func TestTuneErrors(t *testing.T) {
	tree := parse(t, "node:2 rank:2")
	failed := errors.New("the job is over")
	for _, c := range []struct {
		tuner bench.Tuner
		want  error
	}{
		{bench.Tuner{Lock: "dmcs", Topology: tree}, bench.ErrConfig},
		{bench.Tuner{Lock: "rmarw", Topology: tree, Rounds: -1}, bench.ErrConfig},
		{bench.Tuner{Lock: "rmarw", Topology: tree, Measure: func(string, uint64) (bench.Sample, error) { return bench.Sample{}, failed }}, failed},
	} {
		if _, err := c.tuner.Run(); !errors.Is(err, c.want) {
			t.Errorf("%s, %d rounds: %v, want %v", c.tuner.Lock, c.tuner.Rounds, err, c.want)
		}
	}
}
