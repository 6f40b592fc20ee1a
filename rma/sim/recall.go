package sim

import (
	"errors"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// An exhaustive search comes to the same moments of a rank again and again: it has many
// more states than a rank has pasts. What a rank does when it is told something is
// therefore written down, page by page, and done again from there without the rank's
// code; the code runs only where a rank is told what it was never told before.
//
// A page is a rank between two answers: its deeds, and what it waits for then. The pages
// of a rank are a tree, whose root is what it does after Begin. A rank's coroutine lags
// behind, at an earlier page of the present execution or of another one, and is told
// again what it was told, or started anew, when its code is to run.
type page struct {
	up    *page
	by    answer // that led here
	deeds []deed
	ask   request
	next  []*page
}

// A request says what a rank waits for.
type request struct {
	state state
	seg   *segment
	at    int // target; of a flush, -1 for all
	disp  int
	cond  rma.Cond
	seen  int64
	try   int
	us    int64 // of a sleep
}

// An answer is what a rank is told when it has waited.
type answer struct {
	err   error
	open  int     // of a flush: operations that are still pending
	value int64   // of an Await
	found []found // of a flush, by slot
}

// found is the result of an operation.
type found struct {
	slot  int
	value int64
}

// recalled is a rank's part in recalling.
type recalled struct {
	root   *page    // what it does after Begin
	page   *page    // where it is; nil if its own code runs
	lived  *page    // where its coroutine is, if it is in a body
	behind bool     // the coroutine does again what the rank has done,
	feed   []answer // and is told this,
	fed    int      // of which it was told so many;
	stays  bool     // then it is suspended
	told   answer   // when it has waited
	found  []found  // of its last flush
}

// A deed is what a rank does at once: it issues an operation, comes to a Home, or acts.
type deed struct {
	act  func()
	t    *searchTransport
	op   rma.Operation
	home uint64
}

// errForsaken ends an execution whose ranks do what cannot be written down.
var errForsaken = errors.New("sim: not from pages")

// Recall, called by all ranks before the Begin from which on windows are kept, lets an
// exhaustive search take from pages what a rank does. Then, between Begin and End, a
// rank's code may depend on nothing but what its windows told it, and may change nothing
// that is not its own, but by Act; that is beside the ranks. Before Begin it puts back
// what is its own, and by Start what is not.
func (c *Comm) Recall(b Beside) {
	if e := c.r.w.search; e != nil {
		_, e.recall = e.scheduler.(follower)
		e.recall, e.beside = e.recall && len(e.Faults) == 0 && !e.CPUFar, b
	}
}

// Beside is what a check keeps beside the ranks.
type Beside interface {
	Save(into any) any // what it is now; into, if not nil, is what an earlier Save returned, and not needed any more
	Restore(any)
}

// Start, called by one rank before Begin, calls f once in each execution.
func (c *Comm) Start(f func()) {
	if c.r.page != nil { // the execution has begun
		return
	}
	if e := c.r.w.search; e != nil {
		e.start = f
	}
	f()
}

// Act does f, which changes what the check keeps beside the ranks.
func (c *Comm) Act(f func()) {
	r := c.r
	if r.behind {
		return
	}
	f()
	r.write(deed{act: f})
}

// write writes a deed down.
func (r *rank) write(d deed) {
	if r.page != nil {
		r.page.deeds = append(r.page.deeds, d)
	}
}

// unwritten notes that the rank does what cannot be written down.
func (r *rank) unwritten() {
	if e := r.w.search; r.page != nil && e.violation == nil {
		e.violation = errForsaken
	}
}

// recalls begins an execution from pages.
func (e *search) recalls() {
	e.keep()
	e.on = true
	for _, r := range e.w.ranks {
		r.searched.reset()
	}
	e.w.all.know()
	if e.start != nil {
		e.start()
	}
	n := len(e.w.ranks)
	for i := range n {
		r := e.w.ranks[(i+n-1)%n] // the last one to come to Begin goes on first
		if r.root != nil {
			r.page = r.root
			e.perform(r)
			continue
		}
		r.root = &page{}
		r.page, r.behind = r.root, false
		r.resume()
	}
}

// wake lets a rank go on that has waited.
func (e *search) wake(r *rank) {
	r.told = e.tell(r)
	if r.page == nil {
		r.resume()
		return
	}
	e.onwards(r)
}

// onwards goes on from a page with r.told, as far as there are pages.
func (e *search) onwards(r *rank) {
	next := r.page.follow(&r.told)
	if next == nil {
		e.catchUp(r)
		r.page = r.page.add(r.told)
		r.feed, r.stays = append(r.feed, r.page.by), false
		r.resume()
		return
	}
	r.page = next
	e.perform(r)
}

// perform does what is on a page, and on the next ones until the rank waits.
func (e *search) perform(r *rank) {
	p := r.page
	e.acting = true
	for i := range p.deeds {
		switch d := &p.deeds[i]; {
		case d.act != nil:
			d.act()
		case d.t != nil:
			d.t.take(d.op)
		default:
			r.home(d.home)
		}
	}
	e.acting = false
	if e.violation == nil && !e.waits(r, &p.ask) {
		r.told = e.tell(r)
		e.onwards(r)
	}
}

// follow is the page that an answer leads to, or nil.
func (p *page) follow(a *answer) *page {
	for _, n := range p.next {
		if b := &n.by; a.value == b.value && a.open == b.open && a.err == b.err && slices.Equal(a.found, b.found) {
			return n
		}
	}
	return nil
}

// add adds the page that an answer leads to.
func (p *page) add(a answer) *page {
	a.found = slices.Clone(a.found)
	n := &page{up: p, by: a}
	p.next = append(p.next, n)
	return n
}

// catchUp makes ready to let the rank's code do again what the rank has done up to its
// page: resumed, it stops there.
func (e *search) catchUp(r *rank) {
	r.feed = r.feed[:0]
	p := r.page
	for ; p.up != nil && (!r.in || p != r.lived); p = p.up {
		r.feed = append(r.feed, p.by)
	}
	slices.Reverse(r.feed)
	if r.in && p != r.lived {
		r.quit()
	}
	r.fed, r.behind, r.stays = 0, true, true
}

// leave lets all ranks go on by their own code, when all have come to a collective call.
// It reports whether they have.
func (e *search) leave() bool {
	for _, r := range e.w.ranks {
		if r.page == nil || r.state != leaving {
			return false
		}
	}
	for _, r := range e.w.ranks {
		if !r.in || r.lived != r.page {
			e.catchUp(r)
			r.resume()
		}
		r.page, r.behind = nil, false
		e.w.ready = append(e.w.ready, r)
	}
	return true
}

// forsake ends a search's recalling.
func (e *search) forsake() {
	e.recall, e.moments = false, nil
	for _, r := range e.w.ranks {
		if r.in {
			r.quit()
		}
		r.page, r.root = nil, nil
	}
}

// ask is what a rank does that may have to wait: it says for what, and returns what it
// is told.
func (r *rank) ask(q request) answer {
	if r.quits {
		panic(aborted)
	}
	if !r.behind {
		if e := r.w.search; r.page == nil {
			if !e.waits(r, &q) {
				return e.tell(r)
			}
		} else {
			r.page.ask, r.lived = q, r.page
			if !e.waits(r, &q) {
				a := e.tell(r)
				r.page = r.page.add(a)
				return a
			}
		}
		r.suspend()
	} else if r.fed == len(r.feed) {
		r.lived = r.page
		r.suspend()
	}
	if !r.behind {
		return r.told
	}
	a := r.feed[r.fed]
	r.fed++
	r.behind = r.fed < len(r.feed) || r.stays
	return a
}

// waits begins a rank's waiting. It reports false if there is nothing to wait for.
func (e *search) waits(r *rank, q *request) bool {
	r.state, r.seg, r.at, r.disp, r.cond, r.seen = q.state, q.seg, q.at, q.disp, q.cond, q.seen
	switch q.state {
	case flushing:
		return r.owes(q.seg, q.at)
	case pausing:
		r.again(q.seg.key(q.at, q.disp), q.seen, q.try)
		e.state.Beaten = r.id
		r.rung = false
		e.paused++
	case sleeping:
		e.looks += q.us
	}
	return true
}

// tell ends a rank's waiting, and says what it is told.
func (e *search) tell(r *rank) answer {
	var a answer
	if e.w.failed != nil {
		a.err = e.w.peer()
	}
	switch r.state {
	case flushing:
		if a.err == nil {
			a.found, a.open = r.flushed()
		}
	case awaiting:
		a.value = *r.seg.word(r.at, r.disp)
	case pausing:
		e.paused--
		if r.rung {
			r.rung, r.history = false, r.history-rungMark
		}
	}
	r.state = running
	return a
}

// flushed takes the results of a flush, and counts what is still open of the window. The
// next call overwrites them.
func (r *rank) flushed() ([]found, int) {
	out, kept := r.found[:0], r.results[:0]
	for _, f := range r.results {
		if f.seg == r.seg && (r.at < 0 || f.target == r.at) {
			out = append(out, found{f.slot, f.value})
		} else {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(out, func(a, b found) int { return a.slot - b.slot })
	r.found, r.results = out, kept
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
