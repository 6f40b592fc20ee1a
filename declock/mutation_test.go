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
	locktest.RunMutantsOf(t, e, equivalent(),
		variant(t, "declock", nil),
		variant(t, "declock, an entry", params{"CAPACITY": "1"}),
		variant(t, "declock, nodes, local", params{"POLICY": "local"}),
		variant(t, "declock, nodes, ts-tf", params{"POLICY": "ts-tf"}))
}

// Places and mistakes, as the lists name them.
const (
	both = iota
	readers
	writers
)
const (
	part, grant, reset           = "declock ranks.PART", "declock ranks.GRANT", "declock ranks.RESET"
	header, entry                = "declock.HEADER", "declock.ENTRY"
	ticket, state                = "declock nodes.TICKET", "declock nodes.STATE"
	wants, wake, held, localBeat = "declock nodes.WANT", "declock nodes.WAKE", "declock nodes.HELD", "declock nodes.BEAT"
)
const beat = "heartbeats.BEAT"

const (
	acquiring, trying, releasing = check.Acquiring, check.Trying, check.Releasing
	forgotten, late              = check.Forget, check.Late
	noFlush, isTorn              = check.NoFlush, check.Torn
	blind, trusting              = check.Blind, check.Trusting
	noWait, anyChange            = check.NoWait, check.AnyChange
)

// places are mistakes at a step after another one, in some modes; before is "" for the first step.
func places(phase check.Phase, modes int, step, before, why string, mistakes []check.Mutation) (out []check.Equivalent) {
	for _, m := range mistakes {
		out = append(out, check.Equivalent{Phase: phase, Step: step, Before: before, First: before == "", Mutation: m,
			Readers: modes == readers, Writers: modes == writers, Why: why})
	}
	return out
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
		told     = "a rank that waits still is told again"
		rare     = "not caught: it takes a reset, by a rank that looks at this one at that moment"
		torn     = "not caught: it takes two ranks that draw a ticket of the mutex at that moment; caught at most places"
		lapped   = "not caught: it takes an entry that a rank a lap later overwrites"
		opened   = "not caught: it takes a rank that writes its entry just when the reset has ended"
		lostTry  = "not caught: a try that loses its first CompareAndSwap"
		lostWant = "not caught: a try that made way for two ranks of its node"
	)
	at := func(phase check.Phase, modes int, step, before, why string, mistakes ...check.Mutation) {
		out = append(out, places(phase, modes, step, before, why, mistakes)...)
	}
	// Waits.
	at(acquiring, both, "Await "+wake, "Flush", once, anyChange)
	at(acquiring, both, "Await "+grant, "Flush of Put "+entry, once, anyChange)
	at(acquiring, writers, "Await "+grant, "Flush of Get "+header, once, anyChange)
	at(acquiring, both, "Await "+header, "Await "+header, again, anyChange)
	at(acquiring, both, "Await "+header, "Flush of Get "+header, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Await "+part, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Flush of Put "+reset, again, noWait, anyChange)
	at(releasing, readers, "Await "+part, "Await "+part, again, noWait, anyChange)
	at(releasing, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, anyChange)
	at(releasing, both, "Await "+entry, "Await "+entry, again, anyChange)
	at(releasing, both, "Await "+entry, "Flush of GetBulk "+entry, again, noWait, anyChange)

	// Resets.
	for _, phase := range []check.Phase{acquiring, releasing} {
		at(phase, both, "CompareAndSwap "+header, "Flush of PutBulk "+entry, gone, isTorn, blind)
		at(phase, both, "PutBulk "+entry, "Flush of Get "+header, epoch, forgotten)
		at(phase, both, "PutBulk "+entry, "Flush of Get "+header, opened, late)
	}
	at(acquiring, both, "Flush of PutBulk "+entry, "PutBulk", opened, noFlush)
	at(releasing, both, "Flush of PutBulk "+entry, "PutBulk", opened, noFlush)
	at(acquiring, both, "Put "+reset, "Await "+grant, epoch, forgotten, late)
	at(acquiring, both, "Put "+reset, "Put "+reset, told, forgotten, late)
	at(releasing, readers, "Put "+reset, "Flush of GetBulk "+part, rare, forgotten, late)
	at(releasing, readers, "Flush of Put "+reset, "Put", rare, noFlush)
	at(releasing, writers, "Flush of Get "+held, "Get", rare, noFlush)

	// What a rank says of itself.
	at(acquiring, both, "Put "+part, "Flush of FetchAndOp SUM "+header, stays, late)
	at(acquiring, both, "Put "+part, "Await "+grant, waits, forgotten)
	at(acquiring, writers, "Put "+part, "Backoff "+header, before, late)
	at(trying, both, "Put "+part, "", before, late)
	at(releasing, both, "Put "+part, "Flush of CompareAndSwap "+header, twice, forgotten, late)
	at(releasing, readers, "Put "+part, "Flush of Get "+header, twice, forgotten, late)
	at(releasing, both, "Put "+part, "Flush of Put "+part, twice, forgotten)
	at(acquiring, both, "Put "+part, "Flush of Put "+grant, lapped, late)
	at(acquiring, both, "Put "+part, "Await "+wake, rare, late)
	at(trying, readers, "Put "+part, "Flush of Put declock nodes.TURN", rare, forgotten)
	at(releasing, readers, "Put "+part, "Flush of Get "+wants, rare, forgotten)

	// Entries and messages.
	at(acquiring, both, "Flush of Put "+grant, "Put", next, noFlush)
	at(acquiring, both, "Put "+grant, "Flush of FetchAndOp SUM "+header, lapped, late)
	at(releasing, both, "GetBulk "+entry, "FetchAndOp SUM "+header, early, check.NoFence)
	at(releasing, both, "Put "+grant, "Await "+entry, later, late)
	at(releasing, both, "Put "+grant, "Flush of GetBulk "+entry, later, late)
	at(releasing, writers, "Put "+entry, "Flush of GetBulk "+part, lapped, forgotten, late)
	at(releasing, writers, "Flush of Put "+entry, "Put", lapped, noFlush)
	at(acquiring, both, "Flush of GetBulk "+entry, "GetBulk", stamps, noFlush)

	// Tries.
	at(trying, both, "Flush of Get "+header, "Get", guess, noFlush)
	at(trying, writers, "CompareAndSwap "+header, "Flush of CompareAndSwap "+header, lostTry, isTorn, blind, trusting)
	at(trying, readers, "Flush of Get "+wants, "Get", lostWant, noFlush)

	// Local locks.
	at(acquiring, both, "FetchAndOp SUM "+ticket, "Flush of GetBulk "+entry, torn, isTorn)
	at(acquiring, readers, "FetchAndOp SUM "+ticket, "Flush of CompareAndSwap "+header, torn, isTorn)
	at(trying, writers, "FetchAndOp SUM "+ticket, "Flush of CompareAndSwap "+header, torn, isTorn)
	at(trying, readers, "FetchAndOp SUM "+ticket, "Flush of Put "+part, torn, isTorn)
	at(acquiring, both, "Put "+wants, "Flush of Get "+localBeat, mutex, late)
	at(acquiring, writers, "Put "+wants, "Flush of Get "+wants, mutex, late)
	at(acquiring, both, "Put "+wake, "Put "+wants, mutex, late)
	at(acquiring, readers, "Put "+wake, "Flush of Get "+wants, later, late)
	at(trying, readers, "Put "+wake, "Flush of Get "+wants, later, late)
	at(releasing, both, "Put "+wake, "Flush of Get "+wants, later, late)
	at(acquiring, writers, "Put "+state, "Flush of Put "+wake, same, forgotten, late)
	at(acquiring, writers, "Put "+state, "Flush of Put "+wants, same, forgotten)
	at(releasing, both, "Put "+state, "Flush of Put "+wake, same, forgotten)
	at(releasing, writers, "Put "+state, "Flush of Put "+part, busy, forgotten, late)
	return out
}

