package sim

import "github.com/rmalock/rmalock/rma"

// timedTransport is a rank's way to a window in virtual time.
type timedTransport struct {
	k *clock
	c *Comm
	s *segment

	messages bool // Puts are messages
	device   bool // the words are in the memory of NICs
	loopback bool // words of node-mates are reached through the NIC
}

// near reports whether the CPU does an operation on a word, or reads it. Of node-mates those are
// near and flag words; with verbs plain words too, and far ones to read; otherwise all in a job
// of one node.
func (t *timedTransport) near(target int, class rma.Class, reads bool) bool {
	switch {
	case t.s.spec.Hosts == rma.MemoryNodes:
		return false
	case !t.k.Verbs && len(t.c.g.nodes) == 1:
		return true
	case !t.c.g.mates(t.c.rank, target), t.loopback && target != t.c.rank:
		return false
	}
	return class == rma.Near || class == rma.Flag || t.k.Verbs && (class == rma.Plain || reads)
}

// send hands an operation to the network.
func (t *timedTransport) send(o *operation) {
	o.device = t.device
	t.k.send(t.c.r, o, t.wire(&o.Operation))
}

// wire is the kind of an operation for the network. Under MPI Puts and Gets of words that
// several ranks write are atomics.
func (t *timedTransport) wire(o *rma.Operation) rma.Kind {
	shared := !t.k.Verbs && (o.Class == rma.Far || o.Class == rma.Plain)
	switch {
	case t.messages && o.Kind == rma.KindPut:
		return Message
	case shared && o.Kind == rma.KindPut:
		return rma.KindAccumulate
	case shared && o.Kind == rma.KindGet:
		return rma.KindFetchAndOp
	}
	return o.Kind
}

func (t *timedTransport) Issue(o rma.Operation) {
	r := t.c.r
	p := r.operation(&o, t.s)
	r.counts.add(t.c, t.s, o.Target)
	reads := o.Kind == rma.KindGet || o.Kind == rma.KindGetBulk
	if !t.near(o.Target, o.Class, reads) || t.k.Verbs && o.Class == rma.Far && t.underWay(o.Target) {
		t.send(p)
		return
	}
	k := t.k
	if o.Epoch > 0 && t.underWay(o.Target) { // the CPU waits for what a fence says is first
		_ = t.settle(o.Target) // the next Flush has the error
	}
	k.elapsed.Operations++
	r.now += t.touch(o.Target, o.Disp)
	k.catchUp(r)
	k.effect(r, p)
	p.done, p.ends = true, 0
	if p.Finds() {
		r.pending = append(r.pending, p)
	} else {
		r.spare = append(r.spare, p)
	}
}

// touch is the time of an access to a word in node memory, which the rank then owns.
func (t *timedTransport) touch(target, disp int) int64 {
	own := t.s.ownerOf(target*t.s.words + disp)
	cost := t.k.Model.Near(int(*own)-1, t.c.r.id)
	*own = int32(t.c.r.id) + 1
	return cost
}

// underWay reports whether an operation of the handle on a target has not taken effect.
func (t *timedTransport) underWay(target int) bool {
	for _, o := range t.c.r.pending {
		if o.seg == t.s && o.Target == target && !o.done {
			return true
		}
	}
	return false
}

// settle waits until the operations on a target, or all for target < 0, are answered.
func (t *timedTransport) settle(target int) error {
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
			return r.w.peer()
		}
	}
	return nil
}

func (t *timedTransport) Flush(target int, res *rma.Results) (int, error) {
	r := t.c.r
	if err := t.settle(target); err != nil {
		return 0, err
	}
	kept, n := r.pending[:0], 0
	for _, o := range r.pending {
		if o.seg == t.s && (target < 0 || o.Target == target) {
			if o.Finds() {
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
		if a := &q.Words[i]; !t.near(a.Target, t.s.spec.Class(a.Disp), true) {
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
	if !t.near(target, t.s.spec.Class(disp), true) {
		return t.poll(target, disp)
	}
	t.c.r.now += t.touch(target, disp)
	t.k.catchUp(t.c.r)
	return *t.s.word(target, disp), nil
}

// poll reads a far word.
func (t *timedTransport) poll(target, disp int) (int64, error) {
	r := t.c.r
	o := r.operation(&rma.Operation{Kind: rma.KindGet, Class: t.s.spec.Class(disp), Target: target, Disp: disp}, t.s)
	o.poll = true
	t.send(o)
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
	if !t.near(target, t.s.spec.Class(disp), false) {
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
