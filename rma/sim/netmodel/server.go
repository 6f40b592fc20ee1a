package netmodel

// A server does one piece of work after the other, first come, first served. It is
// kept as the work that is left at the time of the latest call, and not as the time
// when it is free: calls in the order of time get the same answers, and one that comes
// a little out of order waits as long as the latest and not until the latest is done.
type server struct {
	last, left int64
}

// take has work done that comes at t, and says when it is done.
func (s *server) take(t, work int64) (done int64) {
	if d := t - s.last; d > 0 {
		s.left = max(0, s.left-d)
		s.last = t
	}
	s.left += work
	return t + s.left
}

// A cpu is what runs one rank, or the coroutines of a core.
type cpu struct {
	server
	rank   int // that ran last; -1 for none
	change int64
}

// take has a rank work, after a switch if another one ran.
func (c *cpu) take(rank int, t, work int64) (done int64) {
	if c.rank != rank {
		if c.rank >= 0 {
			work += c.change
		}
		c.rank = rank
	}
	return c.server.take(t, work)
}