// TestMutantsLeases: DecLock with leases and a mistake, flat. Where none has died a rank that waits
// for a lease is caught, and where none is silent one that is taken for dead. Each death costs one
// reset, and a few leases.
func TestMutantsLeases(t *testing.T) {
	e := check.Effort{Budget: 1800, Every: 48, Turns: true, Ends: true, Drawn: true, Change: func(p *check.Plan) {
		p.Ticks, p.MaxSteps, p.Prompt = 100, 20_000, true
		switch p.Info.Name {
		case "declock, leases", "declock, overflow":
			p.Pace, p.Crashes = check.Forced, 0
		case "declock, overflow, a death":
			p.Pace, p.Crashes = check.Forced, 1
		case "declock, a death":
			p.Pace, p.PerDeath, p.Recover, p.Crashes = check.Forced, "resets", recovers, 1
		case "declock, slow ticks":
			p.Pace, p.Crashes, p.Ticks = check.Timely, 0, 200
			p.Acquires += 4
		case "declock, many ticks":
			p.Pace, p.Crashes, p.Ticks = check.Hasty, 0, 300
			p.Acquires += 6
		}
	}}
	var infos []lock.Info
	for _, k := range []struct {
		name string
		p    params
	}{
		{"declock, leases", params{"CAPACITY": "4", "VERSION": "16"}},
		{"declock, a death", params{"CAPACITY": "4", "VERSION": "16"}},
		{"declock, slow ticks", params{"CAPACITY": "4", "VERSION": "16"}},
		{"declock, many ticks", params{"CAPACITY": "4", "VERSION": "16"}},
		{"declock, overflow", tight},
		{"declock, overflow, a death", tight},
		{"declock, any ticks", params{"CAPACITY": "4"}},
	} {
		k.p["LEASE"] = "1us"
		info := variant(t, k.name, k.p)
		info.Recovers = true
		infos = append(infos, info)
	}
	locktest.RunMutantsOf(t, e, equivalentLeases(), infos...)
}

