package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

func newDemo() *cobra.Command {
	var pace time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show locks at work on this machine, in a minute",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pace <= 0 || pace > 10*time.Second {
				return fmt.Errorf("--pace is %v, want more than 0 and at most 10s", pace)
			}
			return fail(demo{out: cmd.OutOrStdout(), pace: pace}.run())
		},
	}
	cmd.Flags().DurationVar(&pace, "pace", 10*time.Millisecond, "length of a critical section")
	return describe(cmd)
}

// A demo is the scenes and the length of their critical sections.
type demo struct {
	out  io.Writer
	pace time.Duration
}

func (d demo) run() error {
	for _, scene := range []func() error{d.count, d.order, d.nodes, d.readers, d.death} {
		if err := scene(); err != nil {
			return err
		}
	}
	d.say("More: rmalock bench --help measures locks, rmalock check --help searches their schedules.")
	return nil
}

func (d demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// title says what a scene shows.
func (d demo) title(number int, what string) { d.say("\n%d. %s\n", number, what) }

// count is scene 1: updates that are lost, and that are not.
func (d demo) count() error {
	const ranks, times = 4, 20000
	d.title(1, fmt.Sprintf("%d ranks add 1 to a word, %d times each: Get, add, Put.", ranks, times))
	for _, name := range []string{"", "fompi-spin", "dmcs"} {
		var total int64
		began := time.Now()
		err := inproc.Run(ranks, func(c rma.Comm) error {
			w, err := c.Allocate(rma.DataSpec("count", 1))
			if err != nil {
				return err
			}
			locks, err := openLock(c, name, nil)
			if err != nil {
				return err
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			for range times {
				if err := add(locks, w); err != nil {
					return err
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			n, err := w.GetFlush(0, 0)
			if c.Rank() == 0 {
				total = n
			}
			return err
		})
		if err != nil {
			return err
		}
		took := time.Since(began).Round(time.Millisecond)
		switch lost := ranks*times - total; {
		case name == "":
			d.say("   %-12s %6d, %d updates lost, %v", "no lock", total, lost, took)
		case lost != 0:
			return fmt.Errorf("%s lost %d updates", name, lost)
		default:
			d.say("   %-12s %6d, none lost, %v", name, total, took)
		}
	}
	return nil
}

// openLock is a table of one lock of the registry, nil for the name "".
func openLock(c rma.Comm, name string, params map[string]string) (lock.Table, error) {
	if name == "" {
		return nil, nil
	}
	info, err := lock.Lookup(name)
	if err != nil {
		return nil, err
	}
	return info.With(c, lock.Setting{Locks: 1, Params: params})
}

// add adds 1 to word 0 of rank 0, under the lock unless there is none.
func add(locks lock.Table, w *rma.Window) error {
	if locks != nil {
		if err := locks.Lock(context.Background(), 0, lock.Exclusive); err != nil {
			return err
		}
	}
	n, err := w.GetFlush(0, 0)
	runtime.Gosched() // as on a network, others run meanwhile
	if err == nil {
		err = w.PutFlush(n+1, 0, 0)
	}
	if locks != nil {
		err = errors.Join(err, locks.Unlock(0, lock.Exclusive))
	}
	return err
}

// order is scene 2: four ranks that want a lock again as soon as they have let it go.
func (d demo) order() error {
	d.title(2, "4 ranks, one lock, again and again: a spin lock serves by luck, a queue in turn.")
	for _, name := range []string{"fompi-spin", "dmcs"} {
		p := d.picture(4)
		err := inproc.Run(4, func(c rma.Comm) error {
			return p.contend(c, name, nil, 8, func(int) lock.Mode { return lock.Exclusive })
		})
		if err != nil {
			return err
		}
		p.draw(name)
	}
	return nil
}

// nodes is scene 3: a lock that stays in a node.
func (d demo) nodes() error {
	d.title(3, "2 nodes of 2 ranks. RMA-MCS passes the lock within a node, here 3 times, then to the next.")
	for _, l := range []struct {
		name   string
		params map[string]string
	}{{"dmcs", nil}, {"rmamcs", map[string]string{"TL": "1000/4"}}} {
		p := d.picture(4)
		p.perNode = 2
		err := inproc.Job{Nodes: 2, PerNode: 2}.Run(func(c rma.Comm) error {
			return p.contend(c, l.name, l.params, 8, func(int) lock.Mode { return lock.Exclusive })
		})
		if err != nil {
			return err
		}
		p.draw(l.name)
	}
	return nil
}

// readers is scene 4: rank 0 writes, the others read.
func (d demo) readers() error {
	d.title(4, "Rank 0 writes, the others read: readers share RMA-RW, a mutex lets one in at a time.")
	for _, name := range []string{"dmcs", "rmarw"} {
		p := d.picture(4)
		err := inproc.Run(4, func(c rma.Comm) error {
			return p.contend(c, name, nil, 8, func(rank int) lock.Mode {
				if rank == 0 {
					return lock.Exclusive
				}
				return lock.Shared
			})
		})
		if err != nil {
			return err
		}
		p.draw(name)
	}
	return nil
}

// death is scene 5: rank 2 dies with the lock.
func (d demo) death() error {
	lease := 8 * d.pace
	d.title(5, fmt.Sprintf("A lock of DSLR on a memory node, with a lease of %v. Rank 2 dies in its critical section.", lease))
	p := d.picture(3)
	var told sync.Once
	err := inproc.Job{Nodes: 3, PerNode: 1, MemoryNodes: 1, MayDie: true}.Run(func(c rma.Comm) error {
		locks, err := openLock(c, "dslr", map[string]string{"LEASE": lease.String()})
		if err != nil {
			return err
		}
		for i := range 8 {
			err := p.visit(c, locks, lock.Exclusive, c.Rank() == 2 && i == 2)
			if errors.Is(err, lock.ErrOwnerDied) {
				told.Do(func() { p.remark = fmt.Sprintf("rank %d is told that a holder before it may have died", c.Rank()) })
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.draw("dslr")
	return nil
}

// A picture is what the ranks of a scene did, and when.
type picture struct {
	d       demo
	ranks   int
	perNode int
	remark  string
	start   time.Time
	mu      sync.Mutex
	spans   []stretch
}

// A stretch is a time that a rank spent in one way.
type stretch struct {
	rank     int
	what     byte // '-', '#', 'r', or 'x' for its death
	from, to time.Duration
}

func (d demo) picture(ranks int) *picture {
	return &picture{d: d, ranks: ranks, perNode: ranks, start: time.Now()}
}

func (p *picture) add(rank int, what byte, from time.Duration) time.Duration {
	to := time.Since(p.start)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans = append(p.spans, stretch{rank, what, from, to})
	return to
}

// contend makes a rank take the lock some times, in the mode that it has.
func (p *picture) contend(c rma.Comm, name string, params map[string]string, times int, mode func(rank int) lock.Mode) error {
	locks, err := openLock(c, name, params)
	if err != nil {
		return err
	}
	for range times {
		if err := p.visit(c, locks, mode(c.Rank()), false); err != nil {
			return err
		}
	}
	return nil
}

// visit takes the lock, holds it for a pace, and lets it go, or dies with it.
func (p *picture) visit(c rma.Comm, locks lock.Table, mode lock.Mode, dies bool) error {
	from := time.Since(p.start)
	told := locks.Lock(context.Background(), 0, mode)
	if told != nil && !errors.Is(told, lock.ErrOwnerDied) {
		return told
	}
	from = p.add(c.Rank(), '-', from)
	time.Sleep(p.d.pace)
	what := byte('#')
	if mode == lock.Shared {
		what = 'r'
	}
	from = p.add(c.Rank(), what, from)
	if dies {
		p.add(c.Rank(), 'x', from)
		return rma.ErrDied
	}
	// On a busy machine a holder may be taken for dead.
	if err := locks.Unlock(0, mode); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		return err
	}
	time.Sleep(time.Duration(rand.Int64N(int64(p.d.pace)))) //nolint:gosec // a pause
	return told
}

// draw writes a line for each rank.
func (p *picture) draw(name string) {
	const width = 80
	var end time.Duration
	for _, s := range p.spans {
		end = max(end, s.to)
	}
	column := func(at time.Duration) int { return min(int(at*width/max(end, 1)), width-1) }
	p.d.say("   %s, %v", name, end.Round(time.Millisecond))
	for rank := range p.ranks {
		line := []byte(fmt.Sprintf("%*s", width, ""))
		for _, what := range []byte{'-', 'r', '#', 'x'} { // a hold is drawn over a wait
			for _, s := range p.spans {
				if s.rank == rank && s.what == what {
					for i := column(s.from); i <= column(s.to); i++ {
						line[i] = what
					}
				}
			}
		}
		p.d.say("   node %d rank %d |%s|", rank/p.perNode, rank, line)
	}
	if p.remark != "" {
		p.d.say("   %s", p.remark)
	}
	p.d.say("")
}
