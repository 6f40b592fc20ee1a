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
	mpiPollFor     = 100 * time.Microsecond // in C, before the first sleep
	spinBrieflyFor = 2 * time.Microsecond   // longest SpinBriefly
	pauseFirst     = time.Microsecond       // between polls of a far word, doubling
	pauseLast      = 100 * time.Microsecond
)

func (t *transport) Await(q rma.Waiting) (which int, v int64, err error) {
	if q.N > 1 || q.Until != rma.Forever {
		return t.awaitPolling(&q)
	}
	target, disp, c := q.Words[0].Target, q.Words[0].Disp, q.Words[0].Cond
	switch {
	case t.win == nil:
		v, err = t.awaitNode(t.nodeRank(target), disp, c)
	case t.nearWord(target, disp):
		v, err = t.awaitServing(t.nodeRank(target), disp, c)
	default:
		v, err = t.awaitFar(target, disp, c)
	}
	return 0, v, err
}

// nearWord reports whether the CPU reads a word.
func (t *transport) nearWord(target, disp int) bool {
	if t.win == nil {
		return true
	}
	class := t.spec.Class(disp)
	return (class == rma.Near || class == rma.Flag) && t.nodeRank(target) >= 0
}

// awaitPolling waits for one of several words, or until a limit: it looks at the words in
// turn, and pauses.
func (t *transport) awaitPolling(q *rma.Waiting) (int, int64, error) {
	pause := pauseFirst
	checked := time.Now()
	for {
		for i := range q.N {
			a := &q.Words[i]
			v, err := t.look(a.Target, a.Disp)
			if err != nil || a.Cond.Holds(v) {
				return i, v, err
			}
		}
		left := q.Until - t.c.Now()
		if left <= 0 {
			return -1, 0, nil
		}
		t.pauseFor(min(pause, time.Duration(left)))
		pause = min(2*pause, pauseLast)
		if now := time.Now(); now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return -1, 0, err
			}
		}
	}
}

// look reads a word, and lets MPI progress.
func (t *transport) look(target, disp int) (int64, error) {
	if t.nearWord(target, disp) {
		p := t.s.word(t.nodeRank(target), disp)
		if t.win != nil {
			word := (*C.int64_t)(unsafe.Pointer(p))
			if rc := C.shim_await_near(t.win, word, C.SHIM_NOT_EQUAL, C.int64_t(atomic.LoadInt64(p)), 0, 0); rc != C.MPI_SUCCESS && rc != C.SHIM_NOT_YET {
				return 0, failed(fmt.Sprintf("window %q: waiting", t.spec.Name), rc)
			}
		}
		return atomic.LoadInt64(p), nil
	}
	return t.poll(target, disp)
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

// awaitNode waits for a word that only CPUs of this node change.
func (t *transport) awaitNode(nodeRank, disp int, c rma.Cond) (int64, error) {
	p := t.s.word(nodeRank, disp)
	for range spinReads {
		if v := atomic.LoadInt64(p); c.Holds(v) {
			return v, nil
		}
	}
	start := time.Now()
	if t.skipYields > 0 {
		t.skipYields--
	} else {
		for i, last := 1, start; ; i++ {
			yield()
			if v := atomic.LoadInt64(p); c.Holds(v) {
				return v, nil
			}
			if i%8 == 0 {
				runtime.Gosched() // the holder may be a goroutine of this process
			}
			now := time.Now()
			if now.Sub(last) > yieldLong {
				t.skipYields = skipYieldsFor
				break
			}
			if now.Sub(start) > yieldFor {
				break
			}
			last = now
		}
	}
	checked := start
	sleepers, futex, naps := t.s.sleepers(nodeRank, disp), t.s.futexSeq(nodeRank), 0
	for {
		seq := atomic.LoadUint32(futex)
		atomic.AddUint32(sleepers, 1)
		v := atomic.LoadInt64(p) // after the count: a writer that read 0 there has written before
		if !c.Holds(v) {
			futexWait(futex, seq, naps, futexFor)
			naps++
			v = atomic.LoadInt64(p)
		}
		atomic.AddUint32(sleepers, ^uint32(0))
		if c.Holds(v) {
			return v, nil
		}
		if now := time.Now(); now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return 0, err
			}
		}
	}
}

// awaitServing waits for a word in node memory in a window with far ranks: MPI progresses
// meanwhile. On a near word, which only CPUs of this node change, the rank sleeps between
// looks, and the writer wakes it. Where other processes want the core it sleeps at once.
func (t *transport) awaitServing(nodeRank, disp int, c rma.Cond) (int64, error) {
	p := t.s.word(nodeRank, disp)
	start := time.Now()
	checked := start
	near := t.spec.Class(disp) == rma.Near
	look := mpiPollFor // at a time in C
	switch {
	case near && t.skipYields > 0:
		t.skipYields--
		look = 0
	case t.c.awaitResults && !near:
		look = time.Millisecond // which naps on its own
	}
	sleepers, futex := t.s.sleepers(nodeRank, disp), t.s.futexSeq(nodeRank)
	for naps := 0; ; naps++ {
		rc := C.shim_await_near(t.win, (*C.int64_t)(unsafe.Pointer(p)), C.int(c.Rel), C.int64_t(c.Value), C.int64_t(c.Mask), C.int64_t(look))
		if rc != C.MPI_SUCCESS && rc != C.SHIM_NOT_YET {
			return 0, failed(fmt.Sprintf("window %q: waiting", t.spec.Name), rc)
		}
		if v := atomic.LoadInt64(p); c.Holds(v) {
			return v, nil
		}
		now := time.Now()
		if near {
			if naps == 0 && now.Sub(start) > mpiPollFor+yieldLong {
				t.skipYields = skipYieldsFor
			}
			look = 0
			seq := atomic.LoadUint32(futex)
			atomic.AddUint32(sleepers, 1)
			v := atomic.LoadInt64(p) // after the count: a writer that read 0 there has written before
			if !c.Holds(v) {
				futexWait(futex, seq, naps, futexNear)
				v = atomic.LoadInt64(p)
			}
			atomic.AddUint32(sleepers, ^uint32(0))
			if c.Holds(v) {
				return v, nil
			}
		} else if waited := now.Sub(start); waited > 2*time.Millisecond && !t.c.awaitResults {
			time.Sleep(min(waited/16, 200*time.Microsecond))
		} else {
			runtime.Gosched()
		}
		if now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return 0, err
			}
		}
	}
}

// awaitFar polls a word through MPI.
func (t *transport) awaitFar(target, disp int, c rma.Cond) (int64, error) {
	pause := pauseFirst
	checked := time.Now()
	for {
		if v, err := t.poll(target, disp); err != nil || c.Holds(v) {
			return v, err
		}
		t.pauseFor(pause)
		pause = min(2*pause, pauseLast)
		if now := time.Now(); now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return 0, err
			}
		}
	}
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
		ts := syscall.NsecToTimespec(int64(futexFirst))
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWaitOp, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
		return
	}
	ts := syscall.NsecToTimespec(int64(longest))
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWaitOp, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(p *uint32) {
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexWakeOp, 1<<30, 0, 0, 0)
}
