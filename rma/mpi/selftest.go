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
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// The self-test's words in a part, and their displacements as operations have
// them, which count from the user's first word.
const (
	testSign  = iota // a signature that the host's CPU wrote
	testFlag         // Put by one user
	testSum          // FetchAndOp(SUM) of all users, at the first host
	testCas          // CompareAndSwap of all users, at the first host
	testSwap         // FetchAndOp(REPLACE) of all users, at the first host
	testPlain        // Put by all users, at the first host
	testWords        // their number
)

// A selfTest is the state of a test at one rank.
type selfTest struct {
	t      *transport
	hosts  []int // ranks of t.far that have words
	users  int   // number of the ranks that operate on them
	host   int   // index of the caller in hosts, or -1
	user   int   // number of the caller among users, or -1
	won    bool  // the caller's CompareAndSwap
	before int64 // what the caller's FetchAndOp(REPLACE) returned
	r      rma.Results
	wrong  []string
	err    error // first error of a call
}

// selfTest probes a new window with far ranks or memory nodes: a transport that gets something
// wrong is refused before it is used. It uses words that the user does not see.
// Collective; all ranks return the same verdict.
func (t *transport) selfTest() error {
	c := t.far
	p := &selfTest{t: t, hosts: t.hosts, users: c.size - len(t.hosts), user: c.rank}
	if t.hosts == nil {
		p.hosts = make([]int, c.size)
		for r := range p.hosts {
			p.hosts[r] = r
		}
	}
	if p.host = slices.Index(p.hosts, c.rank); t.hosts != nil {
		for _, h := range t.hosts { // users are numbered without the hosts
			if h == c.rank {
				p.user = -1
				break
			} else if h < c.rank {
				p.user--
			}
		}
	}
	for _, step := range []func(){p.begin, p.write, p.read} {
		step()
		if err := c.Barrier(); err != nil {
			return err
		}
	}
	if err := p.sumOfSwaps(); err != nil {
		return err
	}
	if p.host >= 0 {
		for w := range testWords {
			atomic.StoreInt64(p.own(w), 0)
		}
	}
	if p.err == nil && len(p.wrong) > 0 {
		p.err = fmt.Errorf("mpi: window %q on %d nodes: self-test failed: %s (%s, osc %q); use another MPI library or version, or one node: %w",
			t.spec.Name, c.node.Count, strings.Join(p.wrong, "; "), process.library, process.osc, rma.ErrRefused)
	}
	return rma.Agree(c, p.err)
}

func (p *selfTest) expect(ok bool, what string, args ...any) {
	if !ok {
		p.wrong = append(p.wrong, fmt.Sprintf(what, args...))
	}
}

// do does an operation on a word of a host and returns its result.
func (p *selfTest) do(o rma.Operation, host, word int) int64 {
	if p.t.hosts == nil {
		host = p.hosts[host]
	}
	o.Target, o.Disp = host, word-headerWords
	p.t.Issue(o)
	if _, err := p.t.Flush(o.Target, &p.r); err != nil && p.err == nil {
		p.err = err
	}
	return p.r[0]
}

func (p *selfTest) get(c rma.Class, host, word int) int64 {
	return p.do(rma.Operation{Kind: rma.KindGet, Class: c}, host, word)
}

func (p *selfTest) put(c rma.Class, v int64, host, word int) {
	p.do(rma.Operation{Kind: rma.KindPut, Class: c, Operand: v}, host, word)
}

func (p *selfTest) fetchAndOp(op rma.Op, v int64, word int) int64 {
	return p.do(rma.Operation{Kind: rma.KindFetchAndOp, Op: op, Operand: v}, 0, word)
}

// own is a word of the caller's part.
func (p *selfTest) own(word int) *int64 {
	return (*int64)(unsafe.Add(p.t.ownPart(), word*8))
}

// sign is what a rank writes with its CPU.
func (p *selfTest) sign(rank int) int64 { return int64(rank+1) * 0x0101010101010101 }

