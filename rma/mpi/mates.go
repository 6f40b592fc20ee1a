//go:build cgo

package mpi

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// lifeCheck is the time between two looks, of a rank that waits, whether its node-mates
// live. A look costs some 10 us for each of them.
const lifeCheck = time.Second

// learnMates learns the process ids of the node-mates. Collective over the node.
func (c *comm) learnMates() error {
	ids, err := c.gather([]int64{int64(os.Getpid())}, true)
	if err != nil {
		return err
	}
	pids := make([]int, len(ids))
	for i, id := range ids {
		if pids[i] = int(id); gone(pids[i]) {
			return nil // in another container, where its number says nothing
		}
	}
	c.pids = pids
	return nil
}

// matesLive reports a node-mate that died: who waits for it would wait for ever. what
// says who asks.
func (c *comm) matesLive(what string) error {
	for m, pid := range c.pids {
		if m != c.mate && gone(pid) {
			return fmt.Errorf("mpi: %s: rank %d (process %d on %s) is gone: %w", what, c.node.Ranks[m], pid, host(), rma.ErrPeer)
		}
	}
	return nil
}

// gone reports whether a process has ended, waited for or not.
func gone(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	for i := len(stat) - 1; i > 0; i-- { // the name in parentheses may hold anything
		if stat[i] == ')' {
			return i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
		}
	}
	return false
}
