package cider

// spin changes a key under a spin lock: the comparator of 5.1, with the pauses of its code.
func (s *Store) spin(key int, data []byte, p int64, deletes bool) (int, error) {
	host, lock := s.host(key), s.lock(key)
	s.number++
	me := tail.With(0, int64(nameOf(s.c.Rank(), s.number)))
	pause := s.cfg.BackoffFirst
	for try := 0; ; try++ {
		found, err := s.w.CompareAndSwapFlush(me, 0, host, lock)
		if err != nil {
			return absent, err
		}
		if found == 0 {
			break
		}
		if s.cfg.BackoffLast < 0 {
			if err := s.w.Backoff(host, lock, found, try); err != nil {
				return absent, err
			}
			continue
		}
		s.c.Sleep(min(pause, s.cfg.BackoffLast) + s.draw(pause))
		pause = min(2*pause, s.cfg.BackoffLast)
	}
	became, _, err := s.execute(key, data, p, deletes)
	if err != nil {
		return absent, err
	}
	_, err = s.w.CompareAndSwapFlush(0, me, host, lock)
	return became, err
}

// draw is a random number below most, by xorshift64*.
func (s *Store) draw(most int64) int64 {
	x := s.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	s.random = x
	return int64((x * 0x2545F4914F6CDD1D >> 1) % uint64(max(1, most)))
}
