package check

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Size says how long a Battery takes.
type Size uint8

const (
	Short    Size = iota // a second or two
	Brief                // some seconds
	Standard             // a minute or two
	Deep                 // many minutes: up to 256 ranks
)

// An Item is a part of a Battery.
type Item struct {
	Name       string
	Plan       Plan
	Explore    string // "dfs", "random" or "pct"
	Bound      int    // preemptions, of dfs
	Executions int64  // of the others
}

// pctDepth is the depth of the bugs that PCT looks for.
const pctDepth = 3

// Run checks the item.
func (i *Item) Run() (Result, error) {
	switch i.Explore {
	case "random":
		return RunParallel(i.Plan, i.Executions, func(first, n int64) sim.Scheduler { return sim.Random(i.Plan.Seed, first, n) })
	case "pct":
		return RunParallel(i.Plan, i.Executions, func(first, n int64) sim.Scheduler { return sim.PCT(i.Plan.Seed, pctDepth, first, n) })
	}
	return Run(i.Plan, sim.Exhaustive(i.Bound))
}

// Battery lists what is checked of a lock.
//
// Standard is all schedules of 3 ranks with 2 acquires each, for every number of
// writers; those of 4 ranks with up to 3 preemptions; and 10,000 random schedules and
// 10,000 of PCT at 4 and at 16 ranks with 3 acquires, with modes drawn at random, on
// one node and on several, a part with TryLock and deadlines. Brief is for a variant of
// a lock that gets Standard: all schedules of 3 ranks with 2 acquires with the modes
// drawn, those of 4 ranks with up to 2 preemptions, and 2,000 of each at 4 and at 16
// ranks. Deep is to come after Standard: 4 ranks with every number of writers, 64 ranks,
// and 256 ranks with 20 acquires.
func Battery(info lock.Info, size Size) []Item {
	b := battery{info: info, size: size}
	switch size {
	case Short:
		b.writers("all schedules", Plan{Ranks: 2, Acquires: 2}, sim.Unbounded)
		b.dfs("all schedules", Plan{Ranks: 2, Acquires: 2, Writers: 2, Tries: true}, sim.Unbounded)
		b.drawn(4, 3, 200, "node:2 core:2")
		b.drawn(16, 3, 40, "node:4 core:4")
	case Brief:
		b.dfs("all schedules", Plan{Ranks: 3, Acquires: 2, Writers: Mixed, Seed: 1}, sim.Unbounded)
		b.dfs("all schedules", Plan{Ranks: 2, Acquires: 3, Writers: Mixed, Tries: true, Guard: true}, sim.Unbounded)
		b.dfs("2 preemptions", Plan{Ranks: 4, Acquires: 1, Writers: 2}, 2)
		b.drawn(4, 3, 2_000, "node:2 core:2")
		b.drawn(16, 3, 400, "node:4 core:4")
	case Standard:
		b.writers("all schedules", Plan{Ranks: 3, Acquires: 2}, sim.Unbounded)
		b.dfs("all schedules", Plan{Ranks: 2, Acquires: 3, Writers: Mixed, Tries: true, Guard: true}, sim.Unbounded)
		b.dfs("2 preemptions", Plan{Ranks: 3, Acquires: 2, Writers: Mixed, Seed: 1, Tries: true}, 2)
		b.dfs("3 preemptions", Plan{Ranks: 4, Acquires: 2, Writers: 2}, 3)
		b.drawn(4, 3, 10_000, "node:2 core:2")
		b.drawn(16, 3, 10_000, "node:4 core:4")
	case Deep:
		b.writers("3 preemptions", Plan{Ranks: 4, Acquires: 2}, 3)
		b.drawn(64, 3, 1_000, "rack:2 node:4 core:8")
		b.drawn(256, 20, 20, "rack:2 node:8 core:16")
	}
	return b.items
}

// Recovery lists what is checked of a lock that recovers beside a Battery: time, a death at any
// step, and a successor of the dead. tickNs is the unit of time in which its leases and limits
// are a few. Short is schedules of 2 ranks with an acquire each, with a successor up to 2
// preemptions, else all, and random ones; Standard is all, with 2 acquires, and more random
// ones.
func Recovery(info lock.Info, size Size, tickNs int64) []Item {
	b := battery{info: info, size: size}
	acquires, executions := 1, int64(300)
	if size >= Standard {
		acquires, executions = 2, 10_000
	}
	for _, p := range []Plan{
		{Ranks: 2, Acquires: acquires, Ticks: 3},
		{Ranks: 2, Acquires: acquires, Ticks: 3, Crashes: 1},
		{Ranks: 2, Acquires: 1, Ticks: 3, Crashes: 1, Rejoins: 1},
	} {
		p.Writers = p.Ranks
		if p.Rejoins > 0 && size < Standard {
			b.dfs("2 preemptions", p, 2)
		} else {
			b.dfs("all schedules", p, sim.Unbounded)
		}
		p.Ranks, p.Acquires, p.Writers, p.Seed, p.Guard = 4, 3, Mixed, 1, true
		p.Ticks, p.Crashes, p.Rejoins = 40, 2*p.Crashes, 2*p.Rejoins
		for _, explore := range []string{"random", "pct"} {
			b.add(Item{Name: explore, Plan: p, Explore: explore, Executions: executions})
		}
	}
	for i := range b.items {
		b.items[i].Plan.TickNs, b.items[i].Plan.MemoryNodes = tickNs, 1
	}
	return b.items
}

type battery struct {
	info  lock.Info
	size  Size
	items []Item
}

func (b *battery) add(i Item) {
	i.Plan.Info = b.info
	p := &i.Plan
	i.Name = fmt.Sprintf("%s/%dx%d", i.Name, p.Ranks, p.Acquires)
	switch {
	case !b.info.Shared:
	case p.Writers == Mixed:
		i.Name += "/mixed"
	default:
		i.Name += fmt.Sprintf("/%d_writers", p.Writers)
	}
	for _, f := range []struct {
		on   bool
		text string
	}{{p.Topology != nil, "/nodes"}, {p.Tries, "/tries"}, {p.Guard, "/guard"}, {p.Ticks > 0, "/ticks"}, {p.Crashes > 0, "/crashes"}, {p.Rejoins > 0, "/rejoins"}} {
		if f.on {
			i.Name += f.text
		}
	}
	b.items = append(b.items, i)
}

func (b *battery) dfs(what string, p Plan, bound int) {
	b.add(Item{Name: what, Plan: p, Explore: "dfs", Bound: bound})
}

// writers adds a search for every number of writers.
func (b *battery) writers(what string, p Plan, bound int) {
	for p.Writers = p.Ranks; p.Writers >= 0; p.Writers-- {
		b.dfs(what, p, bound)
		if !b.info.Shared {
			return
		}
	}
}

// drawn adds random schedules and those of PCT, half of each on one node and half on
// the machine, half of these with tries. How long an execution may be goes with the
// number of acquires: where ranks poll, each costs hundreds of steps.
func (b *battery) drawn(ranks, acquires int, executions int64, on string) {
	for _, explore := range []string{"random", "pct"} {
		for k := range uint64(4) {
			p := Plan{Ranks: ranks, Acquires: acquires, Writers: Mixed, Seed: 1 + k, Guard: true, Tries: k%2 == 1, MaxSteps: max(1_000_000, 1000*ranks*acquires)}
			if k >= 2 {
				p.Topology = machine(on)
			}
			b.add(Item{Name: explore, Plan: p, Explore: explore, Executions: executions / 4})
		}
	}
}
