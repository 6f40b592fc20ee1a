package degree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/bench/degree"
	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/dht"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

type machine struct{ nodes, perNode int }

var machines = []machine{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}}

func (m machine) String() string { return fmt.Sprintf("%dx%d", m.nodes, m.perNode) }

// run runs the job on a machine and returns every rank's Result and error.
func run(m machine, f func(c rma.Comm) (*degree.Result, error)) ([]*degree.Result, []error) {
	n := m.nodes * m.perNode
	results, errs := make([]*degree.Result, n), make([]error, n)
	err := inproc.RunNodes(m.nodes, m.perNode, func(c rma.Comm) error {
		results[c.Rank()], errs[c.Rank()] = f(c)
		return nil
	})
	if err != nil {
		errs[0] = errors.Join(errs[0], err)
	}
	return results, errs
}

// agreed runs the job and returns the one Result of all ranks.
func agreed(t *testing.T, m machine, f func(c rma.Comm) (*degree.Result, error)) *degree.Result {
	t.Helper()
	results, errs := run(m, f)
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		if !reflect.DeepEqual(results[r], results[0]) {
			t.Fatalf("rank %d has another result than rank 0:\n%+v\n%+v", r, results[r], results[0])
		}
	}
	return results[0]
}

// locks are the names to test: atomics, and every registered lock that opens here; not locks of which
// some ranks serve, nor one whose readers' lease is shorter than a reading of a volume.
func locks(t *testing.T) []string {
	names := []string{degree.Atomic}
	for _, info := range lock.All() {
		if info.Serves || info.Name == "drtm" {
			continue
		}
		err := inproc.Run(2, func(c rma.Comm) error {
			l, err := info.Open(c, c.Size(), 0)
			if err != nil {
				return err
			}
			return l.Free()
		})
		if err != nil {
			t.Logf("lock %s does not open on inproc: %v", info.Name, err)
			continue
		}
		names = append(names, info.Name)
	}
	return names
}

