package sim

import (
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// A flow is the READs and atomics under way on a connection. A NIC begins no more than a number
// of them before the first is answered, and keeps the order of those that it holds back.
type flow struct {
	limit int
	under int     // begun, and not in effect
	free  []int64 // when the answers of others come, in order
	held  []held
}

// held is an operation that a NIC holds back.
type held struct {
	number int32
	flight int64 // from the origin's NIC to the target
}

// launch has an operation, which would arrive when it is due, leave its NIC, or holds it back.
func (k *clock) launch(o *operation, n int32, to int, flight int64) {
	id, limit := k.Model.Connection(int(o.rank), to)
	if limit == 0 {
		k.push(o.due, n)
		return
	}
	i, ok := k.flowOf[id]
	if !ok {
		k.flows = append(k.flows, flow{limit: limit})
		i = int32(len(k.flows))
		k.flowOf[id] = i
	}
	o.flow = i
	f := &k.flows[i-1]
	if len(f.held) > 0 || !f.begin(o, k.time, flight) {
		f.held = append(f.held, held{n, flight})
		return
	}
	k.push(o.due, n)
}

// begin reports whether an operation may leave now, and delays it until the answer that it needs.
func (f *flow) begin(o *operation, now, flight int64) bool {
	if !o.answered() {
		return true
	}
	for len(f.free) > 0 && f.free[0] <= now {
		f.free = slices.Delete(f.free, 0, 1) // and not [1:], which would move on in memory
	}
	if f.under+len(f.free) >= f.limit {
		if len(f.free) == 0 {
			return false
		}
		o.due = max(o.due, f.free[0]+flight)
		f.free = slices.Delete(f.free, 0, 1)
	}
	f.under++
	return true
}

// answer notes that an operation is in effect and answered at its end, and lets go what that
// held back.
func (k *clock) answer(o *operation) {
	if o.flow == 0 || !o.answered() {
		return
	}
	f := &k.flows[o.flow-1]
	f.under--
	f.free = append(f.free, o.ends)
	for len(f.held) > 0 {
		h := f.held[0]
		next := k.ops[h.number]
		if !f.begin(next, k.time, h.flight) {
			return
		}
		f.held = slices.Delete(f.held, 0, 1)
		for _, p := range k.w.ranks[next.rank].pending {
			if p == next {
				break
			}
			if !p.done && next.follows(p) {
				next.due = max(next.due, p.due)
			}
		}
		k.push(max(next.due, k.time), h.number)
	}
}

// answered reports whether an operation brings something back, and so counts.
func (o *operation) answered() bool { return o.Kind != rma.KindPut && o.Kind != rma.KindPutBulk }
