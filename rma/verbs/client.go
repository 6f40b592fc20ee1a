//go:build cgo && verbs

package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// A Process is this process's connection to memory nodes whose clients come and go.
type Process struct {
	cfg  Config
	n    *node
	life *life
}

// Dial connects to the memory nodes.
func (cfg Config) Dial() (*Process, error) {
	if len(cfg.MemoryNodes) == 0 {
		return nil, fmt.Errorf("verbs: a client needs a memory node, and none is given: %w", rma.ErrRefused)
	}
	p := &Process{cfg: cfg, life: newLife()}
	var err error
	if p.n, err = openNode(&cfg, nil); err != nil {
		return nil, err
	}
	if err := p.n.probe(); err != nil {
		return nil, errors.Join(err, p.n.close())
	}
	return p, nil
}

// Close ends the connection; no client of it may be in a call. The windows stay.
func (p *Process) Close() error {
	p.life.fail(errors.New("the process has closed its connection"))
	return p.n.close()
}

// Join makes a client, in a free slot of the first memory node; ErrFull says that there is none. The
// slot is free again when the client leaves, or its process ends in any way.
func (p *Process) Join() (*Client, error) {
	r, err := p.n.controls[0].call(request{Call: callSlot}, controlLimit)
	if err != nil {
		return nil, err
	}
	return &Client{p: p, slot: r.Slot, slots: r.Slots, generation: r.Generation}, nil
}

// A Client is one goroutine's place among clients that come and go: a Comm without collective
// calls, whose rank is its slot.
type Client struct {
	p                       *Process
	slot, slots, generation int
}

var _ rma.Comm = (*Client)(nil)

// Leave frees the client's slot. Its windows must not be used any more.
func (c *Client) Leave() error {
	_, err := c.p.n.controls[0].call(request{Call: callLeave, Index: c.slot, Generation: c.generation}, controlLimit)
	return err
}

// Generation is the number of clients that had the slot before; for rma.Generation.
func (c *Client) Generation() int { return c.generation }

// Rank is the client's slot.
func (c *Client) Rank() int { return c.slot }

// Size is the number of slots.
func (c *Client) Size() int { return c.slots }

// Node has the client alone: no CPU but those of memory nodes has words of clients.
func (c *Client) Node() rma.Node {
	return rma.Node{Index: c.slot, Count: c.slots, Ranks: []int{c.slot}}
}

// MemoryNodes is of rma.Comm.
func (c *Client) MemoryNodes() int { return len(c.p.n.controls) }

// Now is of rma.Comm.
func (c *Client) Now() int64 { return monotonic() }

// Sleep is of rma.Comm.
func (c *Client) Sleep(ns int64) { time.Sleep(time.Duration(ns)) }

// Describe is of rma.Comm.
func (c *Client) Describe() string { return "verbs, " + c.p.n.nic.text + ", clients come and go" }

// Allocate creates a window, or attaches to it by its name and Config.Job. It stays until the memory
// nodes end.
//
// In a window of ranks each slot has words. They lie on the memory nodes, slot i at memory node i
// modulo their number. So what a client has written is there after its death, and in the slot's
// next generation. All clients reach them through the device, a client its own too.
func (c *Client) Allocate(spec rma.Spec) (*rma.Window, error) {
	if err := rma.Validate(c, spec); err != nil {
		return nil, err
	}
	n, parts := c.p.n, 1 // of the window at each memory node
	if spec.Hosts != rma.MemoryNodes {
		parts = (c.slots + len(n.controls) - 1) / len(n.controls)
	}
	places, err := n.create("client:"+c.p.cfg.Job+":"+spec.Name, &spec, parts, true)
	if err != nil {
		return nil, err
	}
	hosts := n.memoryHosts(places)
	if spec.Hosts != rma.MemoryNodes {
		hosts = slotHosts(hosts, c.slots, spec.Words())
	}
	t, err := newTransport(n, c.p.life, hosts)
	if err != nil {
		return nil, err
	}
	t.now, t.free = c.Now, func() error { return nil }
	w := rma.Config{Comm: c, Spec: spec, Caps: rma.Caps{Transport: c.Describe(), FarRanks: true, CPUReads: true}, Buffer: t.buffer}
	if w.Oversubscribed = runtime.GOMAXPROCS(0) == 1; w.Oversubscribed {
		t.polls = pollsCrowded
	}
	w.T = swaps{rma.Emulate(t, w.Caps)}
	return rma.New(w), nil
}

// swaps has a client's Near words swapped as Far ones are. The CPU does it elsewhere, and it does not
// reach them here.
type swaps struct{ rma.Transport }

func (s swaps) Issue(o rma.Operation) {
	if o.Class == rma.Near && o.Op == rma.Replace && (o.Kind == rma.KindFetchAndOp || o.Kind == rma.KindAccumulate) {
		o.Class = rma.Far
	}
	s.Transport.Issue(o)
}

// slotHosts are the hosts of a window of slots, whose words lie one after the other at each of
// some memory nodes.
func slotHosts(at []host, slots, words int) []host {
	hosts := make([]host, slots)
	for i := range hosts {
		hosts[i] = at[i%len(at)]
		hosts[i].place.Address += uint64(i/len(at)*words) * 8
	}
	return hosts
}

// Barrier is refused: it wraps errors.ErrUnsupported.
func (c *Client) Barrier() error { return c.refuse("Barrier") }

// Allgather is refused: it wraps errors.ErrUnsupported.
func (c *Client) Allgather([]int64) ([]int64, error) { return nil, c.refuse("Allgather") }

// Split is refused: it wraps errors.ErrUnsupported.
func (c *Client) Split(int, int) (rma.Comm, error) { return nil, c.refuse("Split") }

func (c *Client) refuse(call string) error {
	return fmt.Errorf("verbs: %s waits for all ranks, and clients come and go; start the ranks together (Config.Run): %w", call, errors.ErrUnsupported)
}
