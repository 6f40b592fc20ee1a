package bench_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestSweepOfClients: each workload is run with each number of locks and each rate, and these are
// different runs; the other modes have none of it but the locks.
func TestSweepOfClients(t *testing.T) {
	s := bench.Sweep{
		Modes: []bench.Mode{bench.ECSB, bench.Clients}, Locks: []string{"dmcs"}, Writers: []float64{1}, Ranks: []int{2}, Tables: []int{5, 50},
		Workloads: []bench.Workload{bench.Mix{}, bench.Mix{Accesses: 1}, bench.Mix{Keys: bench.Keys{Theta: 0.99}}}, Rates: []float64{1e3, 1e4},
	}
	points, err := s.Points()
	if err != nil || len(points) != 2+2*3*2 {
		t.Fatalf("%d runs, error %v; want 2 of ecsb and 12 of clients", len(points), err)
	}
	keys := map[string]bool{}
	for _, p := range points {
		keys[p.Key("here")] = true
		if (p.Config.Mode == bench.Clients) != (p.Config.Workload != nil && p.Config.Rate > 0) {
			t.Errorf("run %+v", p.Config)
		}
	}
	if len(keys) != len(points) {
		t.Errorf("%d names of %d runs", len(keys), len(points))
	}
	s.Workloads = append(s.Workloads, bench.Mix{Together: 6})
	if _, err := s.Points(); !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), "6 locks together of 5") {
		t.Errorf("6 locks of 5: error %v", err)
	}
}

