package race_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/race"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Clients count words. The table grows from one segment meanwhile.
func Example() {
	err := inproc.Job{Nodes: 4, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		t, err := race.New(c, race.Config{Most: 40, Groups: 1, Initial: 1})
		if err != nil {
			return err
		}
		for i := range 50 { // each client has keys of its own
			key := fmt.Sprintf("word %d of client %d", i, c.Rank())
			if new, err := t.Insert([]byte(key), []byte("first")); err != nil || !new {
				return fmt.Errorf("insert: %v, %w", new, err)
			}
			if there, err := t.Update([]byte(key), []byte("second")); err != nil || !there {
				return fmt.Errorf("update: %v, %w", there, err)
			}
		}
		if err := errors.Join(t.Rest(), c.Barrier()); err != nil { // who waits lets others reuse memory
			return err
		}
		if c.Rank() == 0 {
			value, there, err := t.Search([]byte("word 7 of client 3"), nil)
			fmt.Println(string(value), there, err)
			there, err = t.Delete([]byte("word 50 of client 3"))
			fmt.Println(there, err)
		}
		return errors.Join(t.Rest(), c.Barrier(), t.Free())
	})
	fmt.Println(err)
	// Output:
	// second true <nil>
	// false <nil>
	// <nil>
}
