package cider

import (
	"fmt"

	"github.com/rmalock/rmalock/remote"
)

// Search appends the value of a key to dst, and reports whether the key is there (4.4, Figure 9a).
func (s *Store) Search(key int, dst []byte) ([]byte, bool, error) {
	if err := s.begin(key); err != nil {
		return dst, false, err
	}
	last := int64(-1)
	for {
		p, err := s.w.GetFlush(s.host(key), s.pointer(key))
		if err != nil || empty(p) {
			return dst, false, err
		}
		ref, n := block(p)
		b := s.buf[:min(n, len(s.buf))]
		s.w.GetBulk(b, ref.Node(), ref.Disp())
		if err := s.w.Flush(ref.Node()); err != nil {
			return dst, false, err
		}
		v, ok := value(key, b)
		switch {
		case s.expired():
			s.left = 0
			if err := s.begin(key); err != nil {
				return dst, false, err
			}
		case ok:
			return append(dst, v...), true, nil
		case p == last:
			return dst, false, fmt.Errorf("cider: key %d, block of %d words at %d of host %d: %w", key, n, ref.Disp(), ref.Node(), ErrTorn)
		default:
			last = p
		}
	}
}

// Insert gives a key a value if it is not there, and reports whether it did (4.2.2, Figure 9b).
// It takes no part in the queue.
func (s *Store) Insert(key int, data []byte) (bool, error) {
	if err := s.begin(key); err != nil {
		return false, err
	}
	p, err := s.w.GetFlush(s.host(key), s.pointer(key))
	if err != nil || !empty(p) {
		return false, err
	}
	ref, n, err := s.write(key, data)
	if err != nil {
		return false, err
	}
	for {
		found, err := s.w.CompareAndSwapFlush(pointer(ref, n, version.Get(p)), p, s.host(key), s.pointer(key))
		if err != nil || found == p {
			return err == nil, err
		}
		s.stats.Retries++
		if p = found; !empty(p) {
			s.heap.Return(ref, n) // nobody has seen it
			return false, nil
		}
	}
}

// Update gives a key that is there another value, and reports whether it was there (Algorithm 1).
func (s *Store) Update(key int, data []byte) (bool, error) {
	return s.change(key, data, false)
}

// Delete takes a key out, and reports whether it was there.
func (s *Store) Delete(key int) (bool, error) { return s.change(key, nil, true) }

// Put gives a key a value, there or not.
func (s *Store) Put(key int, data []byte) error {
	for {
		for _, try := range [...]func(int, []byte) (bool, error){s.Update, s.Insert} {
			if done, err := try(key, data); done || err != nil {
				return err
			}
		}
	}
}

// change updates or deletes.
func (s *Store) change(key int, data []byte, deletes bool) (bool, error) {
	if err := s.begin(key); err != nil {
		return false, err
	}
	for {
		p, err := s.w.GetFlush(s.host(key), s.pointer(key))
		if err != nil || empty(p) {
			return false, err
		}
		var became int
		switch {
		case s.cfg.Scheme == Spin:
			became, err = s.spin(key, data, p, deletes)
		case s.cfg.Scheme.queues() && (deletes || !s.cfg.Scheme.adapts() || s.takeCredit(key)): // A1:2 to A1:4
			became, err = s.pessimistic(key, data, p, deletes)
		default: // A1:6
			var retries int
			if !deletes {
				s.stats.Optimistic++
			}
			if became, retries, err = s.execute(key, data, p, deletes); !deletes {
				s.cooled(key, retries)
			}
		}
		if err != nil || became != again {
			return became == changed, err
		}
	}
}

// execute writes the block and changes the pointer, which the client found as p (A1:10 A1:11,
// A1:18 A1:19). If the key has been deleted meanwhile, it is absent: there was such a moment.
func (s *Store) execute(key int, data []byte, p int64, deletes bool) (became, retries int, err error) {
	var ref remote.Ref
	n := 0
	if !deletes {
		if ref, n, err = s.write(key, data); err != nil {
			return absent, 0, err
		}
	}
	v := version.Get(p)
	for !empty(p) && version.Get(p) == v {
		to := pointer(ref, n, v)
		if deletes {
			to = gone(p)
		}
		found, err := s.w.CompareAndSwapFlush(to, p, s.host(key), s.pointer(key))
		if err != nil {
			return absent, retries, err
		}
		if found == p {
			s.stats.Executed++
			s.heap.Free(block(p))
			return changed, retries, nil
		}
		p = found
		retries++
		s.stats.Retries++
	}
	if n > 0 {
		if err := s.w.Flush(ref.Node()); err != nil {
			return absent, retries, err
		}
		s.heap.Return(ref, n)
	}
	return absent, retries, nil
}
