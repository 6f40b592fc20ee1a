package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/lock"
)

// write makes a file in a directory of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dht runs the command on the inproc backend.
func dht(t *testing.T, args ...string) outcome {
	t.Helper()
	return rmalock(t, append([]string{"dht", "--backend", "inproc"}, args...)...)
}

func TestDHTVerifiesWithEveryLock(t *testing.T) {
	for _, name := range append(locks(t), "atomic") {
		if name == "drtm" {
			continue // its readers' lease is shorter than a reading of a volume
		}
		t.Run(name, func(t *testing.T) {
			named := steady(name)
			o := dht(t, "--ranks", "4", "--scale", "8", "--lock", named, "--json")
			if name == mpiOnly {
				o.bad(t, 1, "rank ", name, "mpi backend")
				return
			}
			if info, err := lock.Lookup(name); err == nil && info.Serves {
				o.bad(t, 1, "every rank takes locks; choose another lock")
				return
			}
			m := o.good(t).object(t)
			if m["verified"] != true || m["lock"] != named || m["ranks"] != 4.0 || m["edges"] != 4096.0 || m["inserts"] != 8192.0 {
				t.Errorf("result %v", m)
			}
		})
	}
}

// TestDHTParameters: where a lock can be named its parameters can.
func TestDHTParameters(t *testing.T) {
	const text = "rmarw:tr=3:TL=2"
	if m := dht(t, "--ranks", "2", "--scale", "6", "--lock", text, "--json").good(t).object(t); m["lock"] != text || m["verified"] != true {
		t.Errorf("result %v", m)
	}
	dht(t, "--lock", "rmarw:TX=3").bad(t, 2, `no parameter "TX"`, "TL, TR")
	dht(t, "--lock", "rmarw:TR").bad(t, 2, "want name=value")
	dht(t, "--ranks", "2", "--scale", "6", "--lock", "rmarw:TR=many").bad(t, 1, `TR is "many"`)
}

func TestDHTText(t *testing.T) {
	text := dht(t, "--ranks", "2", "--scale", "8").good(t).stdout
	if !strings.HasPrefix(text, "R-MAT, scale 8") || !strings.HasSuffix(text, "\nverified\n") {
		t.Errorf("text:\n%s", text)
	}
}

func TestDHTOneRank(t *testing.T) {
	m := dht(t, "--ranks", "1", "--scale", "6", "--json").good(t).object(t)
	if m["verified"] != true || m["ranks"] != 1.0 {
		t.Errorf("result %v", m)
	}
}

func TestDHTSeedChoosesTheGraph(t *testing.T) {
	vertices := func(seed string) any {
		return dht(t, "--ranks", "2", "--scale", "10", "--seed", seed, "--json").good(t).object(t)["vertices"]
	}
	if vertices("1") != vertices("1") {
		t.Error("one seed gave two graphs")
	}
	if vertices("1") == vertices("2") && vertices("1") == vertices("3") {
		t.Error("three seeds gave one graph")
	}
}

func TestDHTEdges(t *testing.T) {
	path := write(t, "g.txt", "# a triangle and a tail\n0 1\n1\t2\r\n2 0\n\n2 3")
	m := dht(t, "--ranks", "3", "--edges", path, "--json").good(t).object(t)
	if m["verified"] != true || m["vertices"] != 4.0 || m["edges"] != 4.0 || m["source"] != path {
		t.Errorf("result %v", m)
	}
}

func TestDHTFacebook(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "facebook_combined.txt")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the ego-Facebook graph of SNAP is not at hand: %v", err)
	}
	for _, name := range []string{"dmcs", "atomic"} {
		m := dht(t, "--ranks", "4", "--edges", path, "--lock", name, "--json").good(t).object(t)
		if m["verified"] != true || m["vertices"] != 4039.0 || m["edges"] != 88234.0 {
			t.Errorf("%s: result %v", name, m)
		}
	}
}

func TestDHTBadInput(t *testing.T) {
	long := strings.Repeat("1 2\n", 1000)
	for _, c := range []struct {
		name, text string
		says       []string
	}{
		{"letters.txt", "1 2\n3 x\n", []string{"letters.txt:2:", `"x"`}},
		{"few.txt", long + "7\n" + long, []string{"few.txt:1001:", "found one"}},
		{"many.txt", "1 2\n1 2 3\n", []string{"many.txt:2:", "found more"}},
		{"negative.txt", "-1 2\n", []string{"negative.txt:1:"}},
		{"empty.txt", "", []string{"empty.txt", "no edges"}},
		{"comments.txt", "# nothing\n", []string{"comments.txt", "no edges"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ranks := range []string{"1", "3"} {
				o := dht(t, "--ranks", ranks, "--edges", write(t, c.name, c.text))
				o.bad(t, 1, c.says...)
				if n := strings.Count(o.stderr, "\n"); n != 1 || !strings.HasPrefix(o.stderr, "rmalock: rank ") {
					t.Errorf("%d lines on stderr, want one with the rank:\n%s", n, o.stderr)
				}
			}
		})
	}
	dht(t, "--edges", filepath.Join(t.TempDir(), "missing.txt")).bad(t, 1, "missing.txt", "no such file")
	dht(t, "--edges", t.TempDir()).bad(t, 1, "is a directory")
	dht(t, "--scale", "99").bad(t, 2, "1 to 48")
	dht(t, "--scale", "8", "--slots", "4", "--heap", "5").bad(t, 1, "no free heap element", "all 5 are taken")
	dht(t, "--scale", "8", "--slots", "-1").bad(t, 1, "Slots is -1")
	dht(t, "--edges", "x", "--scale", "3").bad(t, 2, "edges", "scale")
}

// A run long enough for a bar shows none: its stderr is not a terminal.
func TestDHTNoProgressInALog(t *testing.T) {
	dht(t, "--ranks", "2", "--scale", "14").good(t)
}
