package race

import (
	"bytes"
	"fmt"
)

// Check goes through the whole table, at a time when no client works, and reports what is wrong: a
// key in a slot where no client looks for it, or in two. It calls found, if not nil, for each key.
func (t *Table) Check(found func(key, value []byte)) error {
	bucket := make([]int64, t.width)
	for segment := range t.cfg.Segments {
		host, base := t.place(segment)
		for b := range t.cfg.Groups * groupBuckets {
			t.w.GetBulk(bucket, host, base+b*t.width)
			if err := t.w.Flush(host); err != nil {
				return err
			}
			for i := 1; i < t.width; i++ {
				if w := bucket[i]; !empty(w) && state.Get(w) == committed {
					if err := t.checkSlot(w, host, base+b*t.width+i, found); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// checkSlot looks whether the key of a slot is found there, and nowhere else.
func (t *Table) checkSlot(w int64, host, at int, found func(key, value []byte)) error {
	if err := t.begin(); err != nil {
		return err
	}
	ref, words := t.block(w)
	b := make([]int64, words)
	t.w.GetBulk(b, ref.Node(), ref.Disp())
	if err := t.w.Flush(ref.Node()); err != nil {
		return err
	}
	if b = whole(b); b == nil {
		return fmt.Errorf("race: block of %d words at %d of host %d: %w", words, ref.Disp(), ref.Node(), ErrTorn)
	}
	key := bytes.Clone(bytesOf(b[headWords:])[:keyBytes.Get(b[headWord])])
	t.aim(key)
	if err := t.settle(&t.img); err != nil {
		return err
	}
	times, im := 0, &t.img
	for i := 0; i < len(im.w); {
		one, _, err := t.same(im, i, committed)
		if err != nil || one < 0 {
			if err != nil {
				return err
			}
			break
		}
		if h, _ := t.place(im.segment); h == host && t.disp(im, one) == at {
			times++
		} else {
			return fmt.Errorf("race: key %x is in two slots, %d and %d of host %d, or at another host: %w", key, at, t.disp(im, one), host, ErrTorn)
		}
		i = one + 1
	}
	if times == 0 {
		return fmt.Errorf("race: key %x at %d of host %d is not found: %w", key, at, host, ErrTorn)
	}
	if found != nil {
		found(key, value(b))
	}
	return nil
}
