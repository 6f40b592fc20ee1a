package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/papers"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Locks for experiments that go wrong: test-polls is DSLR that tries each lock before it takes
// it, and test-lax is DSLR whose writers share.
func init() {
	wrapped := func(wrap func(lock.Table) lock.Table) func(rma.Comm, int, int) (lock.Table, error) {
		return func(c rma.Comm, n, home int) (lock.Table, error) {
			info, err := lock.Lookup("dslr")
			if err != nil {
				return nil, err
			}
			t, err := info.Open(c, n, home)
			return wrap(t), err
		}
	}
	lock.Register(lock.Info{Name: "test-polls", Title: "polls", Shared: true, Fair: "none", Open: wrapped(func(t lock.Table) lock.Table { return polls{t} })})
	lock.Register(lock.Info{Name: "test-lax", Title: "does not exclude", Shared: true, Fair: "none", Open: wrapped(func(t lock.Table) lock.Table { return lax{t} })})
}

type polls struct{ lock.Table }

func (p polls) Unwrap() lock.Table      { return p.Table }
func (p polls) Mutex(id int) lock.Mutex { return handle{p, id} }
func (p polls) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if got, err := p.TryLock(id, mode); got || err != nil {
		return err
	}
	return p.Table.Lock(ctx, id, mode)
}

type lax struct{ lock.Table }

func (l lax) Unwrap() lock.Table      { return l.Table }
func (l lax) Mutex(id int) lock.Mutex { return handle{l, id} }
func (l lax) Lock(ctx context.Context, id int, _ lock.Mode) error {
	return l.Table.Lock(ctx, id, lock.Shared)
}
func (l lax) Unlock(id int, _ lock.Mode) error { return l.Table.Unlock(id, lock.Shared) }

// handle is lock id of a table.
type handle struct {
	lock.Table
	id int
}

func (h handle) Lock(ctx context.Context) error  { return h.Table.Lock(ctx, h.id, lock.Exclusive) }
func (h handle) Unlock() error                   { return h.Table.Unlock(h.id, lock.Exclusive) }
func (h handle) TryLock() (bool, error)          { return h.Table.TryLock(h.id, lock.Exclusive) }
func (h handle) RLock(ctx context.Context) error { return h.Table.Lock(ctx, h.id, lock.Shared) }
func (h handle) RUnlock() error                  { return h.Table.Unlock(h.id, lock.Shared) }
func (h handle) TryRLock() (bool, error)         { return h.Table.TryLock(h.id, lock.Shared) }

// TestPapersFlags: the flags of all experiments are right, in both lengths.
func TestPapersFlags(t *testing.T) {
	for _, p := range papers.All() {
		for _, x := range p.Experiments {
			for _, full := range []bool{false, true} {
				for _, line := range x.Lines(full) {
					if _, points, err := paperPoints(line); err != nil || len(points) == 0 {
						t.Errorf("%s: %d runs, %v", line, len(points), err)
					}
				}
			}
		}
	}
}

// smallest are experiments that take little time.
var smallest = []string{"DS-cost"}

// TestPapers: the smallest experiments run to their end, and their runs are kept.
func TestPapers(t *testing.T) {
	for _, id := range smallest {
		dir := t.TempDir()
		for range 2 {
			var out, errs bytes.Buffer
			if code := run([]string{"papers", "--figure", id, "--json", "--plot", dir}, &out, &errs); code != 0 {
				t.Fatalf("%s: exit %d\n%s%s", id, code, &out, &errs)
			}
			var row papers.Row
			if err := json.NewDecoder(&out).Decode(&row); err != nil || row.ID != id || row.Verdict == papers.Red || row.Ours == "" {
				t.Errorf("%s: %+v, %v", id, row, err)
			}
		}
		store, err := bench.OpenStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		store.Close()
		if n := len(store.Records()); n == 0 || len(slices.CompactFunc(slices.Clone(store.Records()), func(a, b bench.Record) bool { return a.Key == b.Key })) != n {
			t.Errorf("%s: %d runs are kept, want each once", id, n)
		}
		if page, err := os.ReadFile(filepath.Join(dir, "papers.html")); err != nil || !bytes.Contains(page, []byte(id)) {
			t.Errorf("%s: the page: %v\n%s", id, err, page)
		}
	}
}

// TestPapersRed: an experiment is red with a protocol that costs more, and with one that does
// not exclude.
func TestPapersRed(t *testing.T) {
	list, err := papers.Select("dslr", "DS-cost")
	if err != nil {
		t.Fatal(err)
	}
	cost := list[0].Experiments[0]
	lossy := cost
	lossy.Quick = "--acquires 50 --ranks 8 --mode clients"
	for _, c := range []struct {
		x    papers.Experiment
		lock string
		want papers.Verdict
		says string
	}{
		{cost, "dslr", papers.Met, ""},
		{cost, "test-polls", papers.Red, ""},
		{lossy, "test-lax", papers.Red, "did not exclude"},
	} {
		c.x.Flags = strings.Replace(c.x.Flags, "--lock dslr", "--lock "+c.lock, 1)
		w := newPaperRuns()
		runs, err := w.make(&c.x, false)
		row := c.x.Judge("dslr", false, runs, err)[0]
		if row.Verdict != c.want || !strings.Contains(row.Reason, c.says) {
			t.Errorf("%s: %s, ours %s, %q; want %s because of %q", c.lock, row.Verdict, row.Ours, row.Reason, c.want, c.says)
		}
	}
}

// TestPapersPage: the commands of docs/papers.md are those of experiments.
func TestPapersPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/papers.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range papers.All() {
		for _, x := range p.Experiments {
			for _, line := range x.Lines(false) {
				known["rmalock bench "+line] = true
			}
		}
	}
	n := 0
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "rmalock bench --") {
			if n++; !known[line] {
				t.Errorf("docs/papers.md has a command that no experiment has: make papers\n%s", line)
			}
		}
	}
	if n < 10 {
		t.Errorf("docs/papers.md has %d commands: make papers", n)
	}
}

// TestPapersErrors: what is not there is refused, by name.
func TestPapersErrors(t *testing.T) {
	for _, args := range []string{"papers --paper none", "papers --figure none", "papers --quick --full"} {
		if code := run(strings.Fields(args), io.Discard, io.Discard); code != exitUsage {
			t.Errorf("rmalock %s: exit %d, want %d", args, code, exitUsage)
		}
	}
}
