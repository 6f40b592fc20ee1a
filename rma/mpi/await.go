//go:build cgo

package mpi

// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

const (
	spinReads      = 3000                   // reads of a near word before the first yield: about 1 us, two yields' cost
	yieldFor       = 500 * time.Microsecond // with yields before the first sleep
	yieldLong      = 200 * time.Microsecond // a yield of this length gave the core to a process that does not yield
	skipYieldsFor  = 32                     // waits that then go to sleep at once
	futexFirst     = time.Millisecond       // longest first sleep
	futexFor       = 100 * time.Millisecond // longest sleep
	futexNear      = time.Millisecond       // longest sleep between looks at what MPI has to do
	futexShort     = 200 * time.Microsecond // longest sleep where one of two words wakes no sleeper
	mpiPollFor     = 100 * time.Microsecond // in C, before the first sleep
	spinBrieflyFor = 2 * time.Microsecond   // longest SpinBriefly
	pauseFirst     = time.Microsecond       // between polls of a far word, doubling
	pauseLast      = 100 * time.Microsecond
)

// Await waits in the way that suits its words.
func (t *transport) Await(q rma.Waiting) (which int, v int64, err error) {
	near := true // the CPU reads all of them
	for i := range q.N {
		near = near && t.nearWord(q.Words[i].Target, q.Words[i].Disp)
	}
	switch {
	case !near:
		return t.awaitFar(&q)
	case t.win == nil:
		return t.awaitNode(&q)
	}
	return t.awaitServing(&q)
}

// nearWord reports whether the CPU reads a word.
func (t *transport) nearWord(target, disp int) bool {
	if t.win == nil {
		return true
	}
	return t.nodeRank(target) >= 0
}

// end is when a wait that begins now ends by its limit.
func (t *transport) end(q *rma.Waiting, now time.Time) time.Time {
	if ns := t.c.Now(); q.Until > ns {
		return now.Add(time.Duration(q.Until - ns))
	}
	return now
}

// poll reads a word through MPI.
func (t *transport) poll(target, disp int) (int64, error) {
	if rc := C.shim_poll(t.win, C.int(t.rank(target)), C.int64_t(disp), C.int(t.spec.Class(disp))); rc != C.MPI_SUCCESS {
		return 0, failed(fmt.Sprintf("window %q: polling %s", t.spec.Name, t.far.name(t.rank(target))), rc)
	}
	yieldToScheduler(t.win)
	return int64(t.win.polled), nil
}

// nodeRank is the index of a rank in the ranks of this node, or -1; -1 for memory nodes.
func (t *transport) nodeRank(rank int) int {
	if t.hosts != nil {
		return -1
	}
	ranks := t.c.node.Ranks
	if i := rank - ranks[0]; uint(i) < uint(len(ranks)) && ranks[i] == rank {
		return i
	}
	for i, r := range ranks {
		if r == rank {
			return i
		}
	}
	return -1
}

// A nearWait is the words of a wait, which are in node memory.
type nearWait struct {
	q        *rma.Waiting
	words    [2]*int64
	futex    *uint32    // of the part of the first word
	sleepers [2]*uint32 // the words' counters of sleepers; nil for a word of another part
	longest  time.Duration
}

// nearWait makes a nearWait whose sleeps take longest at most. A rank sleeps on one futex: it announces
// itself at the words of that part, and where the other word is of another part its sleeps are
// short.
func (t *transport) nearWait(q *rma.Waiting, longest time.Duration) nearWait {
	w := nearWait{q: q, futex: t.s.futexSeq(t.nodeRank(q.Words[0].Target)), longest: longest}
	for i := range q.N {
		target, disp := q.Words[i].Target, q.Words[i].Disp
		rank := t.nodeRank(target)
		w.words[i] = t.s.word(rank, disp)
		if target == q.Words[0].Target {
			w.sleepers[i] = t.s.sleepers(rank, disp)
		} else {
			w.longest = min(longest, futexShort)
		}
	}
	return w
}

// found is the first word whose condition holds, or -1, and its value.
func (w *nearWait) found() (int, int64) {
	for i := range w.q.N {
		if v := atomic.LoadInt64(w.words[i]); w.q.Words[i].Cond.Holds(v) {
			return i, v
		}
	}
	return -1, 0
}

