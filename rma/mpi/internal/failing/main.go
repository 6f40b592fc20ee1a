// Command failing is a job in which one rank fails while the others wait for it.
package main

import (
	"errors"
	"os"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
)

func main() {
	err := mpi.Run(func(c rma.Comm) error {
		w, err := c.Allocate(rma.DataSpec("never", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return errors.New("the disk is on fire")
		}
		_, err = w.Await(0, 0, rma.Equal(1))
		return err
	})
	if err != nil {
		os.Exit(1)
	}
}
