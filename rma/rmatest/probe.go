package rmatest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// A Probe is one rank's part in a check: its Comm and the first thing that it
// found wrong. Its methods note what is wrong and go on, so that all ranks come to
// the same collective calls.
type Probe struct {
	rma.Comm
	err  error // the first
	lost bool  // the transport or a peer has failed
}

// Probed runs a check on the caller's Comm and tells all ranks whether one of them
// found something wrong. Collective.
func Probed(c rma.Comm, name string, check func(p *Probe)) error {
	p := &Probe{Comm: c}
	check(p)
	if p.Lost() {
		return fmt.Errorf("%s: %w", name, p.err)
	}
	if err := rma.Agree(c, p.err); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Failf notes what is wrong.
func (p *Probe) Failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// OK notes the error of a step that must not fail.
func (p *Probe) OK(err error) {
	if err == nil {
		return
	}
	p.lost = p.lost || errors.Is(err, rma.ErrPeer) || errors.Is(err, rma.ErrTransport)
	if p.err == nil {
		p.err = err
	}
}

// Value is for calls that return a value and an error that must be nil.
func (p *Probe) Value(v int64, err error) int64 {
	p.OK(err)
	return v
}

// Equal notes values that differ.
func (p *Probe) Equal(what string, got, want int64) {
	if got != want {
		p.Failf("%s is %d, want %d", what, got, want)
	}
}

// Is notes an error that does not wrap the one that is wanted.
func (p *Probe) Is(what string, got, want error) {
	if !errors.Is(got, want) {
		p.Failf("%s: got error %q, want one that wraps %q", what, fmt.Sprint(got), want)
		p.OK(got)
	}
}

// Lost reports whether the transport or a peer has failed. Then the rank leaves the
// check, as soon as its loops come round, without collective calls.
func (p *Probe) Lost() bool { return p.lost }

// Meet is Barrier: it lets all ranks through when all have come.
func (p *Probe) Meet() {
	if !p.Lost() {
		p.OK(p.Barrier())
	}
}

// GatherAll is Allgather; the result is the caller's own, and has the right length in any
// case.
func (p *Probe) GatherAll(words []int64) []int64 {
	want := len(words) * p.Size()
	if p.Lost() {
		return make([]int64, want)
	}
	all, err := p.Allgather(words)
	p.OK(err)
	if err == nil && len(all) != want {
		p.Failf("Allgather of %d words by %d ranks returned %d", len(words), p.Size(), len(all))
	}
	if len(all) != want {
		return make([]int64, want)
	}
	return slices.Clone(all)
}

// Gather is allgather of one word.
func (p *Probe) Gather(v int64) []int64 { return p.GatherAll([]int64{v}) }

// Open opens a window, on all ranks or on none: then it returns nil.
func (p *Probe) Open(spec rma.Spec) *rma.Window { return p.openOn(p.Comm, spec) }

// openOn is Open on the parts of a Split.
func (p *Probe) openOn(part rma.Comm, spec rma.Spec) *rma.Window {
	if p.Lost() {
		return nil
	}
	w, err := part.Allocate(spec)
	if !p.Agreed(err) {
		return nil
	}
	return w
}

// Agreed reports on all ranks alike whether a step succeeded on all of them.
func (p *Probe) Agreed(err error) bool {
	p.OK(err)
	if p.Lost() {
		return false
	}
	if err := rma.Agree(p.Comm, err); err != nil {
		p.Failf("%v", err) // not as ErrPeer: all ranks are there
		return false
	}
	return true
}

// Close frees a window.
func (p *Probe) Close(w *rma.Window) {
	if !p.Lost() {
		p.OK(w.Free())
	}
}

// Rounds is how often to do something: many times inside a node, few between nodes.
func (p *Probe) Rounds(near, far int) int {
	if p.Node().Count > 1 {
		return far
	}
	return near
}

// NoAllocations checks that a step does not allocate, by doing it many times. The
// heap of a process is one: ranks measure one after the other, and the others stay
// in a collective call. Under the race detector, which allocates by itself, it does
// nothing.
func (p *Probe) NoAllocations(what string, do func() error) {
	if RaceEnabled {
		return
	}
	if n := testing.AllocsPerRun(p.Rounds(200, 20), func() { p.OK(do()) }); n != 0 {
		p.Failf("%s allocates %v times", what, n)
	}
}
