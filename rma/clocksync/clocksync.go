// Package clocksync gives the ranks of several nodes one time, with a bound on its error.
//
// Ranks of a node have one clock already ([rma.Comm.Now]). One rank of each node asks rank
// 0 for the time, some times, by two words of a window, and keeps the answer with the
// shortest round trip. The answer was read within that trip, so the error is at most half of
// it. It grows with the drift of the clocks, for which [Drift] is allowed.
package clocksync

import (
	"os"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// Drift bounds how much two clocks drift apart, in parts per million: crystals of computers
// are within 50 of true time.
const Drift = 100

// trips is the number of questions of a node.
const trips = 16

// A Clock is the time of rank 0, as its rank reads it.
type Clock struct {
	c      rma.Comm
	offset int64 // what Now adds to the rank's clock
	bound  int64 // of the error when the clocks were compared
	at     int64 // the rank's clock then
	exact  bool  // the rank reads rank 0's clock itself
}

// Sync compares the clocks of the nodes of c. Collective. It takes 16 round trips for each
// node beyond the first, one node after the other.
func Sync(c rma.Comm) (*Clock, error) { return syncAs(c, process) }

// syncAs is Sync by a rank of a process.
func syncAs(c rma.Comm, process int64) (*Clock, error) {
	leader := int64(-1) // of the node
	if n := c.Node(); n.Ranks[0] == c.Rank() {
		leader = int64(n.Index)
	}
	all, err := c.Allgather([]int64{process, leader})
	if err != nil {
		return nil, err
	}
	k := &Clock{c: c, at: c.Now(), exact: c.Node().Index == 0}
	same := true
	leaders := make([]int, c.Node().Count)
	for r := range c.Size() {
		same = same && all[2*r] == all[0]
		if node := all[2*r+1]; node >= 0 {
			leaders[node] = r
		}
	}
	if k.exact = k.exact || same; same || len(leaders) == 1 {
		return k, nil
	}
	if err := k.ask(leaders); err != nil {
		return nil, err
	}
	told, err := c.Allgather([]int64{k.offset, k.bound, k.at})
	if err != nil {
		return nil, err
	}
	mine := told[3*c.Node().Ranks[0]:]
	k.offset, k.bound, k.at = mine[0], mine[1], mine[2]
	return k, nil
}

// process names this process among those of a job, on whatever hosts.
var process = time.Now().UnixNano() ^ int64(os.Getpid())<<32

// Now is the time of rank 0, in nanoseconds.
func (k *Clock) Now() int64 { return k.c.Now() + k.offset }

// Offset is what Now adds to the rank's own clock, in nanoseconds.
func (k *Clock) Offset() int64 { return k.offset }

// Bound is the most by which Now differs from rank 0's clock at this moment, in nanoseconds.
// Two ranks differ by at most the sum of their bounds.
func (k *Clock) Bound() int64 {
	if k.exact {
		return 0
	}
	return k.bound + (k.c.Now()-k.at)*Drift/1_000_000
}
