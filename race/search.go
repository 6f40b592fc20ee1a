package race

import "errors"

// Search appends the value of a key to dst, and reports whether the key is there. It changes
// nothing, and waits for no client. It takes two round trips, one if the key is absent, and one more
// for each split that the client has not heard of. An error wraps ErrTorn or is the transport's.
func (t *Table) Search(key, dst []byte) ([]byte, bool, error) {
	if err := t.begin(); err != nil {
		return dst, false, err
	}
	if out, there, done, err := t.sync.JoinSearch(key, dst); done || err != nil {
		return out, there, err
	}
	out, there, err := t.search(key, dst)
	return out, there, t.sync.LeaveSearch(key, out[len(dst):], there, err)
}

func (t *Table) search(key, dst []byte) ([]byte, bool, error) {
	for {
		if err := t.stay(); err != nil {
			return dst, false, err
		}
		t.aim(key)
		b, err := t.look()
		switch {
		case errors.Is(err, errAgain):
		case err != nil || b == nil:
			return dst, false, err
		default:
			return append(dst, value(b)...), true, nil
		}
	}
}

// look is the block of a key, or nil. It goes from the segment where the key was to that where it
// is: a key that was in neither when the client read it was absent when it read the first.
func (t *Table) look() ([]int64, error) {
	im, other := &t.img, &t.next
	segment := t.find(t.to.hash)
	if err := t.read(im, segment); err != nil {
		return nil, err
	}
	for t.closed(im) >= 0 { // keys of a bucket that is not open are still in the segment before
		if err := t.read(im, parent(im.segment)); err != nil {
			return nil, err
		}
	}
	for {
		if _, b, err := t.same(im, 0, committed); b != nil || err != nil {
			return b, err
		}
		next, moved := t.moved(im)
		if !moved {
			return nil, nil
		}
		if err := t.read(other, next); err != nil {
			return nil, err
		}
		t.inherit(other, im)
		im, other = other, im
	}
}

// inherit puts the keys into buckets that are not open which are on their way there, frozen in
// the image of the segment before. A slot that already has its word has the newer one.
func (t *Table) inherit(im, from *image) {
	for j := range 4 {
		if _, ok := t.header(im.segment, im.w[j*t.width]); ok {
			continue
		}
		d := t.birth(im.segment)
		im.w[j*t.width] = opened(im.segment, d)
		for i := j*t.width + 1; i < (j+1)*t.width; i++ {
			if w := from.w[i]; im.w[i] == 0 && !empty(w) && state.Get(w) == frozen && mark.Get(w) == t.doublings(d) {
				im.w[i] = t.copied(w, d)
			}
		}
	}
}
