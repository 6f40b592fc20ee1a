package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// A Model is the timing of a machine. All times are in nanoseconds of one clock for the
// whole job; ranks are those of the job.
type Model interface {
	Name() string // of the machine
	// Issue is called when a rank hands an operation to its NIC. It returns when the CPU
	// is free again, and when the operation arrives at the target's NIC. first: no other
	// operation of the rank is on its way to that target.
	Issue(now int64, from, to int, kind rma.Kind, words int, first bool) (free, arrives int64)
	// Serve is called at arrival, in the order of time. It returns when the operation takes
	// effect. word is the number of the word.
	// With Device added to it the word is in the memory of the NIC.
	Serve(now int64, from, to int, kind rma.Kind, words int, word uint64) (effect int64)
	// Reply is called at the effect. It returns when the origin has the answer.
	Reply(now int64, from, to int, kind rma.Kind, words int) (done int64)
	// Connection is the number of the connection by which a rank reaches a target, and how
	// many operations with an answer may be under way on it; 0 for any.
	Connection(from, to int) (id, limit int)
	// Near is the time of a rank's access to a word in node memory whose last access was
	// owner's; a negative owner is none.
	Near(owner, rank int) int64
	// Woken is the time from a write in node memory until a waiting rank resumes.
	Woken(writer, waiter int) int64
	// Barrier is the time of a collective call of n ranks after the last has entered it.
	Barrier(n int) int64
}

// Message is the kind of a Put that goes as a message (Timed.Messages): a datagram that takes
// effect when the target's CPU has received it.
const Message rma.Kind = math.MaxUint8

// Device, added to the number of a word, says that the word is in the memory of a NIC.
const Device uint64 = 1 << 63

// Timed runs a body in virtual time, by a model of a machine. It is deterministic.
type Timed struct {
	Node  []int // the node of each rank
	Model Model
	// MemoryNodes is the number of memory nodes. For the Model they are numbered after the
	// ranks.
	MemoryNodes int
	// Verbs says that windows are on InfiniBand verbs and not on MPI. A Get of a far word is a
	// READ, and not an atomic. A Put and a swap of one are loops of CompareAndSwap
	// ([rma.Emulate]). A CPU reads the far words of its node; all else on them goes through
	// the NIC, in a job of one node too.
	Verbs bool
	// MaskedSwap says that with Verbs a swap is one operation, whole or masked: the extended atomics
	// of some NICs.
	MaskedSwap bool
	// Messages and Device are names of windows. A Put of the former, into the mailbox of
	// another rank, is a message, and the words of the latter are in the memory of NICs.
	Messages, Device []string
	// Loopback are names of windows that a program of verbs reaches through the NIC at the rank's
	// own node too: all but the rank's own words, of which it reads the far ones by the CPU. A Put of
	// one of their far words is a WRITE: the program sees to it that no atomic crosses it.
	Loopback []string
	// Pause between two polls of a far word, and two tries of an operation on one: the
	// first, doubling up to the last, nanoseconds. Zero means to poll without a pause.
	PauseFirst, PauseLast int64
	MaxTime               int64 // virtual nanoseconds after which a run has failed; 0 for none
	Faults                []TimedFault
	// Tick, if not nil, is called now and then with the virtual time; an error ends the
	// run.
	Tick func(now int64) error
}

// A TimedFault stops a rank.
type TimedFault struct {
	Rank int
	At   int64 // ns; the rank stops at its next step after it
	For  int64 // ns; 0 for ever
}

// ErrTime is wrapped when a run takes longer than MaxTime.
var ErrTime = errors.New("virtual time is up")

// clock is the engine of Timed.
type clock struct {
	Timed
	w       *world
	flows   []flow
	flowOf  map[int]int32 // 1 + the number of a connection's flow
	time    int64
	events  heap
	ops     []*operation // under way, by number
	spare   []int32
	elapsed Elapsed
	writes  int64 // changes of words
	idle    idle
}

// idle counts the times, one after the other, at which nothing could happen but that ranks in a
// Backoff try again.
type idle struct {
	times  int
	writes int64 // at the last one
}

// timedOperation is an operation's part in virtual time.
type timedOperation struct {
	done, poll bool
	device     bool     // its words are in the memory of a NIC
	wire       rma.Kind // what it is for the network
	rank       int32    // of the origin
	flow       int32    // 1 + the number of that of its connection; 0 where that has no limit
	due        int64    // when it arrives, or takes effect
	ends       int64    // when the origin knows
}