// equivalentLeases are mistakes that are none, and those that are not caught, by their place.
func equivalentLeases() (out []check.Equivalent) {
	const (
		again     = "the rank looks again after a wait, so that it polls"
		polls     = "a message that stays makes the rank look at the header again and again"
		next      = "the flush of PART that follows, of the same rank, completes it; the entry is written after that"
		epoch     = "the epoch tells entries of before a reset from those after it"
		early     = "an entry that is read too early counts as not written, and is read again"
		guess     = "0 is taken for the header: the CompareAndSwap fails and finds it"
		toldAgain = "the rank that resets tells each one that waits twice: when it looks at all, and when it waits for that one"
		twice     = "the release says at its end again that the rank is out"
		before    = "it comes before the CompareAndSwap by which the rank enters"
		stays     = "the one that resets waits until the rank is out, which says so later"
		undead    = "not caught: 0 is taken for the part of a dead rank, which has left then; to do harm takes a reset by a rank that does not look for the dead"
		found     = "not caught: a rank that lives is taken for dead, which takes two leases in which it goes on and is looked at"
		beats     = "not caught: a beat that is missed takes one lease of the margin; to do harm takes a rank that is silent for the rest, and an operation that is late"
		stale     = "not caught: it takes a message of before a reset that comes while the rank waits again"
		meets     = "not caught: it takes another rank that changes the header at that moment"
		looked    = "not caught: it takes a rank that looks at the part at that moment, to reset the lock"
		granted   = "not caught: the message in its mailbox says the same; to do harm takes its death, and a reset by one that does not look for the dead"
		between   = "not caught: it takes a rank that looks for the dead when the part is out and the message not there"
		opened    = "not caught: it takes a rank that writes its entry just when the reset has ended"
		lapped    = "not caught: it takes an entry that a rank a lap later overwrites"
		few       = "not caught: the path is taken in few of the schedules that are drawn"
	)
	at := func(phase check.Phase, modes int, step, before, why string, mistakes ...check.Mutation) {
		out = append(out, places(phase, modes, step, before, why, mistakes)...)
	}
	missed := func(phase check.Phase, mistakes ...check.Mutation) {
		for _, m := range mistakes {
			out = append(out, check.Equivalent{Phase: phase, Step: "Put " + beat, Mutation: m, Why: beats})
		}
		out = append(out, check.Equivalent{Phase: phase, Step: "Flush of Put " + beat, Mutation: noFlush, Why: beats})
	}
	missed(acquiring, forgotten, late)
	missed(trying, forgotten, late)
	missed(releasing, late)
	at(releasing, both, "Put "+beat, "", beats, forgotten)
	at(releasing, both, "Put "+beat, "Await "+part, beats, forgotten)
	at(releasing, both, "Put "+beat, "Flush", beats, forgotten)
	at(acquiring, both, "Await "+grant, "Flush of CompareAndSwap "+header, stale, anyChange)
	at(acquiring, both, "Await "+grant, "Flush of Get "+grant, few, noWait)
	at(acquiring, both, "Await "+grant, "Flush of Get "+grant, stale, anyChange)
	at(acquiring, both, "Await "+grant, "Flush of Get "+header, stale, anyChange)
	at(acquiring, both, "Await "+grant, "Flush of Get "+beat, stale, anyChange)
	at(acquiring, both, "Await "+grant, "Flush of Put "+entry, stale, anyChange)
	at(acquiring, both, "Await "+part, "Await "+part, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Flush of Get "+beat, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, anyChange)
	at(acquiring, both, "Await "+part, "Flush of Put "+reset, again, anyChange)
	at(acquiring, both, "Await "+header, "Await "+header, again, anyChange)
	at(acquiring, both, "Await "+header, "Flush of Get "+header, again, noWait, anyChange)
	at(acquiring, both, "Await "+header, "Flush of Get "+beat, again, noWait, anyChange)
	at(acquiring, both, "CompareAndSwap "+header, "Flush of GetBulk "+part, meets, isTorn)
	at(acquiring, both, "CompareAndSwap "+header, "Flush of Put "+part, meets, isTorn)
	at(acquiring, both, "CompareAndSwap "+header, "Flush of Put "+part, meets, trusting)
	at(acquiring, both, "CompareAndSwap "+header, "Flush of PutBulk "+entry, meets, isTorn, blind)
	at(acquiring, both, "Flush of Put "+grant, "Put "+grant, next, noFlush)
	at(acquiring, both, "Flush of PutBulk "+entry, "PutBulk "+entry, opened, noFlush)
	at(acquiring, both, "Put "+grant, "Flush of FetchAndOp SUM "+header, next, late)
	at(acquiring, readers, "Put "+part, "Await "+grant, granted, forgotten)
	at(acquiring, both, "Put "+part, "Flush of FetchAndOp SUM "+header, stays, late)
	at(acquiring, both, "Put "+part, "Flush of Get "+beat, looked, forgotten, late)
	at(acquiring, both, "Put "+part, "Flush of GetBulk "+part, looked, forgotten, late)
	at(acquiring, both, "Put "+part, "Flush of Put "+grant, looked, late)
	at(acquiring, both, "Put "+reset, "Await "+grant, polls, forgotten, late)
	at(acquiring, both, "Put "+reset, "Flush of Get "+beat, toldAgain, forgotten)
	at(acquiring, both, "Put "+reset, "Put "+reset, toldAgain, forgotten, late)
	at(acquiring, readers, "PutBulk "+entry, "Flush of Get "+header, opened, late)
	at(trying, both, "Flush of Get "+header, "Get "+header, guess, noFlush)
	at(trying, both, "Put "+part, "Flush of Put "+beat, before, late)
	at(releasing, readers, "Await "+part, "Await "+part, again, noWait, anyChange)
	at(releasing, both, "Await "+part, "Flush of Get "+beat, again, noWait, anyChange)
	at(releasing, both, "Await "+part, "Flush of GetBulk "+part, again, noWait, anyChange)
	at(releasing, both, "Await "+part, "Flush of Put "+reset, again, anyChange)
	at(releasing, both, "Await "+entry, "Await "+entry, again, anyChange)
	at(releasing, writers, "Await "+entry, "Await "+entry, again, noWait)
	at(releasing, readers, "Await "+entry, "Flush of CompareAndSwap "+header, again, noWait, anyChange)
	at(releasing, both, "Await "+entry, "Flush of Get "+header, again, anyChange)
	at(releasing, both, "Await "+entry, "Flush of Get "+beat, again, noWait, anyChange)
	at(releasing, both, "Await "+entry, "Flush of GetBulk "+part, again, anyChange)
	at(releasing, readers, "Await "+entry, "Flush of GetBulk "+part, again, noWait)
	at(releasing, both, "Await "+entry, "Flush of GetBulk "+entry, again, noWait, anyChange)
	at(releasing, writers, "CompareAndSwap "+header, "Flush of CompareAndSwap "+header, meets, isTorn, blind, trusting)
	at(releasing, writers, "CompareAndSwap "+header, "Flush of Get "+beat, meets, isTorn, blind, trusting)
	at(releasing, both, "CompareAndSwap "+header, "Flush of PutBulk "+entry, meets, isTorn, blind)
	at(releasing, writers, "CompareAndSwap "+header, "Flush of PutBulk "+entry, meets, trusting)
	at(releasing, both, "Flush of Get "+part, "Get "+part, undead, noFlush)
	at(releasing, both, "Flush of Get "+beat, "Get "+beat, found, noFlush)
	at(releasing, both, "Flush of Put "+reset, "Put "+reset, toldAgain, noFlush)
	at(releasing, writers, "Flush of Put "+entry, "Put "+entry, lapped, noFlush)
	at(releasing, both, "Flush of PutBulk "+entry, "PutBulk "+entry, opened, noFlush)
	at(releasing, both, "GetBulk "+entry, "FetchAndOp SUM "+header, early, check.NoFence)
	at(releasing, writers, "Put "+grant, "Await "+entry, between, late)
	at(releasing, both, "Put "+grant, "Flush of Get "+header, between, late)
	at(releasing, writers, "Put "+grant, "Flush of GetBulk "+part, few, forgotten, late)
	at(releasing, writers, "Put "+grant, "Put "+grant, between, late)
	at(releasing, both, "Put "+part, "Flush of CompareAndSwap "+header, twice, forgotten, late)
	at(releasing, both, "Put "+part, "Flush of Put "+part, twice, forgotten)
	at(releasing, both, "Put "+reset, "Flush of Get "+beat, toldAgain, forgotten)
	at(releasing, both, "Put "+reset, "Flush of GetBulk "+part, toldAgain, forgotten)
	at(releasing, both, "Put "+reset, "Put "+reset, toldAgain, forgotten, late)
	at(releasing, writers, "Put "+entry, "Flush of GetBulk "+part, lapped, forgotten, late)
	at(releasing, writers, "Put "+entry, "Put "+entry, lapped, forgotten, late)
	at(releasing, both, "PutBulk "+entry, "Flush of Get "+header, epoch, forgotten)
	at(releasing, both, "PutBulk "+entry, "Flush of Get "+header, opened, late)
	return out
}
