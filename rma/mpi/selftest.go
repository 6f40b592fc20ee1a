//go:build cgo

package mpi

// #include "shim.h"
//
// #cgo noescape shim_flush
// #cgo nocallback shim_flush
// #cgo noescape shim_poll
// #cgo nocallback shim_poll
// #cgo noescape shim_await_near
// #cgo nocallback shim_await_near
import "C"

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rmalock/rmalock/rma"
)

// The self-test's words in a part, and their displacements as operations have
// them, which count from the user's first word.
const (
	testSign  = iota // a signature that the owner's CPU wrote
	testSum          // FetchAndOp(SUM) of all, at rank 0
	testCas          // CompareAndSwap of all, at rank 0
	testSwap         // FetchAndOp(REPLACE) of all, at rank 0
	testFlag         // Put by the previous rank
	testWords        // their number
)

// selfTest probes a new window with far ranks: a transport that gets something wrong is
// refused before it is used. It uses words that the user does not see.
// Collective; all ranks return the same verdict.
func (t *transport) selfTest() error {
	c, me, size := t.c, t.c.rank, t.c.size
	next, prev := (me+1)%size, (me+size-1)%size
	var wrong []string
	expect := func(ok bool, what string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(what, args...))
		}
	}
	sign := func(rank int) int64 { return int64(rank+1)*0x0101010101010101 ^ int64(t.number) }

	var base, unified C.int
	if rc := C.shim_win_check(t.win, t.s.part(c.nodeRank), &base, &unified); rc != C.MPI_SUCCESS {
		return failed("MPI_Win_get_attr", rc)
	}
	expect(base != 0, "MPI_WIN_BASE is not the memory that the window was created over")
	expect(unified != 0, "MPI_WIN_MODEL is not MPI_WIN_UNIFIED: CPU loads need not see remote writes")

	var r rma.Results
	var first error
	do := func(kind rma.Kind, op rma.Op, class rma.Class, operand, compare int64, target, word int) int64 {
		t.Issue(rma.Operation{Kind: kind, Op: op, Class: class, Operand: operand, Compare: compare, Target: target, Disp: word - headerWords})
		if _, err := t.Flush(target, &r); err != nil && first == nil {
			first = err
		}
		return r[0]
	}
	atomic.StoreInt64(t.s.header(c.nodeRank, testSign), sign(me))
	if err := c.Barrier(); err != nil {
		return err
	}
	for _, rank := range []int{me, next, prev} {
		got := do(rma.KindGet, 0, rma.Flag, 0, 0, rank, testSign)
		expect(got == sign(rank), "Get at rank %d read %#x where it wrote %#x", rank, got, sign(rank))
	}
	for i, rank := range c.node.Ranks {
		got := atomic.LoadInt64(t.s.header(i, testSign))
		expect(got == sign(rank), "the node's memory shows %#x where rank %d wrote %#x", got, rank, sign(rank))
	}
	do(rma.KindPut, 0, rma.Flag, int64(me+1), 0, next, testFlag)
	do(rma.KindFetchAndOp, rma.Sum, rma.Far, 1, 0, 0, testSum)
	won := do(rma.KindCompareAndSwap, 0, rma.Far, int64(me+1), 0, 0, testCas) == 0
	before := do(rma.KindFetchAndOp, rma.Replace, rma.Far, int64(me+1), 0, 0, testSwap)
	if err := c.Barrier(); err != nil {
		return err
	}
	got := atomic.LoadInt64(t.s.header(c.nodeRank, testFlag))
	expect(got == int64(prev+1), "a Put of %d by rank %d is seen as %d", prev+1, prev, got)
	got = do(rma.KindFetchAndOp, rma.NoOp, rma.Far, 0, 0, 0, testSum)
	expect(got == int64(size), "%d ranks added 1 and the sum is %d", size, got)
	winner := do(rma.KindGet, 0, rma.Far, 0, 0, 0, testCas)
	expect(winner >= 1 && winner <= int64(size), "CompareAndSwap left %d", winner)
	expect(won == (winner == int64(me+1)), "CompareAndSwap told rank %d won=%v, and left rank %d as the winner", me, won, winner-1)
	last := do(rma.KindGet, 0, rma.Far, 0, 0, 0, testSwap)
	sums, err := c.reduce(reduceSum, before, int64(me+1))
	if err != nil {
		return err
	}
	expect(sums[0]+last == sums[1], "FetchAndOp(REPLACE) lost a value")
	if err := c.Barrier(); err != nil {
		return err
	}
	for w := range testWords {
		atomic.StoreInt64(t.s.header(c.nodeRank, w), 0)
	}
	if first == nil && len(wrong) > 0 {
		first = fmt.Errorf("mpi: window %q on %d nodes: self-test failed: %s (%s, osc %q); use another MPI library or version, or one node: %w",
			t.spec.Name, c.node.Count, strings.Join(wrong, "; "), process.library, process.osc, rma.ErrRefused)
	}
	return rma.Agree(c, first)
}