// count counts an operation that a network carries.
func (e *Elapsed) count(o *operation) {
	e.Operations++
	t := &e.Ranks
	if o.seg.spec.Hosts == rma.MemoryNodes {
		t = &e.Memory
	}
	switch {
	case o.wire == Message:
		e.Messages++
	case o.poll:
		t.Polls++
	default:
		t.Kinds[o.wire]++
	}
}

// timedState is a rank's part in virtual time.
type timedState struct {
	now     int64      // the rank's time, ahead of the clock's while it runs
	left    int        // operations that the rank's Flush waits for
	ends    int64      // when the answer of the last of them is there
	next    [2]int32   // by word of an Await: 1 + the waiter after it at the word
	timer   int64      // when the rank's wait ends, if it awaits with a limit and is not being woken
	polling *operation // the only one that the rank waits for
	fault   int
}

// Run runs body on every rank and returns when all have returned, nil if all returned nil.
// The error of a state in which no rank can continue wraps ErrDeadlock.
func (t Timed) Run(body func(rma.Comm) error) (Elapsed, error) {
	w := newWorld(t.Node, t.MemoryNodes)
	k := &clock{Timed: t, w: w, flowOf: map[int]int32{}}
	w.engine, w.body = k, body
	w.reset(false)
	defer w.close()
	for _, r := range w.ranks {
		r.start()
		k.push(0, ^int32(r.id))
	}
	err := k.run()
	if err != nil {
		w.abort()
	} else if err = w.outcome(); err == nil {
		err = k.missing()
	}
	k.elapsed.Now = k.time
	return k.elapsed, err
}

// missing reports a name of Messages or Device that no window has.
func (k *clock) missing() error {
	for _, name := range slices.Concat(k.Messages, k.Device, k.Loopback) {
		if !slices.ContainsFunc(k.w.segments, func(s *segment) bool { return s.spec.Name == name }) {
			return fmt.Errorf("sim: no window is called %q, which Timed.Messages, Device or Loopback names: %w", name, rma.ErrSpec)
		}
	}
	return nil
}

// tickEvery is how many events lie between two calls of Tick.
const tickEvery = 1 << 14

// run handles events in the order of time.
func (k *clock) run() error {
	w := k.w
	for w.alive > 0 {
		if len(w.ready) > 0 { // a rank failed, which ended all waits
			w.run()
			continue
		}
		if w.failed != nil && len(k.events.e) == 0 {
			return w.failed
		}
		if len(k.events.e) == 0 && !k.tryAgain() {
			return fmt.Errorf("%w at %d ns: %s", ErrDeadlock, k.time, k.describeWaits())
		}
		e := k.events.pop()
		k.time = e.at
		k.elapsed.Events++
		if k.MaxTime > 0 && k.time > k.MaxTime {
			return fmt.Errorf("%w: %d ns, and %s", ErrTime, k.MaxTime, k.describeWaits())
		}
		if k.Tick != nil && k.elapsed.Events%tickEvery == 0 {
			if err := k.Tick(k.time); err != nil {
				return err
			}
		}
		if e.what >= 0 {
			k.arrived(e.what)
			continue
		}
		if n := int(^e.what); n >= len(w.ranks) {
			k.timeUp(w.ranks[n-len(w.ranks)])
			continue
		}
		r := w.ranks[^e.what]
		if r.state == finished {
			continue
		}
		if len(k.Faults) > 0 && k.stopped(r) {
			continue
		}
		r.now = max(r.now, k.time)
		r.resume()
	}
	return nil
}

// The pauses after which ranks in a Backoff try again where nothing else can happen. The last one
// is after two minutes in which no word has changed.
const (
	idlePauseNs = 100_000
	idleTimes   = 20
)

// tryAgain lets time pass for the ranks in a Backoff, which may wait for a time and not for a
// change of the word, and reports whether there are any.
func (k *clock) tryAgain() bool {
	if k.idle.writes != k.writes {
		k.idle = idle{writes: k.writes}
	}
	if k.idle.times == idleTimes {
		return false
	}
	for _, r := range k.w.ranks {
		if r.state == pausing {
			k.unlist(r, 0)
			k.push(k.time+idlePauseNs<<k.idle.times, ^int32(r.id))
		}
	}
	k.idle.times++
	return len(k.events.e) > 0
}

