//go:build cgo

package mpi_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// nearSpec is a window of n near words at each rank.
func nearSpec(name string, n int) rma.Spec {
	return rma.Spec{Name: name, Regions: []rma.Region{{Count: n, Words: []rma.Word{{Name: "WORD", Class: rma.Near}}}}}
}

// waitJobs have ranks of one node, and nodes with far ranks, where MPI progresses during waits.
var waitJobs = []mpitest.Job{{Ranks: 2}, {Ranks: 3}, {Ranks: 4, Hosts: 2}}

// TestWaitsSleep: a rank that waits for one of two words, or until a limit, leaves the core to
// others, and wakes when either word changes or the limit comes.
func TestWaitsSleep(t *testing.T) {
	const span = 500 * time.Millisecond
	mpitest.Each(t, waitJobs, func(t *testing.T, c rma.Comm) {
		w, err := c.Allocate(nearSpec("near", 2))
		require.NoError(t, err)
		node := c.Node().Ranks
		mate := node[(slices.Index(node, c.Rank())+1)%len(node)]
		one := rma.Wait{Target: c.Rank(), Disp: 0, Cond: rma.Equal(1)}
		for name, other := range map[string]rma.Wait{ // never holds
			"of one part":  {Target: c.Rank(), Disp: 1, Cond: rma.Equal(9)},
			"of two parts": {Target: mate, Disp: 1, Cond: rma.Equal(9)},
		} {
			most := span // processor time
			for try := 0; try < 5 && most > span/5; try++ {
				require.NoError(t, c.Barrier())
				used, slept, start := cpuTime(), sleeps(), c.Now()
				_, held, err := w.AwaitUntil(c.Rank(), 0, rma.Equal(1), start+int64(span))
				require.NoError(t, err)
				require.False(t, held)
				require.GreaterOrEqual(t, c.Now(), start+int64(span))
				if c.Node().Count == 1 { // no naps: the writer would wake it
					require.Less(t, sleeps()-slept, int64(500), "sleeps of all threads in %v", span)
				}
				start = c.Now()
				which, _, err := w.AwaitEither(one, other, start+int64(span))
				require.NoError(t, err)
				require.Equal(t, -1, which)
				require.GreaterOrEqual(t, c.Now(), start+int64(span))
				if c.Node().Count == 1 && other.Target == c.Rank() {
					require.Less(t, sleeps()-slept, int64(1000), "sleeps of all threads in twice %v", span)
				}
				all, err := c.Allgather([]int64{int64(cpuTime()-used) / 2})
				require.NoError(t, err)
				most = time.Duration(slices.Max(all))
			}
			require.Less(t, most, span/5, "processor time of a rank that waited %v for words %s", span, name)
		}
		require.NoError(t, c.Barrier())
		require.NoError(t, w.Free())
	})
}

// TestBatonInTwoWords: a baton goes round in either of two words, of one part and of two, among
// ranks that are asleep and others that are not. Each wait ends, and says which word has it.
func TestBatonInTwoWords(t *testing.T) {
	const limit = int64(20 * time.Second)
	mpitest.Each(t, waitJobs, func(t *testing.T, c rma.Comm) {
		w, err := c.Allocate(nearSpec("baton", 2))
		require.NoError(t, err)
		node := c.Node().Ranks
		me := slices.Index(node, c.Rank())
		next := node[(me+1)%len(node)]
		for round := int64(1); round <= 300; round++ {
			disp := int(round / 2 % 2)
			wait := func() {
				a := rma.Wait{Target: c.Rank(), Disp: disp, Cond: rma.AtLeast(round)}
				b := rma.Wait{Target: c.Rank(), Disp: 1 - disp, Cond: rma.Equal(-1)} // never
				if round%2 == 1 {
					b.Target = next
				}
				want := 0
				if round%3 == 0 {
					a, b, want = b, a, 1
				}
				which, v, err := w.AwaitEither(a, b, c.Now()+limit)
				require.NoError(t, err)
				require.Equal(t, want, which, "round %d", round)
				require.Equal(t, round, v)
			}
			if me == 0 {
				if round%20 == 0 {
					time.Sleep(3 * time.Millisecond) // let the others fall asleep
				}
				require.NoError(t, w.PutFlush(round, next, disp))
				wait()
			} else {
				wait()
				require.NoError(t, w.PutFlush(round, next, disp))
			}
		}
		require.NoError(t, w.Free())
	})
}

// TestClockOfAMachine: Comm.Now is one clock for the processes of a machine, pretended hosts
// included: a message does not arrive before it was sent, but for the microsecond by which each
// process may have misread the clock when it started.
func TestClockOfAMachine(t *testing.T) {
	const misread = int64(time.Microsecond)
	mpitest.Each(t, []mpitest.Job{{Ranks: 2}, {Ranks: 4}, {Ranks: 2, Hosts: 2}}, func(t *testing.T, c rma.Comm) {
		w, err := c.Allocate(rma.DataSpec("time", 1))
		require.NoError(t, err)
		earliest, last := int64(1<<62), int64(0)
		for range 500 {
			next := (c.Rank() + 1) % c.Size()
			if c.Rank() > 0 {
				last = receive(t, c, w, last, &earliest)
			}
			require.NoError(t, w.PutFlush(c.Now(), next, 0))
			if c.Rank() == 0 {
				last = receive(t, c, w, last, &earliest)
			}
		}
		t.Logf("the fastest message took %d ns", earliest)
		require.Greater(t, earliest, -misread, "a message arrived before it was sent")
		require.NoError(t, c.Barrier())
		require.NoError(t, w.Free())
	})
}

// receive awaits a message that says when it was sent, and notes the least time of travel.
func receive(t *testing.T, c rma.Comm, w *rma.Window, last int64, least *int64) int64 {
	t.Helper()
	sent, err := w.Await(c.Rank(), 0, rma.NotEqual(last))
	require.NoError(t, err)
	*least = min(*least, c.Now()-sent)
	return sent
}
