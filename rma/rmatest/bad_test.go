package rmatest_test

import "github.com/rmalock/rmalock/rma"

// badComm is a Comm with a fault in it.
type badComm struct {
	rma.Comm
	transport func(c rma.Comm, t rma.Transport) rma.Transport
	allocate  func(c rma.Comm, s rma.Spec) (*rma.Window, error)
	split     func(c rma.Comm, color, key int) (rma.Comm, error)
	allgather func(c rma.Comm, words []int64) ([]int64, error)
	barrier   func(c rma.Comm) error
	node      func(c rma.Comm) rma.Node
	now       func(c rma.Comm) int64
	sleep     func(c rma.Comm, ns int64)
}

func (b *badComm) Split(color, key int) (rma.Comm, error) {
	split := b.split
	if split == nil {
		split = rma.Comm.Split
	}
	part, err := split(b.Comm, color, key)
	if part == nil {
		return nil, err
	}
	sub := *b
	sub.Comm = part
	return &sub, err
}

func (b *badComm) Allocate(s rma.Spec) (*rma.Window, error) {
	if b.allocate != nil {
		return b.allocate(b.Comm, s)
	}
	w, err := b.Comm.Allocate(s)
	if err != nil || b.transport == nil {
		return w, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return b.transport(b.Comm, t) }), nil
}

func (b *badComm) Allgather(words []int64) ([]int64, error) {
	if b.allgather != nil {
		return b.allgather(b.Comm, words)
	}
	return b.Comm.Allgather(words)
}

func (b *badComm) Barrier() error {
	if b.barrier != nil {
		return b.barrier(b.Comm)
	}
	return b.Comm.Barrier()
}

func (b *badComm) Node() rma.Node {
	if b.node != nil {
		return b.node(b.Comm)
	}
	return b.Comm.Node()
}

func (b *badComm) Now() int64 {
	if b.now != nil {
		return b.now(b.Comm)
	}
	return b.Comm.Now()
}

func (b *badComm) Sleep(ns int64) {
	if b.sleep != nil {
		b.sleep(b.Comm, ns)
	} else {
		b.Comm.Sleep(ns)
	}
}

// badTransport has its steps replaced.
type badTransport struct {
	rma.Transport
	issue   func(t rma.Transport, o rma.Operation)
	flush   func(t rma.Transport, target int, r *rma.Results) (int, error)
	await   func(t rma.Transport, q rma.Waiting) (int, int64, error)
	backoff func(t rma.Transport, target, disp int, seen int64, try int) error
}

func (b *badTransport) Issue(o rma.Operation) {
	if b.issue != nil {
		b.issue(b.Transport, o)
	} else {
		b.Transport.Issue(o)
	}
}

func (b *badTransport) Flush(target int, r *rma.Results) (int, error) {
	if b.flush != nil {
		return b.flush(b.Transport, target, r)
	}
	return b.Transport.Flush(target, r)
}

func (b *badTransport) Await(q rma.Waiting) (int, int64, error) {
	if b.await != nil {
		return b.await(b.Transport, q)
	}
	return b.Transport.Await(q)
}

func (b *badTransport) Backoff(target, disp int, seen int64, try int) error {
	if b.backoff != nil {
		return b.backoff(b.Transport, target, disp, seen, try)
	}
	return b.Transport.Backoff(target, disp, seen, try)
}
