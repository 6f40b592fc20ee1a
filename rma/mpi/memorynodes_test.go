//go:build cgo

package mpi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// memoryJobs have memory nodes on the users' host, on some of their hosts, and on hosts alone.
var memoryJobs = []mpitest.Job{
	{Ranks: 2, MemoryNodes: 1},
	{Ranks: 5, MemoryNodes: 2},
	{Ranks: 3, MemoryNodes: 2},
	{Ranks: 2, Hosts: 2, MemoryNodes: 1},
	{Ranks: 6, Hosts: 2, MemoryNodes: 2},
}

// farSpec is a window of memory nodes with words of all classes that these have.
func farSpec(name string, n int) rma.Spec {
	return rma.Spec{Name: name, Hosts: rma.MemoryNodes, Regions: []rma.Region{
		{Count: n, Words: []rma.Word{{Name: "FAR", Class: rma.Far}}},
		{Count: n, Words: []rma.Word{{Name: "FLAG", Class: rma.Flag}}},
		{Count: n, Words: []rma.Word{{Name: "PLAIN", Class: rma.Plain}}},
	}}
}

// TestMemoryNodes: windows of memory nodes, from the world and from parts of it, beside windows of
// the other ranks.
func TestMemoryNodes(t *testing.T) {
	mpitest.Each(t, memoryJobs, func(t *testing.T, c rma.Comm) {
		t.Log(c.Describe())
		require.Contains(t, os.Getenv("RMALOCK_TEST_JOB"), fmt.Sprintf("ranks=%d,", c.Size()+c.MemoryNodes()))
		w, err := c.Allocate(farSpec("remote", 4))
		require.NoError(t, err)
		require.Equal(t, -1, w.Rank())
		require.Equal(t, c.MemoryNodes(), w.Size())
		require.Empty(t, w.Node().Ranks)
		require.True(t, w.Caps().FarRanks)
		require.False(t, w.Caps().CPUReads)
		checkRemote(t, c, w)

		// A window of ranks has none of the memory nodes.
		own, err := c.Allocate(rma.CounterSpec("own", 1))
		require.NoError(t, err)
		require.Equal(t, c.Size(), own.Size())
		for r := range c.Size() {
			require.NoError(t, own.AccumulateFlush(1, r, 0, rma.Sum))
		}
		n, err := own.Await(c.Rank(), 0, rma.Equal(int64(c.Size())))
		require.NoError(t, err)
		require.EqualValues(t, c.Size(), n)

		// Parts open and close theirs at the same time.
		part, err := c.Split(c.Rank()%2, 0)
		require.NoError(t, err)
		require.Equal(t, c.MemoryNodes(), part.MemoryNodes())
		for range 3 {
			p, err := part.Allocate(farSpec(fmt.Sprintf("part %d", c.Rank()%2), 2))
			require.NoError(t, err)
			checkRemote(t, part, p)
			require.NoError(t, p.Free())
		}
		checkRemote(t, c, w)
		require.NoError(t, own.Free())
		require.NoError(t, w.Free())
		_, err = w.GetFlush(0, 0)
		require.ErrorIs(t, err, rma.ErrFreed)
	})
}

// checkRemote uses a window of memory nodes and leaves zeros.
func checkRemote(t *testing.T, c rma.Comm, w *rma.Window) {
	t.Helper()
	n := (w.Words()) / 3
	users := int64(c.Size())
	for m := range w.Size() {
		before, err := w.FetchAndOpFlush(1, m, 0, rma.Sum)
		require.NoError(t, err)
		require.Less(t, before, users)
		v, err := w.Await(m, 0, rma.Equal(users)) // all have come
		require.NoError(t, err)
		require.Equal(t, users, v)
		require.NoError(t, c.Barrier())
		if c.Rank() == 0 { // a message, ordered by a fence
			w.Put(7, m, n)
			w.Put(8, m, 2*n)
			w.Fence(m)
			w.Put(0, m, 0)
			require.NoError(t, w.Flush(m))
		}
		which, _, err := w.AwaitEither(rma.Wait{Target: m, Disp: 2*n - 1, Cond: rma.Equal(1)}, rma.Wait{Target: m, Disp: 0, Cond: rma.Equal(0)}, rma.Forever)
		require.NoError(t, err)
		require.Equal(t, 1, which)
		flag, plain := w.Get(m, n), w.Get(m, 2*n)
		require.NoError(t, w.Flush(m))
		require.Equal(t, []int64{7, 8}, []int64{w.Value(flag), w.Value(plain)})
		require.NoError(t, c.Barrier())
		if c.Rank() == 0 {
			w.PutBulk(make([]int64, n), m, n)
			w.PutBulk(make([]int64, n), m, 2*n)
			require.NoError(t, w.Flush(m))
		}
		v, held, err := w.AwaitUntil(m, 1, rma.Equal(1), c.Now()+1e6)
		require.NoError(t, err)
		require.False(t, held, "the word is %d", v)
		require.NoError(t, c.Barrier())
	}
}

