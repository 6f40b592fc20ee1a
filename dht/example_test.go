package dht_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Four ranks count words' hashes together, with atomics alone.
func Example() {
	err := inproc.Run(4, func(c rma.Comm) error {
		slots, heap := dht.Fit(100, c.Size())
		counts, err := dht.New(c, dht.Config{Slots: slots, Heap: heap})
		if err != nil {
			return err
		}
		for key := range int64(100) {
			if _, err := counts.Add(key*key%17, 1); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			n, _, err := counts.Lookup(13)
			if err != nil {
				return err
			}
			fmt.Println("13 was counted", n, "times")
		}
		return errors.Join(c.Barrier(), counts.Free())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 13 was counted 48 times
}

// One volume, guarded by a queue lock at its rank.
func ExampleConfig_locks() {
	err := inproc.Run(3, func(c rma.Comm) error {
		locks, err := dmcs.New(c, dmcs.Config{Locks: 1})
		if err != nil {
			return err
		}
		names, err := dht.New(c, dht.Config{Volumes: 1, Slots: 64, Heap: 32, Locks: locks})
		if err != nil {
			return err
		}
		if _, err := names.Insert(42, 7); err != nil { // one of the three creates it
			return err
		}
		value, ok, err := names.Lookup(42)
		if err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(value, ok)
		}
		return errors.Join(names.Free(), locks.Free())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 7 true
}
