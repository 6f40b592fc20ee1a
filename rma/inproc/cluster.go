package inproc

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// ErrFull is wrapped when a node of a Cluster has no slot for another client.
var ErrFull = errors.New("no free slot for a client")

// A Cluster is the memory of a job whose clients come and go. A client's rank is a slot,
// which another client takes over when it has left or died: rma.Generation tells the clients
// of a slot apart.
//
// A window belongs to the Cluster: the first client to allocate it creates it, and a later
// one that passes the same Spec attaches to it, by its name. Its words stay as they are when
// clients leave, those of a slot too. There are no collective calls but Allocate, which
// waits for no other client, and no barrier in Window.Free.
type Cluster struct {
	g *ranks

	mu         sync.Mutex
	windows    map[string]*attached
	taken      []bool // by slot
	generation []int  // by slot: of the client that has it, or had it last
}

// attached is a window of a Cluster.
type attached struct {
	fingerprint int64
	m           *nearmem.Memory
}

// Open makes a Cluster with a slot for each of the job's ranks.
func (j Job) Open() (*Cluster, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	g := j.ranks()
	n := len(g.where)
	k := &Cluster{g: g, windows: map[string]*attached{}, taken: make([]bool, n), generation: make([]int, n)}
	for i := range k.generation {
		k.generation[i] = -1
	}
	return k, nil
}

// Join makes a client in the lowest free slot of a node.
func (k *Cluster) Join(node int) (*Client, error) {
	if node < 0 || node >= len(k.g.nodes) {
		return nil, fmt.Errorf("inproc: a client joins node %d of nodes 0 to %d: %w", node, len(k.g.nodes)-1, rma.ErrRank)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, slot := range k.g.nodes[node].Ranks {
		if !k.taken[slot] {
			k.taken[slot] = true
			k.generation[slot]++
			return &Client{k: k, slot: slot, generation: k.generation[slot]}, nil
		}
	}
	return nil, fmt.Errorf("inproc: node %d has clients in all of its %d slots: %w", node, len(k.g.nodes[node].Ranks), ErrFull)
}

// A Client is one goroutine's place in a Cluster: a Comm without collective calls.
type Client struct {
	k          *Cluster
	slot       int
	generation int
}

var _ rma.Comm = (*Client)(nil)

// Leave frees the client's slot. Whoever knows that a client is dead may call it in its
// place. The client's windows must not be used any more: another client may have the slot.
func (c *Client) Leave() {
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	if c.k.generation[c.slot] == c.generation {
		c.k.taken[c.slot] = false
	}
}

// Generation is the number of clients that had the slot before; for rma.Generation.
func (c *Client) Generation() int { return c.generation }

// Rank is the client's slot.
func (c *Client) Rank() int { return c.slot }

// Size is the number of slots.
func (c *Client) Size() int { return len(c.k.g.where) }

// Node has the slots of the client's node.
func (c *Client) Node() rma.Node { return c.k.g.nodes[c.k.g.where[c.slot]] }

// MemoryNodes is of rma.Comm.
func (c *Client) MemoryNodes() int { return c.k.g.world.memoryNodes }

// Now is of rma.Comm.
func (c *Client) Now() int64 { return c.k.g.world.now() }

// Sleep is of rma.Comm.
func (c *Client) Sleep(ns int64) { time.Sleep(time.Duration(ns)) }

// Describe is of rma.Comm.
func (c *Client) Describe() string { return c.k.g.describe() + ", clients come and go" }

// Allocate creates the window, or attaches to it.
func (c *Client) Allocate(spec rma.Spec) (*rma.Window, error) {
	if err := rma.Validate(c, spec); err != nil {
		return nil, err
	}
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	w := c.k.windows[spec.Name]
	switch {
	case w == nil:
		m, err := c.k.g.memory(&spec)
		if err != nil {
			return nil, err
		}
		w = &attached{fingerprint: spec.Fingerprint(), m: m}
		c.k.windows[spec.Name] = w
	case w.fingerprint != spec.Fingerprint():
		return nil, fmt.Errorf("inproc: window %q exists, and the client describes it differently; pass the Spec that it was created with: %w",
			spec.Name, rma.ErrMismatch)
	}
	return c.k.g.window(c, w.m, spec, func() error { return nil }), nil
}

// Barrier is refused: it wraps errors.ErrUnsupported.
func (c *Client) Barrier() error { return c.refuse("Barrier") }

// Allgather is refused: it wraps errors.ErrUnsupported.
func (c *Client) Allgather([]int64) ([]int64, error) { return nil, c.refuse("Allgather") }

// Split is refused: it wraps errors.ErrUnsupported.
func (c *Client) Split(int, int) (rma.Comm, error) { return nil, c.refuse("Split") }

func (c *Client) refuse(call string) error {
	return fmt.Errorf("inproc: %s waits for all ranks, and the clients of a Cluster come and go; start the ranks together (Job.Run): %w",
		call, errors.ErrUnsupported)
}
