//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// A wait for words of the device looks often first, and then every 50 us.
const looks = 50

// Await looks at the words again and again: those of the node by loads, the others by READs, two
// of one target in one list.
func (t *transport) Await(q rma.Waiting) (int, int64, error) {
	for round := 0; ; round++ {
		var v [2]int64
		if err := t.look(&q, &v); err != nil {
			return -1, 0, err
		}
		if i := q.Found(&v); i >= 0 {
			return i, v[i], nil
		}
		if q.Until != rma.Forever && t.now() >= q.Until {
			return -1, 0, nil
		}
		if err := t.life.check(); err != nil {
			return -1, 0, err
		}
		if round < looks {
			runtime.Gosched()
		} else {
			time.Sleep(nap)
		}
	}
}

// look reads the words of a wait.
func (t *transport) look(q *rma.Waiting, v *[2]int64) error {
	far := 0
	for i := range q.N {
		w := &q.Words[i]
		if t.near != nil && t.mates.Has(w.Target) {
			v[i] = atomic.LoadInt64(t.near.Word(w.Target, w.Disp))
			continue
		}
		h := &t.hosts[w.Target]
		word := rma.MaxPending + i
		t.h.ops[word] = C.nic_op{
			kind: C.NIC_READ, remote: C.uint64_t(h.place.Address) + C.uint64_t(w.Disp)*8, key: C.uint32_t(h.place.Key),
			local: C.uint64_t(uintptr(unsafe.Pointer(&t.h.words[word]))), local_key: t.key, bytes: 8, target: C.int32_t(w.Target),
		}
		far |= 1 << i
	}
	for far != 0 {
		i := bits.TrailingZeros(uint(far))
		together := 1
		if far == 3 && q.Words[0].Target == q.Words[1].Target {
			together = 2
		}
		if err := t.read(q.Words[i].Target, i, together); err != nil {
			return err
		}
		for k := i; k < i+together; k++ {
			v[k] = int64(t.h.words[rma.MaxPending+k])
			far &^= 1 << k
		}
	}
	return nil
}

// read does the READs of a wait.
func (t *transport) read(to, first, n int) error {
	g := t.hosts[to].target
	if err := g.lock(); err != nil {
		return err
	}
	defer g.mu.RUnlock()
	s := &t.h.steps[rma.MaxPending+first]
	C.nic_post(g.pair.p, &t.h.ops[rma.MaxPending+first], 0, C.int(n), C.int(to), s, t.polling())
	return t.wait(g, s)
}

// Backoff yields, and from the fiftieth try on sleeps 50 us.
func (t *transport) Backoff(_, _ int, _ int64, try int) error {
	if try < looks {
		runtime.Gosched()
	} else {
		time.Sleep(nap)
	}
	return t.life.check()
}
