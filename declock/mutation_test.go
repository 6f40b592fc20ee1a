package declock_test

import (
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
)

// variant is a way of using the lock without leases, with versions and epochs that are used up soon.
func variant(t *testing.T, name string, p params) lock.Info {
	info, err := lock.Lookup("declock")
	if err != nil {
		t.Fatal(err)
	}
	all := params{"LEASE": "off", "HELD": "1", "VERSION": "2", "EPOCH": "2", "STAMP": "3", "CAPACITY": "2"}
	for k, v := range p {
		all[k] = v
	}
	open := info.OpenWith
	info.Name, info.Recovers, info.OpenWith = name, false, nil
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		return open(c, lock.Setting{Locks: n, Home: home, Params: all})
	}
	return info
}

// TestMutants: DecLock with a mistake does not pass, flat and with local locks. Ranks have no leases
// there, so that a rank which waits for ever is a deadlock.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	twoNodes := machine(t, "node:2 core:2")
	e := check.Effort{Budget: 400, Every: 16, Turns: true, Change: func(p *check.Plan) {
		if strings.Contains(p.Info.Name, "ts-tf") {
			p.Ticks = 6 // it has timestamps
		}
		if strings.Contains(p.Info.Name, "nodes") && p.Ranks == 3 && p.Topology != nil {
			p.Topology = twoNodes
		}
		p.MaxSteps = 20_000
	}}
	if locktest.Deep() {
		e.Every = 1
	}
	s, err := check.SurveyMutants(e, equivalent(),
		variant(t, "declock", nil),
		variant(t, "declock, an entry", params{"CAPACITY": "1"}),
		variant(t, "declock, nodes, local", params{"POLICY": "local"}),
		variant(t, "declock, nodes, ts-tf", params{"POLICY": "ts-tf"}))
	if s != nil {
		var b strings.Builder
		if err := s.WriteText(&b); err != nil {
			t.Error(err)
		}
		t.Log("\n" + b.String())
	}
	if err != nil {
		t.Error(err)
	}
}

