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
	if t.s.spec.Hosts == rma.MemoryNodes {
		return false
	}
	return len(t.c.g.nodes) == 1 || class != rma.Far && t.c.g.mates(t.c.rank, target)
}

func (t *timedTransport) Issue(o rma.Operation) {
	r := t.c.r
	p := r.operation(o, t.s)
	r.counts.add(t.c, t.s, o.Target)
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

func (t *timedTransport) Await(q rma.Waiting) (int, int64, error) {
	r, k := t.c.r, t.k
	r.counts.Awaits++
	for i := range q.N {
		if a := &q.Words[i]; !t.near(a.Target, t.s.spec.Class(a.Disp)) {
			return t.awaitFar(&q)
		}
	}
	for i := range q.N {
		r.now += t.touch(q.Words[i].Target, q.Words[i].Disp)
	}
	k.catchUp(r)
	for {
		r.seg, r.wait = t.s, q
		if r.w.failed != nil {
			return -1, 0, r.w.peer()
		}
		if i := r.found(); i >= 0 {
			return i, *t.s.word(q.Words[i].Target, q.Words[i].Disp), nil
		}
		if r.now >= q.Until {
			return -1, 0, nil
		}
		k.park(r, awaiting)
		for i := range q.N {
			t.touch(q.Words[i].Target, q.Words[i].Disp)
		}
	}
}

// awaitFar polls words of which one is far.
func (t *timedTransport) awaitFar(q *rma.Waiting) (int, int64, error) {
	r, k := t.c.r, t.k
	for pause := k.PauseFirst; ; pause = min(2*pause, k.PauseLast) {
		for i := range q.N {
			a := &q.Words[i]
			v, err := t.look(a.Target, a.Disp)
			if err != nil {
				return -1, 0, err
			}
			if a.Cond.Holds(v) {
				return i, v, nil
			}
		}
		if r.now >= q.Until {
			return -1, 0, nil
		}
		if pause > 0 {
			k.sleep(r, min(pause, q.Until-r.now))
		}
	}
}

// look reads a word, near or far.
func (t *timedTransport) look(target, disp int) (int64, error) {
	if !t.near(target, t.s.spec.Class(disp)) {
		return t.poll(target, disp)
	}
	t.c.r.now += t.touch(target, disp)
	t.k.catchUp(t.c.r)
	return *t.s.word(target, disp), nil
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
			r.wait = rma.Waiting{Words: [2]rma.Wait{{Target: target, Disp: disp}}, N: 1, Until: rma.Forever}
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
