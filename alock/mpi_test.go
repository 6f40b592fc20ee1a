//go:build cgo

package alock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// A sharing is how the ranks of a job share the table of section 6 at 95 % locality: that of each
// rank, or the mean of two where the first one of a host takes its own locks alone.
type sharing struct {
	what  string
	locks int
	stays bool // the first rank of each host takes local locks alone
	far   int  // percent of remote locks among those that the others draw
}

var sharings = []sharing{
	{"8 locks, each rank takes 5 % remote ones", 8, false, 5},
	{"1,000 locks, each rank takes 5 % remote ones", 1000, false, 5},
	{"8 locks, one rank of two takes no remote ones, the other 10 %", 8, true, 10},
	{"1,000 locks, one rank of two takes no remote ones, the other 10 %", 1000, true, 10},
}

// TestTableOverHosts: the lock table of section 6 in real jobs, two ranks on each of four hosts.
// Each lock guards a counter at its home, and the sum of all is exact. How many acquires a second
// the ranks make, by turns with D-MCS, depends on the machine and is logged. RMALOCK_ROUNDS is the
// number of turns, of half a second each.
func TestTableOverHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	jobs := []mpitest.Job{{Ranks: 4, Hosts: 2}}
	if locktest.Deep() {
		jobs = append(jobs, mpitest.Job{Ranks: 8, Hosts: 4})
	}
	rounds, turn := 1, 20*time.Millisecond
	if n, err := strconv.Atoi(os.Getenv("RMALOCK_ROUNDS")); err == nil {
		rounds, turn = n, 500*time.Millisecond
	}
	mpitest.Each(t, jobs, func(t *testing.T, c rma.Comm) {
		for _, s := range sharings {
			if err := s.compare(t, c, rounds, turn); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// compare measures ALock and D-MCS by turns.
func (s sharing) compare(t *testing.T, c rma.Comm, rounds int, turn time.Duration) error {
	names := []string{"alock", "dmcs"}
	var tables []*table
	for _, name := range names {
		l, err := s.open(c, name)
		if err != nil {
			return err
		}
		tables = append(tables, l)
	}
	var stay, of, away [2][]float64 // by lock: thousand acquires a second of local ranks alone, and of all; us of a remote acquire and release
	for range rounds {
		for i, l := range tables {
			r, err := l.run(turn)
			if err != nil {
				return err
			}
			stay[i], of[i], away[i] = append(stay[i], r.stay/1e3), append(of[i], r.all/1e3), append(away[i], r.away/1e3)
		}
	}
	for i, l := range tables {
		if err := l.count(200); err != nil {
			return fmt.Errorf("%s, %s: %w", names[i], s.what, err)
		}
	}
	if c.Rank() == 0 {
		t.Logf("%s: all %s", s.what, against(of, "thousand a second"))
		t.Logf("%s: a remote acquire and release %s", s.what, against(away, "us"))
		if s.stays {
			t.Logf("%s: the former %s", s.what, against(stay, "thousand a second"))
		}
	}
	return errors.Join(tables[0].free(), tables[1].free())
}

// against says how two series compare, turn by turn.
func against(of [2][]float64, unit string) string {
	var ratios []float64
	for i, v := range of[0] {
		ratios = append(ratios, v/of[1][i])
	}
	for _, v := range [][]float64{ratios, of[0], of[1]} {
		slices.Sort(v)
	}
	mid := len(ratios) / 2
	return fmt.Sprintf("%.4g and %.4g %s, %.3g times (%.3g to %.3g)", of[0][mid], of[1][mid], unit, ratios[mid], ratios[0], ratios[len(ratios)-1])
}

// A table is a lock table of a job, with a counter for each lock.
type table struct {
	lock.Table
	c           rma.Comm
	counts      *rma.Window
	here, there []int // locks of the rank's host, and the others
	far         int   // percent that the rank draws of the others
	rng         *rand.Rand
}

// open opens a lock's table and the counters. Collective.
func (s sharing) open(c rma.Comm, name string) (*table, error) {
	info, err := lock.Lookup(name)
	if err != nil {
		return nil, err
	}
	t := &table{c: c, far: s.far, rng: rand.New(rand.NewPCG(1, uint64(c.Rank())))}
	if s.stays && c.Node().Ranks[0] == c.Rank() {
		t.far = 0
	}
	if t.Table, err = info.Open(c, s.locks, 0); err != nil {
		return nil, err
	}
	for id := range s.locks {
		if c.Node().Has(t.Home(id)) {
			t.here = append(t.here, id)
		} else {
			t.there = append(t.there, id)
		}
	}
	t.counts, err = c.Allocate(rma.DataSpec("count", (s.locks+c.Size()-1)/c.Size()))
	return t, err
}

func (t *table) free() error { return errors.Join(t.counts.Free(), t.Free()) }

// draw is the lock that the rank takes next.
func (t *table) draw() int {
	from := t.here
	if t.rng.IntN(100) < t.far {
		from = t.there
	}
	return from[t.rng.IntN(len(from))]
}

// A pace is what a turn has come to.
type pace struct {
	stay, all float64 // acquires a second, of the ranks that take local locks alone and of all
	away      float64 // ns of a remote acquire and release
}

// run acquires and releases for a time. Collective.
func (t *table) run(turn time.Duration) (r pace, err error) {
	if err := t.c.Barrier(); err != nil {
		return r, err
	}
	var n, far, ns int64
	began := time.Now()
	for ; time.Since(began) < turn; n++ {
		id, start := t.draw(), t.c.Now()
		if err := errors.Join(t.Lock(background, id, lock.Exclusive), t.Unlock(id, lock.Exclusive)); err != nil {
			return r, err
		}
		if !t.c.Node().Has(t.Home(id)) {
			far, ns = far+1, ns+t.c.Now()-start
		}
	}
	mine := []int64{n * int64(time.Second) / time.Since(began).Nanoseconds(), far, ns, 0}
	if t.far == 0 {
		mine[3] = 1
	}
	all, err := t.c.Allgather(mine)
	far, ns = 0, 0
	for i := 0; i < len(all); i += 4 {
		r.all += float64(all[i])
		r.stay += float64(all[i] * all[i+3])
		far, ns = far+all[i+1], ns+all[i+2]
	}
	r.away = float64(ns) / float64(max(far, 1))
	return r, err
}

// count raises the counters of the locks, and checks their sum.
func (t *table) count(visits int) error {
	for range visits {
		id := t.draw()
		if err := t.Lock(background, id, lock.Exclusive); err != nil {
			return err
		}
		home, disp := t.Home(id), id/t.c.Size()
		n, err := t.counts.GetFlush(home, disp)
		if err := errors.Join(err, t.counts.PutFlush(n+1, home, disp), t.Unlock(id, lock.Exclusive)); err != nil {
			return err
		}
	}
	if err := t.c.Barrier(); err != nil {
		return err
	}
	total := int64(0)
	for disp := range t.counts.Words() {
		total += t.counts.Peek(disp)
	}
	sums, err := t.c.Allgather([]int64{total})
	if err != nil {
		return err
	}
	total = 0
	for _, n := range sums {
		total += n
	}
	if want := int64(visits * t.c.Size()); total != want {
		return fmt.Errorf("the counters add up to %d, want %d", total, want)
	}
	return nil
}
