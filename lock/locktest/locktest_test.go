package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

var errUnsupported = fmt.Errorf("toy: cannot try: %w", errors.ErrUnsupported)

func init() {
	lock.Register(info(none))
	tryless := info(unsupportedTry)
	tryless.Name = "tryless"
	tryless.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := openToy(c, n, home, unsupportedTry)
		if err != nil {
			return nil, err
		}
		return endless{t}, nil
	}
	lock.Register(tryless)
	lock.Register(lock.Info{Name: "absent", Title: "not here", Fair: "none",
		Open: func(rma.Comm, int, int) (lock.Table, error) { return nil, errUnsupported }})
}

// endless is a table that cannot give up.
type endless struct{ lock.Table }

func (e endless) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if ctx.Done() != nil {
		return errUnsupported
	}
	return e.Table.Lock(ctx, id, mode)
}

// TestRightLock: a lock without a fault passes, and so does one that cannot try.
func TestRightLock(t *testing.T) {
	for _, name := range []string{"toy", "tryless"} {
		t.Run(name, func(t *testing.T) { locktest.RunInproc(t, name) })
	}
}

// TestHomes: tables pass whose locks are all at one rank, or on memory nodes.
func TestHomes(t *testing.T) {
	locktest.RunOf(t, info(oneHome), rmatest.Watched(2, 2, time.Minute))
	locktest.RunOf(t, info(onMemoryNodes), inproc.Job{Nodes: 1, PerNode: 4, MemoryNodes: 1}.Run)
	locktest.RunOf(t, info(onMemoryNodes), inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 3}.Run)
}

// TestAbsentLock: a lock that cannot open here is skipped, not failed.
func TestAbsentLock(t *testing.T) { locktest.RunInproc(t, "absent") }

// TestFaultsAreCaught: a suite is worth what it finds. Each fault is caught by the
// check that looks for it.
func TestFaultsAreCaught(t *testing.T) {
	for _, c := range []struct {
		fault fault
		check string
		hangs bool // a watchdog has to end it
	}{
		{noExclusion, "Exclusion/OneLock", false},
		{noExclusion, "Exclusion/History", false},
		{noExclusion, "Exclusion/Transfers", false},
		{noExclusion, "Shaken/Exclusion/OneLock", false},
		{tornTry, "Exclusion/OneLock", true},
		{lateUnlock, "Relaxed/Exclusion/OneLock", true},
		{blindReaders, "Exclusion/ReadersAndWriters", false},
		{blindReaders, "Exclusion/AllWays", false},
		{blindWriters, "Exclusion/ReadersAndWriters", false},
		{blindWriters, "Exclusion/History", false},
		{lonelyReaders, "Shared/ReadersShare", true},
		{lonelyReaders, "Try/Held", false},
		{oneWord, "Table/Independent", true},
		{oneWord, "Table/AllAtOnce", true},
		{shiftedHome, "Table/Describes", false},
		{noHome, "Table/Describes", false},
		{ownHome, "Table/Describes", false},
		{fickleHome, "Table/Describes", false},
		{unevenHome, "Table/Describes", false},
		{exclusiveHandle, "Table/Describes", false},
		{anyConfig, "Table/BadConfig", false},
		{patientTry, "Try/Held", true},
		{boldTry, "Try/Held", true},
		{shyTry, "Try/Free", false},
		{messyTry, "Try/Held", true},
		{deafLock, "Deadline/Held", true},
		{hastyLock, "Deadline/Free", false},
		{greedyLock, "Deadline/Held", true},
		{silentUnlock, "Misuse/UnlockOfUnlocked", false},
		{recursive, "Misuse/LockOfHeld", false},
		{wrongText, "Misuse/UnlockOfUnlocked", false},
		{wrongText, "Misuse/LockOfHeld", false},
		{swallowed, "Errors/Transport", true},
		{panicking, "Errors/Transport", false},
		{allocating, "Allocations", false},
		{overfull, "Table/ManyHeld", true},
		{miserly, "Table/ManyHeld", false},
		{forgetful, "Table/OpenAndFree", false},
	} {
		t.Run(strings.ReplaceAll(string(c.fault), " ", "-")+"/"+c.check, func(t *testing.T) {
			i := slices.IndexFunc(locktest.Checks(), func(k locktest.Check) bool { return k.Name == c.check })
			if i < 0 {
				t.Fatalf("there is no check %s", c.check)
			}
			if c.check == "Allocations" && rmatest.RaceEnabled {
				t.Skip("the race detector allocates: the check is off")
			}
			limit := 20 * time.Second
			if c.hangs {
				limit = 300 * time.Millisecond
			}
			err := rmatest.Watched(1, 4, limit)(func(comm rma.Comm) error {
				return locktest.Checks()[i].Run(comm, info(c.fault))
			})
			if err == nil {
				t.Fatalf("check %s did not catch it", c.check)
			}
			t.Log(strings.SplitN(err.Error(), "\n", 2)[0])
		})
	}
}

// TestDeathIsCaught: a lock that swallows or panics with its errors does not pass.
func TestDeathIsCaught(t *testing.T) {
	for _, f := range []fault{none, swallowed, panicking} {
		err := locktest.CheckDeath(1, 3, info(f))
		if (err != nil) != (f != none) {
			t.Errorf("a toy with the fault %q: %v", f, err)
		}
	}
}

// TestNames: the names of checks are a list without doubles.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range locktest.Checks() {
		if k.Name == "" || seen[k.Name] {
			t.Errorf("there are two checks %q", k.Name)
		}
		seen[k.Name] = true
	}
	if len(seen) < 30 {
		t.Errorf("there are %d checks, want more", len(seen))
	}
}