// begin looks at the window's attributes, and signs the caller's part.
func (p *selfTest) begin() {
	part := unsafe.Pointer(nil)
	if p.host >= 0 {
		part = p.t.ownPart()
		atomic.StoreInt64(p.own(testSign), p.sign(p.t.far.rank))
	}
	var base, unified C.int
	if rc := C.shim_win_check(p.t.win, part, &base, &unified); rc != C.MPI_SUCCESS {
		p.err = failed("MPI_Win_get_attr", rc)
		return
	}
	p.expect(base != 0 || p.host < 0, "MPI_WIN_BASE is not the memory that the window was created over")
	p.expect(unified != 0, "MPI_WIN_MODEL is not MPI_WIN_UNIFIED: CPU loads need not see remote writes")
}

// write reads the signatures, and operates on the other words.
func (p *selfTest) write() {
	n, me := len(p.hosts), int64(p.user+1)
	if p.t.hosts == nil {
		for i, rank := range p.t.c.node.Ranks {
			got := atomic.LoadInt64(p.t.s.header(i, testSign))
			p.expect(got == p.sign(rank), "the node's memory shows %#x where rank %d wrote %#x", got, rank, p.sign(rank))
		}
	}
	if p.user < 0 {
		return
	}
	for _, host := range []int{p.user % n, (p.user + 1) % n, (p.user + n - 1) % n} {
		got, want := p.get(rma.Flag, host, testSign), p.sign(p.hosts[host])
		p.expect(got == want, "Get at %s read %#x where it wrote %#x", p.t.far.name(p.hosts[host]), got, want)
		got = p.get(rma.Plain, host, testSign)
		p.expect(got == want, "Get of a plain word at %s read %#x where its CPU wrote %#x", p.t.far.name(p.hosts[host]), got, want)
	}
	if p.user < n {
		p.put(rma.Flag, me, (p.user+1)%n, testFlag)
	}
	p.put(rma.Plain, me, 0, testPlain)
	p.fetchAndOp(rma.Sum, 1, testSum)
	p.won = p.do(rma.Operation{Kind: rma.KindCompareAndSwap, Operand: me}, 0, testCas) == 0
	p.before = p.fetchAndOp(rma.Replace, me, testSwap)
}

// read looks at what all users did.
func (p *selfTest) read() {
	if p.host >= 0 {
		writer := (p.host + len(p.hosts) - 1) % len(p.hosts)
		want := int64(0)
		if writer < p.users {
			want = int64(writer + 1)
		}
		got := atomic.LoadInt64(p.own(testFlag))
		p.expect(got == want, "a Put of %d is seen as %d", want, got)
	}
	if p.host == 0 { // what the CPU sees of accumulates
		sum, last := atomic.LoadInt64(p.own(testSum)), atomic.LoadInt64(p.own(testPlain))
		p.expect(sum == int64(p.users), "the CPU of %s sees %d where %d ranks added 1", p.t.far.name(p.hosts[0]), sum, p.users)
		p.expect(last >= 1 && last <= int64(p.users), "the CPU of %s sees %d in a plain word where users put 1 to %d",
			p.t.far.name(p.hosts[0]), last, p.users)
	}
	if p.user < 0 {
		return
	}
	some := func(v int64) bool { return v >= 1 && v <= int64(p.users) }
	sum := p.fetchAndOp(rma.NoOp, 0, testSum)
	p.expect(sum == int64(p.users), "%d ranks added 1 and the sum is %d", p.users, sum)
	winner := p.get(rma.Far, 0, testCas)
	p.expect(some(winner), "CompareAndSwap left %d", winner)
	p.expect(p.won == (winner == int64(p.user+1)), "CompareAndSwap told user %d won=%v, and left user %d as the winner", p.user, p.won, winner-1)
	plain := p.get(rma.Plain, 0, testPlain)
	p.expect(some(plain), "Puts of 1 to %d into a plain word left %d", p.users, plain)
}

// sumOfSwaps looks whether each value that a user swapped in was swapped out, or is there.
func (p *selfTest) sumOfSwaps() error {
	last := int64(0)
	if p.user >= 0 {
		last = p.get(rma.Far, 0, testSwap)
	}
	sums, err := p.t.far.reduce(reduceSum, p.before, int64(p.user+1))
	if err != nil {
		return err
	}
	p.expect(p.user < 0 || sums[0]+last == sums[1], "FetchAndOp(REPLACE) lost a value")
	return p.t.far.Barrier()
}