func rmat(t testing.TB, scale int) *graph.RMAT {
	t.Helper()
	g, err := graph.NewRMAT(scale, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryLockCounts(t *testing.T) {
	g := rmat(t, 8)
	edges, _ := g.Estimate()
	for _, name := range locks(t) {
		for _, m := range machines {
			t.Run(name+"/"+m.String(), func(t *testing.T) {
				var mu sync.Mutex
				calls, done := 0, int64(0)
				progress := func(d, total int64) {
					mu.Lock()
					defer mu.Unlock()
					if calls++; d == total {
						done += d
					}
				}
				r := agreed(t, m, func(c rma.Comm) (*degree.Result, error) {
					return degree.Run(c, degree.Config{Source: g, Lock: name, Progress: progress})
				})
				n := m.nodes * m.perNode
				if !r.Verified || r.Differences != 0 || r.FirstDifference != "" {
					t.Errorf("not verified: %d differences, %s", r.Differences, r.FirstDifference)
				}
				if r.Edges != edges || r.Inserts != 2*edges || r.Vertices != vertices(t, g) || r.Ranks != n || r.Nodes != m.nodes || r.Lock != name || r.Source != g.String() {
					t.Errorf("result is %+v", r)
				}
				if done != r.Inserts || calls < n {
					t.Errorf("progress was told of %d inserts in %d calls, want %d", done, calls, r.Inserts)
				}
				checkFigures(t, r)
				checkReports(t, r)
			})
		}
	}
}

// vertices is the number of different vertices.
func vertices(t *testing.T, s graph.Source) int64 {
	t.Helper()
	seen := map[int64]bool{}
	if err := s.Edges(0, 1, func(u, v int64) error { seen[u], seen[v] = true, true; return nil }); err != nil {
		t.Fatal(err)
	}
	return int64(len(seen))
}

func checkFigures(t *testing.T, r *degree.Result) {
	t.Helper()
	close := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }
	if r.Seconds <= 0 || !close(r.PerSecond*r.Seconds, float64(r.Inserts)) {
		t.Errorf("%v inserts per second in %v s", r.PerSecond, r.Seconds)
	}
	if !close(r.Shares.Mean*float64(r.Ranks), float64(r.Inserts)) || r.Shares.Min > r.Shares.Mean || r.Shares.Max < r.Shares.Mean {
		t.Errorf("shares %+v of %d inserts", r.Shares, r.Inserts)
	}
	if len(r.Rates) != r.Ranks || r.Rate.Min > r.Rate.Mean || r.Rate.Max < r.Rate.Mean || r.Rate.Min < 0 || r.Rate.Deviation > r.Rate.Max {
		t.Errorf("rates %v, %+v", r.Rates, r.Rate)
	}
	own, mate, far := 0.0, 0.0, 0.0
	for name, n := range r.Ops {
		kind, distance, _ := strings.Cut(name, ".")
		if kind == "Flush" || kind == "Await" || kind == "Backoff" {
			continue
		}
		switch distance {
		case "own":
			own += n
		case "mate":
			mate += n
		case "far":
			far += n
		}
	}
	if !close(mate+far, r.RemoteOps) || own == 0 || (mate > 0) != (r.Ranks > r.Nodes) || (far > 0) != (r.Nodes > 1) {
		t.Errorf("operations per insert: %v, %v on other ranks", r.Ops, r.RemoteOps)
	}
	// An insert of a vertex that is there reads its slot and adds to its value.
	if r.Lock == degree.Atomic {
		total := own + mate + far
		if total < 2 || total > 3 || !close(sum(r.Ops, "FetchAndOp"), 1) || sum(r.Ops, "Put") != 0 || sum(r.Ops, "CompareAndSwap") != 0 {
			t.Errorf("operations per insert: %v", r.Ops)
		}
	} else if sum(r.Ops, "Put") < 1 || sum(r.Ops, "GetBulk") < 1 {
		t.Errorf("operations per insert: %v", r.Ops)
	}
}

// sum adds up the distances of a kind.
func sum(ops map[string]float64, kind string) float64 {
	return ops[kind+".own"] + ops[kind+".mate"] + ops[kind+".far"]
}

func checkReports(t *testing.T, r *degree.Result) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{r.Source, r.Lock, fmt.Sprintf("%d edges", r.Edges), "GetBulk", "inserts per second"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if r.Verified != strings.HasSuffix(text, "\nverified\n") {
		t.Errorf("verified is %v, the report ends otherwise:\n%s", r.Verified, text)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back degree.Result
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(&back, r) {
		t.Errorf("JSON does not come back (%v): %s", err, data)
	}
}

func TestFacebook(t *testing.T) {
	g, err := graph.OpenFile("../../../shared/data/facebook_combined.txt")
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the file of the Facebook graph is not at hand: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{degree.Atomic, "dmcs"} {
		for _, m := range []machine{{1, 1}, {1, 4}, {2, 2}} {
			t.Run(name+"/"+m.String(), func(t *testing.T) {
				r := agreed(t, m, func(c rma.Comm) (*degree.Result, error) {
					return degree.Run(c, degree.Config{Source: g, Lock: name})
				})
				if !r.Verified || r.Edges != 88234 || r.Vertices != 4039 {
					t.Errorf("result is %+v", r)
				}
				// 4,039 vertices with names from 0 to 4,038: room for not many more.
				if most := int64(100 * 4039 / r.Ranks); r.TableBytes > most {
					t.Errorf("the table takes %d bytes per rank, want at most %d", r.TableBytes, most)
				}
			})
		}
	}
}

// A table of one slot per volume, and one of names all over 63 bits.
func TestTableShapes(t *testing.T) {
	for name, cfg := range map[string]degree.Config{
		"one slot":  {Source: rmat(t, 5), Slots: 1},
		"a heap":    {Source: rmat(t, 5), Heap: 100},
		"scattered": {Source: scattered(3000)},
		"one edge":  {Source: scattered(1)},
	} {
		cfg.Lock = degree.Atomic
		r := agreed(t, machine{1, 3}, func(c rma.Comm) (*degree.Result, error) { return degree.Run(c, cfg) })
		if !r.Verified || r.Vertices != vertices(t, cfg.Source) {
			t.Errorf("%s: result is %+v", name, r)
		}
		if name == "scattered" && r.TableBytes*3 > r.Vertices*130 {
			t.Errorf("%s: %d vertices take %d bytes", name, r.Vertices, r.TableBytes*3)
		}
	}
}

// scattered is a graph of so many vertices, twenty edges each, with names all over.
type scattered int64

func (s scattered) Edges(rank, size int, f func(u, v int64) error) error {
	name := func(i int64) int64 { return int64((uint64(i%int64(s))*0x9e3779b97f4a7c15 + 7) >> 1) }
	for i := int64(rank); i < 20*int64(s); i += int64(size) {
		if err := f(name(i), name(i+1)); err != nil {
			return err
		}
	}
	return nil
}
func (s scattered) Estimate() (int64, int64) { return 20 * int64(s), 40 * int64(s) }
func (s scattered) String() string           { return "scattered" }

func TestErrorsEndAllRanks(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) graph.Source {
		path := filepath.Join(dir, fmt.Sprint(len(text)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := graph.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	gone := file("1 2\n3 4\n")
	if err := os.Remove(gone.String()); err != nil {
		t.Fatal(err)
	}
	bad := file(strings.Repeat("1 2\n", 3000) + "3 -4\n" + strings.Repeat("1 2\n", 5000))
	for name, tc := range map[string]struct {
		cfg  degree.Config
		want error
		text string
	}{
		"malformed line": {degree.Config{Source: bad, Lock: "dmcs"}, graph.ErrLine, bad.String() + ":3001: "},
		"no file":        {degree.Config{Source: gone, Lock: "dmcs"}, os.ErrNotExist, gone.String()},
		"no edges":       {degree.Config{Source: file("# nothing\n"), Lock: "dmcs"}, graph.ErrNoEdges, "no edges"},
		"full heap":      {degree.Config{Source: rmat(t, 8), Lock: "dmcs", Slots: 1, Heap: 1}, dht.ErrFull, "Config.Heap"},
		"full, atomics":  {degree.Config{Source: rmat(t, 8), Lock: degree.Atomic, Slots: 1, Heap: 1}, dht.ErrFull, "Config.Heap"},
		"no such lock":   {degree.Config{Source: rmat(t, 2), Lock: "none"}, lock.ErrConfig, `"none"`},
		"no source":      {degree.Config{Lock: "dmcs"}, degree.ErrConfig, "Config.Source"},
		"slots":          {degree.Config{Source: rmat(t, 2), Lock: "dmcs", Slots: -1}, degree.ErrConfig, "Config.Slots is -1"},
		"negative":       {degree.Config{Source: negative{rmat(t, 2)}, Lock: "dmcs"}, degree.ErrConfig, "from -1 to"},
	} {
		for _, m := range machines {
			t.Run(name+"/"+m.String(), func(t *testing.T) {
				results, errs := run(m, func(c rma.Comm) (*degree.Result, error) { return degree.Run(c, tc.cfg) })
				own := 0
				for r, err := range errs {
					if err == nil || results[r] != nil || !strings.Contains(err.Error(), tc.text) {
						t.Fatalf("rank %d returns %v, %v; want no result and an error with %q", r, results[r], err, tc.text)
					}
					if errors.Is(err, tc.want) {
						own++
					} else if !errors.Is(err, rma.ErrPeer) {
						t.Errorf("rank %d: error %v wraps neither %v nor rma.ErrPeer", r, err, tc.want)
					}
				}
				if own == 0 {
					t.Errorf("no rank's error wraps %v: %v", tc.want, errs)
				}
			})
		}
	}
}

// negative is a source that breaks its promise.
type negative struct{ graph.Source }

func (negative) Edges(rank, _ int, f func(u, v int64) error) error {
	if rank == 0 {
		return f(-1, 2)
	}
	return nil
}
