package observe_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/observe"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Four ranks take a lock a hundred times each, and the process counts.
func ExampleCount() {
	err := inproc.Run(4, func(c rma.Comm) error {
		table, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		locks := observe.Count(c, table, "index")
		for range 100 {
			err := errors.Join(locks.Lock(context.Background(), 0, lock.Exclusive), locks.Unlock(0, lock.Exclusive))
			if err != nil {
				return err
			}
		}
		return locks.Free()
	})
	for _, s := range observe.Snapshots() {
		if s.Name == "index" {
			fmt.Println(s.Name, s.Exclusive.Acquires, s.Exclusive.Errors, err)
		}
	}
	// Output:
	// index 400 0 <nil>
}
