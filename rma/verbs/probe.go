//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"crypto/rand"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/rma"
)

// probe learns the byte order in which each memory node answers atomics, and that its atomics
// add as the CPU does, on a word that the memory node offers for it. Nodes of the job are taken to
// be as this one itself.
func (n *node) probe() error {
	for i, k := range n.controls {
		name := "probe:" + rand.Text()
		r, err := k.call(request{Call: callWindow, Name: name, Words: 1}, controlLimit)
		if err != nil {
			return err
		}
		t := n.targets[i]
		if t.swap, err = n.order(t, r.Place); err != nil {
			return err
		}
		if _, err := k.call(request{Call: callFree, Name: name}, controlLimit); err != nil {
			return err
		}
	}
	if n.self == nil {
		return nil
	}
	swap, err := n.probeItself()
	for _, t := range n.targets[len(n.controls):] {
		t.swap = swap
	}
	return err
}

func (n *node) probeItself() (bool, error) {
	memory, _, release, err := pages(8)
	if err != nil {
		return false, err
	}
	defer func() { _ = release() }()
	r, err := n.nic.registered(memory, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.close() }()
	return n.order(n.self, r.place())
}

const pattern = 0x0102030405060708

// order writes a pattern, adds 1, and looks at what the atomic answers and at the word.
func (n *node) order(t *target, at place) (swap bool, err error) {
	x, err := newTransport(n, newLife(), []host{{t, 0, at}})
	if err != nil {
		return false, err
	}
	defer n.giveHandle(x.piece)
	var r rma.Results
	x.Issue(rma.Operation{Kind: rma.KindPut, Class: rma.Plain, Operand: pattern})
	x.Issue(rma.Operation{Kind: rma.KindFetchAndOp, Op: rma.Sum, Operand: 1, Slot: 1})
	x.Issue(rma.Operation{Kind: rma.KindGet, Slot: 2})
	if _, err := x.Flush(0, &r); err != nil {
		return false, err
	}
	switch {
	case r[2] != pattern+1:
	case r[1] == pattern:
		return false, nil
	case bits.ReverseBytes64(uint64(r[1])) == pattern:
		return true, nil
	}
	return false, fmt.Errorf("verbs: %s: a fetch-and-add of 1 on %#x answers %#x and leaves %#x: this card's atomics cannot be used: %w",
		t.name, pattern, r[1], r[2], rma.ErrRefused)
}

// ByteOrder is the byte order in which the first target of a rank's process answers atomics:
// native, or swapped, which the package hides; "" where the device is not in use.
func ByteOrder(c rma.Comm) string {
	k, ok := c.(*comm)
	if !ok || k.node() == nil || len(k.node().targets) == 0 {
		return ""
	}
	if k.node().targets[0].swap {
		return "swapped"
	}
	return "native"
}
