package cider

import "github.com/rmalock/rmalock/rma"

// patience is the number of leases for which a queue that does not move is waited for.
const patience = 3

// A stillness is since when a client has seen a queue stand still.
type stillness struct {
	epoch int64
	since int64
	seen  bool
}

// await waits for a message to this entry. It reports false if the lock was reset.
func (s *Sync) await(q *entry, word int) (int64, bool, error) {
	want := rma.Equal(forNumber.With(0, q.me.number())).In(forNumber.Mask())
	s.still = stillness{}
	for {
		m, came, err := s.box.AwaitUntil(s.c.Rank(), word, want, s.c.Now()+s.cfg.Lease/2)
		if came || err != nil {
			return m, came, err
		}
		lives, err := s.look(q)
		if err != nil || !lives {
			return 0, false, err
		}
	}
}

// look looks whether the queue moves, and resets its lock if it has not for three leases. It
// reports false if the lock was reset.
func (s *Sync) look(q *entry) (bool, error) {
	host := q.at.Host
	e, t := s.w.Get(host, q.at.Lock+1), s.w.Get(host, q.at.Lock)
	if err := s.w.Flush(host); err != nil {
		return false, err
	}
	epoch, lock := s.w.Value(e), s.w.Value(t)
	switch now := s.c.Now(); {
	case resets.Get(lock) != resets.Get(q.lock):
		return false, nil
	case !s.still.seen || epoch != s.still.epoch:
		s.still = stillness{epoch, now, true}
	case now-s.still.since > patience*s.cfg.Lease:
		return false, s.reset(q, lock)
	}
	return true, nil
}

// reset empties the queue of a slot, and gives its lock the version of the pointer: a deletion that
// died in between is undone (4.6). The pointer is safe from a client that was only slow, since
// every change of it is a CompareAndSwap.
func (s *Sync) reset(q *entry, lock int64) error {
	host := q.at.Host
	p, err := s.w.GetFlush(host, q.at.Pointer)
	if err != nil {
		return err
	}
	next := Version.With(resets.With(0, resets.Get(lock)+1), Version.Get(p))
	found, err := s.w.CompareAndSwapFlush(next, lock, host, q.at.Lock)
	if err == nil && found == lock {
		s.stats.Resets++
	}
	return err
}

// rejected is a change whose version the lock has no more: a deletion is in the queue. The key is
// absent when the pointer shows it, and not before. The paper answers at once, and a search by the
// same client would still find the key.
func (s *Sync) rejected(q *entry) (Became, error) {
	host, at := q.at.Host, q.at.Pointer
	t, err := s.w.GetFlush(host, q.at.Lock)
	if err != nil {
		return Absent, err
	}
	q.lock, s.still = t, stillness{}
	for {
		p, err := s.w.GetFlush(host, at)
		switch {
		case err != nil:
			return Absent, err
		case q.at.empty(p) || Version.Get(p) != q.v:
			return Absent, nil
		case Version.Get(q.lock) == q.v: // the deletion was undone
			return Again, nil
		}
		if _, _, err := s.w.AwaitUntil(host, at, rma.NotEqual(Version.With(0, q.v)).In(Version.Mask()), s.c.Now()+s.cfg.Lease/2); err != nil {
			return Absent, err
		}
		if lives, err := s.look(q); err != nil || !lives {
			return Again, err
		}
	}
}
