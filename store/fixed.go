package store

// A fixed object that is deleted has a header with a version and no CHECK; one that was never
// set has neither.

func (s *Store) at(id int) (host, disp int) { return id % s.hosts, id / s.hosts * s.each }

func (s *Store) readFixed(id int) (head, []int64, error) {
	host, disp := s.at(id)
	s.w.GetBulk(s.buf, host, disp)
	if err := s.w.Flush(host); err != nil {
		return head{}, nil, err
	}
	if s.buf[checkWord] == 0 {
		return parse(s.buf[headerWord]), nil, nil
	}
	return s.verify(id, s.buf)
}

// put writes a fixed object in its place.
func (s *Store) put(id int, value []byte) (int64, error) {
	host, disp := s.at(id)
	version, err := s.next(host, disp)
	if err != nil {
		return 0, err
	}
	s.w.PutBulk(s.fill(id, value, version), host, disp)
	return version, s.w.Flush(host)
}

// next is the version of a Set.
func (s *Store) next(host, disp int) (int64, error) {
	if s.cfg.Blind {
		s.sets++
		return s.sets<<16 | int64(s.c.Rank()&0xFFFF), nil
	}
	old, err := s.w.GetFlush(host, disp+headerWord)
	return parse(old).version + 1, err
}

// clear deletes a fixed object.
func (s *Store) clear(id int) (bool, error) {
	host, disp := s.at(id)
	s.w.GetBulk(s.buf[:headWords], host, disp)
	if err := s.w.Flush(host); err != nil {
		return false, err
	}
	there := s.buf[checkWord] != 0
	s.buf[headerWord] = header(0, parse(s.buf[headerWord]).version+1)
	s.buf[checkWord] = 0
	s.w.PutBulk(s.buf[:headWords], host, disp)
	return there, s.w.Flush(host)
}
