//go:build cgo

package mpi

// #include "rl.h"
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
	spins      = 3000                   // reads of a near word before the first yield: about 1 us, two yields' cost
	yieldFor   = 500 * time.Microsecond // with yields before the first sleep
	yieldLong  = 200 * time.Microsecond // a yield that took so long gave the core to somebody who does not yield
	crowdedFor = 32                     // waits that then go to sleep at once
	futexFirst = time.Millisecond       // longest first sleep
	futexFor   = 100 * time.Millisecond // longest sleep
	futexNear  = time.Millisecond       // and between looks at what MPI has to do
	lookFor    = 100 * time.Microsecond // in C, before the first sleep
	lingerFor  = 2 * time.Microsecond   // longest SpinBriefly
	pauseFirst = time.Microsecond       // between polls of a far word, doubling
	pauseLast  = 100 * time.Microsecond
)

func (t *transport) Await(target, disp int, c rma.Cond) (int64, error) {
	mate := t.mate(target)
	switch {
	case t.win == nil:
		return t.awaitMate(mate, disp, c)
	case mate >= 0 && t.spec.Class(disp) != rma.Far:
		return t.awaitServing(mate, disp, c)
	}
	return t.awaitFar(target, disp, c)
}

// mate is the index of a rank on this node, or -1.
func (t *transport) mate(rank int) int {
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

// awaitMate waits for a word that only CPUs of this node change.
func (t *transport) awaitMate(mate, disp int, c rma.Cond) (int64, error) {
	p := t.s.word(mate, disp)
	for range spins {
		if v := atomic.LoadInt64(p); c.Holds(v) {
			return v, nil
		}
	}
	start := time.Now()
	if t.crowded > 0 {
		t.crowded--
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
				t.crowded = crowdedFor
				break
			}
			if now.Sub(start) > yieldFor {
				break
			}
			last = now
		}
	}
	checked := start
	asleep, beats, naps := t.s.asleep(mate, disp), t.s.beats(mate), 0
	for {
		beat := atomic.LoadUint32(beats)
		atomic.AddUint32(asleep, 1)
		v := atomic.LoadInt64(p) // after the announcement: a writer who missed it has written before
		if !c.Holds(v) {
			futexWait(beats, beat, naps, futexFor)
			naps++
			v = atomic.LoadInt64(p)
		}
		atomic.AddUint32(asleep, ^uint32(0))
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

// awaitServing waits for a word in node memory that far ranks may change, or in
// whose window far ranks have business here: MPI progresses meanwhile. For a word that
// only CPUs of this node change it sleeps between looks, and whoever changes it wakes it;
// where others want the core it does so at once.
func (t *transport) awaitServing(mate, disp int, c rma.Cond) (int64, error) {
	p := t.s.word(mate, disp)
	start := time.Now()
	checked := start
	near := t.spec.Class(disp) == rma.Near
	look := lookFor // at a time in C
	switch {
	case near && t.crowded > 0:
		t.crowded--
		look = 0
	case t.c.polite && !near:
		look = time.Millisecond // which naps on its own
	}
	asleep, beats := t.s.asleep(mate, disp), t.s.beats(mate)
	for naps := 0; ; naps++ {
		rc := C.rl_await_near(t.win, (*C.int64_t)(unsafe.Pointer(p)), C.int(c.Rel), C.int64_t(c.Value), C.int64_t(look))
		if rc != C.MPI_SUCCESS && rc != C.RL_AGAIN {
			return 0, failed(fmt.Sprintf("window %q: waiting", t.spec.Name), rc)
		}
		if v := atomic.LoadInt64(p); c.Holds(v) {
			return v, nil
		}
		now := time.Now()
		if near {
			if naps == 0 && now.Sub(start) > lookFor+yieldLong {
				t.crowded = crowdedFor
			}
			look = 0
			beat := atomic.LoadUint32(beats)
			atomic.AddUint32(asleep, 1)
			v := atomic.LoadInt64(p) // after the announcement: a writer who missed it has written before
			if !c.Holds(v) {
				futexWait(beats, beat, naps, futexNear)
				v = atomic.LoadInt64(p)
			}
			atomic.AddUint32(asleep, ^uint32(0))
			if c.Holds(v) {
				return v, nil
			}
		} else if waited := now.Sub(start); waited > 2*time.Millisecond && !t.c.polite {
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
	class := C.int(t.spec.Class(disp))
	pause := pauseFirst
	checked := time.Now()
	for {
		if rc := C.rl_poll(t.win, C.int(target), C.int64_t(disp), class); rc != C.MPI_SUCCESS {
			return 0, failed(fmt.Sprintf("window %q: polling rank %d", t.spec.Name, target), rc)
		}
		show(t.win)
		if v := int64(t.win.one); c.Holds(v) {
			return v, nil
		}
		t.rest(pause)
		pause = min(2*pause, pauseLast)
		if now := time.Now(); now.Sub(checked) > lifeCheck {
			checked = now
			if err := t.peersLive(); err != nil {
				return 0, err
			}
		}
	}
}

// Backoff gives the processor away, and after a thousand tries in a row sleeps for
// 20 us, so that ranks that try in vain do not burn it. After each thousand naps, which
// take 0.1 to 1 s, it looks whether its node-mates live.
func (t *transport) Backoff(target, disp int, _ int64, try int) error {
	if try >= 2000 && try%1000 == 0 {
		if err := t.peersLive(); err != nil {
			return err
		}
	}
	switch {
	case t.win != nil && t.mate(target) < 0:
		t.rest(min(pauseFirst<<min(try, 10), pauseLast))
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

// rest waits for a time too short for the kernel's timers by yielding, where a core
// is to spare. The naps are not time.Sleep, which rounds up to a millisecond.
func (t *transport) rest(d time.Duration) {
	if t.c.polite || d >= 50*time.Microsecond {
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
	p := t.s.word(t.mate(t.c.rank), disp)
	start := time.Now()
	for yields := 0; yields < 2 || time.Since(start) < lingerFor; yields++ {
		for range 20 {
			if atomic.LoadInt64(p) != seen {
				return
			}
		}
		yield()
	}
}

// HandedOver gives the core away.
func (t *transport) HandedOver(int) { yield() }

func (t *transport) Wake(target int) {
	if m := t.mate(target); m >= 0 {
		atomic.AddUint32(t.s.beats(m), 1)
		futexWake(t.s.beats(m))
	}
}

// peersLive reports a node-mate that died.
func (t *transport) peersLive() error {
	return t.c.matesLive(fmt.Sprintf("window %q", t.spec.Name))
}

// yield is sched_yield without telling the Go scheduler: it is short.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// The futex is shared between processes: no FUTEX_PRIVATE_FLAG.
const (
	futexWaitOp = 0
	futexWakeOp = 1
)

// futexWait sleeps while *p is seen. The first nap keeps the Go scheduler out, as
// most wake-ups come soon; it is short, since it holds up a garbage collection.
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