// sleep sleeps until a rank writes one of the words, or a moment, and returns what it found.
func (w *nearWait) sleep(nap int, left time.Duration) (int, int64) {
	seq := atomic.LoadUint32(w.futex)
	for _, n := range w.sleepers {
		if n != nil {
			atomic.AddUint32(n, 1)
		}
	}
	i, v := w.found() // after the counts: a writer that read 0 there has written before
	if i < 0 {
		futexWait(w.futex, seq, nap, max(0, min(w.longest, left)))
		i, v = w.found()
	}
	for _, n := range w.sleepers {
		if n != nil {
			atomic.AddUint32(n, ^uint32(0))
		}
	}
	return i, v
}

// awaitNode waits for words in a job on one node.
func (t *transport) awaitNode(q *rma.Waiting) (int, int64, error) {
	if q.N == 1 {
		p, c := t.s.word(t.nodeRank(q.Words[0].Target), q.Words[0].Disp), q.Words[0].Cond
		for range spinReads {
			if v := atomic.LoadInt64(p); c.Holds(v) {
				return 0, v, nil
			}
		}
	}
	w := t.nearWait(q, futexFor)
	start := time.Now()
	end := t.end(q, start)
	if i, v := t.yieldFor(&w, start, end); i >= 0 {
		return i, v, nil
	}
	for naps, checked, now := 0, start, start; ; naps++ {
		i, v := w.sleep(naps, end.Sub(now))
		if now = time.Now(); i >= 0 || !now.Before(end) {
			return i, v, nil
		}
		if now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return -1, 0, err
			}
		}
	}
}

// yieldFor looks at the words between yields, and returns -1 when it is time to sleep.
func (t *transport) yieldFor(w *nearWait, start, end time.Time) (int, int64) {
	if t.skipYields > 0 {
		t.skipYields--
		return -1, 0
	}
	for i, last := 1, start; ; i++ {
		yield()
		if which, v := w.found(); which >= 0 {
			return which, v
		}
		if i%8 == 0 {
			runtime.Gosched() // the holder may be a goroutine of this process
		}
		now := time.Now()
		if now.Sub(last) > yieldLong {
			t.skipYields = skipYieldsFor
			return -1, 0
		}
		if now.Sub(start) > yieldFor || !now.Before(end) {
			return -1, 0
		}
		last = now
	}
}

// awaitServing waits for words in node memory in a window with far ranks: MPI progresses
// meanwhile. On near words, which only CPUs of this node change, the rank sleeps between
// looks, and the writer wakes it. Where other processes want the core it sleeps at once.
func (t *transport) awaitServing(q *rma.Waiting) (int, int64, error) {
	w := t.nearWait(q, futexNear)
	var looks [2]C.shim_look
	near := true
	for i := range q.N {
		a := &q.Words[i]
		near = near && t.spec.Class(a.Disp) == rma.Near
		looks[i] = C.shim_look{
			word:  (*C.int64_t)(unsafe.Pointer(w.words[i])),
			value: C.int64_t(a.Cond.Value), mask: C.int64_t(a.Cond.Mask), rel: C.int(a.Cond.Rel),
		}
	}
	start := time.Now()
	checked, end := start, t.end(q, start)
	look := mpiPollFor // at a time in C
	switch {
	case near && t.skipYields > 0:
		t.skipYields--
		look = 0
	case t.c.awaitResults && !near:
		look = time.Millisecond // which naps on its own
	}
	for now, naps := start, 0; ; naps++ {
		rc := C.shim_await_near(t.win, &looks[0], C.int(q.N), C.int64_t(min(look, end.Sub(now))))
		if rc != C.MPI_SUCCESS && rc != C.SHIM_NOT_YET {
			return -1, 0, failed(fmt.Sprintf("window %q: waiting", t.spec.Name), rc)
		}
		i, v := w.found()
		if now = time.Now(); i >= 0 || !now.Before(end) {
			return i, v, nil
		}
		if near {
			if naps == 0 && now.Sub(start) > mpiPollFor+yieldLong {
				t.skipYields = skipYieldsFor
			}
			look = 0
			if i, v := w.sleep(naps, end.Sub(now)); i >= 0 {
				return i, v, nil
			}
		} else if waited := now.Sub(start); waited > 2*time.Millisecond && !t.c.awaitResults {
			time.Sleep(min(waited/16, 200*time.Microsecond))
		} else {
			runtime.Gosched()
		}
		if now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return -1, 0, err
			}
		}
	}
}