// equivalent are mistakes that are none, and some that are not caught.
func equivalent() (out []check.Equivalent) {
	const (
		once     = "the word changes once while the rank waits for it, to what it waits for: without leases no message of before a reset comes then"
		again    = "the rank looks again after a wait, so that it polls"
		gone     = "what it overwrites are ranks that meet the reset id, and begin again: all that had a part are out"
		epoch    = "the epoch tells entries and messages of before a reset from those after it; it does harm when the epochs have gone round, with a version that is the same"
		stamps   = "stamps are for the order between nodes alone"
		next     = "the flush of PART that follows, of the same rank, completes it; the entry is written after that"
		mutex    = "no rank looks at it before the mutex is let go, which is one flush later"
		later    = "the rank goes on later"
		same     = "STATE has that value already, but for the count of hand-overs; closing readers out is for the order alone"
		busy     = "a rank that comes meanwhile joins the list, whether the local lock is exclusive or busy"
		stays    = "the one that resets waits until the rank is out, which says so later"
		waits    = "without leases others wait for a rank that waits as for one that holds the lock"
		before   = "it comes before the CompareAndSwap by which the rank enters"
		twice    = "the release says at its end again that the rank is out"
		early    = "an entry that is read too early counts as not written, and is read again"
		guess    = "0 is taken for the header: the CompareAndSwap fails and finds it, or the rank looks again at once"
		rare     = "not caught: it takes a reset, by a rank that looks at this one at that moment"
		torn     = "not caught: it takes two ranks that draw a ticket of the mutex at that moment; caught at most places"
		lapped   = "not caught: it takes an entry that a rank a lap later overwrites"
		opened   = "not caught: it takes a rank that writes its entry just when the reset has ended"
		lostTry  = "not caught: a try that loses its first CompareAndSwap"
		lostWant = "not caught: a try that made way for two ranks of its node"
	)
	const (
		both = iota
		readers
		writers
	)
	const (
		part, grant, reset     = "declock ranks.PART", "declock ranks.GRANT", "declock ranks.RESET"
		header, entry          = "declock.HEADER", "declock.ENTRY"
		ticket, state          = "declock nodes.TICKET", "declock nodes.STATE"
		want, wake, held, beat = "declock nodes.WANT", "declock nodes.WAKE", "declock nodes.HELD", "declock nodes.BEAT"
	)
	const (
		acquire, try, release = check.Acquiring, check.Trying, check.Releasing
		forgotten, late       = check.Forget, check.Late
		noFlush, isTorn       = check.NoFlush, check.Torn
		blind, trusting       = check.Blind, check.Trusting
		noWait, any           = check.NoWait, check.AnyChange
	)
	at := func(phase check.Phase, modes int, step, before, why string, mistakes ...check.Mutation) {
		for _, m := range mistakes {
			out = append(out, check.Equivalent{Phase: phase, Step: step, Before: before, First: before == "", Mutation: m,
				Readers: modes == readers, Writers: modes == writers, Why: why})
		}
	}
	// Waits.
	at(acquire, both, "Await "+wake, "Flush", once, any)
	at(acquire, both, "Await "+grant, "Flush of Put "+entry, once, any)
	at(acquire, writers, "Await "+grant, "Flush of Get "+header, once, any)
	at(acquire, both, "Await "+header, "Await "+header, again, noWait, any)
	at(acquire, both, "Await "+header, "Flush of Get "+header, again, noWait, any)
	at(acquire, both, "Await "+part, "Await "+part, again, noWait, any)
	at(acquire, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, any)
	at(acquire, both, "Await "+part, "Flush of Put "+reset, again, any)
	at(acquire, writers, "Await "+part, "Flush of Put "+reset, again, noWait)
	at(release, readers, "Await "+part, "Await "+part, again, noWait, any)
	at(release, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, any)
	at(release, readers, "Await "+part, "Flush of Put "+reset, again, noWait, any)
	at(release, both, "Await "+entry, "Await "+entry, again, any)
	at(release, both, "Await "+entry, "Flush of GetBulk "+entry, again, noWait, any)

	// Resets.
	for _, phase := range []check.Phase{acquire, release} {
		at(phase, both, "CompareAndSwap "+header, "Flush of PutBulk "+entry, gone, isTorn, blind)
		at(phase, both, "PutBulk "+entry, "Flush of Get "+header, epoch, forgotten)
		at(phase, both, "PutBulk "+entry, "Flush of Get "+header, opened, late)
	}
	at(acquire, readers, "Flush of PutBulk "+entry, "PutBulk", opened, noFlush)
	at(release, both, "Flush of PutBulk "+entry, "PutBulk", opened, noFlush)
	at(acquire, both, "Put "+reset, "Await "+grant, epoch, forgotten, late)
	at(release, readers, "Put "+reset, "Flush of GetBulk "+part, rare, forgotten)
	at(release, readers, "Flush of Put "+reset, "Put", rare, noFlush)
	at(release, writers, "Flush of Get "+held, "Get", rare, noFlush)

	// What a rank says of itself.
	at(acquire, both, "Put "+part, "Flush of FetchAndOp SUM "+header, stays, late)
	at(acquire, both, "Put "+part, "Await "+grant, waits, forgotten)
	at(acquire, writers, "Put "+part, "Backoff "+header, before, late)
	at(try, both, "Put "+part, "", before, late)
	at(release, both, "Put "+part, "Flush of CompareAndSwap "+header, twice, forgotten, late)
	at(release, readers, "Put "+part, "Flush of Get "+header, twice, forgotten, late)
	at(release, both, "Put "+part, "Flush of Put "+part, twice, forgotten)
	at(acquire, both, "Put "+part, "Flush of Put "+grant, lapped, late)
	at(acquire, both, "Put "+part, "Await "+wake, rare, late)
	at(try, readers, "Put "+part, "Flush of Put declock nodes.TURN", rare, forgotten)
	at(release, writers, "Put "+part, "Flush of Get "+want, rare, late)
	at(release, readers, "Put "+part, "Flush of Get "+want, rare, forgotten)

	// Entries and messages.
	at(acquire, both, "Flush of Put "+grant, "Put", next, noFlush)
	at(acquire, both, "Put "+grant, "Flush of FetchAndOp SUM "+header, lapped, late)
	at(release, both, "GetBulk "+entry, "FetchAndOp SUM "+header, early, check.NoFence)
	at(release, both, "Put "+grant, "Await "+entry, later, late)
	at(release, both, "Put "+grant, "Flush of GetBulk "+entry, later, late)
	at(release, writers, "Put "+grant, "Flush of GetBulk "+part, lapped, forgotten, late)
	at(acquire, readers, "Put "+entry, "Flush of GetBulk "+part, lapped, forgotten, late)
	at(release, writers, "Put "+entry, "Flush of GetBulk "+part, lapped, forgotten, late)
	at(release, writers, "Flush of Put "+entry, "Put", lapped, noFlush)
	at(acquire, both, "Flush of GetBulk "+entry, "GetBulk", stamps, noFlush)

	// Tries.
	at(try, both, "Flush of Get "+header, "Get", guess, noFlush)
	at(try, writers, "CompareAndSwap "+header, "Flush of CompareAndSwap "+header, lostTry, isTorn, blind, trusting)
	at(try, readers, "Flush of Get "+want, "Get", lostWant, noFlush)

	// Local locks.
	at(acquire, both, "FetchAndOp SUM "+ticket, "Flush of GetBulk "+entry, torn, isTorn)
	at(acquire, readers, "FetchAndOp SUM "+ticket, "Flush of CompareAndSwap "+header, torn, isTorn)
	at(try, writers, "FetchAndOp SUM "+ticket, "Flush of CompareAndSwap "+header, torn, isTorn)
	at(try, readers, "FetchAndOp SUM "+ticket, "Flush of Put "+part, torn, isTorn)
	at(acquire, both, "Put "+want, "Flush of Get "+beat, mutex, late)
	at(acquire, writers, "Put "+want, "Flush of Get "+want, mutex, late)
	at(acquire, both, "Put "+wake, "Put "+want, mutex, late)
	at(acquire, readers, "Put "+wake, "Flush of Get "+want, later, late)
	at(try, readers, "Put "+wake, "Flush of Get "+want, later, late)
	at(release, both, "Put "+wake, "Flush of Get "+want, later, late)
	at(acquire, writers, "Put "+state, "Flush of Put "+wake, same, forgotten, late)
	at(acquire, writers, "Put "+state, "Flush of Put "+want, same, forgotten)
	at(release, both, "Put "+state, "Flush of Put "+wake, same, forgotten)
	at(release, writers, "Put "+state, "Flush of Put "+part, busy, forgotten, late)
	return out
}
