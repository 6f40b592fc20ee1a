package rma

// fences are the targets towards which a handle has called Fence since the last Flush.
type fences struct {
	n      int
	target [maxFences]int32
	epoch  [maxFences]uint8
}

// maxFences bounds the targets with fences at once; one more costs a Flush.
const maxFences = 8

// Fence orders: what the handle issues to target after it takes effect after what it issued
// to target before, without a round trip. It completes nothing: results are there after a
// Flush. It orders operations of one window and one handle, on one target. Transports that
// keep the order of a connection (verbs) order by it for nothing; the others (MPI) wait for
// the earlier operations before they send the later ones, in the same Flush.
//
// It costs no operation. A fence towards a ninth target at once, or the 256th towards one,
// is a Flush of the target.
func (w *Window) Fence(target int) {
	if w.far == 0 && uint(target) < uint(w.size) {
		return // whatever was issued has taken effect
	}
	f := &w.fences
	i := f.index(target)
	switch {
	case uint(target) >= uint(w.size):
		w.fail(w.refuseTarget("Fence", target))
	case i < 0 && f.n < maxFences:
		f.target[f.n], f.epoch[f.n] = int32(target), 1
		f.n++
	case i < 0 || f.epoch[i] == 255:
		if err := w.flush(target); err != nil {
			w.fail(err)
		}
	default:
		f.epoch[i]++
	}
}

// index is the position of a target, or -1.
func (f *fences) index(target int) int {
	for i := range f.n {
		if int(f.target[i]) == target {
			return i
		}
	}
	return -1
}

// of is the epoch of an operation towards a target.
func (f *fences) of(target int) uint8 {
	if i := f.index(target); i >= 0 {
		return f.epoch[i]
	}
	return 0
}

// flushed forgets the fences towards a target, or all for target < 0.
func (f *fences) flushed(target int) {
	if target < 0 {
		f.n = 0
	} else if i := f.index(target); i >= 0 {
		f.n--
		f.target[i], f.epoch[i] = f.target[f.n], f.epoch[f.n]
	}
}

// flushBefore completes what must take effect before an operation that the CPU does now.
func (w *Window) flushBefore(o *Operation) error {
	if o.Epoch == 0 || w.far == 0 {
		return nil
	}
	var err error
	w.far, err = w.t.Flush(o.Target, &w.res)
	w.release(o.Target)
	return err
}
