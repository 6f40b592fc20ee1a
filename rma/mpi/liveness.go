//go:build cgo

package mpi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// liveness reads a word of a rank of each other node in turn, one read in a twelfth of the
// flush time-out: 5 s by default. When a host has gone the read does not return, and the
// watchdog ends the process. So also a rank learns of it that has no operation under way: one
// that waits in a collective call, or for a flag that a far rank is to set.
//
// Every rank needs the helper: without it a rank that computes does not answer.
type liveness struct {
	win        *C.shim_win
	part       []int64
	number     int
	stop, done chan struct{}
}

// probesPerTimeout is the number of probes in a flush time-out.
const probesPerTimeout = 12

// newLiveness begins to probe; nil on one node. Collective.
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
		win: (*C.shim_win)(C.calloc(1, C.sizeof_shim_win)), part: words(headerWords + 1), number: register("liveness", c.name),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	clear(l.part)
	l.win.number = C.int32_t(l.number)
	if rc := C.shim_win_create(c.h, unsafe.Pointer(ptr(l.part)), C.int64_t(len(l.part)*8), l.win); rc != C.MPI_SUCCESS {
		err = failed("window \"liveness\": MPI_Win_create", rc)
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	C.shim_helper_need(1)
	go l.probe(far, c.name, max(limit/probesPerTimeout, 10*time.Millisecond))
	return l, nil
}

// oneOfEach returns a rank of each other node, beginning with the node after the caller's own,
// and all memory nodes there. Node-mates get different ranks. Collective.
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
		far = append(far, ranks[c.nodeRank%len(ranks)])
	}
	if c.memory != nil {
		for _, r := range c.memory.ranks {
			if at[r] != int64(c.node.Index) && !slices.Contains(far, r) {
				far = append(far, r)
			}
		}
	}
	return far, nil
}

func (l *liveness) probe(far []int, name func(int) string, every time.Duration) {
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
		if rc := C.shim_poll(l.win, C.int(r), 0, C.int(rma.Far)); rc != C.MPI_SUCCESS {
			fmt.Fprintf(os.Stderr, "rmalock: on %s: %s does not answer: %v. The process ends, and with it the job.\n", host(), name(r), failed("reading a word of it", rc))
			endJob()
		}
	}
}

// end stops the probes. With all it is collective, and frees the window.
func (l *liveness) end(all bool) {
	if l == nil {
		return
	}
	close(l.stop)
	<-l.done
	C.shim_helper_need(-1)
	unregister(l.number)
	if all && C.shim_win_free(l.win) == C.MPI_SUCCESS {
		C.free(unsafe.Pointer(l.win))
		freeWords(l.part)
	}
}
