package cider

import "errors"

// spin changes a slot under a spin lock: the comparator of 5.1, with the pauses of its code.
func (s *Sync) spin(at Slot, p int64, w Writer) (Became, error) {
	s.number++
	me := tail.With(0, int64(nameOf(s.c.Rank(), s.number)))
	pause := s.cfg.BackoffFirst
	for try := 0; ; try++ {
		found, err := s.w.CompareAndSwapFlush(me, 0, at.Host, at.Lock)
		if err != nil {
			return Absent, err
		}
		if found == 0 {
			break
		}
		if try == 0 {
			s.stats.Blocked++
		}
		if s.cfg.BackoffLast < 0 {
			if err := s.w.Backoff(at.Host, at.Lock, found, try); err != nil {
				return Absent, err
			}
			continue
		}
		s.c.Sleep(min(pause, s.cfg.BackoffLast) + s.draw(pause))
		pause = min(2*pause, s.cfg.BackoffLast)
	}
	became, _, err := s.execute(at, p, w)
	_, free := s.w.CompareAndSwapFlush(0, me, at.Host, at.Lock)
	return became, errors.Join(err, free)
}

// draw is a random number below most, by xorshift64*.
func (s *Sync) draw(most int64) int64 {
	x := s.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	s.random = x
	return int64((x * 0x2545F4914F6CDD1D >> 1) % uint64(max(1, most)))
}
