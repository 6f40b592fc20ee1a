package store

import (
	"errors"

	"github.com/rmalock/rmalock/remote"
)

// An ENTRY.
const refBits = 48

func (s *Store) entry(id int) (host, disp int) { return id % s.hosts, id / s.hosts }

// block is the block that an entry leads to, and its words; 0 words for none.
func block(entry int64) (ref remote.Ref, n int) {
	return remote.Ref(entry & (1<<refBits - 1)), int(uint64(entry) >> refBits)
}

func (s *Store) readBlock(id int) (head, []int64, error) {
	host, disp := s.entry(id)
	e, err := s.w.GetFlush(host, disp)
	ref, n := block(e)
	if err != nil || n == 0 {
		return head{version: int64(ref)}, nil, err
	}
	b := s.buf[:min(n, len(s.buf))]
	s.w.GetBulk(b, ref.Node(), ref.Disp())
	if err := s.w.Flush(ref.Node()); err != nil {
		return head{}, nil, err
	}
	return s.verify(id, b)
}

// old is the entry of an object and its version. Section and reads are for a holder that has lost
// its lease: another may have freed the block.
func (s *Store) old(id int) (entry, version int64, err error) {
	host, disp := s.entry(id)
	if err := s.heap.Enter(); err != nil {
		return 0, 0, err
	}
	entry, err = s.w.GetFlush(host, disp)
	ref, n := block(entry)
	if n == 0 || err != nil {
		return entry, int64(ref), err
	}
	h, err := s.w.GetFlush(ref.Node(), ref.Disp()+headerWord)
	return entry, parse(h).version, err
}

// replace writes the object into a new block, which then takes the old one's place.
func (s *Store) replace(id int, value []byte) (int64, error) {
	entry, version, err := s.old(id)
	if err != nil {
		return 0, err
	}
	b := s.fill(id, value, version+1)
	ref, err := s.heap.Alloc(len(b))
	if err != nil {
		return 0, s.leave(err)
	}
	s.w.PutBulk(b, ref.Node(), ref.Disp())
	if err := s.w.Flush(ref.Node()); err != nil {
		return 0, err
	}
	return version + 1, s.point(id, entry, int64(len(b))<<refBits|int64(ref))
}

// remove makes the object absent.
func (s *Store) remove(id int) (bool, error) {
	entry, version, err := s.old(id)
	if err != nil {
		return false, err
	}
	_, n := block(entry)
	return n > 0, s.point(id, entry, version+1)
}

// point changes an entry, and frees what it led to. It ends the section.
func (s *Store) point(id int, from, to int64) error {
	host, disp := s.entry(id)
	if err := s.w.PutFlush(to, host, disp); err != nil {
		return err
	}
	if ref, n := block(from); n > 0 {
		s.heap.Free(ref, n)
	}
	return s.leave(nil)
}

// leave ends the section. What the section has read was under the object's lock: an expired one
// has lost nothing unless the lock's lease has run out too, which the Unlock tells.
func (s *Store) leave(err error) error {
	lerr := s.heap.Leave()
	if errors.Is(lerr, remote.ErrExpired) {
		lerr = nil
	}
	return errors.Join(err, lerr)
}
