package sim

import "github.com/rmalock/rmalock/rma"

// timedTransport is a rank's way to a window in virtual time.
type timedTransport struct {
	k *clock
	c *Comm
	s *segment
}

// near reports whether the CPU does an operation: in a job of one node any, otherwise those
// on near and flag words of node-mates.
func (t *timedTransport) near(target int, class rma.Class) bool {
	return len(t.c.g.nodes) == 1 || class != rma.Far && t.c.g.mates(t.c.rank, target)
}

func (t *timedTransport) Issue(o rma.Operation) {
	r := t.c.r
	p := r.operation(o, t.s)
	r.counts.add(t.c, o.Target)
	if !t.near(o.Target, o.Class) {
		t.k.send(r, p)
		return
	}
	k := t.k
	k.elapsed.Operations++
	r.now += t.touch(o.Target, o.Disp)
	k.catchUp(r)
	k.effect(r, p)
	p.done, p.ends = true, 0
	if p.finds() {
		r.pending = append(r.pending, p)
	} else {
		r.spare = append(r.spare, p)
	}
}

// touch is the time of an access to a word in node memory, which the rank then owns.
func (t *timedTransport) touch(target, disp int) int64 {
	s := t.s
	if s.owner == nil {
		s.owner = make([]int32, len(s.mem))
	}
	own := &s.owner[target*s.words+disp]
	cost := t.k.Model.Near(int(*own)-1, t.c.r.id)
	*own = int32(t.c.r.id) + 1
	return cost
}

func (t *timedTransport) Flush(target int, res *rma.Results) (int, error) {
	r := t.c.r
	r.left, r.ends = 0, 0
	for _, o := range r.pending {
		if o.seg == t.s && (target < 0 || o.Target == target) {
			if r.ends = max(r.ends, o.ends); !o.done {
				r.left++
			}
		}
	}
	if r.left > 0 || r.ends > r.now {
		if r.left == 0 {
			t.k.push(r.ends, ^int32(r.id))
		}
		r.seg, r.target = t.s, target
		r.park(flushing)
		if r.w.failed != nil {
			return 0, r.w.peer()
		}
	}
	kept, n := r.pending[:0], 0
	for _, o := range r.pending {
		if o.seg == t.s && (target < 0 || o.Target == target) {
			if o.finds() {
				res[o.Slot] = o.seen
			}
			r.spare = append(r.spare, o)
			continue
		}
		kept = append(kept, o)
		if o.seg == t.s {
			n++
		}
	}
	r.pending = kept
	return n, nil
}

func (t *timedTransport) Await(target, disp int, c rma.Cond) (int64, error) {
	r, k := t.c.r, t.k
	r.counts.Awaits++
	if !t.near(target, t.s.spec.Class(disp)) {
		for pause := k.PauseFirst; ; pause = min(2*pause, k.PauseLast) {
			v, err := t.poll(target, disp)
			if err != nil || c.Holds(v) {
				return v, err
			}
			if pause > 0 {
				k.sleep(r, pause)
			}
		}
	}
	r.now += t.touch(target, disp)
	k.catchUp(r)
	for {
		if r.w.failed != nil {
			return 0, r.w.peer()
		}
		if v := *t.s.word(target, disp); c.Holds(v) {
			return v, nil
		}
		r.seg, r.target, r.disp, r.cond = t.s, target, disp, c
		k.park(r, awaiting)
		t.touch(target, disp)
	}
}

// poll reads a far word.
func (t *timedTransport) poll(target, disp int) (int64, error) {
	r, k := t.c.r, t.k
	o := r.operation(rma.Operation{Kind: rma.KindGet, Class: t.s.spec.Class(disp), Target: target, Disp: disp}, t.s)
	o.poll = true
	k.send(r, o)
	r.pending = r.pending[:len(r.pending)-1]
	r.polling, r.left, r.ends = o, 1, 0
	r.park(flushing)
	r.polling = nil
	v := o.seen
	r.spare = append(r.spare, o)
	if r.w.failed != nil {
		return 0, r.w.peer()
	}
	return v, nil
}

func (t *timedTransport) Backoff(target, disp int, seen int64, try int) error {
	r, k := t.c.r, t.k
	r.counts.Backoffs++
	if !t.near(target, t.s.spec.Class(disp)) {
		if pause := min(k.PauseFirst<<min(try, 20), k.PauseLast); pause > 0 {
			k.sleep(r, pause)
		}
	} else {
		k.catchUp(r)
		if *t.s.word(target, disp) == seen {
			r.seg, r.target, r.disp, r.seen = t.s, target, disp, seen
			k.park(r, pausing)
		}
	}
	if r.w.failed != nil {
		return r.w.peer()
	}
	return nil
}

// SpinBriefly reads the word four times within a microsecond.
func (t *timedTransport) SpinBriefly(disp int, seen int64) {
	r, k := t.c.r, t.k
	for range 4 {
		if *t.s.word(t.c.rank, disp) != seen {
			return
		}
		k.sleep(r, 250)
	}
}

func (t *timedTransport) SyncInboundStores() error { return nil }
func (t *timedTransport) HandedOver(int)           {}
func (t *timedTransport) Wake(int)                 {}
func (t *timedTransport) Free() error              { return t.c.Barrier() }