// stopped reports whether a fault stops a rank now.
func (k *clock) stopped(r *rank) bool {
	for i, f := range k.Faults {
		if f.Rank != r.id || k.time < f.At || r.fault > i {
			continue
		}
		if f.For > 0 {
			r.fault = i + 1
			k.push(k.time+f.For, ^int32(r.id))
		}
		return true
	}
	return false
}

func (k *clock) name() string {
	if k.Verbs {
		return "sim, virtual time on " + k.Model.Name() + ", verbs"
	}
	return "sim, virtual time on " + k.Model.Name()
}

func (k *clock) open(c *Comm, s *segment) (rma.Transport, rma.Caps) {
	t := &timedTransport{k: k, c: c, s: s,
		messages: slices.Contains(k.Messages, s.spec.Name), device: slices.Contains(k.Device, s.spec.Name),
		loopback: k.Verbs && slices.Contains(k.Loopback, s.spec.Name)}
	if !k.Verbs {
		return t, rma.Caps{NativeSwap: true, AtomicPut: true}
	}
	caps := rma.Caps{CPUReads: true, NativeSwap: k.MaskedSwap, MaskedSwap: k.MaskedSwap, AtomicPut: t.loopback}
	return rma.Emulate(t, caps), caps
}

func (k *clock) wake(r *rank)     { r.resume() }
func (k *clock) returned(r *rank) { k.w.returned(r) }
func (k *clock) enter(*rank)      {}

// memory makes room for pages. Words of ranks may all be touched; those of memory nodes are more.
func (k *clock) memory(s *segment, hosts int) error {
	if s.spec.Hosts == rma.Ranks {
		if err := rma.CheckMemory(s.spec, hosts); err != nil {
			return err
		}
	}
	s.pages = make([]*page, (s.words*hosts+pageWords-1)/pageWords)
	return nil
}

// clockNs is the time that a reading of the clock takes. Without it a loop that waits for
// the clock would never end.
const clockNs = 20

func (k *clock) now(r *rank) int64 {
	r.now += clockNs
	return r.now
}

// push schedules an event: the resumption of a rank, for ^rank, or the progress of an
// operation, for its number.
func (k *clock) push(at int64, what int32) { k.events.push(at, what) }

// catchUp advances the clock to a rank's time, after all earlier events.
func (k *clock) catchUp(r *rank) {
	if len(k.events.e) > 0 && k.events.e[0].at < r.now {
		k.push(r.now, ^int32(r.id))
		r.park(sleeping)
		return
	}
	k.time = max(k.time, r.now)
}

func (k *clock) sleep(r *rank, ns int64) {
	r.now += max(ns, 0)
	k.push(r.now, ^int32(r.id))
	r.park(sleeping)
}

// met schedules the ranks of a group after a collective call.
func (k *clock) met(g *group, last *rank) {
	k.catchUp(last)
	at := k.time + k.Model.Barrier(len(g.ranks))
	for _, r := range g.ranks {
		if r != last {
			k.push(at, ^int32(r.id))
		}
	}
	last.now = at
	k.push(at, ^int32(last.id))
	last.park(sleeping)
}

// send hands an operation to the network, as a kind of its own there.
func (k *clock) send(r *rank, o *operation, kind rma.Kind) {
	from, to := r.id, o.seg.host(o.Target)
	first, after := true, int64(0)
	for _, p := range r.pending {
		if !p.done && p.seg.host(p.Target) == to {
			if first = false; o.follows(p) {
				after = max(after, p.due)
			}
		}
	}
	var arrives int64
	r.now, arrives = k.Model.Issue(r.now, from, to, kind, o.Words(), first)
	o.rank, o.wire, o.due = int32(r.id), kind, max(arrives, after)
	r.pending = append(r.pending, o)
	var n int32
	if s := len(k.spare); s > 0 {
		n = k.spare[s-1]
		k.spare = k.spare[:s-1]
		k.ops[n] = o
	} else {
		n = int32(len(k.ops))
		k.ops = append(k.ops, o)
	}
	k.elapsed.count(o)
	k.launch(o, n, to, arrives-r.now)
}

