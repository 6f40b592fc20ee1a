package dslr

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// try draws a ticket only if it is served at once. It returns the word that it found last.
func (t *Table) try(k *ticket) (got bool, v int64, err error) {
	for {
		now := t.c.Now()
		v, err = t.w.GetFlush(k.home, k.disp)
		for drawn := false; !drawn; {
			if err != nil || !t.layout.open(v, k.kind) {
				return false, v, err
			}
			var found int64
			if found, err = t.w.CompareAndSwapFlush(v+k.slots<<t.layout.max[k.kind].Shift, v, k.home, k.disp); found == v {
				drawn = err == nil
			} else {
				v = found
			}
		}
		t.drawn(k, v)
		k.since = now
		if got, err = t.inTime(k); got || err != nil {
			return got, v, err
		}
	}
}

// poll tries until ctx ends: a ticket cannot be given back in the middle.
func (t *Table) poll(ctx context.Context, k *ticket) error {
	for try := 0; ; try++ {
		now := t.c.Now()
		got, v, err := t.try(k)
		switch {
		case got:
			return t.granted(k)
		case err == nil && ctx.Err() != nil:
			err = fmt.Errorf("dslr: lock %d: %w (%w)", k.id, lock.ErrDeadline, context.Cause(ctx))
		case err == nil && t.layout.frozen(v):
			k.word = v
			err = t.thaw(k, now)
		}
		if err == nil {
			err = t.w.Backoff(k.home, k.disp, v, try)
		}
		if err != nil {
			t.unclaim(k)
			return err
		}
	}
}
