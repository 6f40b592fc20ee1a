package netmodel

import "math"

// unit is the atomic units of all NICs. A unit has lanes; an operation holds one for
// span. One on a word that another lane works on waits for it, holding its lane: so a
// hot word blocks the others once its operations fill all lanes.
type unit struct {
	span   int64
	lanes  int
	byHash bool // a word has a lane of its own choice, not any that is free
	lane   []lane
	busy   []int32 // by node: how many of its lanes, the first ones, are; not byHash
}

type lane struct {
	free int64  // when
	word uint64 // of its last operation
}

func newUnit(m *Machine, nodes int, big bool) unit {
	u := unit{
		span:   ticks(m.Value("wordNs")),
		lanes:  int(m.Value("atomicLanes")),
		byHash: m.Value("lanesByHash") != 0,
		busy:   make([]int32, nodes),
	}
	if big {
		u.span = max(u.span, ticks(m.Value("bigFootprintNs")))
	}
	u.lane = make([]lane, nodes*u.lanes)
	return u
}

// take has the unit of a node work for span on a word from t on, and says when the operation
// has its lane, and when it is done.
//
// Lanes remember their last word only. That is enough: where the word's entry was
// overwritten, its lane was the first one free, so all lanes are free later than it
// was, and the operation waits long enough by waiting for any.
func (u *unit) take(node int32, t int64, word uint64, span int64) (begins, done int64) {
	l := u.lane[int(node)*u.lanes:][:u.lanes]
	if u.byHash {
		i := mix(word) % uint64(len(l))
		begins = max(t, l[i].free)
		l[i].free = begins + span
		return begins, l[i].free
	}
	begins = t
	start, first, least := t, 0, int64(math.MaxInt64)
	busy := int(u.busy[node])
	for i := 0; i < busy; {
		if l[i].free <= t {
			busy--
			l[i] = l[busy]
			continue
		}
		if l[i].word == word {
			start = max(start, l[i].free)
		}
		if l[i].free < least {
			first, least = i, l[i].free
		}
		i++
	}
	if busy < len(l) {
		first = busy
		busy++
	} else {
		begins = max(t, least)
		start = max(start, begins)
	}
	u.busy[node] = int32(busy)
	l[first] = lane{start + span, word}
	return begins, start + span
}

// lines are the lines of a node's memory that were read of late.
type lines []lane

// take has a line read at t or, if others read it, span after the last of them, and says when.
func (l *lines) take(t int64, line uint64, span int64) int64 {
	kept := (*l)[:0]
	at := t
	for _, b := range *l {
		switch {
		case b.word == line:
			at = max(t, b.free)
		case b.free > t:
			kept = append(kept, b)
		}
	}
	*l = append(kept, lane{at + span, line})
	return at
}

// mix spreads neighbours; the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
