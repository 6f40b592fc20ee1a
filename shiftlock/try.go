package shiftlock

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// try takes the lock if it is free. It returns the word that it found last.
func (t *Table) try(p *place) (bool, int64, error) {
	if err := t.empty(p); err != nil {
		return false, 0, err
	}
	p.since = t.now()
	v, err := t.openTo(p)
	if err != nil || !p.open(v) {
		return false, v, err
	}
	p.word, p.told = p.entered(v), died.Get(v) != 0
	if p.mode == lock.Shared {
		in, err := t.admit(p)
		if in || err != nil {
			return in, p.word, err
		}
		return t.try(p) // it has learnt too late that it was in, and left: the lock may be free
	}
	in := true
	for in && err == nil && !t.inTime(p) {
		in, err = t.renew(p)
	}
	return in, p.word, err
}

// openTo enters the lock if it is open, and returns the word before. A writer has one masked swap,
// as in the code; a reader's sum is a loop of CompareAndSwap.
func (t *Table) openTo(p *place) (int64, error) {
	if p.mode == lock.Exclusive {
		return t.w.MaskedSwapFlush(tail.With(0, int64(p.me)), tail.Mask(), 0, tail.Mask()|rdr.Mask(), p.home, p.disp)
	}
	v, err := t.w.GetFlush(p.home, p.disp)
	for err == nil && p.open(v) {
		found, failed := t.w.CompareAndSwapFlush(p.entered(v), v, p.home, p.disp)
		if failed != nil || found == v {
			return v, failed
		}
		v = found
	}
	return v, err
}

// open reports whether the lock is free for the place's mode.
func (p *place) open(v int64) bool {
	return tail.Get(v) == 0 && (p.mode == lock.Shared || rdr.Get(v) == 0)
}

// entered is the word with this rank inside.
func (p *place) entered(v int64) int64 {
	if p.mode == lock.Shared {
		return v + rdr.One()
	}
	return tail.With(v, int64(p.me))
}

// poll tries until ctx ends: a writer cannot leave the queue.
func (t *Table) poll(ctx context.Context, p *place) error {
	for try := 0; ; try++ {
		got, v, err := t.try(p)
		if got {
			return t.granted(p)
		}
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("shiftlock: lock %d: %w (%w)", p.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err == nil {
			err = t.w.Backoff(p.home, p.disp, v, try)
		}
		if err != nil {
			t.unclaim(p)
			return err
		}
	}
}
