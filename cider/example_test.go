package cider_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Clients update one key. Whatever is combined, each finds a value that is no older than its own.
func Example() {
	err := inproc.Job{Nodes: 4, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		s, err := cider.New(c, cider.Config{Keys: 100, Most: 16})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if _, err := s.Insert(7, []byte("first")); err != nil {
				return err
			}
		}
		if err := errors.Join(s.Rest(), c.Barrier()); err != nil { // who waits lets others reuse memory
			return err
		}
		for range 100 {
			if there, err := s.Update(7, []byte("later")); err != nil || !there {
				return fmt.Errorf("update: %v, %w", there, err)
			}
		}
		if err := errors.Join(s.Rest(), c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			value, there, err := s.Search(7, nil)
			fmt.Println(string(value), there, err)
		}
		return s.Rest()
	})
	fmt.Println(err)
	// Output:
	// later true <nil>
	// <nil>
}
