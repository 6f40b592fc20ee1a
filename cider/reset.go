package cider

import "github.com/rmalock/rmalock/rma"

// patience is the number of leases for which a queue that does not move is waited for.
const patience = 3

// A stillness is since when a client has seen a queue stand still.
type stillness struct {
	epoch, lock int64
	since       int64
	seen        bool
}

// await waits for a message to this entry. It reports false if the lock was reset.
func (s *Store) await(q *entry, word int) (int64, bool, error) {
	want := rma.Equal(forNumber.With(0, q.me.number())).In(forNumber.Mask())
	var still stillness
	for {
		m, came, err := s.box.AwaitUntil(s.c.Rank(), word, want, s.c.Now()+s.cfg.Lease/2)
		if came || err != nil {
			return m, came, err
		}
		lives, err := s.look(q, &still)
		if err != nil || !lives {
			return 0, false, err
		}
	}
}

// look looks whether the queue moves, and resets its lock if it has not for three leases. It
// reports false if the lock was reset.
func (s *Store) look(q *entry, still *stillness) (bool, error) {
	host := s.host(q.key)
	e, t := s.w.Get(host, s.epoch(q.key)), s.w.Get(host, s.lock(q.key))
	if err := s.w.Flush(host); err != nil {
		return false, err
	}
	epoch, lock := s.w.Value(e), s.w.Value(t)
	switch now := s.c.Now(); {
	case resets.Get(lock) != resets.Get(q.lock):
		return false, nil
	case !still.seen || epoch != still.epoch:
		*still = stillness{epoch, lock, now, true}
	case now-still.since > patience*s.cfg.Lease:
		return false, s.reset(q, lock)
	}
	return true, nil
}

// reset empties the queue of a key, and gives its lock the version of the pointer: a deletion that
// died in between is undone (4.6). The pointer is safe from a client that was only slow, since
// every change of it is a CompareAndSwap.
func (s *Store) reset(q *entry, lock int64) error {
	host := s.host(q.key)
	p, err := s.w.GetFlush(host, s.pointer(q.key))
	if err != nil {
		return err
	}
	next := version.With(resets.With(0, resets.Get(lock)+1), version.Get(p))
	found, err := s.w.CompareAndSwapFlush(next, lock, host, s.lock(q.key))
	if err == nil && found == lock {
		s.stats.Resets++
	}
	return err
}

// rejected is a change whose version the lock has no more: a deletion is in the queue. The key is
// absent when the pointer shows it, and not before: the paper answers at once, and a search by
// the same client would still find the key.
func (s *Store) rejected(q *entry) (int, error) {
	host, at := s.host(q.key), s.pointer(q.key)
	t, err := s.w.GetFlush(host, s.lock(q.key))
	if err != nil {
		return absent, err
	}
	q.lock = t
	var still stillness
	for {
		p, err := s.w.GetFlush(host, at)
		switch {
		case err != nil:
			return absent, err
		case empty(p) || version.Get(p) != q.v:
			return absent, nil
		case version.Get(q.lock) == q.v: // the deletion was undone
			return again, nil
		}
		if _, _, err := s.w.AwaitUntil(host, at, rma.NotEqual(version.With(0, q.v)).In(version.Mask()), s.c.Now()+s.cfg.Lease/2); err != nil {
			return absent, err
		}
		if lives, err := s.look(q, &still); err != nil || !lives {
			return again, err
		}
	}
}
