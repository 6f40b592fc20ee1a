package declock_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// An acquire is when a rank began it, by the simulator's clock, and when it had the lock.
type acquire struct {
	rank          int
	mode          lock.Mode
	began, enters int64
}

// acquires runs ranks of nodes that take a lock in drawn modes, on an uneven network.
func acquires(t *testing.T, policy declock.Policy, seed uint64, rounds, modes int) (all []acquire) {
	t.Helper()
	_, err := sim.Timed{Node: []int{0, 0, 0, 1, 1, 1, 2, 2}, MemoryNodes: 1, Model: sim.Uneven(seed)}.Run(func(c rma.Comm) error {
		l, err := declock.New(c, declock.Config{Policy: policy, Lease: -1, Held: 1, Capacity: 8})
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
		if err := c.Barrier(); err != nil {
			return err
		}
		for range rounds {
			mode := lock.Mode(rng.IntN(modes))
			began := c.Now()
			if err := l.Lock(background, 0, mode); err != nil {
				return err
			}
			all = append(all, acquire{c.Rank(), mode, began, c.Now()})
			c.Sleep(1000 + rng.Int64N(20_000))
			if err := l.Unlock(0, mode); err != nil {
				return err
			}
			c.Sleep(rng.Int64N(4_000))
		}
		return errors.Join(c.Barrier(), l.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// slack is the error of the order, in nanoseconds: a stamp has microseconds, and an acquire is known
// to others when its FetchAndOp and its Put have taken effect, each up to 8 us here.
const slack = 20_000

// passed is the most acquires that began after another one, by more than the slack, and came before
// it, though one of the two is exclusive.
func passed(all []acquire) (most int) {
	for _, a := range all {
		n := 0
		for _, b := range all {
			if b.enters < a.enters && b.began > a.began+slack && (a.mode == lock.Exclusive || b.mode == lock.Exclusive) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestOrder: section 5.3, the order between nodes. Ranks of three nodes take a lock all the time.
// An acquire is not passed for ever, as it is without regard to other nodes. With writers alone it
// is passed by as many later ones as there are other ranks at most. With readers it is twice as
// many if task-fair, and three times as many if phase-fair. It is no strict order: a node that lets
// the lock go stands at the end of the queue again (F10:31), and its ranks that wait with it.
func TestOrder(t *testing.T) {
	const ranks, writers, both = 8, 1, 2
	seeds, rounds := uint64(4), 150
	if locktest.Quick() {
		seeds, rounds = 1, 60
	}
	for _, k := range []struct {
		policy declock.Policy
		modes  int
		most   int
	}{
		{declock.TaskFair, writers, ranks - 1},
		{declock.PhaseFair, writers, ranks - 1},
		{declock.TaskFair, both, 2 * (ranks - 1)},
		{declock.PhaseFair, both, 3 * (ranks - 1)},
	} {
		n := 0
		for seed := range seeds {
			n = max(n, passed(acquires(t, k.policy, seed, rounds, k.modes)))
		}
		t.Logf("policy %d, %d modes: an acquire is passed %d times", k.policy, k.modes, n)
		if n > k.most {
			t.Errorf("policy %d, %d modes: an acquire is passed %d times, at most %d are stated", k.policy, k.modes, n, k.most)
		}
	}
	if n := passed(acquires(t, declock.LocalPrefer, 1, rounds, writers)); n < 4*ranks {
		t.Errorf("without regard to other nodes an acquire is passed only %d times: the test tells nothing", n)
	}
}
