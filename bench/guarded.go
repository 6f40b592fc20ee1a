package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// guarded is the words that the locks of a table guard: as many for each lock as the
// workload wants, at the lock's home, and no other lock's.
type guarded struct {
	w     *rma.Window
	table lock.Table
	each  int // words of a lock
	step  int // locks with one number in their homes: id/step
}

// newGuarded opens the words. Collective.
func newGuarded(c rma.Comm, table lock.Table, each int) (*guarded, error) {
	g := &guarded{table: table, each: each, step: lock.HomesOf(table, c)}
	if table.Len() > 1 {
		step, err := agreedStep(c, table)
		if err != nil {
			return nil, err
		}
		g.step = step
	}
	spec := rma.DataSpec("bench data", each*((table.Len()+g.step-1)/g.step))
	spec.Hosts = lock.HostsOf(table)
	var err error
	g.w, err = c.Allocate(spec)
	return g, err
}

// homes is the number of hosts round which the locks go.
func (g *guarded) homes(c rma.Comm) int {
	if g.step > 1 {
		return g.step
	}
	return lock.HomesOf(g.table, c)
}

// agreedStep is the step of a table's homes. One rank looks at all of them, which may be
// many. Collective.
func agreedStep(c rma.Comm, table lock.Table) (int, error) {
	var mine [1]int64
	hosts := lock.HomesOf(table, c)
	if c.Rank() == 0 {
		mine[0] = int64(step(table, hosts))
	}
	all, err := c.Allgather(mine[:])
	if err != nil {
		return 0, err
	}
	if all[0] < 0 {
		return 0, fmt.Errorf("the home of lock %d is %d, want 0 to %d: %w", ^all[0], table.Home(int(^all[0])), hosts-1, lock.ErrConfig)
	}
	return int(all[0]), nil
}

// step is the number of hosts round which locks go: from lock 0 on, so many locks at a time have
// different homes. All hosts need not have locks, as where only some ranks serve. It is 1 where
// homes repeat otherwise: each lock then has a number of its own. It is ^id if the home of lock
// id is no host.
func step(table lock.Table, hosts int) int {
	seen := make([]int, hosts) // by home: the round that last had it, from 1
	period := 0                // 0 until a home repeats
	step := 0
	for id := range table.Len() {
		home := table.Home(id)
		if home < 0 || home >= hosts {
			return ^id
		}
		if period == 0 && seen[home] != 0 {
			period, step = id, id
		}
		round := 1
		if period > 0 {
			round += id / period
		}
		if seen[home] == round {
			step = 1
		}
		seen[home] = round
	}
	if period == 0 { // each lock has a home of its own
		return hosts
	}
	return step
}

// word is the place of a word of lock id, by its number from 0.
func (g *guarded) word(id, number int) (host, disp int) {
	return g.table.Home(id), id/g.step*g.each + number
}

// sum adds up the words at a host, reading many at once: there may be a billion.
func (g *guarded) sum(host int) (int64, error) {
	sum := int64(0)
	buf := make([]int64, min(1<<16, g.w.Words()))
	for d := 0; d < g.w.Words(); d += len(buf) {
		buf = buf[:min(len(buf), g.w.Words()-d)]
		g.w.GetBulk(buf, host, d)
		if err := g.w.Flush(host); err != nil {
			return 0, err
		}
		for _, v := range buf {
			sum += v
		}
	}
	return sum, nil
}

// verify compares the sum of the words with the increments that the ranks made of them under
// the lock. Each rank reads the memory of a few hosts: its own if these are ranks. Collective.
func (g *guarded) verify(c rma.Comm, made int64, name string) error {
	found := int64(0)
	for host := c.Rank(); host < g.w.Size(); host += c.Size() {
		sum, err := g.sum(host)
		if err != nil {
			return err
		}
		found += sum
	}
	sums := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(found)), uint64(made))
	_, err := rma.Combine(c, sums, func(all [][]byte) (none struct{}, err error) {
		var found, made uint64
		for _, sums := range all {
			found += binary.LittleEndian.Uint64(sums)
			made += binary.LittleEndian.Uint64(sums[8:])
		}
		if found != made {
			err = fmt.Errorf("%d increments of the shared counter were made under lock %q and it holds %d: %w",
				made, name, found, ErrExclusion)
		}
		return none, err
	})
	return err
}
