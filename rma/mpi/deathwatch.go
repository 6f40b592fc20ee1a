//go:build cgo

package mpi

// #include <poll.h>
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A deathWatch says on standard error which node-mate died. Launchers end a job when a process
// dies, most often before a waiting rank looks for dead node-mates (peersLive). MPICH's launcher
// names no rank. So each rank waits for the end of the next few processes of its node.
type deathWatch struct {
	stop func() // idempotent
}

// watched is the number of node-mates that a rank watches: it bounds the lines about one death.
const watched = 4

// watchDeaths returns nil where there is no process to watch.
func (c *comm) watchDeaths() *deathWatch {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	var fds []C.struct_pollfd
	var peers []int // indices in node.Ranks
	for i := 1; i < len(c.pids) && len(peers) < watched; i++ {
		peer := (c.nodeRank + i) % len(c.pids)
		if fd, err := pidfdOpen(c.pids[peer]); err == nil {
			fds = append(fds, C.struct_pollfd{fd: C.int(fd), events: C.POLLIN})
			peers = append(peers, peer)
		}
	}
	if len(peers) == 0 {
		r.Close()
		w.Close()
		return nil
	}
	fds = append(fds, C.struct_pollfd{fd: C.int(r.Fd()), events: C.POLLIN})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		for {
			if n, err := C.poll(&fds[0], C.nfds_t(len(fds)), -1); n >= 0 || !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		stopped := fds[len(peers)].revents != 0
		for i, peer := range peers {
			if fds[i].revents != 0 && !stopped {
				c.reportDeath(peer)
			}
			syscall.Close(int(fds[i].fd))
		}
	}()
	return &deathWatch{stop: sync.OnceFunc(func() {
		w.Close()
		<-done
	})}
}

// end ends the watch.
func (d *deathWatch) end() {
	if d != nil {
		d.stop()
	}
}

// reportDeath says that a node-mate is gone, unless a signal that ends whole jobs ended it. The
// death of a memory node, with all its words, ends the job.
func (c *comm) reportDeath(peer int) {
	pid := c.pids[peer]
	status, known := waitStatus(pid)
	how := ""
	switch {
	case !known || status == 0: // not to be seen any more
	case status.Signaled() && (status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT || status.Signal() == syscall.SIGHUP):
		return
	case status.Signaled():
		how = fmt.Sprintf(": signal %d (%v)", int(status.Signal()), status.Signal())
	default:
		how = fmt.Sprintf(": exit status %d", status.ExitStatus())
	}
	rank := c.node.Ranks[peer]
	fmt.Fprintf(os.Stderr, "rmalock: %s (process %d on %s) is gone%s\n", c.name(rank), pid, host(), how)
	if c.memory != nil && c.memory.node(rank) >= 0 {
		endJob()
	}
}

// waitStatus is the status of a process that has ended and that its parent has not waited for.
func waitStatus(pid int) (status syscall.WaitStatus, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 50 || fields[0] != "Z" { // the status is the 52nd field of proc_pid_stat(5)
		return 0, false
	}
	n, err := strconv.Atoi(fields[49])
	return syscall.WaitStatus(n), err == nil
}

func pidfdOpen(pid int) (int, error) {
	const sysPidfdOpen = 434 // on all architectures, since Linux 5.3
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
