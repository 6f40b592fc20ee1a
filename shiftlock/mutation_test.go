package shiftlock_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
)

// TestMutants: ShiftLock with a mistake does not pass. It takes as many schedules as tell those
// that others make up for by a reset from those that do harm.
func TestMutants(t *testing.T) {
	variant := func(name string, p params) lock.Info {
		info := set(p)
		info.Name, info.Recovers = name, p["LEASE"] != "off"
		return info
	}
	locktest.RunMutantsOf(t, check.Effort{Budget: 300, Every: 16, Turns: true}, equivalent(),
		variant("shiftlock", params{"LEASE": "off", "TRIES": "1", "K": "1"}),
		variant("shiftlock, K 2", params{"LEASE": "off", "TRIES": "0", "K": "2"}),
		variant("shiftlock, leases", params{"LEASE": "1us", "TRIES": "0", "K": "1"}),
		variant("shiftlock, by CAS", params{"LEASE": "1us", "TRIES": "0", "K": "2", "RELEASE": "cas"}))
}

// equivalent are mistakes that are none, or only cost time, and some that are not caught.
func equivalent() []check.Equivalent {
	const (
		pace   = "a wait is a pause: the rank looks at the whole word and at the clock after it"
		once   = "the word changes once while the rank waits for it, to what it waits for"
		before = "the flush after which it comes is still before the CompareAndSwap by which others know of the mailbox"
		old    = "the lock was reset, so that what is in the mailbox is of another era"
		guess  = "0 is taken for the word: the rank looks again, or its CompareAndSwap fails and finds the word"
		short  = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
		late   = "the count stays, as a dead rank leaves it: others reset the lock after three leases"
		lost   = "the successor waits until the lock is reset, as after a death"
		again  = "a reset that failed is taken for one: the rank leaves a queue that moves, as a dead one does"
		rare   = "not caught: the path is taken in few of the schedules that are drawn"
	)
	const (
		word, next, turn = "Await shiftlock.LOCK", "Await shiftlock mail.NEXT", "Await shiftlock mail.TURN"
		putNext, putTurn = "Put shiftlock mail.NEXT", "Put shiftlock mail.TURN"
		swap, look       = "CompareAndSwap shiftlock.LOCK", "Flush of Get shiftlock.LOCK"
	)
	return []check.Equivalent{
		{Phase: check.Acquiring, Step: word, Mutation: check.AnyChange, Why: pace},
		{Phase: check.Acquiring, Step: word, Before: "Flush of", Mutation: check.NoWait, Why: pace},
		{Phase: check.Acquiring, Step: turn, Mutation: check.AnyChange, Why: once},
		{Phase: check.Acquiring, Step: putNext, First: true, Mutation: check.Late, Why: before},
		{Phase: check.Trying, Step: putNext, First: true, Mutation: check.Late, Why: before},
		{Phase: check.Acquiring, Step: putTurn, Before: putNext, Mutation: check.Late, Why: before},
		{Phase: check.Trying, Step: putTurn, Before: putNext, Mutation: check.Late, Why: before},
		{Phase: check.Acquiring, Step: putNext, Before: word, Mutation: check.Forget, Why: old},
		{Phase: check.Acquiring, Step: putNext, Before: word, Mutation: check.Late, Why: old},
		{Phase: check.Acquiring, Step: putNext, Before: look, Mutation: check.Forget, Why: old},
		{Phase: check.Acquiring, Step: putNext, Before: look, Mutation: check.Late, Why: old},
		{Phase: check.Acquiring, Step: putNext, Before: "Flush of CompareAndSwap", Mutation: check.Forget, Why: old},
		{Phase: check.Acquiring, Step: putNext, Before: "Flush of CompareAndSwap", Mutation: check.Late, Why: old},
		{Phase: check.Acquiring, Step: look, Mutation: check.NoFlush, Why: guess},
		{Phase: check.Trying, Step: look, Mutation: check.NoFlush, Why: guess},
		{Phase: check.Acquiring, Step: swap, Before: word, Mutation: check.Trusting, Readers: true, Why: late},
		{Phase: check.Acquiring, Step: swap, Before: word, Mutation: check.Torn, Readers: true, Why: rare},
		{Phase: check.Acquiring, Step: swap, Before: look, Mutation: check.Trusting, Why: again},
		{Phase: check.Acquiring, Step: swap, Before: "Flush of CompareAndSwap", Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Step: swap, Before: "Flush of CompareAndSwap", Mutation: check.Trusting, Why: rare},
		{Phase: check.Releasing, Step: next, Mutation: check.AnyChange, Why: once},
		{Phase: check.Releasing, Step: next, Before: "Flush of Get", Mutation: check.NoWait, Why: rare},
		{Phase: check.Releasing, Step: swap, Before: look, Mutation: check.Torn, Why: rare},
		{Phase: check.Releasing, Step: swap, Before: look, Mutation: check.Blind, Why: rare},
		{Phase: check.Releasing, Step: swap, Before: look, Mutation: check.Trusting, Why: rare},
		{Phase: check.Releasing, Step: putTurn, Before: look, Mutation: check.Forget, Why: lost},
		{Phase: check.Releasing, Step: "Flush of Get shiftlock mail.NEXT", Mutation: check.NoFlush, Why: short},
	}
}
