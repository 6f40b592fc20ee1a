//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// bid is what a rank brings to an Allocate.
type bid struct {
	Fingerprint int64
	Place       place   // of the rank's words
	Places      []place // of a window of memory nodes, from rank 0
	Error       string
	Class       string
}

// segment is the memory of a window at a node.
type segment struct {
	m       *nearmem.Memory
	region  *mr
	release func() error
	err     error
}

func (s *segment) close() error {
	if s.region == nil {
		return nil
	}
	return errors.Join(s.region.close(), s.release())
}

// newSegment makes the words of the ranks of a node, registered if the device is to reach them.
func newSegment(n *node, spec *rma.Spec, mates []int, size int) *segment {
	order := make([]int32, size)
	for i, r := range mates {
		order[r] = int32(i)
	}
	if n == nil {
		return &segment{m: nearmem.New(spec.Words(), len(mates), order)}
	}
	memory, _, release, err := pages(nearmem.Bytes(spec.Words(), len(mates)))
	if err != nil {
		return &segment{err: err}
	}
	region, err := n.nic.registered(memory, true)
	if err != nil {
		return &segment{err: errors.Join(err, release())}
	}
	return &segment{m: nearmem.Place(unsafe.Pointer(unsafe.SliceData(memory)), spec.Words(), order), region: region, release: release}
}

// Allocate opens a window.
func (c *comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	if err := rma.Validate(c, spec); err != nil {
		return nil, err
	}
	if spec.Hosts == rma.MemoryNodes {
		return c.onMemoryNodes(spec)
	}
	if err := rma.CheckMemory(spec, len(c.g.local)); err != nil {
		return nil, err
	}
	far := len(c.g.nodes) > 1
	call, err := c.g.meet(c.rank, encode(bid{Fingerprint: spec.Fingerprint()}), func(brought map[int][]byte) any {
		return c.g.segments(&spec, brought, far)
	})
	if err != nil {
		return nil, err
	}
	segments := call.shared.(map[int32]*segment)
	mine := segments[c.g.where[c.rank]]
	first := c.Node().Ranks[0] == c.rank
	bids, err := agreed(c.rank, spec.Name, spec.Fingerprint(), call.all)
	if err != nil {
		if first && mine.err == nil {
			_ = mine.close()
		}
		return nil, err
	}
	free := func() error {
		err := c.Barrier()
		if first {
			err = errors.Join(err, mine.close())
		}
		return err
	}
	if !far {
		return c.oneNode(spec, mine, free), nil
	}
	hosts := make([]host, len(bids))
	for r := range bids {
		pair := len(c.g.job.cfg.MemoryNodes) + c.g.job.nodeOf(c.g.world[r])
		hosts[r] = host{c.node().targets[pair], C.int32_t(pair), bids[r].Place}
	}
	return c.window(spec, mine, hosts, free)
}

// segments makes the memory of this process's nodes, and tells where their ranks' words are.
func (g *ranks) segments(spec *rma.Spec, brought map[int][]byte, far bool) map[int32]*segment {
	out := map[int32]*segment{}
	for _, r := range g.local {
		at := g.where[r]
		s := out[at]
		if s == nil {
			var n *node
			if far {
				n = g.job.localNode(g.world[r])
			}
			s = newSegment(n, spec, g.nodes[at].Ranks, len(g.world))
			out[at] = s
		}
		var b bid
		_ = json.Unmarshal(brought[r], &b)
		switch {
		case s.err != nil:
			b.Error, b.Class = explain(s.err)
		case far:
			b.Place = place{uint64(uintptr(s.m.Part(r))), uint32(s.region.m.rkey)}
		}
		brought[r] = encode(b)
	}
	return out
}

func encode(b bid) []byte {
	out, err := json.Marshal(b)
	if err != nil {
		panic("verbs: " + err.Error()) // it has no field that cannot be encoded
	}
	return out
}

// agreed decodes what ranks brought to an Allocate: all must describe the same window.
func agreed(rank int, name string, fingerprint int64, all [][]byte) ([]bid, error) {
	bids := make([]bid, len(all))
	for r, b := range all {
		if err := json.Unmarshal(b, &bids[r]); err != nil {
			return nil, fmt.Errorf("verbs: window %q: rank %d is in another collective call: %w", name, r, rma.ErrMismatch)
		}
		if bids[r].Fingerprint != fingerprint {
			return nil, fmt.Errorf("verbs: window %q: rank %d and rank %d describe it differently; all ranks must pass the same Spec: %w", name, rank, r, rma.ErrMismatch)
		}
	}
	for r := range bids {
		if b := &bids[r]; b.Error != "" {
			failed := reply{Error: b.Error, Class: b.Class}
			return nil, fmt.Errorf("verbs: window %q at rank %d: %w", name, r, failed.err("of the job"))
		}
	}
	return bids, nil
}

