package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// TestVirtualTimeFindsBadLocks: locks pass in virtual time, and a lock that is none fails there too, with
// the seed that shows it.
func TestVirtualTimeFindsBadLocks(t *testing.T) {
	for _, name := range []string{"dmcs", "fompi-spin", "fompi-rw"} {
		info, err := lock.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p := check.Plan{Info: info, Ranks: 8, Acquires: 3, Writers: check.Mixed, Seed: 1, Guard: true}
		r, err := check.RunTime(p, 50)
		if err != nil || r.Failure != nil {
			t.Errorf("%s: %v, %v", name, err, r.Failure)
		}
		if r.Stats.Executions != 50 || r.Stats.Steps == 0 {
			t.Errorf("%s: %+v", name, r.Stats)
		}
	}
	open := lock.Info{Name: "open", Open: func(rma.Comm, int, int) (lock.Table, error) { return broken{}, nil }}
	r, err := check.RunTime(check.Plan{Info: open, Ranks: 4, Acquires: 2, Writers: 4, Seed: 5}, 50)
	if err != nil || r.Failure == nil || !errors.Is(r.Failure, check.ErrExclusion) || !strings.HasPrefix(r.Failure.Error(), "seed ") {
		t.Errorf("a lock that admits all ranks: %v, %v", err, r.Failure)
	}
}
