package art_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/art"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Clients on two compute nodes insert words into a tree on a memory node; one of them scans it.
func Example() {
	words := []string{"radix", "radish", "rad", "tree", "trees", "trie", "leaf", "node"}
	err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		tree, err := art.New(c, art.Config{Keys: 100, MostKey: 16})
		if err != nil {
			return err
		}
		for i := c.Rank(); i < len(words); i += c.Size() {
			if _, err := tree.Insert([]byte(words[i]), fmt.Appendf(nil, "word %d", i)); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = tree.Scan([]byte("r"), func(key, value []byte) bool {
				fmt.Printf("%s: %s\n", key, value)
				return string(key) < "tree"
			})
		}
		return errors.Join(err, c.Barrier(), tree.Free())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// rad: word 2
	// radish: word 1
	// radix: word 0
	// tree: word 3
}
