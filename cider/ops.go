package cider

import (
	"encoding/binary"
	"fmt"
)

// Search appends the value of a key to dst, and reports whether the key is there (4.4, Figure 9a). It
// takes two round trips, one if the key is absent, and more while others change the key. An error
// wraps ErrTorn or is the transport's. In all calls a key out of range panics.
func (s *Store) Search(key int, dst []byte) ([]byte, bool, error) {
	if err := s.begin(key); err != nil {
		return dst, false, err
	}
	name := s.bytes(key)
	if out, there, done, err := s.JoinSearch(name, dst); done || err != nil {
		return out, there, err
	}
	out, there, err := s.search(key, dst)
	return out, there, s.LeaveSearch(name, out[len(dst):], there, err)
}

// bytes are a key's, for node-mates.
func (s *Store) bytes(key int) []byte {
	binary.LittleEndian.PutUint64(s.name[:], uint64(key))
	return s.name[:]
}

func (s *Store) search(key int, dst []byte) ([]byte, bool, error) {
	at, last := s.slot(key), int64(-1)
	for {
		p, err := s.w.GetFlush(at.Host, at.Pointer)
		if err != nil || Empty(p) {
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
		case s.sections.Expired():
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
// It takes no part in the queue, and two round trips without competition. An error wraps ErrConfig
// for a value that is longer than Config.Most, remote.ErrFull, or is the transport's.
func (s *Store) Insert(key int, data []byte) (bool, error) {
	if err := s.begin(key); err != nil {
		return false, err
	}
	at := s.slot(key)
	p, err := s.w.GetFlush(at.Host, at.Pointer)
	if err != nil || !Empty(p) {
		return false, err
	}
	s.write = write{s: s, at: at, data: data}
	to, err := s.write.Next(p)
	if err != nil {
		return false, err
	}
	for {
		found, err := s.w.CompareAndSwapFlush(Version.With(to, Version.Get(p)), p, at.Host, at.Pointer)
		if err != nil || found == p {
			return err == nil, err
		}
		s.stats.Retries++
		if p = found; !Empty(p) {
			return false, s.write.Discard()
		}
	}
}

// Update gives a key that is there another value, and reports whether it was there (Algorithm 1). It is
// complete when Update returns: a Search that begins later, of any client, finds this value or a
// later one. Without competition it takes two round trips optimistically, four through the queue.
// Errors are those of Insert; after one the key has the old value or the new one.
func (s *Store) Update(key int, data []byte) (bool, error) {
	if err := s.begin(key); err != nil {
		return false, err
	}
	name := s.bytes(key)
	if there, done, err := s.JoinUpdate(name); done || err != nil {
		return there, err
	}
	there, err := s.change(key, data, false)
	return there, s.LeaveUpdate(name, there, err)
}

// Delete takes a key out, and reports whether it was there. Cost and errors are those of Update.
func (s *Store) Delete(key int) (bool, error) {
	if err := s.begin(key); err != nil {
		return false, err
	}
	return s.change(key, nil, true)
}

// Put gives a key a value, there or not: Update and Insert by turns until one does.
func (s *Store) Put(key int, data []byte) error {
	for {
		for _, try := range [...]func(int, []byte) (bool, error){s.Update, s.Insert} {
			if done, err := try(key, data); done || err != nil {
				return err
			}
		}
	}
}

// change updates or deletes, inside a section.
func (s *Store) change(key int, data []byte, deletes bool) (bool, error) {
	at := s.slot(key)
	for {
		p, err := s.w.GetFlush(at.Host, at.Pointer)
		if err != nil || Empty(p) {
			return false, err
		}
		s.write = write{s: s, at: at, data: data, deletes: deletes}
		became, err := s.Change(at, p, &s.write, deletes)
		if err != nil || became != Again {
			return became == Changed, err
		}
	}
}
