package dslr_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestDeep: schedules of 3 and 4 ranks in all modes, with deaths at any step and resets after few
// tickets. Of a search that has more executions than Limit it logs how far it came.
func TestDeep(t *testing.T) {
	for _, h := range []struct {
		ranks, acquires, ticks, crashes, bound int
		deep                                   bool // for check-deep
		ends                                   bool // but for all ranks, or none, as writers
	}{
		{3, 1, 2, 1, sim.Unbounded, false, false},
		{3, 1, 3, 1, sim.Unbounded, false, false},
		{3, 2, 1, 0, sim.Unbounded, false, false},
		{3, 2, 1, 1, sim.Unbounded, false, false},
		{3, 2, 2, 0, sim.Unbounded, true, true},
		{3, 2, 2, 1, sim.Unbounded, true, false},
		{4, 1, 2, 1, 2, true, false},
	} {
		for _, countMax := range []int{2, 3} {
			for writers := h.ranks; writers >= check.Mixed; writers-- {
				deep := h.deep && !(h.ends && (writers == 0 || writers == h.ranks))
				p := check.Plan{
					Ranks: h.ranks, Acquires: h.acquires, Writers: writers, MemoryNodes: 1,
					Ticks: h.ticks, Crashes: h.crashes, MaxDelay: 1, Stands: true, Alike: true,
					Info: variant("by add", dslr.Config{CountMax: countMax}, nil),
				}
				t.Run(fmt.Sprintf("%dx%d, %d writers, %d ticks, %d deaths, bound %d, COUNTMAX %d",
					h.ranks, h.acquires, writers, h.ticks, h.crashes, h.bound, countMax), func(t *testing.T) {
					if locktest.Quick() {
						t.Skip("takes seconds; see test-all")
					}
					if deep && !locktest.Deep() {
						t.Skip("takes minutes: RMALOCK_DEEP is not set")
					}
					x := sim.Exhaustive(h.bound)
					x.Limit = 400_000_000
					began := time.Now()
					r := passes(t, p, x)
					if !r.Whole && h.bound == sim.Unbounded {
						t.Error("the search did not end")
					}
					t.Logf("%d states, whole: %v, %v", r.States, r.Whole, time.Since(began).Round(time.Second))
				})
			}
		}
	}
}

// TestStands: a search that takes the handle for all that a rank knows finds the same mistakes as
// one that does not, with fewer states.
func TestStands(t *testing.T) {
	const lease = sim.DefaultTickNs
	for _, k := range []struct {
		name     string
		cfg      func(rank int) dslr.Config
		writers  int
		maxDelay int
		want     error // nil: there is no mistake
	}{
		{"right", func(int) dslr.Config { return dslr.Config{CountMax: 2} }, 2, 1, nil},
		{"right, mixed", func(int) dslr.Config { return dslr.Config{CountMax: 3} }, 1, 1, nil},
		{"a rank's lease is longer than others know", func(rank int) dslr.Config {
			return dslr.Config{Lease: lease * int64(3-2*rank)}
		}, 2, 1, check.ErrLease},
		{"an operation is under way for longer than a lease", func(int) dslr.Config { return dslr.Config{} }, 2, 0, check.ErrLease},
		{"a rank waits for a COUNT_MAX that no other rank knows", func(rank int) dslr.Config {
			return dslr.Config{CountMax: 2 + 2*rank}
		}, 2, 1, check.ErrLease},
	} {
		t.Run(k.name, func(t *testing.T) {
			info := variant(k.name, dslr.Config{}, nil)
			info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
				cfg := k.cfg(c.Rank())
				cfg.Locks, cfg.Home, cfg.BackoffFirst = n, home, -1
				if cfg.Lease == 0 {
					cfg.Lease = lease
				}
				return dslr.New(c, cfg)
			}
			states := map[bool]int{}
			for _, stands := range []bool{false, true} {
				p := check.Plan{Info: info, Ranks: 2, Acquires: 2, Writers: k.writers, MemoryNodes: 1, Ticks: 3, MaxDelay: k.maxDelay, Stands: stands}
				if k.want == nil {
					p.Ticks = 1
				}
				r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
				switch {
				case err != nil:
					t.Fatal(err)
				case k.want == nil && (r.Failure != nil || !r.Whole):
					t.Errorf("stands %v: %v", stands, r.Failure)
				case k.want != nil && (r.Failure == nil || !errors.Is(r.Failure.Err, k.want)):
					t.Errorf("stands %v: it has %v, want %v", stands, r.Failure, k.want)
				}
				states[stands] = r.States
			}
			if states[true] > states[false] {
				t.Errorf("%d states, and %d without it", states[true], states[false])
			}
			t.Logf("%d states, and %d without it", states[true], states[false])
		})
	}
}
