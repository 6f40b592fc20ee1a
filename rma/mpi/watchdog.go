//go:build cgo

package mpi

// #include "rl.h"
import "C"

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// hungStatus is the exit status of a process that the watchdog ended.
const hungStatus = 75 // EX_TEMPFAIL of sysexits.h

// names are the windows' names by number, for the watchdog's message.
var names = struct {
	sync.Mutex
	next int
	of   map[int]string
}{of: map[int]string{}}

func register(name string) int {
	names.Lock()
	defer names.Unlock()
	names.next++
	names.of[names.next] = name
	return names.next
}

func unregister(number int) {
	names.Lock()
	defer names.Unlock()
	delete(names.of, number)
}

// telling is the time that a launcher has to read what a rank said before the job is
// aborted: MPICH's loses what it has not read.
const telling = 200 * time.Millisecond

var stopWatch chan struct{}

// timeout is the time after which a call into MPI counts as hung.
func (cfg Config) timeout() time.Duration {
	if cfg.FlushTimeout > 0 {
		return cfg.FlushTimeout
	}
	if d, err := time.ParseDuration(os.Getenv("RMALOCK_FLUSH_TIMEOUT")); err == nil && d > 0 {
		return d
	}
	return 60 * time.Second
}

// watch starts the watchdog: it ends the process when one call has been inside MPI
// for the whole time-out. MPI returns no error for an operation towards a dead
// rank; it hangs.
func watch(limit time.Duration) {
	if stopWatch != nil {
		return
	}
	stop := make(chan struct{})
	stopWatch = stop
	go func() {
		tick := time.NewTicker(max(limit/20, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			call := C.rl_current()
			if call.since_ns == 0 || int64(C.rl_now())-int64(call.since_ns) < int64(limit) {
				continue
			}
			again := C.rl_current()
			if again.since_ns != call.since_ns {
				continue
			}
			fmt.Fprintln(os.Stderr, hung(int(call.target), int(call.window), limit))
			quit()
		}
	}()
}

// quit ends the job, and this process at any rate: MPI_Abort, which tells the launcher,
// is called while another thread hangs inside MPI.
func quit() {
	time.Sleep(telling)
	go C.rl_abort(hungStatus)
	time.Sleep(2 * time.Second)
	os.Exit(hungStatus)
}

func unwatch() {
	if stopWatch != nil {
		close(stopWatch)
		stopWatch = nil
	}
}

// hung is the watchdog's message.
func hung(target, window int, limit time.Duration) string {
	names.Lock()
	name := names.of[window]
	names.Unlock()
	towards := fmt.Sprintf("rank %d", target)
	if target < 0 {
		towards = "all ranks"
	}
	return fmt.Sprintf("rmalock: on %s: an operation on window %q towards %s has not returned from %s for %v: the rank is dead, cannot be reached, or makes no MPI calls and has no progress helper. The process ends, and with it the job. RMALOCK_FLUSH_TIMEOUT sets the time.",
		host(), name, towards, process.library, limit)
}