func TestPoints(t *testing.T) {
	s := bench.Sweep{
		Modes: []bench.Mode{bench.ECSB, bench.DHT}, Locks: []string{"dmcs", "testrw", bench.Atomic},
		Writers: []float64{0.2, 1}, Ranks: []int{1, 4}, Repeat: 2, Config: bench.Config{Seed: 7},
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, p.Key("x"))
	}
	var want []string
	for _, seed := range []int{7, 8} { // in rounds
		for _, c := range []string{"ecsb, dmcs, F_W=1", "ecsb, testrw, F_W=0.2", "ecsb, testrw, F_W=1", // dmcs has no shared mode, atomics are no lock
			"dht, dmcs, F_W=0.2", "dht, dmcs, F_W=1", "dht, testrw, F_W=0.2", "dht, testrw, F_W=1", "dht, atomic, F_W=0.2", "dht, atomic, F_W=1"} {
			for _, ranks := range []int{1, 4} {
				if !strings.HasPrefix(c, "dht") || ranks > 1 { // one rank has no other rank to visit
					want = append(want, fmt.Sprintf("x, P=%d, %s, locks=1, seed=%d", ranks, c, seed))
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("points\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range []struct {
		change func(*bench.Sweep)
		is     error
	}{
		{func(s *bench.Sweep) { s.Locks = []string{"nope"} }, lock.ErrConfig},
		{func(s *bench.Sweep) { s.Modes = []bench.Mode{"nope"} }, bench.ErrConfig},
		{func(s *bench.Sweep) { s.Writers = []float64{2} }, bench.ErrConfig},
		{func(s *bench.Sweep) { s.Modes, s.Writers = s.Modes[:1], []float64{0.1, 0.2} }, lock.ErrConfig},                  // nothing left for dmcs
		{func(s *bench.Sweep) { s.Modes, s.Locks, s.Writers = s.Modes[:1], s.Locks[:1], s.Writers[:1] }, bench.ErrConfig}, // as one run says it
		{func(s *bench.Sweep) { s.Modes, s.Locks = s.Modes[:1], []string{bench.Atomic} }, lock.ErrConfig},                 // no lock at all
	} {
		other := s
		c.change(&other)
		if p, err := other.Points(); !errors.Is(err, c.is) {
			t.Errorf("%+v: %d points, error %v", other, len(p), err)
		}
	}
}

// make makes the runs of a sweep, up to a number of them, on inproc and in virtual
// time, into a folder, and says how many it made.
func sweep(t *testing.T, dir string, most int) (made int) {
	t.Helper()
	store, err := bench.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := bench.Sweep{
		Modes: []bench.Mode{bench.ECSB, bench.LB}, Locks: []string{"dmcs", "fompi-rw"}, Writers: []float64{0.5, 1}, Ranks: []int{2, 4}, Repeat: 2,
		Config: bench.Config{Acquires: 40},
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"goroutines", "steady"} {
		for _, p := range points {
			if store.Has(p.Key(where)) {
				continue
			}
			if made == most {
				return made
			}
			made++
			var res *bench.Result
			if where == "goroutines" {
				err = inproc.Run(p.Ranks, func(c rma.Comm) error {
					r, err := bench.Run(c, p.Config)
					if c.Rank() == 0 {
						res = r
					}
					return err
				})
			} else {
				res, err = bench.Virtual{Topology: nodes(p.Ranks, 2), Machine: steady{1000}, Band: true}.Run(p.Config)
			}
			if err == nil {
				err = store.Add(bench.Record{Key: p.Key(where), Where: where, Command: "test", Host: bench.ThisHost(), Result: res})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return made
}

func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// A sweep goes on where it stopped, even if it stopped in the middle of a line.
func TestStoreGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out", "runs")
	const all = 2 * 2 * 3 * 2 * 2 // places, modes, locks with shares, ranks, seeds
	if n := sweep(t, dir, 7); n != 7 {
		t.Fatalf("made %d runs, want 7", n)
	}
	if n := len(lines(t, dir, "runs.jsonl")); n != 7 {
		t.Fatalf("%d lines, want 7", n)
	}
	f, err := os.OpenFile(filepath.Join(dir, "runs.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"goroutines, P=4, ec`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(filepath.Join(dir, "runs.csv"), []byte("torn"), 0o666); err != nil {
		t.Fatal(err)
	}
	rest := sweep(t, dir, -1)
	if again := sweep(t, dir, -1); again != 0 || rest+7 != all {
		t.Fatalf("made 7, %d and %d runs, want %d together and none at last", rest, again, all)
	}
	text := strings.Join(lines(t, dir, "runs.csv"), "\n")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 1+all {
		t.Fatalf("%d rows of CSV, error %v; want a head and %d", len(rows), err, all)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		if _, twice := column[name]; twice {
			t.Errorf("two columns are called %s", name)
		}
		column[name] = i
	}
	for _, name := range strings.Fields(`where mode lock locks writers ranks nodes simulated machine seed acquires_per_second ns_per_acquire_mean
		ns_per_acquire_p999 share_deviation remote_ops_per_acquire acquires_per_second_low acquires_per_second_high made command`) {
		if _, ok := column[name]; !ok {
			t.Errorf("CSV has no column %s", name)
		}
	}
	for _, row := range rows[1:] {
		simulated := row[column["where"]] == "steady"
		if simulated != (row[column["simulated"]] == "true") || simulated != (row[column["acquires_per_second_low"]] != "") || row[column["acquires_per_second"]] == "" {
			t.Errorf("row %v", row)
		}
	}
	// What is read back is what was written.
	store, err := bench.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records := store.Records()
	if len(records) != all {
		t.Fatalf("%d records, want %d", len(records), all)
	}
	for _, r := range records {
		if r.Result.Ranks < 2 || r.Result.Acquires != int64(r.Result.Ranks*36) || (r.Result.Band != nil) != r.Result.Simulated || r.Host.CPUs < 1 {
			t.Errorf("record %+v with %+v", r, r.Result)
		}
	}
	if err := store.Add(records[0]); !errors.Is(err, bench.ErrStore) {
		t.Errorf("the same run again: error %v", err)
	}
}

// Files of others are left alone.
func TestStoreRefuses(t *testing.T) {
	for _, text := range []string{"hello\n", "hello", "{}\n", `{"key":"x"}` + "\n", "[1]\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "runs.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := bench.OpenStore(dir); !errors.Is(err, bench.ErrStore) || !strings.Contains(err.Error(), "runs.jsonl:1") {
			t.Errorf("%q: error %v, want one that names the line", text, err)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("%q became %q", text, b)
		}
	}
	if _, err := bench.OpenStore(filepath.Join(t.TempDir(), "a\x00b")); err == nil {
		t.Error("a folder that cannot be made is no error")
	}
}
