package remote

import "errors"

// Sections keeps a client in a section over several operations, so that Enter and Leave cost little
// for each. It belongs to the client's goroutine.
type Sections struct {
	h      *Heap
	most   int // operations of a section
	inside bool
	began  int64 // when the section began, by the client's clock
	left   int   // operations until it ends
}

// Sections makes sections of so many operations each. The client does not call Enter and Leave
// beside it.
func (h *Heap) Sections(operations int) Sections { return Sections{h: h, most: operations} }

// Begin begins an operation. It begins another section after the operations of one, or a fourth of
// the lease, and then costs what Leave and Enter do.
func (s *Sections) Begin() error {
	now := s.h.c.Now()
	if s.inside && (s.left <= 0 || now-s.began > s.h.cfg.Lease/4) {
		if err := s.Rest(); err != nil {
			return err
		}
	}
	if !s.inside {
		if err := s.h.Enter(); err != nil {
			return err
		}
		s.inside, s.began, s.left = true, now, s.most
	}
	s.left--
	return nil
}

// Expired reports whether the section has lasted longer than its lease: what the client has read in
// it may be garbage.
func (s *Sections) Expired() bool { return s.h.c.Now()-s.began > s.h.cfg.Lease }

// Rest ends the section between two operations, if there is one: other clients can use blocks again
// that were freed. That it has expired is no error then, as nothing that it found is in use.
func (s *Sections) Rest() error {
	if !s.inside {
		return nil
	}
	s.inside = false
	err := s.h.Leave()
	if errors.Is(err, ErrExpired) {
		err = nil
	}
	return errors.Join(err, s.h.w.Flush(0)) // which completes it
}
