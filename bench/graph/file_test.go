package graph_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench/graph"
)

type edge struct{ u, v int64 }

// write makes a file, compressed if so wished, and opens it.
func write(t *testing.T, text string, compressed bool) *graph.File {
	t.Helper()
	data := []byte(text)
	if compressed {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		data = b.Bytes()
	}
	path := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := graph.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// collect is a rank's share.
func collect(s graph.Source, rank, size int) ([]edge, error) {
	var all []edge
	err := s.Edges(rank, size, func(u, v int64) error {
		all = append(all, edge{u, v})
		return nil
	})
	return all, err
}

// shares checks that the shares of 1 to 9 ranks are want, in some order.
func shares(t *testing.T, s graph.Source, want []edge) {
	t.Helper()
	order := func(a, b edge) int {
		if a.u != b.u {
			return int(min(1, max(-1, a.u-b.u)))
		}
		return int(min(1, max(-1, a.v-b.v)))
	}
	want = slices.Clone(want)
	slices.SortFunc(want, order)
	for size := 1; size <= 9; size++ {
		var all []edge
		for rank := range size {
			part, err := collect(s, rank, size)
			if err != nil {
				t.Fatalf("rank %d of %d: %v", rank, size, err)
			}
			all = append(all, part...)
		}
		slices.SortFunc(all, order)
		if !slices.Equal(all, want) {
			t.Fatalf("%d ranks find %d edges, want %d", size, len(all), len(want))
		}
	}
}

func forms(t *testing.T, f func(t *testing.T, compressed bool)) {
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("gzip", func(t *testing.T) { f(t, true) })
}

func TestFileForms(t *testing.T) {
	forms(t, func(t *testing.T, compressed bool) {
		for name, tc := range map[string]struct {
			text string
			want []edge
		}{
			"usual":        {"# two edges\n0 1\n1\t2\n", []edge{{0, 1}, {1, 2}}},
			"no line feed": {"0 1\n1 2", []edge{{0, 1}, {1, 2}}},
			"one byte ids": {"0 1", []edge{{0, 1}}},
			"returns":      {"# x\r\n0 1\r\n\r\n1 2\r\n", []edge{{0, 1}, {1, 2}}},
			"blank lines":  {"\n\n0 1\n \t\n\n1 2\n\n\n", []edge{{0, 1}, {1, 2}}},
			"blanks":       {"  0  \t 1  \n\t1 2\t\n", []edge{{0, 1}, {1, 2}}},
			"comments":     {"#\n# a b c\n  # in\n0 1\n#0 9\n", []edge{{0, 1}}},
			"last comment": {"0 1\n# end", []edge{{0, 1}}},
			"largest":      {"9223372036854775807 0009223372036854775807\n", []edge{{1<<63 - 1, 1<<63 - 1}}},
			"self loop":    {"7 7\n7 7\n", []edge{{7, 7}, {7, 7}}},
		} {
			t.Run(name, func(t *testing.T) { shares(t, write(t, tc.text, compressed), tc.want) })
		}
	})
}

// Files of lines of random kinds and lengths.
func TestFileRandom(t *testing.T) {
	forms(t, func(t *testing.T, compressed bool) {
		for seed := range uint64(12) {
			random := rand.New(rand.NewPCG(seed, 1))
			var b strings.Builder
			var want []edge
			for range 1 + random.IntN(3000) {
				switch random.IntN(12) {
				case 0:
					b.WriteString("#" + strings.Repeat("long comment ", random.IntN(40)))
				case 1:
					b.WriteString(strings.Repeat(" ", random.IntN(9)))
				default:
					e := edge{random.Int64N(1 << random.IntN(63)), random.Int64N(1 << random.IntN(63))}
					want = append(want, e)
					fmt.Fprintf(&b, "%d%s%d", e.u, []string{" ", "\t", "  "}[random.IntN(3)], e.v)
				}
				b.WriteString([]string{"\n", "\n", "\n", "\r\n", "\n\n"}[random.IntN(5)])
			}
			if len(want) == 0 {
				continue
			}
			shares(t, write(t, b.String(), compressed), want)
		}
	})
}

// One of the ranks finds a bad line and names it.
func TestFileMalformed(t *testing.T) {
	forms(t, func(t *testing.T, compressed bool) {
		for bad, want := range map[string]string{
			"5":                             `want two vertices, found one: "5"`,
			"5 6 7":                         `want two vertices, found more: "5 6 7"`,
			"5 -6":                          `this is negative: "-6"`,
			"5 9223372036854775808":         `this is larger: "9223372036854775808"`,
			"99999999999999999999999 5":     `this is larger: "99999999999999999999999"`,
			"a b":                           `this is not: "a"`,
			"5,6":                           `this is not: "5,6"`,
			"5 0x6":                         `this is not: "0x6"`,
			"5 6#7":                         `this is not: "6#7"`,
			"- 5":                           `this is not: "-"`,
			"5 +6":                          `this is not: "+6"`,
			"5 6.0":                         `this is not: "6.0"`,
			"\xef\xbb\xbf5 6":               `this is not: "\ufeff5"`,
			"5 " + strings.Repeat("1", 100): `1..."`,
			strings.Repeat("x", 70000):      `longer than 65536 bytes`,
			strings.Repeat("#", 300000):     `longer than 65536 bytes`,
		} {
			before := strings.Repeat("1 2\n# comment\n", 400)
			f := write(t, before+bad+"\n"+strings.Repeat("3 4\n", 700), compressed)
			for size := 1; size <= 9; size++ {
				var found error
				for rank := range size {
					if _, err := collect(f, rank, size); err != nil {
						found = err
					}
				}
				var line *graph.LineError
				if !errors.As(found, &line) || !errors.Is(found, graph.ErrLine) || line.Line != 801 ||
					!strings.Contains(found.Error(), f.String()+":801: ") || !strings.Contains(found.Error(), want) {
					t.Fatalf("%d ranks, line %.20q: error is %v, want line 801 and %s", size, bad, found, want)
				}
			}
		}
	})
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := graph.OpenFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := graph.OpenFile(dir); !errors.Is(err, graph.ErrConfig) || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := graph.OpenFile(os.DevNull); !errors.Is(err, graph.ErrConfig) || !strings.Contains(err.Error(), "regular") {
		t.Errorf("device: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.OpenFile(empty); !errors.Is(err, graph.ErrNoEdges) || !strings.Contains(err.Error(), empty) {
		t.Errorf("empty file: %v", err)
	}
	forms(t, func(t *testing.T, compressed bool) {
		f := write(t, "# nothing\n\n", compressed)
		if _, err := collect(f, 0, 1); !errors.Is(err, graph.ErrNoEdges) || !strings.Contains(err.Error(), f.String()) {
			t.Errorf("no edges: %v", err)
		}
		if _, err := collect(f, 1, 2); err != nil {
			t.Errorf("a share without edges: %v", err)
		}
		stop := errors.New("stop")
		f = write(t, "1 2\n3 4\n", compressed)
		calls := 0
		if err := f.Edges(0, 1, func(_, _ int64) error { calls++; return stop }); err != stop || calls != 1 {
			t.Errorf("stopped with %v after %d calls", err, calls)
		}
		if err := os.Truncate(f.String(), 5); err != nil {
			t.Fatal(err)
		}
		if _, err := collect(f, 0, 1); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), f.String()) {
			t.Errorf("truncated file: %v", err)
		}
		if err := os.Remove(f.String()); err != nil {
			t.Fatal(err)
		}
		if _, err := collect(f, 0, 1); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("file gone: %v", err)
		}
		if e, v := f.Estimate(); e != 0 || v != 0 {
			t.Errorf("file gone: estimate %d, %d", e, v)
		}
	})
}

func TestFileUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	f := write(t, "1 2\n", false)
	if err := os.Chmod(f.String(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.OpenFile(f.String()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("unreadable file: %v", err)
	}
}

// Many members in one compressed file, and one that is damaged.
func TestFileGzip(t *testing.T) {
	var b bytes.Buffer
	var want []edge
	for i := range int64(3) {
		z := gzip.NewWriter(&b)
		for j := range int64(1000) {
			want = append(want, edge{i, j})
			fmt.Fprintf(z, "%d %d\n", i, j)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "edges") // no .gz: the name does not matter
	open := func(data []byte) *graph.File {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := graph.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	shares(t, open(b.Bytes()), want)
	damaged := slices.Clone(b.Bytes())
	damaged[len(damaged)-6] ^= 1 // a checksum
	if _, err := collect(open(damaged), 0, 1); !errors.Is(err, gzip.ErrChecksum) || !strings.Contains(err.Error(), "after 3000 lines") {
		t.Errorf("damaged file: %v", err)
	}
	if _, err := collect(open([]byte("\x1f\x8bhello\n")), 0, 1); err == nil || !strings.Contains(err.Error(), "looks compressed") {
		t.Errorf("file that only begins like a compressed one: %v", err)
	}
}

func TestFileEstimate(t *testing.T) {
	forms(t, func(t *testing.T, compressed bool) {
		random := rand.New(rand.NewPCG(1, 1))
		var b strings.Builder
		for range 50000 {
			fmt.Fprintf(&b, "%d\t%d\n", random.IntN(1e6), random.IntN(1e6))
		}
		edges, vertices := write(t, b.String(), compressed).Estimate()
		if edges < 45000 || edges > 55000 || vertices != 2*edges {
			t.Errorf("estimate of 50000 edges is %d, %d", edges, vertices)
		}
		if edges, _ := write(t, "# one\n1 2", compressed).Estimate(); edges != 1 {
			t.Errorf("estimate of 1 edge is %d", edges)
		}
	})
}

// facebook is the graph of SNAP's ego-Facebook, which is not part of the module.
const facebook = "../../../shared/data/facebook_combined.txt"

func TestFacebook(t *testing.T) {
	f, err := graph.OpenFile(facebook)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the file of the Facebook graph is not at hand: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7} {
		n, vertices := 0, map[int64]bool{}
		for rank := range size {
			part, err := collect(f, rank, size)
			if err != nil {
				t.Fatal(err)
			}
			n += len(part)
			for _, e := range part {
				vertices[e.u], vertices[e.v] = true, true
			}
		}
		if n != 88234 || len(vertices) != 4039 {
			t.Errorf("%d ranks find %d edges and %d vertices, want 88234 and 4039", size, n, len(vertices))
		}
	}
	if edges, _ := f.Estimate(); edges < 60000 || edges > 120000 {
		t.Errorf("estimate is %d edges", edges)
	}
}

func BenchmarkFile(b *testing.B) {
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 1))
	for range 200000 {
		fmt.Fprintf(&text, "%d\t%d\n", random.IntN(1e7), random.IntN(1e7))
	}
	path := filepath.Join(b.TempDir(), "edges")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := graph.OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		sum := int64(0)
		if err := f.Edges(0, 1, func(u, v int64) error { sum += u + v; return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