// oneNode is a window that the device does not reach: its ranks are all of this process.
func (c *comm) oneNode(spec rma.Spec, s *segment, free func() error) *rma.Window {
	return rma.New(rma.Config{
		Comm: c, Spec: spec, Base: s.m.Part(c.Node().Ranks[0]), Stride: s.m.Stride(),
		T:              newNear(s.m, c.g.job.life, c.rank, free),
		Caps:           rma.Caps{Transport: c.Describe(), AtomicWithCPU: true, NativeSwap: true, AtomicPut: true, CPUReads: true},
		Oversubscribed: c.crowded(),
	})
}

func (c *comm) crowded() bool { return len(c.Node().Ranks) > runtime.GOMAXPROCS(0) }

// window is a rank's handle on a window that the device reaches.
func (c *comm) window(spec rma.Spec, s *segment, hosts []host, free func() error) (*rma.Window, error) {
	t, err := newTransport(c.node(), c.g.job.life, hosts)
	if err != nil {
		return nil, err
	}
	t.rank, t.now, t.free = c.rank, c.Now, free
	if c.crowded() {
		t.polls = pollsCrowded
	}
	w := rma.Config{
		Comm: c, Spec: spec, Oversubscribed: c.crowded(), Buffer: t.buffer,
		Caps: rma.Caps{Transport: c.Describe(), FarRanks: true, CPUReads: true},
	}
	if s != nil {
		t.near, t.mates = s.m, c.Node()
		w.Base, w.Stride = s.m.Part(t.mates.Ranks[0]), s.m.Stride()
	}
	w.T = rma.Emulate(t, w.Caps)
	return rma.New(w), nil
}

// onMemoryNodes opens a window of memory nodes: rank 0 creates it and tells the others where.
func (c *comm) onMemoryNodes(spec rma.Spec) (*rma.Window, error) {
	call, err := c.g.meet(c.rank, encode(bid{Fingerprint: spec.Fingerprint()}), func(map[int][]byte) any { return c.g.calls })
	if err != nil {
		return nil, err
	}
	if _, err := agreed(c.rank, spec.Name, spec.Fingerprint(), call.all); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s:%s:%v:%s", c.g.job.id, c.g.name, call.shared, spec.Name)
	mine := bid{Fingerprint: spec.Fingerprint()}
	if c.rank == 0 {
		if mine.Places, err = c.node().create(name, &spec, 1, false); err != nil {
			mine.Error, mine.Class = explain(err)
		}
	}
	call, err = c.g.meet(c.rank, encode(mine), nil)
	if err != nil {
		return nil, err
	}
	bids, err := agreed(c.rank, spec.Name, spec.Fingerprint(), call.all)
	if err != nil {
		return nil, err
	}
	return c.window(spec, nil, c.node().memoryHosts(bids[0].Places), func() error {
		err := c.Barrier()
		if c.rank == 0 {
			err = errors.Join(err, c.node().drop(name))
		}
		return err
	})
}

const windowLimit = 60 * time.Second // to zero and register a window

// create makes a window on all memory nodes, with so many times the words of its Spec at each.
func (n *node) create(name string, spec *rma.Spec, parts int, keep bool) ([]place, error) {
	var places []place
	for _, k := range n.controls {
		r, err := k.call(request{Call: callWindow, Name: name, Fingerprint: spec.Fingerprint(), Words: parts * spec.Words(), Keep: keep}, windowLimit)
		if err != nil {
			return nil, errors.Join(err, n.dropFrom(n.controls[:len(places)], name, keep))
		}
		places = append(places, r.Place)
	}
	return places, nil
}

func (n *node) dropFrom(some []*control, name string, keep bool) error {
	if keep {
		return nil // others may have it open
	}
	var errs []error
	for _, k := range some {
		_, err := k.call(request{Call: callFree, Name: name}, controlLimit)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// drop ends a window on all memory nodes.
func (n *node) drop(name string) error { return n.dropFrom(n.controls, name, false) }

// memoryHosts are the hosts of a window of memory nodes.
func (n *node) memoryHosts(places []place) []host {
	hosts := make([]host, len(places))
	for i := range places {
		hosts[i] = host{n.targets[i], C.int32_t(i), places[i]}
	}
	return hosts
}
