package netmodel

import "math/rand/v2"

// jitter stretches flights, each by another factor.
type jitter struct {
	share float64 // at most, either way
	rng   rand.PCG
}

// Jitter makes each flight up to share longer or shorter, at random from a seed: without it,
// clients whose round trips are equal stay in step for ever, so that one of them may lose every
// race. share is from 0 to 1.
func (n *Net) Jitter(share float64, seed uint64) {
	n.jitter.share = min(max(share, 0), 1)
	n.jitter.rng.Seed(seed, 0x6A177E5)
}

// of is the length of the next flight.
func (j *jitter) of(flight int64) int64 {
	if j.share == 0 {
		return flight
	}
	u := float64(j.rng.Uint64()>>11)/(1<<52) - 1 // from -1 to 1
	return flight + int64(float64(flight)*j.share*u)
}
