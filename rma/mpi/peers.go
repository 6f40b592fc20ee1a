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

// lifeCheck is the time after which a rank that waits looks again whether its node-mates live.
// A look costs some 10 us for each of them.
const lifeCheck = time.Second

// learnPeers learns the process ids of the node-mates. Collective over the node.
func (c *comm) learnPeers() error {
	ids, err := c.gather([]int64{int64(os.Getpid())}, true)
	if err != nil {
		return err
	}
	pids := make([]int, len(ids))
	for i, id := range ids {
		if pids[i] = int(id); exited(pids[i]) {
			return nil // in another container, where its number says nothing
		}
	}
	c.pids = pids
	return nil
}

// peersLive returns an error that names a node-mate that died, or a memory node of this host.
// what is the caller's operation.
func (c *comm) peersLive(what string) error {
	for i, pid := range c.pids {
		if i != c.nodeRank && exited(pid) {
			return gone(what, c.name(c.node.Ranks[i]), pid)
		}
	}
	return c.memory.live(what)
}

// gone is the error of a rank that waits for one that died.
func gone(what, name string, pid int) error {
	return fmt.Errorf("mpi: %s: %s (process %d on %s) is gone: %w", what, name, pid, host(), rma.ErrPeer)
}

// exited reports whether a process has ended, waited for or not.
func exited(pid int) bool {
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
