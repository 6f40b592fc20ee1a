package art

import (
	"sync"

	"github.com/rmalock/rmalock/remote"
)

// A Cache keeps copies of inner nodes, which may be old. A client reads a node again where its copy
// leads nowhere. A leaf shows by its ID that it is the one that the copy leads to. The clients of a
// process may share one. It takes a number of bytes.
type Cache struct {
	mu     sync.Mutex
	places []place // in sets of ways
	bytes  int
	most   int
	hand   int
}

// A place has a copy, or none.
type place struct {
	node
	used bool // since the hand was here
}

const (
	ways       = 4
	placeBytes = 128 // of a place itself
)

// NewCache makes a Cache of so many bytes, at least 8 KB.
func NewCache(bytes int) *Cache {
	bytes = max(bytes, 8<<10) // room for a node of all symbols
	sets := bytes / (4 * placeBytes) / ways
	return &Cache{places: make([]place, sets*ways), bytes: sets * ways * placeBytes, most: bytes}
}

// find is the copy of a node, or nil.
func (c *Cache) find(ref remote.Ref) *place {
	set := c.set(ref)
	for i := range set {
		if p := &set[i]; p.ref == ref && p.slots != nil {
			return p
		}
	}
	return nil
}

func (c *Cache) set(ref remote.Ref) []place {
	x := uint64(ref) * 0x9E3779B97F4A7C15 >> 20 % uint64(len(c.places)/ways)
	return c.places[x*ways : (x+1)*ways]
}

// step looks for a key's slot in the copy of a node, and reports whether there is one.
func (c *Cache) step(ref remote.Ref, key []byte) (step, [extents]remote.Ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(ref)
	if p == nil {
		return step{}, [extents]remote.Ref{}, false
	}
	p.used = true
	return p.node.step(key), p.extent, true
}

// extents are those of a copy.
func (c *Cache) extents(ref remote.Ref) [extents]remote.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.find(ref); p != nil {
		return p.extent
	}
	return [extents]remote.Ref{}
}

// put keeps a copy. The leaves that it still has keep their IDs.
func (c *Cache) put(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(n.ref)
	if p == nil {
		set := c.set(n.ref)
		p = &set[0]
		for i := range set {
			if q := &set[i]; q.slots == nil || p.used && !q.used {
				p = q
			}
			if p.slots == nil {
				break
			}
		}
		for i := range set {
			set[i].used = false
		}
		p.ids = p.ids[:0]
	}
	c.bytes -= 16 * cap(p.slots)
	old := len(p.ids)
	if cap(p.slots) < len(n.slots) || cap(p.slots) > 2*len(n.slots) {
		slots, ids := p.slots, p.ids
		p.slots, p.ids = make([]int64, len(n.slots)), make([]int64, len(n.slots))
		copy(p.slots, slots[:min(old, len(slots))])
		copy(p.ids, ids)
	} else {
		p.slots, p.ids = p.slots[:len(n.slots)], p.ids[:len(n.slots)]
	}
	for i, word := range n.slots {
		if i >= old || p.slots[i] != word {
			p.ids[i] = 0
		}
		p.slots[i] = word
	}
	p.ref, p.head, p.extent, p.used = n.ref, n.head, n.extent, true
	c.bytes += 16 * cap(p.slots)
	for c.bytes > c.most {
		c.evict(p)
	}
}

// evict takes the next copy out that was not used since the hand was there last.
func (c *Cache) evict(but *place) {
	for {
		p := &c.places[c.hand]
		c.hand = (c.hand + 1) % len(c.places)
		if p.slots == nil || p == but {
			continue
		}
		if !p.used {
			c.bytes -= 16 * cap(p.slots)
			*p = place{}
			return
		}
		p.used = false
	}
}

// note puts the word of a slot into a copy, as it was found.
func (c *Cache) note(ref remote.Ref, i int, word int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.find(ref); p != nil && i < len(p.slots) && p.slots[i] != word {
		p.slots[i], p.ids[i] = word, 0
	}
}

// learn keeps the ID of a leaf that was found at a slot.
func (c *Cache) learn(ref remote.Ref, i int, word, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.find(ref); p != nil && i < len(p.slots) && p.slots[i] == word {
		p.ids[i] = id
	}
}