// arrived serves an operation at its arrival, and has it take effect when it is served.
func (k *clock) arrived(n int32) {
	o := k.ops[n]
	r := k.w.ranks[o.rank]
	to := o.seg.host(o.Target)
	if !o.half {
		o.half = true
		o.due = k.Model.Serve(k.time, r.id, to, o.wire, o.Words(), o.place())
		for _, p := range r.pending { // those that it follows
			if p == o {
				break
			}
			if !p.done && o.follows(p) {
				o.due = max(o.due, p.due)
			}
		}
		if o.due > k.time {
			k.push(o.due, n)
			return
		}
	}
	k.ops[n] = nil
	k.spare = append(k.spare, n)
	k.effect(r, o)
	o.done = true
	o.ends = k.Model.Reply(k.time, r.id, to, o.wire, o.Words())
	k.answer(o)
	if r.state == flushing && r.waitsFor(o) {
		r.ends = max(r.ends, o.ends)
		if r.left--; r.left == 0 {
			k.push(max(r.ends, r.now), ^int32(r.id))
		}
	}
}

// place is the number of the operation's first word, as Model.Serve takes it.
func (o *operation) place() uint64 {
	if o.device {
		return o.seg.key(o.Target, o.Disp) | Device
	}
	return o.seg.key(o.Target, o.Disp)
}

// waitsFor reports whether a rank's Flush waits for an operation.
func (r *rank) waitsFor(o *operation) bool {
	if r.polling != nil {
		return o == r.polling
	}
	return o.seg == r.seg && (r.target < 0 || o.Target == r.target) && !o.poll
}

// effect does an operation on memory and wakes the ranks that wait for its words.
func (k *clock) effect(r *rank, o *operation) {
	for o.next = 0; o.next < o.Words(); o.next++ {
		before, after, wrote := o.apply()
		if wrote && after != before {
			k.writes++
		}
		switch {
		case o.Finds():
			o.seen = before
		case o.Kind == rma.KindGetBulk:
			o.Data[o.next] = before
		}
		if r.doorway != nil && wrote && o.readsAndWrites() {
			f := r.doorway
			r.doorway = nil
			f()
		}
		if i := o.Target*o.seg.words + o.Disp + o.next; wrote && after != before && o.seg.page(i).waits != nil {
			k.wakeWaiters(o.seg.waitsAt(i), after, r.id)
		}
	}
}

// wakeWaiters schedules those of a list that wait for a word, now that it has the value.
func (k *clock) wakeWaiters(at *int32, value int64, writer int) {
	for *at != 0 {
		r, i := k.waiter(*at)
		if r.state == awaiting && !r.wait.Words[i].Cond.Holds(value) {
			at = &r.next[i]
			continue
		}
		*at, r.next[i] = r.next[i], 0
		k.unlist(r, 1-i)
		r.timer = rma.Forever // it wakes from this, once
		k.push(k.time+k.Model.Woken(writer, r.id), ^int32(r.id))
	}
}

// waiter is the rank of an entry in a list of waiters, and the index of the word that it
// awaits there.
func (k *clock) waiter(entry int32) (r *rank, i int) {
	return k.w.ranks[(entry-1)>>1], int(entry-1) & 1
}

// park suspends a rank until a word of r.wait changes, or its limit.
func (k *clock) park(r *rank, s state) {
	for i := range r.wait.N {
		head := r.seg.waitsAt(r.listed(i))
		r.next[i] = *head
		*head = int32(r.id)<<1 + int32(i) + 1
	}
	if r.timer = r.wait.Until; r.timer != rma.Forever {
		k.push(max(r.timer, r.now), k.timerOf(r))
	}
	r.park(s)
	r.timer = rma.Forever
}

// listed is the index in its segment of word i of what a rank waits for.
func (r *rank) listed(i int) int {
	a := &r.wait.Words[i]
	return a.Target*r.seg.words + a.Disp
}

// unlist takes a rank from the list of word i, if it waits there.
func (k *clock) unlist(r *rank, i int) {
	if i >= r.wait.N {
		return
	}
	for at := r.seg.waitsAt(r.listed(i)); *at != 0; {
		q, j := k.waiter(*at)
		if q == r && j == i {
			*at, r.next[i] = r.next[i], 0
			return
		}
		at = &q.next[j]
	}
}

// timerOf is the event in which the limit of a rank's wait passes.
func (k *clock) timerOf(r *rank) int32 { return ^int32(len(k.w.ranks) + r.id) }

// timeUp resumes a rank whose wait has reached its limit; the event of an earlier wait does
// nothing.
func (k *clock) timeUp(r *rank) {
	if r.state != awaiting || r.timer > k.time {
		return
	}
	k.unlist(r, 0)
	k.unlist(r, 1)
	r.now = max(r.now, k.time)
	r.resume()
}

func (k *clock) describeWaits() string {
	return k.w.describeWaits(func(*rank) string { return "" })
}
