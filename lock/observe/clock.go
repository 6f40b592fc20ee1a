package observe

import (
	"os"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// process names this process among those of a job, on whatever hosts.
var process = time.Now().UnixNano() ^ int64(os.Getpid())<<32

// trips is the number of messages to and fro between rank 0 and a node.
const trips = 16

// align finds what the caller has to add to its clock to have rank 0's. Collective.
func align(c rma.Comm) (int64, error) {
	wall := toWall(c)
	leader := int64(-1) // of the node
	if n := c.Node(); n.Ranks[0] == c.Rank() {
		leader = int64(n.Index)
	}
	all, err := c.Allgather([]int64{process, wall, leader})
	if err != nil {
		return 0, err
	}
	same := true
	leaders := make([]int, c.Node().Count)
	for r := range c.Size() {
		same = same && all[3*r] == all[0]
		if node := all[3*r+2]; node >= 0 {
			leaders[node] = r
		}
	}
	if same {
		return 0, nil
	}
	off := int64(0) // of the node's leader
	if len(leaders) > 1 {
		if off, err = exchange(c, leaders); err != nil {
			return 0, err
		}
	}
	offs, err := c.Allgather([]int64{off})
	if err != nil {
		return 0, err
	}
	mine := c.Node().Ranks[0]
	return offs[mine] + wall - all[3*mine+1], nil
}

// toWall is the difference of the wall clock and c's, of the reading that was done
// soonest.
func toWall(c rma.Comm) int64 {
	best, off := int64(1<<62), int64(0)
	for range 50 {
		a := c.Now()
		wall := time.Now().UnixNano()
		b := c.Now()
		if b-a < best {
			best, off = b-a, wall-(a+b)/2
		}
	}
	return off
}

// exchange has the leader of each node ask rank 0 for the time, one node after the
// other. It returns the caller's offset where it is a leader. Collective.
func exchange(c rma.Comm, leaders []int) (off int64, err error) {
	const question, answer = 0, 1
	w, err := c.Allocate(rma.DataSpec("clock", 2))
	if err != nil {
		return 0, err
	}
	me := c.Rank()
	if me == 0 {
		err = replies(c, w, leaders)
	} else if c.Node().Index > 0 && leaders[c.Node().Index] == me {
		var last int64
		if last, err = w.Await(me, answer, rma.NotEqual(0)); err != nil { // rank 0 has begun
			return 0, err
		}
		best := int64(1 << 62)
		for trip := range trips {
			a := c.Now()
			if err := w.PutFlush(int64(me*trips+trip), 0, question); err != nil {
				return 0, err
			}
			if last, err = w.Await(me, answer, rma.NotEqual(last)); err != nil {
				return 0, err
			}
			if b := c.Now(); b-a < best {
				best, off = b-a, last-(a+b)/2
			}
		}
	}
	if err != nil {
		return 0, err
	}
	return off, w.Free()
}

// replies is rank 0's part of exchange.
func replies(c rma.Comm, w *rma.Window, leaders []int) error {
	const question, answer = 0, 1
	last := int64(0)
	now := func() int64 { // another one each time, and not 0
		last = max(c.Now(), last+1)
		return last
	}
	for _, r := range leaders[1:] {
		if err := w.PutFlush(now(), r, answer); err != nil {
			return err
		}
		for trip := range trips {
			if _, err := w.Await(0, question, rma.Equal(int64(r*trips+trip))); err != nil {
				return err
			}
			if err := w.PutFlush(now(), r, answer); err != nil {
				return err
			}
		}
	}
	return nil
}
