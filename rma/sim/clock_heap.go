package sim

// An event is what happens at a time: an operation goes on, or, for ^rank, a rank.
type event struct {
	at   int64
	seq  uint32 // order of events at one time
	what int32
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && int32(e.seq-f.seq) < 0
}

// heap is a 4-ary heap of events, the next one at its root.
type heap struct {
	e   []event
	seq uint32
}

func (h *heap) push(at int64, what int32) {
	h.seq++
	e := event{at, h.seq, what}
	h.e = append(h.e, e)
	i := len(h.e) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&h.e[p]) {
			break
		}
		h.e[i] = h.e[p]
		i = p
	}
	h.e[i] = e
}

func (h *heap) pop() event {
	top := h.e[0]
	n := len(h.e) - 1
	e := h.e[n]
	h.e = h.e[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		least := c
		for j := c + 1; j < min(c+4, n); j++ {
			if h.e[j].before(&h.e[least]) {
				least = j
			}
		}
		if !h.e[least].before(&e) {
			break
		}
		h.e[i] = h.e[least]
		i = least
	}
	h.e[i] = e
	return top
}
