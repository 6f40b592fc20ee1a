package cider

import (
	"errors"

	"github.com/rmalock/rmalock/rma"
)

// Words of a client's mail.
const (
	nextWord = iota
	statusWord
)

// An entry is a client's place in a slot's queue.
type entry struct {
	at   Slot
	me   name
	lock int64 // LOCK with this client as its tail
	v    int64 // the pointer's version that it knows
}

// pessimistic changes a slot through its queue (A1:7, Figures 7 and 10).
func (s *Sync) pessimistic(at Slot, p int64, w Writer, deletes bool) (Became, error) {
	s.stats.Queued++
	q, before, in, err := s.enqueue(at, Version.Get(p), deletes)
	if err != nil {
		return Absent, err
	}
	if !in {
		return s.rejected(&q)
	}
	status := info.With(0, holds)
	if before != 0 {
		s.stats.Blocked++
		if err := s.send(before, nextWord, int64(q.me)); err != nil {
			return Absent, err
		}
		if status, in, err = s.await(&q, statusWord); err != nil || !in {
			return Again, err
		}
	}
	return s.serve(&q, status, p, w, deletes)
}

// serve does what the client's turn asks of it.
func (s *Sync) serve(q *entry, status, p int64, w Writer, deletes bool) (Became, error) {
	switch info.Get(status) {
	case combined:
		return s.pass(q, status)
	case executes:
		return s.executeFor(q, status, p, w)
	}
	if s.cfg.Scheme.combines() && !deletes { // a deletion is the last of its queue
		next, err := s.box.GetFlush(s.c.Rank(), nextWord)
		if err != nil {
			return Absent, err
		}
		if next := s.successor(q, next); next != 0 {
			return s.coordinate(q, next)
		}
	}
	became, _, err := s.execute(q.at, p, w)
	if err == nil && !deletes {
		err = s.batched(q.at.Key, 1)
	}
	return became, errors.Join(err, s.release(q))
}

// enqueue makes the client the tail of a slot's queue, if the lock has the version of the pointer;
// a deletion makes it one more (4.2.2). It returns the client before. It is a swap of tail and
// version that compares the version alone: clients that come together all get their place at once.
func (s *Sync) enqueue(at Slot, v int64, deletes bool) (q entry, before name, in bool, err error) {
	if s.number++; s.number&numbers == 0 {
		s.number++
	}
	q = entry{at: at, me: nameOf(s.c.Rank(), s.number), v: v}
	me := s.c.Rank()
	s.box.Put(0, me, nextWord)
	s.box.Put(0, me, statusWord)
	if err := s.box.Flush(me); err != nil {
		return q, 0, false, err
	}
	known := Version.With(0, v)
	to := tail.With(known, int64(q.me))
	if deletes {
		to = Version.With(to, v+1)
	}
	found, err := s.w.MaskedSwapFlush(to, queueMask, known, Version.Mask(), at.Host, at.Lock)
	q.lock = found&^queueMask | to
	return q, name(tail.Get(found)), err == nil && Version.Get(found) == v, err
}

// coordinate has the last client of the queue execute for all up to it, and tells the next (steps
// 1, 2 and 5 of Figure 7).
func (s *Sync) coordinate(q *entry, next name) (Became, error) {
	t, err := s.w.GetFlush(q.at.Host, q.at.Lock) // step 1
	if err != nil || resets.Get(t) != resets.Get(q.lock) {
		return Again, err
	}
	if err := s.box.PutFlush(0, s.c.Rank(), statusWord); err != nil { // for the answer
		return Absent, err
	}
	if err := s.send(name(tail.Get(t)), statusWord, whom.With(info.With(0, executes), int64(q.me))); err != nil { // step 2
		return Absent, err
	}
	status, in, err := s.await(q, statusWord) // step 4
	if err != nil || !in {
		return Again, err
	}
	if err := s.send(next, statusWord, batch.With(result.With(info.With(0, combined), result.Get(status)), 1)); err != nil { // step 5
		return Absent, err
	}
	s.stats.Combined++
	s.stats.Coordinated++
	return Became(result.Get(status)), nil
}

// executeFor executes for a coordinator and all in between (steps 3 and 4). It lets the lock go
// when the chain of answers has come to it.
func (s *Sync) executeFor(q *entry, status, p int64, w Writer) (Became, error) {
	became, _, failed := s.execute(q.at, p, w)
	told := became // the others
	if failed != nil || q.at.Moves {
		told = Again
	}
	if err := s.box.PutFlush(0, s.c.Rank(), statusWord); err != nil {
		return Absent, errors.Join(failed, err)
	}
	if err := s.send(name(whom.Get(status)), statusWord, result.With(info.With(0, holds), int64(told))); err != nil {
		return Absent, errors.Join(failed, err)
	}
	end, in, err := s.await(q, statusWord)
	if err != nil || !in {
		return became, errors.Join(failed, err) // the lock was reset; the pointer is changed
	}
	return became, errors.Join(failed, s.batched(q.at.Key, batch.Get(end)+1), s.release(q))
}

// batched notes for how many updates an executor stood.
func (s *Sync) batched(key uint64, size int64) error {
	s.stats.Batches++
	s.stats.Batched += size
	if s.heat == nil {
		return nil
	}
	return s.heat.batched(key, size > 1)
}

// pass hands an answer on to the next client: another's update stands for this one's (step 6).
func (s *Sync) pass(q *entry, status int64) (Became, error) {
	s.stats.Combined++
	next, in, err := s.await(q, nextWord)
	if err == nil && in {
		err = s.send(name(from.Get(next)), statusWord, batch.With(status&^forNumber.Mask(), batch.Get(status)+1))
	}
	return Became(result.Get(status)), err
}

// release lets the lock go. EPOCH shows that the queue lives (4.6).
func (s *Sync) release(q *entry) error {
	host := q.at.Host
	next, err := s.box.GetFlush(s.c.Rank(), nextWord)
	if err != nil {
		return err
	}
	s.w.Accumulate(1, host, q.at.Lock+1, rma.Sum)
	if s.successor(q, next) == 0 {
		found, err := s.w.CompareAndSwapFlush(tail.With(q.lock, 0), q.lock, host, q.at.Lock)
		if err != nil || found == q.lock || resets.Get(found) != resets.Get(q.lock) {
			return err
		}
		var in bool
		if next, in, err = s.await(q, nextWord); err != nil || !in {
			return err
		}
	}
	err = s.send(s.successor(q, next), statusWord, info.With(0, holds))
	return errors.Join(err, s.w.Flush(host))
}

// successor is the client that a message in NEXT names, or 0.
func (s *Sync) successor(q *entry, message int64) name {
	if message == 0 || forNumber.Get(message) != q.me.number() {
		return 0
	}
	return name(from.Get(message))
}

// send puts a message into a client's mail. One that is gone gets none.
func (s *Sync) send(to name, word int, message int64) error {
	err := s.box.PutFlush(forNumber.With(message, to.number()), to.client(), word)
	if errors.Is(err, rma.ErrPeer) {
		return nil
	}
	return err
}
