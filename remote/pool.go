package remote

// The words of a list of free blocks, which is itself a free block: the list below it, the
// number of blocks, and their names.
const (
	listNext = iota
	listCount
	listRefs
)

// takeList takes the top list of a class from the pool and reports whether there was one. The
// list's words are as they were pushed if the CompareAndSwap succeeds: POOL counts changes, so
// the list was the top all the time (unless through 2^16 changes).
func (h *Heap) takeList(k int) (bool, error) {
	at := h.poolAt + k
	seen, err := h.w.GetFlush(0, at)
	for {
		top := Ref(seen & (1<<refBits - 1))
		if top == 0 || err != nil {
			return false, err
		}
		next, n, err := h.readList(k, top)
		if err != nil {
			return false, err
		}
		before, err := h.w.CompareAndSwapFlush(changed(seen, next), seen, 0, at)
		if err != nil {
			return false, err
		}
		if before == seen {
			for i := range n {
				h.put(k, Ref(h.list[listRefs+i]))
			}
			h.put(k, top)
			h.fromPool++
			return true, nil
		}
		seen = before
	}
}

// readList reads a list into h.list. Its result is meaningless if the list has been taken.
func (h *Heap) readList(k int, list Ref) (next int64, n int, err error) {
	h.w.GetBulk(h.list[:h.sizes[k]], list.Node(), list.Disp())
	if err := h.w.Flush(list.Node()); err != nil {
		return 0, 0, err
	}
	n = int(h.list[listCount])
	if n < 0 || n > h.sizes[k]-listRefs {
		n = 0 // taken, and in other use
	}
	return h.list[listNext], n, nil
}

// changed is the next value of a POOL word.
func changed(seen, top int64) int64 {
	return int64(uint64(seen)>>refBits+1)<<refBits | top&(1<<refBits-1)
}

// giveList pushes a list of free blocks of a class onto the pool.
func (h *Heap) giveList(k int) error {
	free := h.free[k]
	list := free[len(free)-1]
	n := min(len(free)-1, h.sizes[k]-listRefs)
	for i := range n {
		h.list[listRefs+i] = int64(free[len(free)-2-i])
	}
	at := h.poolAt + k
	seen, err := h.w.GetFlush(0, at)
	for err == nil {
		h.list[listNext], h.list[listCount] = seen&(1<<refBits-1), int64(n)
		h.w.PutBulk(h.list[:listRefs+n], list.Node(), list.Disp())
		if err = h.w.Flush(list.Node()); err != nil {
			break
		}
		var before int64
		if before, err = h.w.CompareAndSwapFlush(changed(seen, int64(list)), seen, 0, at); err == nil && before == seen {
			h.free[k] = free[:len(free)-1-n]
			h.freeWords -= (n + 1) * h.sizes[k]
			h.pooled++
			return nil
		}
		seen = before
	}
	return err
}
