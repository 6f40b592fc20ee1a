package rma

import (
	"math"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// A Rel is the relation of a Cond.
type Rel uint8

const (
	RelEqual Rel = iota
	RelNotEqual
	RelLess
	RelAtLeast
)

// A Cond is a condition on a word. It is data, so that a transport may wait for
// it wherever it likes.
type Cond struct {
	Rel   Rel
	Value int64
	Mask  int64 // the bits of the word that count; 0 for all
}

// Equal holds for words equal to v.
func Equal(v int64) Cond { return Cond{Rel: RelEqual, Value: v} }

// NotEqual holds for words other than v.
func NotEqual(v int64) Cond { return Cond{Rel: RelNotEqual, Value: v} }

// Less holds for words less than v, signed.
func Less(v int64) Cond { return Cond{Rel: RelLess, Value: v} }

// AtLeast holds for words equal to v or greater, signed.
func AtLeast(v int64) Cond { return Cond{Rel: RelAtLeast, Value: v} }

// In is the condition on the bits of mask alone; the others count as 0.
func (c Cond) In(mask int64) Cond {
	c.Mask = mask
	return c
}

// Holds reports whether a word's value satisfies the condition.
func (c Cond) Holds(v int64) bool {
	if c.Mask != 0 {
		v &= c.Mask
	}
	switch c.Rel {
	case RelEqual:
		return v == c.Value
	case RelNotEqual:
		return v != c.Value
	case RelLess:
		return v < c.Value
	case RelAtLeast:
	}
	return v >= c.Value
}

func (c Cond) String() string {
	s := [...]string{"==", "!=", "<", ">="}[c.Rel&3] + " " + strconv.FormatInt(c.Value, 10)
	if c.Mask != 0 {
		s += " in " + strconv.FormatUint(uint64(c.Mask), 16)
	}
	return s
}

// Forever is a limit that never comes.
const Forever int64 = math.MaxInt64

// A Wait is a word and the condition on it.
type Wait struct {
	Target, Disp int
	Cond         Cond
}

// Waiting is what a rank waits for: one of N words, until a moment of Comm.Now.
type Waiting struct {
	Words [2]Wait
	N     int // 1 or 2
	Until int64
}

// Found is the index of the first condition that holds for what a rank read, or -1.
func (q *Waiting) Found(v *[2]int64) int {
	for i := range q.N {
		if q.Words[i].Cond.Holds(v[i]) {
			return i
		}
	}
	return -1
}

// Await waits until the word satisfies c and returns the value that did. The word
// may be one's own, a node-mate's or a far rank's. Await does not flush: whatever
// the answer depends on must have been flushed before.
//
// It synchronizes with the operation that wrote the value. It has no bound of its
// own: it ends when the word changes, or with ErrPeer or ErrTransport when the
// backend learns that it cannot. Near words are watched for some rounds of the
// processor, then with yields, then asleep; far words are polled, one remote
// operation per poll, at the pace that the backend documents.
func (w *Window) Await(target, disp int, c Cond) (int64, error) {
	if uint(target) < w.flat && uint(disp) < w.words {
		p := (*int64)(unsafe.Add(w.base, uintptr(target)*w.stride+uintptr(disp)*8))
		if v := atomic.LoadInt64(p); c.Holds(v) {
			return v, nil
		}
	}
	_, v, err := w.await(Waiting{Words: [2]Wait{{target, disp, c}}, N: 1, Until: Forever})
	return v, err
}

// AwaitUntil is Await with a limit, a moment of Comm.Now. It reports whether the condition
// held; if not, the limit has passed. It may return a little after the limit.
func (w *Window) AwaitUntil(target, disp int, c Cond, until int64) (v int64, held bool, err error) {
	which, v, err := w.await(Waiting{Words: [2]Wait{{target, disp, c}}, N: 1, Until: until})
	return v, which == 0 && err == nil, err
}

// AwaitEither waits until one of two words of the window satisfies its condition, or until a
// limit, which may be [Forever]. It returns the index of the word and its value; the index is
// -1 if the limit has passed. If both conditions hold, it is 0. It costs an operation per
// poll and word where a word is far.
func (w *Window) AwaitEither(a, b Wait, until int64) (which int, v int64, err error) {
	return w.await(Waiting{Words: [2]Wait{a, b}, N: 2, Until: until})
}

// await is the way of all waits.
func (w *Window) await(q Waiting) (which int, v int64, err error) {
	for i := range q.N {
		o := Operation{Kind: KindGet, Target: q.Words[i].Target, Disp: q.Words[i].Disp}
		if err := w.check(&o); err != nil {
			w.fail(err)
			break
		}
	}
	if err := w.takeErr(); err != nil {
		return -1, 0, err
	}
	for i := range q.N {
		if part := w.shared(q.Words[i].Target, q.Words[i].Disp, reading); part != nil {
			v := atomic.LoadInt64((*int64)(unsafe.Add(part, q.Words[i].Disp*8)))
			if q.Words[i].Cond.Holds(v) {
				return i, v, nil
			}
		}
	}
	return w.t.Await(q)
}

// Backoff pauses before the caller tries an operation on a word again: the last
// try found seen there, and try counts the tries from 0. A backend returns when
// it likes; a search of the simulator resumes the caller when the word has changed, or when
// its clock has moved, since the caller may look at the time.
//
// What the caller found in earlier tries it must not use: it begins anew. The exception is a
// caller that has read Comm.Now since its first try: it may use all that it found, such as
// since when the word has been the same. A search then tells it from one that found
// something else. AwaitUntil is cheaper, there and in remote operations.
func (w *Window) Backoff(target, disp int, seen int64, try int) error {
	o := Operation{Kind: KindGet, Target: target, Disp: disp}
	if err := w.check(&o); err != nil {
		return err
	}
	return w.t.Backoff(target, disp, seen, try)
}

// SpinBriefly waits a moment, of the order of a microsecond, for a word of the caller's own
// memory to hold something else than seen, and returns what it holds. It is for a rank
// that is about to do something expensive that another one may make needless at any
// time, and no way to wait: the word need not have changed. It is not Far.
func (w *Window) SpinBriefly(disp int, seen int64) (int64, error) {
	if v, err := w.GetFlush(w.rank, disp); v != seen || err != nil {
		return v, err
	}
	w.t.SpinBriefly(disp, seen)
	return w.GetFlush(w.rank, disp)
}

// SyncInboundStores returns when the stores by which far ranks have changed flag words of the
// caller's own memory are over, as far as some rank has seen the change. Some
// transports store a word twice (see docs/decisions/0002-mpi.md): a rank that writes
// such a word itself again, without having spoken to the transport since, settles
// first. It costs nothing where there are no far ranks, and one crossing otherwise.
func (w *Window) SyncInboundStores() error {
	if w.t == nil || !w.caps.FarRanks {
		return nil
	}
	return w.t.SyncInboundStores()
}

// HandedOver tells the backend that the caller has just let another rank go on, as an
// Unlock with a successor does, and can itself wait a moment. Where ranks exceed
// cores the backend gives the core away; elsewhere it does nothing. It changes no
// word and orders nothing.
//
// It is what keeps a first-in-first-out lock fast on an oversubscribed node: a rank that
// runs on after its release and queues up again stands behind ranks that are not
// running, and every hand-over then waits for the machine's scheduler to come round
// to the right one. A rank that goes to the end of the scheduler's queue before it
// enters the lock's finds the two in the same order.
func (w *Window) HandedOver(target int) {
	if w.oversubscribed && w.t != nil {
		w.t.HandedOver(target)
	}
}