// TestLockOnMemoryNodes: a spin lock whose word and data are on one memory node. The holder writes
// the data and gives the lock back in one Flush, with a fence between, as Sherman does.
func TestLockOnMemoryNodes(t *testing.T) {
	mpitest.Each(t, []mpitest.Job{{Ranks: 3, MemoryNodes: 1}, {Ranks: 4, Hosts: 2, MemoryNodes: 2}}, func(t *testing.T, c rma.Comm) {
		const rounds = 50
		w, err := c.Allocate(rma.Spec{Name: "lock", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "LOCK", Class: rma.Far}}},
			{Count: 2, Words: []rma.Word{{Name: "DATA", Class: rma.Flag}}},
		}})
		require.NoError(t, err)
		home, me := w.Size()-1, int64(c.Rank()+1)
		data := make([]int64, 2)
		for range rounds {
			for try := 0; ; try++ {
				seen, err := w.CompareAndSwapFlush(me, 0, home, 0)
				require.NoError(t, err)
				if seen == 0 {
					break
				}
				require.NoError(t, w.Backoff(home, 0, seen, try))
			}
			w.GetBulk(data, home, 1)
			require.NoError(t, w.Flush(home))
			require.Equal(t, data[0], data[1], "the data of a holder before")
			data[0]++
			data[1]++
			w.PutBulk(data, home, 1)
			w.Fence(home)
			w.Put(0, home, 0)
			require.NoError(t, w.Flush(home))
		}
		require.NoError(t, c.Barrier())
		n, err := w.GetFlush(home, 2)
		require.NoError(t, err)
		require.EqualValues(t, rounds*c.Size(), n)
		require.NoError(t, c.Barrier())
		require.NoError(t, w.Free())
	})
}

// TestMemoryNodesTooBig: a window that memory nodes have no room for is the same error at all
// ranks, and the job goes on.
func TestMemoryNodesTooBig(t *testing.T) {
	mpitest.Each(t, []mpitest.Job{{Ranks: 3, MemoryNodes: 1}}, func(t *testing.T, c rma.Comm) {
		_, err := c.Allocate(farSpec("huge", 1<<40))
		require.ErrorIs(t, err, rma.ErrMemory)
		require.ErrorContains(t, err, `window "huge" needs `)
		spec := farSpec("mixed", 1+c.Rank())
		_, err = c.Allocate(spec)
		require.ErrorIs(t, err, rma.ErrMismatch)
		_, err = mpi.Open(mpi.Config{})
		require.ErrorContains(t, err, "a job with memory nodes is opened once")
		w, err := c.Allocate(farSpec("small", 1))
		require.NoError(t, err)
		require.NoError(t, w.Free())
	})
}

// TestMemoryNodesServe: memory nodes answer while the users' own processes compute, and Open
// returns at them when the job ends. A user that holds its MPI lock does not stop them.
func TestMemoryNodesServe(t *testing.T) {
	mpitest.Each(t, []mpitest.Job{{Ranks: 3, MemoryNodes: 1}, {Ranks: 4, Hosts: 2, MemoryNodes: 2}}, func(t *testing.T, c rma.Comm) {
		w, err := c.Allocate(farSpec("count", 1))
		require.NoError(t, err)
		if c.Rank() == 1 { // no MPI in this process
			mpi.Do(func() { time.Sleep(300 * time.Millisecond) })
		} else {
			for range 100 {
				require.NoError(t, w.AccumulateFlush(1, 0, 0, rma.Sum))
			}
		}
		require.NoError(t, c.Barrier())
		n, err := w.GetFlush(0, 0)
		require.NoError(t, err)
		require.EqualValues(t, 100, n)
		require.NoError(t, c.Barrier())
		require.NoError(t, w.Free())
	})
}

// TestMemoryRanks: the rule that docs/cluster.md states.
func TestMemoryRanks(t *testing.T) {
	for _, c := range []struct {
		nodeOf []int64
		k      int
		want   []int
	}{
		{[]int64{0, 0, 0, 0}, 2, []int{2, 3}},                            // one host: the last ones
		{[]int64{0, 0, 1, 1}, 1, []int{3}},                               // the last rank
		{[]int64{0, 0, 1, 1}, 2, []int{1, 3}},                            // one of each host
		{[]int64{0, 0, 1, 1}, 3, []int{1, 2, 3}},                         // by turns
		{[]int64{0, 0, 0, 0, 1, 2}, 2, []int{4, 5}},                      // the last hosts have a rank each
		{[]int64{0, 1, 2, 0, 1, 2}, 4, []int{2, 3, 4, 5}},                // ranks dealt out over the hosts
		{[]int64{1, 0, 0, 0}, 2, []int{0, 3}},                            // the numbers of hosts do not matter
		{[]int64{0, 0, 0, 1, 1, 1, 2, 2, 2}, 3, []int{2, 5, 8}},          // spread
		{[]int64{0, 0, 0, 0, 1, 1, 1, 1}, 7, []int{1, 2, 3, 4, 5, 6, 7}}, // one is left
	} {
		require.Equal(t, c.want, mpi.MemoryRanks(c.nodeOf, c.k), "%d of %v", c.k, c.nodeOf)
	}
}

