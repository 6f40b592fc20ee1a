//go:build cgo

package mpi

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// hungStatus is the exit status of a process that the watchdog ended.
const hungStatus = 75 // EX_TEMPFAIL of sysexits.h

// A registered window has a name, and names for its targets; -1 is all of them.
type registered struct {
	name  string
	label func(target int) string
}

// names are the windows by number, for the watchdog's message.
var names = struct {
	sync.Mutex
	next int
	of   map[int]registered
}{of: map[int]registered{}}

func register(name string, label func(target int) string) int {
	names.Lock()
	defer names.Unlock()
	names.next++
	names.of[names.next] = registered{name, label}
	return names.next
}

func unregister(number int) {
	names.Lock()
	defer names.Unlock()
	delete(names.of, number)
}

// flushStderrFor is the time that a launcher has to read standard error before the job is
// aborted. MPICH's launcher loses what it has not read.
const flushStderrFor = 200 * time.Millisecond

var stopWatch chan struct{}

// timeoutVariable sets Config.FlushTimeout where the program does not.
const timeoutVariable = "RMALOCK_FLUSH_TIMEOUT"

// timeout is the time after which a call into MPI counts as hung.
func (cfg Config) timeout() (time.Duration, error) {
	text, set := os.LookupEnv(timeoutVariable)
	switch {
	case cfg.FlushTimeout < 0:
		return 0, fmt.Errorf("mpi: Config.FlushTimeout is %v, want a positive duration, or 0 for the default: %w", cfg.FlushTimeout, rma.ErrRefused)
	case cfg.FlushTimeout > 0:
		return cfg.FlushTimeout, nil
	case !set || text == "":
		return time.Minute, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("mpi: %s is %q, want a positive number with its unit, as in 90s, 5m or 1h: %w", timeoutVariable, text, rma.ErrRefused)
	}
	return d, nil
}

// watch starts the watchdog, which ends the process when one call has been inside MPI for the
// whole time-out. An operation towards a dead rank returns no error from MPI: it hangs.
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
			call := C.shim_current_call()
			if call.since_ns == 0 || int64(C.shim_now())-int64(call.since_ns) < int64(limit) {
				continue
			}
			again := C.shim_current_call()
			if again.since_ns != call.since_ns {
				continue
			}
			fmt.Fprintln(os.Stderr, hung(int(call.target), int(call.window), limit))
			endJob()
		}
	}()
}

// endJob ends the job by MPI_Abort, while another thread hangs inside MPI. Where MPI_Abort
// hangs too, it ends this process after 2 s.
func endJob() {
	time.Sleep(flushStderrFor)
	go C.shim_abort(hungStatus)
	time.Sleep(2 * time.Second)
	os.Exit(hungStatus)
}

func unwatch() {
	if stopWatch != nil {
		close(stopWatch)
		stopWatch = nil
	}
}

// hung is the watchdog's message on a call that has not returned.
func hung(target, window int, limit time.Duration) string {
	names.Lock()
	w, ok := names.of[window]
	names.Unlock()
	if !ok {
		w.label = rankName
	}
	return fmt.Sprintf("rmalock: on %s: an operation on window %q towards %s has not returned from %s for %v: the rank is dead, cannot be reached, or makes no MPI calls and has no progress helper. The process ends, and with it the job. RMALOCK_FLUSH_TIMEOUT sets the time.",
		host(), w.name, w.label(target), process.library, limit)
}
