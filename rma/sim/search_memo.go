package sim

import (
	"errors"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// A memoNode is a rank's behaviour between two suspensions: the actions that it took and
// the request that it then waits with. Its children are keyed by the answer. The nodes of a
// rank form the memo tree, whose root follows Begin.
//
// A rank has far fewer histories than a search has states, so the search replays a rank's
// actions from the tree and runs the rank's code only at an answer that has no child yet.
// The coroutine may be at an older node, of this execution or of another one. Before new
// code runs it is given the recorded answers again, from its own node or from the start.
type memoNode struct {
	parent   *memoNode
	answer   answer // that the parent's request got
	actions  []action
	waitsFor request
	children []*memoNode
	same     *memoNode // the node whose children follow this one too, or nil
}

// follow is the node whose children follow p.
func (p *memoNode) follow() *memoNode {
	if p.same != nil {
		return p.same
	}
	return p
}

// An answer ends a wait.
type answer struct {
	err   error
	open  int     // of a flush: operations that are still pending
	which int     // of an Await: the index of the word
	value int64   // of an Await, or of the clock
	found []found // of a flush, by slot
}

// found is the result of an operation.
type found struct {
	slot  int
	value int64
}

// memoState is where a rank stands in its memo tree, and where its coroutine does.
type memoState struct {
	root         *memoNode            // follows Begin
	heirs        []*memoNode          // the roots of its successors
	homes        map[uint64]*memoNode // where ranks are alike: nodes that end at Home, by its hash
	known        *memoNode            // where the coroutine has come to what is known, which is to be repeated
	memo         *memoNode            // the rank's node; nil if its own code runs
	codeAt       *memoNode            // the coroutine's node, if it is in a body
	lagging      bool                 // the coroutine repeats what the rank has done already
	backlog      []answer             // the answers that it gets meanwhile
	consumed     int                  // how many of them it got
	suspends     bool                 // after the backlog the coroutine stops
	answer       answer               // of the last wait
	flushResults []found              // of the last flush
}

// An action takes no time: an operation is issued, a state declared (Home), or an effect
// called.
type action struct {
	effect func()
	t      *searchTransport
	op     rma.Operation
	home   uint64
	turn   *Turn
}

// errImpure ends an execution in which a rank did what the memo tree cannot hold: it returned.
var errImpure = errors.New("sim: a rank did what a search cannot memoise")

// record adds an action to the rank's node.
func (r *rank) record(a action) {
	if r.memo != nil {
		r.memo.actions = append(r.memo.actions, a)
	}
}

// beginMemoised begins an execution whose ranks are replayed from their memo trees.
func (e *search) beginMemoised() {
	e.keep()
	e.explore()
	e.w.all.know()
	if e.start != nil {
		e.start()
	}
	n := len(e.w.ranks)
	for i := range n {
		r := e.w.ranks[(i+n-1)%n] // the last one to come to Begin goes on first
		if r.root != nil {
			r.memo = r.root
			e.replayNode(r)
			continue
		}
		r.root = &memoNode{}
		r.memo, r.lagging = r.root, false
		e.runOn(r)
	}
}

// wake resumes a rank that has waited.
func (e *search) wake(r *rank) {
	e.endWait(r)
	if r.memo == nil {
		r.resume()
		return
	}
	e.advance(r)
}

// advance follows the rank's answer to the child node, or runs the code if there is none.
func (e *search) advance(r *rank) {
	next := r.memo.child(&r.answer)
	if next == nil {
		e.catchUp(r)
		r.memo = r.memo.addChild(r.answer)
		r.backlog, r.suspends = append(r.backlog, r.memo.answer), false
		e.runOn(r)
		return
	}
	r.memo = next
	e.replayNode(r)
}

// runOn runs a rank's code to its next wait, or to a node that is known.
func (e *search) runOn(r *rank) {
	r.resume()
	if n := r.known; n != nil {
		r.known, r.memo = nil, n
		e.replayNode(r)
	}
}

// merge has what follows the rank's node be that of another node, if both end at Home with one
// hash and no operation is pending: the rank behaves alike from there on.
func (r *rank) merge() {
	n := r.memo
	last := len(n.actions) - 1
	if last < 0 || n.actions[last].effect != nil || n.actions[last].t != nil || n.actions[last].turn != nil || len(r.pending)+len(r.results)+r.bulkDue > 0 {
		return
	}
	if r.homes == nil {
		r.homes = map[uint64]*memoNode{}
	}
	key := learnt(uint64(r.generation), int64(n.actions[last].home))
	switch m := r.homes[key]; {
	case m == nil:
		r.homes[key] = n
	case m != n && m.waitsFor == n.waitsFor:
		n.same = m
	}
}

// replayNode repeats the actions of the rank's node, and of its successors until the rank
// waits.
func (e *search) replayNode(r *rank) {
	n := r.memo
	e.replaying = true
	for i := range n.actions {
		switch a := &n.actions[i]; {
		case a.effect != nil:
			a.effect()
		case a.t != nil:
			a.t.accept(&a.op)
		case a.turn != nil:
			e.takeTurn(r, a.turn)
		default:
			r.home(a.home)
		}
	}
	e.replaying = false
	if e.violation == nil && !e.beginWait(r, &n.waitsFor) {
		e.endWait(r)
		e.advance(r)
	}
}

// child is the node that an answer leads to, or nil.
func (p *memoNode) child(a *answer) *memoNode {
	for _, n := range p.follow().children {
		b := &n.answer
		if a.which == b.which && a.value == b.value && a.open == b.open && slices.Equal(a.found, b.found) && (a.err == nil && b.err == nil || a.err == b.err) {
			return n
		}
	}
	return nil
}

// addChild adds the node that an answer leads to.
func (p *memoNode) addChild(a answer) *memoNode {
	a.found = slices.Clone(a.found)
	n := &memoNode{parent: p, answer: a}
	f := p.follow()
	f.children = append(f.children, n)
	return n
}

// catchUp prepares the rank's coroutine to repeat what the rank did up to its node. Once
// resumed, it stops there.
func (e *search) catchUp(r *rank) {
	r.backlog = r.backlog[:0]
	p := r.memo
	for ; p.parent != nil && (!r.in || p != r.codeAt); p = p.parent {
		r.backlog = append(r.backlog, p.answer)
	}
	slices.Reverse(r.backlog)
	if r.in && p != r.codeAt {
		e.quit(r)
	}
	r.consumed, r.lagging, r.suspends = 0, true, true
}

// leaveMemo has all ranks continue by their own code, once all are at a collective call. It
// reports whether they are.
func (e *search) leaveMemo() bool {
	for _, r := range e.w.ranks {
		if r.state != dead && (r.memo == nil || r.state != leaving) {
			return false
		}
	}
	for _, r := range e.w.ranks {
		if r.state == dead {
			continue
		}
		if !r.in || r.codeAt != r.memo {
			e.catchUp(r)
			r.resume()
		}
		r.memo, r.lagging = nil, false
		e.w.ready = append(e.w.ready, r)
	}
	return true
}

// quit ends a rank's body in the middle, without the effects of deferred calls.
func (e *search) quit(r *rank) {
	r.lagging = true
	r.quit()
	r.lagging = false
}

// abandonMemo ends the use of memo trees in a search.
func (e *search) abandonMemo() {
	e.memoise, e.checkpoints = false, nil
	for _, r := range e.w.ranks {
		if r.in {
			e.quit(r)
		}
		r.memo, r.root, r.heirs, r.homes, r.known = nil, nil, nil, nil, nil
	}
}

// ask suspends the rank until its request is answered, unless there is nothing to wait for.
func (e *search) ask(r *rank, q request) answer {
	if r.quits {
		panic(aborted)
	}
	if q.state != reading {
		r.readings = 0
	}
	if !r.lagging {
		if r.memo == nil {
			r.own = q
			if !e.beginWait(r, &r.own) {
				e.endWait(r)
				return r.answer
			}
		} else {
			r.memo.waitsFor, r.codeAt = q, r.memo
			if e.alike.on {
				r.merge()
			}
			if !e.beginWait(r, &r.memo.waitsFor) {
				e.endWait(r)
				if r.known = r.memo.child(&r.answer); r.known == nil {
					r.memo = r.memo.addChild(r.answer)
					return r.answer
				}
			}
		}
		r.suspend()
	} else if r.consumed == len(r.backlog) {
		r.codeAt = r.memo
		r.suspend()
	}
	if !r.lagging {
		return r.answer
	}
	a := r.backlog[r.consumed]
	r.consumed++
	r.lagging = r.consumed < len(r.backlog) || r.suspends
	return a
}

// beginWait notes a rank's request, which it keeps. It reports false if there is nothing to wait for.
func (e *search) beginWait(r *rank, q *request) bool {
	r.state, r.request = q.state, q
	switch q.state {
	case flushing:
		return r.owes(q.seg, q.target)
	case pausing:
		r.beginRetry(q.seg.key(q.target, q.disp), q.seen, q.try)
		e.state.Beaten = r.id
		e.state.Timed = e.Ticks > 0 // a tick from now on makes it try again
		r.changed = false
		e.paused++
	case awaiting:
		if q.wait.Until != rma.Forever && e.exploring {
			e.needTicks(r, "waits with a limit")
		}
	case reading:
		e.readClock(r)
		return false
	}
	return true
}

// endWait ends a rank's wait and makes its answer.
func (e *search) endWait(r *rank) {
	a := &r.answer
	*a = answer{}
	if e.w.failed != nil {
		a.err = e.w.peer()
	}
	switch r.state {
	case flushing:
		if a.err == nil {
			a.found, a.open = r.flushed()
		}
	case awaiting:
		if r.missed {
			r.missed, r.history = false, r.history-missedMark
		}
		if r.late {
			a.which, r.late = -1, false
			break
		}
		if a.which = r.found(); a.which >= 0 { // the wait may have failed
			w := &r.wait.Words[a.which]
			a.value = *r.seg.word(w.Target, w.Disp)
		}
	case reading:
		a.value = e.clock
	case pausing:
		e.paused--
		if r.changed {
			r.changed, r.history = false, r.history-changedMark
		}
	}
	r.state = running
}

// flushed returns the results of a flush, which the next call overwrites, and the number of
// operations that are still pending to the window.
func (r *rank) flushed() ([]found, int) {
	out, kept := r.flushResults[:0], r.results[:0]
	for _, f := range r.results {
		if f.seg == r.seg && (r.target < 0 || f.target == r.target) {
			out = append(out, found{f.slot, f.value})
		} else {
			kept = append(kept, f)
		}
	}
	if len(out) > 1 {
		slices.SortFunc(out, func(a, b found) int { return a.slot - b.slot })
	}
	r.flushResults, r.results = out, kept
	n, last := 0, uint64(0)
	for _, o := range r.pending {
		if o.seg == r.seg && o.whole != last {
			n, last = n+1, o.whole
		}
	}
	for _, f := range r.results { // took effect, and is still pending to the window
		if f.seg == r.seg {
			n++
		}
	}
	return out, n
}
