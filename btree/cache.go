package btree

import (
	"sync"

	"github.com/rmalock/rmalock/remote"
)

// A Cache keeps copies of inner nodes, which may be old: a tree looks at the fences of what it
// then finds. The clients of a process may share one.
type Cache struct {
	mu    sync.Mutex
	nodes []cached
}

type cached struct {
	ref   remote.Ref
	words node
}

// NewCache makes a Cache of so many nodes. A node has one place, which it takes from the node
// that was there.
func NewCache(nodes int) *Cache { return &Cache{nodes: make([]cached, max(nodes, 1))} }

// get copies a node and reports whether it is there.
func (c *Cache) get(ref remote.Ref, into node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.nodes[hash(ref, len(c.nodes))]
	if k.ref != ref || ref == 0 {
		return false
	}
	copy(into, k.words)
	return true
}

// put keeps a copy.
func (c *Cache) put(ref remote.Ref, n node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.nodes[hash(ref, len(c.nodes))]
	k.ref = ref
	k.words = append(k.words[:0], n...)
}

// drop forgets a node.
func (c *Cache) drop(ref remote.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := &c.nodes[hash(ref, len(c.nodes))]; k.ref == ref {
		k.ref = 0
	}
}
