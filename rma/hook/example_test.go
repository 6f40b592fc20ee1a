package hook_test

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// What a step costs in remote operations: rank 0 of two nodes adds to a counter at
// rank 1 and reads it.
func ExampleCount() {
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		var n hook.Tally
		w, err := hook.Count(c, &n).Allocate(rma.CounterSpec("hits", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.AccumulateFlush(5, 1, 0, rma.Sum); err != nil {
				return err
			}
			if _, err := w.GetFlush(1, 0); err != nil {
				return err
			}
			fmt.Printf("%d remote operations\n%v", n.Remote(), &n)
		}
		return w.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 remote operations
	//                      own     mate      far
	// Get                    0        0        1
	// Accumulate             0        0        1
	// Flush                  0        0        2
}

// Every step of rank 1 as text, without the times. Text(os.Stderr) alone shows
// them.
func ExampleTrace() {
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		if c.Rank() == 1 {
			c = hook.Trace(c, func(e hook.Event) { fmt.Println(e.String()[13:]) })
		}
		w, err := c.Allocate(rma.CounterSpec("hits", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			if _, err := w.FetchAndOpFlush(5, 0, 0, rma.Sum); err != nil {
				return err
			}
			if _, err := w.Await(0, 0, rma.AtLeast(5)); err != nil {
				return err
			}
		}
		return w.Free()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// rank 1     hits      FetchAndOp      rank 0 count        SUM 5
	// rank 1     hits      Flush           rank 0
	// rank 1     hits        result        rank 0 count        = 0
	// rank 1     hits      Await           rank 0 count        >= 5
	// rank 1     hits        woke          rank 0 count        = 5
}