// awaitFar waits for words some of which are polled through MPI.
func (t *transport) awaitFar(q *rma.Waiting) (int, int64, error) {
	pause := pauseFirst
	now := time.Now()
	checked, end := now, t.end(q, now)
	for {
		for i := range q.N {
			a := &q.Words[i]
			if v, err := t.look(a.Target, a.Disp); err != nil {
				return -1, 0, err
			} else if a.Cond.Holds(v) {
				return i, v, nil
			}
		}
		if !now.Before(end) {
			return -1, 0, nil
		}
		t.pauseFor(min(pause, end.Sub(now)))
		pause = min(2*pause, pauseLast)
		if now = time.Now(); now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return -1, 0, err
			}
		}
	}
}

// look reads a word.
func (t *transport) look(target, disp int) (int64, error) {
	if t.nearWord(target, disp) {
		return atomic.LoadInt64(t.s.word(t.nodeRank(target), disp)), nil
	}
	return t.poll(target, disp)
}

// Backoff yields the core. After a thousand tries in a row it naps for 20 us at a time, so that
// ranks that try in vain leave the core to others. After each thousand naps, which take 0.1 to
// 1 s, it looks whether its node-mates live.
func (t *transport) Backoff(target, disp int, _ int64, try int) error {
	if try >= 2000 && try%1000 == 0 {
		if err := t.peersLive(); err != nil {
			return err
		}
	}
	switch {
	case t.win != nil && t.nodeRank(target) < 0:
		t.pauseFor(min(pauseFirst<<min(try, 10), pauseLast))
	case try >= 1000:
		time.Sleep(20 * time.Microsecond)
	case try%8 == 7:
		runtime.Gosched()
		fallthrough
	default:
		yield()
	}
	return nil
}

// pauseFor yields for a time too short for the kernel's timers, and naps for a longer one, or
// where ranks exceed cores under MPICH. A nap is no time.Sleep, which rounds up to a millisecond.
func (t *transport) pauseFor(d time.Duration) {
	if t.c.awaitResults || d >= 50*time.Microsecond {
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // interrupted is long enough
		return
	}
	for start := time.Now(); ; {
		yield()
		if time.Since(start) >= d {
			return
		}
	}
}

// SpinBriefly spins, and yields to ranks that share the core.
func (t *transport) SpinBriefly(disp int, seen int64) {
	p := t.s.word(t.nodeRank(t.c.rank), disp)
	start := time.Now()
	for yields := 0; yields < 2 || time.Since(start) < spinBrieflyFor; yields++ {
		for range 20 {
			if atomic.LoadInt64(p) != seen {
				return
			}
		}
		yield()
	}
}

// HandedOver yields the core.
func (t *transport) HandedOver(int) { yield() }

func (t *transport) Wake(target int) {
	if i := t.nodeRank(target); i >= 0 {
		atomic.AddUint32(t.s.futexSeq(i), 1)
		futexWake(t.s.futexSeq(i))
	}
}

// peersLive returns an error that names a node-mate that died.
func (t *transport) peersLive() error {
	return t.c.peersLive(fmt.Sprintf("window %q", t.spec.Name))
}

// yield is sched_yield without the Go scheduler, as it is short.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// The futex is shared between processes: no FUTEX_PRIVATE_FLAG.
const (
	futexWaitOp = 0
	futexWakeOp = 1
)

// futexWait sleeps while *p equals seen. The first nap bypasses the Go scheduler, as most
// wake-ups come soon. It is short, since it holds up a garbage collection.
func futexWait(p *uint32, seen uint32, nap int, longest time.Duration) {
	if nap == 0 {
		ts := syscall.NsecToTimespec(int64(min(longest, futexFirst)))
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWaitOp, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
		return
	}
	ts := syscall.NsecToTimespec(int64(longest))
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWaitOp, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(p *uint32) {
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWakeOp, 1<<30, 0, 0, 0)
}
