package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Locks for jobs that go wrong: test-open does not exclude, and test-swap is D-MCS
// that calls swap when a lock is taken first.
func init() {
	lock.Register(lock.Info{Name: "test-open", Title: "does not exclude", Fair: "none", Open: func(c rma.Comm, n, _ int) (lock.Table, error) {
		return open{n, c.Size()}, nil
	}})
	lock.Register(lock.Info{Name: "test-swap", Title: "meddles", Fair: "none", Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		dmcs, err := lock.Lookup("dmcs")
		if err != nil {
			return nil, err
		}
		t, err := dmcs.Open(c, n, home)
		return meddler{t}, err
	}})
}

type open struct{ n, size int }

func (o open) Len() int                                   { return o.n }
func (o open) Home(id int) int                            { return id % o.size }
func (o open) Mutex(int) lock.Mutex                       { return mutex{} }
func (o open) Free() error                                { return nil }
func (o open) Lock(context.Context, int, lock.Mode) error { return nil }
func (o open) Unlock(int, lock.Mode) error                { return nil }
func (o open) TryLock(int, lock.Mode) (bool, error)       { return true, nil }

type mutex struct{}

func (mutex) Lock(context.Context) error { return nil }
func (mutex) Unlock() error              { return nil }
func (mutex) TryLock() (bool, error)     { return true, nil }

// swap is what test-swap does, once.
var swap func()

type meddler struct{ lock.Table }

func (m meddler) Lock(ctx context.Context, id int, mode lock.Mode) error {
	swap()
	return m.Table.Lock(ctx, id, mode)
}

// Counts that are wrong are shown, and are a failure: here the file changes after
// the ranks have read their shares, and is checked as it is then.
func TestWrongCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edges.txt")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, form := range []string{"text", "json"} {
		write("1 2\n1 3\n1 4\n")
		swap = sync.OnceFunc(func() { write("1 2\n1 3\n1 5\n") })
		args := []string{"dht", "--backend", "inproc", "--ranks", "2", "--edges", path, "--lock", "test-swap"}
		if form == "json" {
			args = append(args, "--json")
		}
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != exitFailed {
			t.Fatalf("%s: exit %d, want %d\n%s%s", form, code, exitFailed, &out, &errs)
		}
		if !strings.Contains(errs.String(), "wrong counts in the table: 2") {
			t.Errorf("%s: stderr does not say that 2 counts are wrong: %s", form, &errs)
		}
		if form == "text" {
			if !strings.Contains(out.String(), "\nNOT verified: ") {
				t.Errorf("text does not say that the counts are wrong:\n%s", &out)
			}
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, &out)
		}
		if m["verified"] != false || m["differences"] != 2.0 {
			t.Errorf("result %v", m)
		}
	}
}

// Lost increments are a failure, and no figures are shown for such a lock.
func TestLostIncrements(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("ranks that share one processor lose too few updates")
	}
	var out, errs bytes.Buffer
	code := run(strings.Fields("bench --backend inproc --ranks 4 --lock test-open --mode wcsb --acquires 2000"), &out, &errs)
	if code != exitFailed || out.Len() > 0 || !strings.Contains(errs.String(), "test-open") || !strings.Contains(errs.String(), "did not exclude") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, &out, &errs)
	}
}
