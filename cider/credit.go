package cider

// A heat is what a client knows of how hot a key is: Algorithm 1's maps, with room for so many
// keys. The paper has one for the clients of a node; here each client has its own.
type heat struct {
	key    uint64
	credit int32
	retry  int32
}

// heatOf is the heat of a key, or one to use for it. A key with credit keeps its place.
func (s *Sync) heatOf(key uint64) *heat {
	h := &s.hot[key*0x9E3779B97F4A7C15>>32%uint64(len(s.hot))]
	if h.key != key {
		if h.credit > 0 {
			h.credit-- // unless it is never used again
			return &heat{}
		}
		*h = heat{key: key}
	}
	return h
}

// takeCredit takes one of a key's credits, and reports whether there was one (A1:2 A1:3).
func (s *Sync) takeCredit(key uint64) bool {
	h := s.heatOf(key)
	if h.credit <= 0 {
		return false
	}
	h.credit--
	return true
}

// cooled notes the retries of an optimistic update (A1:20 to A1:22).
func (s *Sync) cooled(key uint64, retries int) {
	if !s.cfg.Scheme.adapts() {
		return
	}
	h, hot := s.heatOf(key), int32(s.cfg.HotnessThreshold)
	if int32(retries) >= hot && h.retry >= hot {
		h.credit += int32(s.cfg.InitialCredit)
	}
	h.retry = int32(retries)
}

// batched notes for how many updates an executor stood (A1:13 to A1:16).
func (s *Sync) batched(key uint64, size int64) {
	s.stats.Batches++
	s.stats.Batched += size
	if !s.cfg.Scheme.adapts() {
		return
	}
	if h := s.heatOf(key); size > 1 {
		h.credit += 2
	} else {
		h.credit /= int32(s.cfg.Factor)
	}
}
