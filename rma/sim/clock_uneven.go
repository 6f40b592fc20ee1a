package sim

import (
	"math/rand/v2"

	"github.com/rmalock/rmalock/rma"
)

// Uneven is a Model of no real machine. Near words cost some nanoseconds and far ones a
// microsecond, times a random factor of 1 to 16. So each seed orders events differently, and
// the same seed in the same way.
func Uneven(seed uint64) Model {
	return &uneven{rand.New(rand.NewPCG(seed, 0x5EED))}
}

type uneven struct{ rng *rand.Rand }

func (u *uneven) Name() string { return "an uneven network" }

func (u *uneven) stretch(ns int64) int64 { return ns << u.rng.IntN(5) }

func (u *uneven) Issue(now int64, _, _ int, _ rma.Kind, _ int, _ bool) (free, arrives int64) {
	free = now + u.stretch(20)
	return free, free + u.stretch(500)
}

func (u *uneven) Serve(now int64, _, _ int, _ rma.Kind, words int, _ uint64) int64 {
	return now + u.stretch(int64(words))
}

func (u *uneven) Reply(now int64, _, _ int, _ rma.Kind, _ int) int64 { return now + u.stretch(500) }

func (u *uneven) Connection(_, _ int) (id, limit int) { return 0, 0 }

func (u *uneven) Near(owner, rank int) int64 {
	if owner == rank {
		return u.stretch(5)
	}
	return u.stretch(50)
}

func (u *uneven) Woken(_, _ int) int64 { return u.stretch(100) }
func (u *uneven) Barrier(n int) int64  { return u.stretch(1000) }
