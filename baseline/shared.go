package baseline

import (
	"context"
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// A place is where a word lies.
type place struct{ target, disp int }

// enterShared adds one to a word, which counts the ranks that share a lock, and waits until
// the word is free of writers. While it waits the one stays there, or with undo is taken back
// until the next try. If it fails, the word is left without the one.
func (t *table) enterShared(ctx context.Context, id int, at place, one int64, free func(int64) bool, undo bool) error {
	v, err := t.w.FetchAndOpFlush(one, at.target, at.disp, rma.Sum)
	b := blocker{at.target, at.disp, v + one}
	for try := 0; err == nil && !free(v); try++ {
		if undo {
			if err := t.w.AccumulateFlush(-one, at.target, at.disp, rma.Sum); err != nil {
				return err
			}
			b.seen = v
			if err := t.pause(ctx, id, b, try); err != nil {
				return err
			}
			v, err = t.w.FetchAndOpFlush(one, at.target, at.disp, rma.Sum)
			continue
		}
		if err := t.pause(ctx, id, b, try); err != nil {
			return errors.Join(err, t.w.AccumulateFlush(-one, at.target, at.disp, rma.Sum))
		}
		v, err = t.w.GetFlush(at.target, at.disp)
		b.seen = v
	}
	return err
}

// tryShared is enterShared without waiting.
func (t *table) tryShared(at place, one int64, free func(int64) bool) (bool, error) {
	v, err := t.w.FetchAndOpFlush(one, at.target, at.disp, rma.Sum)
	if err != nil || free(v) {
		return err == nil, err
	}
	return false, t.w.AccumulateFlush(-one, at.target, at.disp, rma.Sum)
}
