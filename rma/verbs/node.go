//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// A node is what the ranks of one process share: a device, registered memory, and one queue pair
// for each target. Targets are the memory nodes, then the nodes of the job.
type node struct {
	nic      *nic
	targets  []*target
	controls []*control // by memory node
	self     *target    // the node itself; nil in a job of one node

	soft  bool         // the device is Soft-RoCE: this processor does what a card does
	waits atomic.Int32 // ranks that wait for the end of a list; counted over Soft-RoCE alone

	mu    sync.Mutex
	slabs []*stage
	free  []piece // for handles
}

// target is a peer of a node.
type target struct {
	name  string
	renew func() (pair, error) // makes the pair anew; nil where it stays broken
	lost  func() error         // why the peer is gone, or nil

	mu   sync.RWMutex // held by steps; exclusively by a renewal
	pair pair
	dead error // for good
	swap bool  // results of atomics have the other byte order
}

// stage is registered memory of this side.
type stage struct {
	memory  []byte
	region  *mr
	release func() error
}

func (n *node) newStage(bytes int) (*stage, error) {
	memory, _, release, err := pages(bytes)
	if err != nil {
		return nil, err
	}
	r, err := n.nic.registered(memory, false)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return &stage{memory, r, release}, nil
}

func (s *stage) close() error { return errors.Join(s.region.close(), s.release()) }

// piece is the memory of a handle.
type piece struct {
	h   *C.nic_handle
	key C.uint32_t
}

const slabHandles = 64

// takeHandle gives a handle its memory.
func (n *node) takeHandle() (piece, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.free) == 0 {
		const size = int(unsafe.Sizeof(C.nic_handle{}))
		s, err := n.newStage(slabHandles * size)
		if err != nil {
			return piece{}, err
		}
		n.slabs = append(n.slabs, s)
		for i := range slabHandles {
			n.free = append(n.free, piece{(*C.nic_handle)(unsafe.Pointer(&s.memory[i*size])), s.region.m.lkey})
		}
	}
	h := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	*h.h = C.nic_handle{}
	return h, nil
}

func (n *node) giveHandle(h piece) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, h)
}

// openNode opens the device and connects to the memory nodes.
func openNode(cfg *Config, event func(int)) (*node, error) {
	d, err := openNIC(cfg.Device)
	if err != nil {
		return nil, err
	}
	n := &node{nic: d, soft: d.d.way.soft != 0}
	for i, name := range cfg.MemoryNodes {
		t := &target{name: fmt.Sprintf("memory node %d (%s)", i, name)}
		k, err := dial(name, cfg.Token, cfg.Patience, event, t.breakOff)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.controls = append(n.controls, k)
		n.targets = append(n.targets, t)
		t.lost = k.lost
		t.renew = func() (pair, error) { return n.reach(k) }
		p, err := t.renew()
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		t.mu.Lock()
		t.pair = p
		t.mu.Unlock()
	}
	return n, nil
}

// reach makes a pair to a memory node.
func (n *node) reach(k *control) (pair, error) {
	p, err := n.nic.newPair()
	if err != nil {
		return pair{}, err
	}
	r, err := k.call(request{Call: callPair, Address: n.nic.address(p)}, controlLimit)
	if err == nil && r.Address == nil {
		err = fmt.Errorf("verbs: memory node %s gives no address of a queue pair: %w", k.name, rma.ErrTransport)
	}
	if err == nil {
		err = n.nic.connect(p, r.Address)
	}
	if err != nil {
		_ = p.close()
		return pair{}, err
	}
	return p, nil
}

// close gives everything back. No handle may be in use.
func (n *node) close() error {
	var errs []error
	for _, k := range n.controls {
		k.close() // first: the end of one breaks a pair
	}
	for _, t := range n.targets {
		if t.pair.p != nil {
			_ = t.pair.close()
		}
	}
	for _, s := range n.slabs {
		errs = append(errs, s.close())
	}
	return errors.Join(append(errs, n.nic.close())...)
}

// lock takes the target for a step, with a pair that works as far as is known.
func (t *target) lock() error {
	t.mu.RLock()
	if t.dead == nil && !t.pair.broken() {
		return nil
	}
	t.mu.RUnlock()
	if err := t.mend(); err != nil {
		return err
	}
	t.mu.RLock()
	return nil
}

// mend makes a broken pair anew, once all steps of it are over.
func (t *target) mend() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead != nil {
		return t.dead
	}
	if !t.pair.broken() {
		return nil
	}
	if t.renew == nil {
		if t.dead = t.lost(); t.dead != nil {
			t.dead = fmt.Errorf("verbs: %s is lost: %w", t.name, t.dead)
		} else {
			t.dead = fmt.Errorf("verbs: %s is lost since an error on the connection to it: %w", t.name, rma.ErrPeer)
		}
		return t.dead
	}
	p, err := t.renew()
	if err != nil {
		t.dead = fmt.Errorf("verbs: %s is lost: %w", t.name, err)
		if !errors.Is(err, rma.ErrPeer) {
			t.dead = fmt.Errorf("%w: %w", t.dead, rma.ErrPeer)
		}
		return t.dead
	}
	_ = t.pair.close()
	t.pair = p
	return nil
}

// breakOff ends the steps under way: the peer is gone, and no answer will come.
func (t *target) breakOff() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.pair.p != nil {
		C.nic_pair_break(t.pair.p, 0)
	}
}

// failed is the error of a step of the target, which holds it.
func (t *target) failed(status int) error {
	if status == wcFlush {
		if err := t.lost(); err != nil {
			return fmt.Errorf("verbs: %s is lost: %w", t.name, err)
		}
		if cause := int(atomic.LoadInt32((*int32)(&t.pair.p.cause))); cause != 0 {
			return fmt.Errorf("%w (the cause: %w)", statusError(t.name, status), statusError(t.name, cause))
		}
	}
	return statusError(t.name, status)
}

func (p pair) broken() bool { return atomic.LoadInt32((*int32)(&p.p.broken)) != 0 }
