package rmatest

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Watched is a Launch on rma/inproc, of nodes times perNode ranks, that ends ranks
// which are not through in time: they get an error that wraps rma.ErrPeer from
// whatever they wait in, and the launch returns one with the stacks of all
// goroutines. One node more than is seen by the ranks watches over them.
func Watched(nodes, perNode int, limit time.Duration) Launch {
	return func(body func(rma.Comm) error) error {
		ranks := nodes * perNode
		var running sync.WaitGroup
		running.Add(ranks)
		done := make(chan struct{})
		go func() { running.Wait(); close(done) }()
		return inproc.RunNodes(nodes+1, perNode, func(c rma.Comm) error {
			watch := c.Rank() >= ranks
			color := 0
			if watch {
				color = -1
			} else {
				defer running.Done()
			}
			part, err := c.Split(color, 0)
			if err != nil || c.Rank() > ranks {
				return err
			}
			if !watch {
				return body(part)
			}
			t := time.NewTimer(limit)
			defer t.Stop()
			select {
			case <-done:
				return nil
			case <-t.C:
				stacks := make([]byte, 32<<10)
				stacks = stacks[:runtime.Stack(stacks, true)]
				return fmt.Errorf("rmatest: the ranks hang: not through after %v\n%s", limit, stacks)
			}
		})
	}
}
