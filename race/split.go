package race

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/cider"
)

// directory is where the DIRECTORY word of a segment is.
func (t *Table) directory(segment int) (host, disp int) {
	return segment % t.hosts, t.directoryAt + segment/t.hosts
}

// grow makes room for a key whose buckets, in the image, are full: it splits their segment, or
// helps with the split that is under way.
func (t *Table) grow(im *image) error {
	host, at := t.directory(im.segment)
	raw, err := t.w.GetFlush(host, at)
	if err != nil {
		return err
	}
	d := t.deepest(im)
	is := raw
	if raw == 0 && im.segment < t.cfg.Initial {
		is = opened(im.segment, t.initial)
	}
	switch {
	case is == 0: // the split that made the segment is not over
		return t.finish(parent(im.segment), t.birth(im.segment)-1)
	case splits.Get(is) != 0 && d > int(depth.Get(is)): // so for the client's own buckets: it finishes the rest
		return t.finish(im.segment, int(depth.Get(is)))
	case splits.Get(is) != 0:
		return t.help(im, d)
	case d < int(depth.Get(is)): // another client has split it meanwhile
		return nil
	case d >= t.limit():
		return t.evict(im)
	}
	found, err := t.w.CompareAndSwapFlush(splits.With(is, 1), raw, host, at)
	if err != nil || found != raw {
		return err
	}
	return t.finish(im.segment, d)
}

// evict takes back what other clients only try to insert into full buckets, which may be a dead
// client's.
func (t *Table) evict(im *image) error {
	host, _ := t.place(im.segment)
	full := true
	for i, w := range im.w {
		if i%t.width > 0 && !empty(w) && state.Get(w) == tentative {
			full = false
			if _, err := t.w.CompareAndSwapFlush(emptied(w), w, host, t.disp(im, i)); err != nil {
				return err
			}
		}
	}
	if !full {
		return nil
	}
	return fmt.Errorf("race: no room for a key in segment %d of %d, which is not split again (Config.Segments): %w",
		im.segment, t.cfg.Segments, ErrFull)
}

// limit is the depth at which there are Config.Segments.
func (t *Table) limit() int {
	d := t.initial
	for 1<<d < t.cfg.Segments {
		d++
	}
	return d
}

// help splits the four buckets of an image.
func (t *Table) help(im *image, d int) error {
	var buckets [4]int
	for j := range buckets {
		buckets[j] = t.bucket(im, j)
	}
	for _, b := range buckets {
		if err := errors.Join(t.move(im.segment, d, b), t.clean(im.segment, d, b)); err != nil {
			return err
		}
	}
	return nil
}

// finish splits all buckets of a segment of depth d, whichever client began it, and then says so in
// the directory. It needs no lease: what is done already stays as it is.
func (t *Table) finish(segment, d int) error {
	for b := range t.cfg.Groups * groupBuckets {
		if err := t.begin(); err != nil { // the section may become old
			return err
		}
		if err := errors.Join(t.move(segment, d, b), t.clean(segment, d, b)); err != nil {
			return err
		}
	}
	child := segment | 1<<d
	host, at := t.directory(child)
	if _, err := t.w.CompareAndSwapFlush(opened(child, d+1), 0, host, at); err != nil {
		return err
	}
	host, at = t.directory(segment)
	before := splits.With(opened(segment, d), 1)
	found, err := t.w.CompareAndSwapFlush(opened(segment, d+1), before, host, at)
	if err == nil && found == before {
		t.stats.Splits++
	}
	return err
}

// move splits a bucket of a segment of depth d, as far as it is not split yet. It says so in the
// header, and freezes the keys that move. It copies each to the slot of the same number in the
// bucket of the same number of the new segment, and opens that bucket. Any number of clients may do
// so at once.
func (t *Table) move(segment, d, bucket int) error {
	child := segment | 1<<d
	host, base := t.place(segment)
	base += bucket * t.width
	newHost, newBase := t.place(child)
	newBase += bucket * t.width
	if raw, err := t.w.GetFlush(newHost, newBase); raw != 0 || err != nil {
		return err
	}
	raw, err := t.w.GetFlush(host, base)
	if err != nil {
		return err
	}
	if is, _ := t.header(segment, raw); is == d {
		t.w.CompareAndSwap(opened(segment, d+1), raw, host, base)
		t.w.Fence(host)
	}
	t.w.GetBulk(t.old, host, base)
	if err := t.w.Flush(host); err != nil {
		return err
	}
	for i := 1; i < t.width; i++ {
		if t.old[i], err = t.freeze(t.old[i], d, host, base+i); err != nil {
			return err
		}
	}
	for i := 1; i < t.width; i++ {
		t.w.CompareAndSwap(t.copied(t.old[i], d+1), 0, newHost, newBase+i)
	}
	t.w.Fence(newHost)
	t.w.CompareAndSwap(opened(child, d+1), 0, newHost, newBase)
	return t.w.Flush(newHost)
}

// freeze is the slot of a bucket that is split, after it is frozen if its key goes. What is only
// tried is taken back.
func (t *Table) freeze(w int64, d, host, at int) (int64, error) {
	for !empty(w) && state.Get(w) != frozen {
		to := emptied(w)
		if state.Get(w) == committed {
			ref, _ := t.block(w)
			head, err := t.w.GetFlush(ref.Node(), ref.Disp()+headWord)
			if err != nil {
				return 0, err
			}
			if hashBits.Get(head)>>d&1 == 0 {
				return w, nil
			}
			to = mark.With(state.With(w, frozen), t.doublings(d+1))
		}
		found, err := t.w.CompareAndSwapFlush(to, w, host, at)
		if err != nil {
			return 0, err
		}
		if found == w {
			if state.Get(to) == frozen {
				t.stats.Moved++
			}
			return to, nil
		}
		w = found
	}
	return w, nil
}

// copied is the word of the new slot for one of a bucket that is split: the key if it goes, else
// an empty slot, which is not 0 for ever.
func (t *Table) copied(w int64, d int) int64 {
	to := mark.With(0, t.doublings(d))
	if !empty(w) && state.Get(w) == frozen && mark.Get(w) == t.doublings(d) {
		to |= w &^ (marks | state.Mask() | cider.Version.Mask())
	}
	return to
}

// clean empties the slots of keys that have moved, in a bucket that is split. The queues of the
// slots end with it, as with a deletion.
func (t *Table) clean(segment, d, bucket int) error {
	host, base := t.place(segment)
	base += bucket * t.width
	t.w.GetBulk(t.old, host, base)
	if err := t.w.Flush(host); err != nil {
		return err
	}
	for i := 1; i < t.width; i++ {
		w := t.old[i]
		if empty(w) || state.Get(w) != frozen || mark.Get(w) != t.doublings(d+1) {
			continue
		}
		at := t.slotAt(segment, bucket, i)
		at.Moves = true
		for w == t.old[i] {
			t.clear = write{t: t, p: w, host: host, deletes: true, clears: true}
			_, err := t.sync.Change(at, w, &t.clear, true)
			if err != nil && !errors.Is(err, errAgain) {
				return err
			}
			if w, err = t.w.GetFlush(host, at.Pointer); err != nil {
				return err
			}
		}
	}
	return nil
}
