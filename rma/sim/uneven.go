package sim

import (
	"math/rand/v2"

	"github.com/rmalock/rmalock/rma"
)

// Uneven is a Model of no machine: near words cost some nanoseconds, far ones a
// microsecond, and everything takes up to sixteen times as long at random, so that
// ranks meet in ever other orders. The same seed gives the same times.
func Uneven(seed uint64) Model {
	return &uneven{rand.New(rand.NewPCG(seed, 0x5EED))}
}

type uneven struct{ rng *rand.Rand }

func (u *uneven) Name() string { return "an uneven network" }

func (u *uneven) some(ns int64) int64 { return ns << u.rng.IntN(5) }

func (u *uneven) Issue(now int64, _, _ int, _ rma.Kind, _ int, _ bool) (free, arrives int64) {
	free = now + u.some(20)
	return free, free + u.some(500)
}

func (u *uneven) Serve(now int64, _, _ int, _ rma.Kind, words int, _ uint64) int64 {
	return now + u.some(int64(words))
}

func (u *uneven) Reply(now int64, _, _ int, _ rma.Kind, _ int) int64 { return now + u.some(500) }

func (u *uneven) Near(owner, rank int) int64 {
	if owner == rank {
		return u.some(5)
	}
	return u.some(50)
}

func (u *uneven) Woken(_, _ int) int64 { return u.some(100) }
func (u *uneven) Barrier(n int) int64  { return u.some(1000) }
