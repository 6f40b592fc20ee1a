//go:build cgo

package mpi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/rmalock/rmalock/alock"
	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// The death of a holder, as docs/death.md says it.
const (
	deadline = "1s" // RMALOCK_FLUSH_TIMEOUT of these jobs
	// soon bounds the time from the death to the end of the job: a look for dead
	// node-mates every second, or a question to the other node within a twelfth of the
	// deadline and the deadline; and what a machine without a core to spare needs to end a job.
	soon = 8 * time.Second
)

// TestHolderKilledUnderEveryLock: the rank that holds a lock is killed while another
// one waits for it, on the same host and on another one. No lock recovers: the job
// ends soon, with a message that says why. Open MPI's launcher is told to leave that to the
// ranks; MPICH's kills them.
func TestHolderKilledUnderEveryLock(t *testing.T) {
	if testing.Short() {
		t.Skip("no jobs in short mode")
	}
	for _, j := range []mpitest.Job{{Ranks: 2}, {Ranks: 2, Hosts: 2}} {
		for _, l := range lock.All() {
			if l.Serves {
				continue // of two ranks one takes no lock
			}
			t.Run(fmt.Sprintf("%s,%v", l.Name, j), func(t *testing.T) {
				t.Parallel() // two at a time on 2 cores, most of it waiting
				out, took := killHolder(t, j, l.Name)
				t.Logf("ended %v after the death", took.Round(time.Millisecond))
				require.Less(t, took, soon, out)
				switch {
				case mpi.Library == "MPICH":
					require.Regexp(t, `Killed \(signal 9\)|EXIT CODE: 9\n`, out)
				case j.Hosts == 2:
					require.Regexp(t, `rmalock: on rmahost1: an operation on window ".*" towards rank [01] has not returned from Open MPI .* for 1s`, out)
				case l.Name == "mpi-win-lock": // waits inside MPI
					require.Regexp(t, `an operation on window ".*" towards rank 0 has not returned from Open MPI .* for 1s`, out)
				default:
					require.Regexp(t, `waiter: mpi: window ".*": rank 1 \(process \d+ on .*\) is gone: a peer failed or is gone`, out)
					require.Regexp(t, `barrier: mpi: Barrier: rank 1 \(process \d+ on .*\) is gone: a peer failed or is gone`, out)
				}
			})
		}
	}
}

// killHolder runs TestPartHolderDies as a job, kills the holder when it says that it
// holds, and returns what the job said and how long it went on.
func killHolder(t *testing.T, j mpitest.Job, name string) (string, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute/2)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd, err := mpitest.Command(ctx, t.TempDir(), j, self, "-test.run=^TestPartHolderDies$", "-test.v")
	if err != nil {
		t.Skip(err)
	}
	cmd.Env = append(cmd.Env, "RMALOCK_TEST_JOB="+j.String(), "RMALOCK_TEST_LOCK="+name, "RMALOCK_FLUSH_TIMEOUT="+deadline,
		"OMPI_MCA_orte_abort_on_non_zero_status=0")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	w.Close()
	var out bytes.Buffer
	var died time.Time
	held := regexp.MustCompile(`held by process (\d+)`)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fmt.Fprintln(&out, lines.Text())
		if m := held.FindStringSubmatch(lines.Text()); m != nil && died.IsZero() {
			pid, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			time.Sleep(200 * time.Millisecond) // the other one waits meanwhile
			died = time.Now()
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	err = cmd.Wait()
	require.Error(t, err, "a job with a dead rank must not end well:\n%s", out.String())
	require.False(t, died.IsZero(), "no rank said that it holds the lock:\n%s", out.String())
	return out.String(), time.Since(died)
}

// TestDeathIsNamed: the launcher ends the job when a rank dies, and a survivor names the rank.
// Open MPI's ends the survivors with SIGTERM, which leaves them the time. MPICH's kills them at
// once: with four ranks half of the jobs have the line, and one of 40 has to. A job that ends well
// has none.
func TestDeathIsNamed(t *testing.T) {
	jobs := map[string]int{"Open MPI": 1, "MPICH": 40}[mpi.Library]
	named := regexp.MustCompile(`rmalock: rank 1 \(process \d+ on .*\) is gone(: signal 9 \(killed\))?\n`)
	for try := 1; ; try++ {
		out, err := mpitest.Rerun(t, mpitest.Job{Ranks: 4}, "TestPartHolderKilled")
		require.Error(t, err, "a job with a dead rank must not end well")
		if named.Match(out) {
			break
		}
		require.Less(t, try, jobs, "no survivor names the rank:\n%s", out)
	}
	for range 5 {
		out, err := mpitest.Rerun(t, mpitest.Job{Ranks: 4}, "TestCrashHandlers")
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "is gone")
	}
}

func TestPartHolderDies(t *testing.T) {
	c := needJob(t)
	info, err := lock.Lookup(os.Getenv("RMALOCK_TEST_LOCK"))
	require.NoError(t, err)
	var locks lock.Table
	if info.Name == "drtm" { // whose leases are shorter than the clocks of two busy hosts differ
		locks, err = info.OpenWith(c, lock.Setting{Locks: 1, Params: map[string]string{"LEASE": "1s"}})
	} else {
		locks, err = info.Open(c, 1, 0)
	}
	require.NoError(t, err)
	held, err := c.Allocate(rma.CounterSpec("held", 1))
	require.NoError(t, err)
	if c.Rank() == 1 {
		require.NoError(t, locks.Lock(context.Background(), 0, lock.Exclusive))
		require.NoError(t, held.AccumulateFlush(1, 0, 0, rma.Sum))
		fmt.Printf("held by process %d\n", os.Getpid())
		time.Sleep(time.Minute)
	}
	_, err = held.Await(0, 0, rma.Equal(1))
	require.NoError(t, err)
	err = locks.Lock(context.Background(), 0, lock.Exclusive)
	fmt.Println("waiter:", err)
	fmt.Println("barrier:", c.Barrier()) // nor does that wait for the dead
	require.ErrorIs(t, err, rma.ErrPeer)
	c.(*mpi.World).Abort(3)
}