// TestMemoryNodesNonsense: a number of memory nodes that the job cannot have is refused at all
// ranks.
func TestMemoryNodesNonsense(t *testing.T) {
	for _, j := range []mpitest.Job{{Ranks: 2, MemoryNodes: 2}, {Ranks: 2, MemoryNodes: 5}} {
		out, err := mpitest.Rerun(t, j, "TestPartNothing")
		require.Error(t, err)
		require.Contains(t, string(out), fmt.Sprintf("Config.MemoryNodes is %d and the job has 2 ranks: want 0 to 1", j.MemoryNodes))
	}
	out, err := mpitest.Rerun(t, mpitest.Job{Ranks: 2}, "TestPartNothing", "RMALOCK_TEST_JOB=ranks=2,memory-nodes=-1")
	require.Error(t, err)
	require.Contains(t, string(out), "Config.MemoryNodes is -1")
}

func TestPartNothing(t *testing.T) { needJob(t) }

// TestMemoryNodeKilled: the death of a memory node ends the job, and a message names it: on the
// users' host by what waits for the end of its process, from another host by an operation that
// does not return.
func TestMemoryNodeKilled(t *testing.T) {
	for _, j := range []mpitest.Job{{Ranks: 3, MemoryNodes: 1}, {Ranks: 2, Hosts: 2, MemoryNodes: 1}} {
		start := time.Now()
		out, err := mpitest.Rerun(t, j, "TestPartMemoryNodeKilled", "RMALOCK_FLUSH_TIMEOUT=2s", "OMPI_MCA_orte_abort_on_non_zero_status=0",
			fmt.Sprintf("RMALOCK_TEST_VICTIM=%d of %d", j.Ranks-1, start.UnixNano()))
		require.Error(t, err, "a job whose memory node died must not end well:\n%s", out)
		require.Less(t, time.Since(start), 40*time.Second)
		require.Contains(t, string(out), "the memory node is killed")
		require.NotContains(t, string(out), "PASS: TestPartMemoryNodeKilled")
		if mpi.Library == "MPICH" { // its launcher may be faster
			require.Regexp(t, `Killed \(signal 9\)|EXIT CODE: 9\n|memory node 0`, string(out))
		} else {
			require.Contains(t, string(out), fmt.Sprintf("memory node 0, which is rank %d of the job", j.Ranks-1))
		}
	}
}

func TestPartMemoryNodeKilled(t *testing.T) {
	c := needJob(t)
	w, err := c.Allocate(farSpec("count", 1))
	require.NoError(t, err)
	require.NoError(t, w.AccumulateFlush(1, 0, 0, rma.Sum))
	require.NoError(t, c.Barrier())
	if c.Rank() == 0 {
		fmt.Println("the memory node is killed")
		require.NoError(t, syscall.Kill(victim(t), syscall.SIGKILL))
	}
	for err == nil {
		err = w.AccumulateFlush(1, 0, 0, rma.Sum)
	}
	fmt.Println(err)
	c.(*mpi.World).Abort(3)
}

// TestUserOfMemoryNodesKilled: a memory node does not stay behind when the users die.
func TestUserOfMemoryNodesKilled(t *testing.T) {
	start := time.Now()
	out, err := mpitest.Rerun(t, mpitest.Job{Ranks: 2, MemoryNodes: 1}, "TestPartUserKilled", "OMPI_MCA_orte_abort_on_non_zero_status=0")
	require.Error(t, err, "a job with a dead rank must not end well:\n%s", out)
	require.Less(t, time.Since(start), 40*time.Second)
	if mpi.Library == "Open MPI" {
		require.Regexp(t, `memory node 0, which is rank 1 of the job: mpi: waiting for a message: rank 0 \(process \d+ on .*\) is gone`, string(out))
	}
}

func TestPartUserKilled(t *testing.T) {
	needJob(t)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
}

// victim finds the process of the rank that RMALOCK_TEST_VICTIM says, by the environments of
// the processes of this machine.
func victim(t *testing.T) int {
	t.Helper()
	who := os.Getenv("RMALOCK_TEST_VICTIM")
	rank, _, _ := strings.Cut(who, " ")
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range environs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		env := strings.Split(string(text), "\x00")
		of := slices.Contains(env, "OMPI_COMM_WORLD_RANK="+rank) || slices.Contains(env, "PMI_RANK="+rank)
		if of && slices.Contains(env, "RMALOCK_TEST_VICTIM="+who) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("no process is the rank " + who)
	return 0
}
