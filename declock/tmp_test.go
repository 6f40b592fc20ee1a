package declock_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/rma/sim"
)

func env(name string, d int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return v
	}
	return d
}

func TestTmp(t *testing.T) {
	n := int64(env("N", 2000))
	plan := check.Plan{Ranks: env("R", 3), Acquires: env("A", 6), Writers: env("W", -1), Seed: uint64(env("SEED", 1)), Ticks: env("T", 0), Crashes: env("C", 0), Rejoins: env("J", 0), Tries: os.Getenv("TRIES") != ""}
	if plan.Ticks > 0 {
		plan.MaxDelay = env("D", 1)
	}
	p := params{"CAPACITY": fmt.Sprint(env("CAP", 4)), "VERSION": fmt.Sprint(env("V", 16)), "EPOCH": fmt.Sprint(env("E", 8))}
	if plan.Ticks > 0 {
		p["LEASE"] = "1us"
	}
	if pol := os.Getenv("POLICY"); pol != "" {
		p["POLICY"] = pol
	}
	var s sim.Scheduler
	switch os.Getenv("S") {
	case "pct":
		s = sim.PCT(uint64(env("SS", 1)), env("DEPTH", 3), 0, n)
	case "dfs":
		s = sim.Exhaustive(env("B", sim.Unbounded))
	default:
		s = sim.Random(uint64(env("SS", 1)), 0, n)
	}
	r := search(t, plan, p, s)
	t.Logf("%d executions, %d out of ticks, %d states, whole %v, longest %d", r.Stats.Executions, r.Stats.OutOfTicks, r.States, r.Whole, r.Stats.Longest)
}
