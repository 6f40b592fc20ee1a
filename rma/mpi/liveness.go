//go:build cgo

package mpi

// #include <stdlib.h>
// #include "rl.h"
import "C"

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// liveness asks the other nodes in turn whether they still answer, by reading a word of
// one of their ranks, so that a rank that speaks to nobody (it waits in a collective
// call, or for a flag that a far rank is to set) learns that a host has gone: the read
// does not return, and the watchdog ends the process. A rank reads once in a twelfth of
// the flush time-out, 5 s by default.
//
// It needs the helper at every rank: without, one that computes does not answer.
type liveness struct {
	win        *C.rl_win
	part       []int64
	number     int
	stop, done chan struct{}
}

// asks is the number of questions in a flush time-out.
const asks = 12

// newLiveness begins to ask; nil where there is nobody to ask. Collective.
func (c *comm) newLiveness(limit time.Duration) (*liveness, error) {
	if c.node.Count == 1 {
		return nil, nil
	}
	able, err := c.reduce(reduceMin, int64(flag(process.helper)))
	if err != nil || able[0] == 0 {
		return nil, err
	}
	far, err := c.oneOfEach()
	if err != nil {
		return nil, err
	}
	l := &liveness{
		win: (*C.rl_win)(C.calloc(1, C.sizeof_rl_win)), part: words(head + 1), number: register("liveness"),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	clear(l.part)
	l.win.number = C.int32_t(l.number)
	if rc := C.rl_win_create(c.h, unsafe.Pointer(ptr(l.part)), C.int64_t(len(l.part)*8), l.win); rc != C.MPI_SUCCESS {
		err = failed("window \"liveness\": MPI_Win_create", rc)
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	C.rl_helper_need(1)
	go l.ask(far, max(limit/asks, 10*time.Millisecond))
	return l, nil
}

// oneOfEach is a rank of each other node, those after the caller's own first, and for
// node-mates different ranks. Collective.
func (c *comm) oneOfEach() ([]int, error) {
	at, err := c.gather([]int64{int64(c.node.Index)}, false)
	if err != nil {
		return nil, err
	}
	nodes := make([][]int, c.node.Count)
	for r, n := range at {
		nodes[n] = append(nodes[n], r)
	}
	far := make([]int, 0, len(nodes)-1)
	for i := 1; i < len(nodes); i++ {
		ranks := nodes[(c.node.Index+i)%len(nodes)]
		far = append(far, ranks[c.mate%len(ranks)])
	}
	return far, nil
}

func (l *liveness) ask(far []int, every time.Duration) {
	defer close(l.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		r := far[i%len(far)]
		if rc := C.rl_poll(l.win, C.int(r), 0, C.int(rma.Far)); rc != C.MPI_SUCCESS {
			fmt.Fprintf(os.Stderr, "rmalock: on %s: rank %d does not answer: %v. The process ends, and with it the job.\n", host(), r, failed("reading a word of it", rc))
			quit()
		}
	}
}

// end stops asking, and frees the window where all ranks are known to be there.
// Collective then.
func (l *liveness) end(all bool) {
	if l == nil {
		return
	}
	close(l.stop)
	<-l.done
	C.rl_helper_need(-1)
	unregister(l.number)
	if all && C.rl_win_free(l.win) == C.MPI_SUCCESS {
		C.free(unsafe.Pointer(l.win))
		freeWords(l.part)
	}
}
