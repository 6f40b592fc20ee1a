// Package history records what the clients of a map from keys to values ask and get under rma/sim,
// and checks that it is linearizable. Package internal/kvtest and package dht/dhttest use it.
package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Err is wrapped where what the clients got cannot be explained by operations done one after the
// other.
var Err = errors.New("the history is not linearizable")

// The operations on a map.
const (
	Get    = 'g'
	Set    = 's'
	Delete = 'd' // Answer.OK: the key was there
	Range  = 'r' // a Get that a scan makes
	Insert = 'i' // of a key that is there changes nothing; Answer.OK: it was not
	Update = 'u' // of a key that is not there changes nothing; Answer.OK: it was
	Add    = 'a' // to the key's value, 0 if it is not there; Answer.Value is the value before
)

// A Call is an operation on a key.
type Call struct {
	What       byte
	Key, Value int64
}

// An Answer is what a Call returned.
type Answer struct {
	Value int64
	OK    bool // of a Get: the key is there
	Full  bool // the map has no room for a key that is not there, and is not changed
	lost  bool // the client died in the call, and has no answer
}

// Describe is a Call and its Answer as text.
func Describe(c Call, a Answer) string {
	switch {
	case a.Full:
		return fmt.Sprintf("%c(%d, %d) -> full", c.What, c.Key, c.Value)
	case c.What == Set:
		return fmt.Sprintf("set(%d, %d)", c.Key, c.Value)
	case c.What == Delete:
		return fmt.Sprintf("delete(%d) -> %v", c.Key, a.OK)
	case c.What == Insert, c.What == Update:
		return fmt.Sprintf("%c(%d, %d) -> %v", c.What, c.Key, c.Value, a.OK)
	case c.What == Add:
		return fmt.Sprintf("add(%d, %d) -> %d", c.Key, c.Value, a.Value)
	}
	return fmt.Sprintf("%c(%d) -> %d, %v", c.What, c.Key, a.Value, a.OK)
}

// value is the state of one key: 0 where it is not there.
type value struct {
	is    int64
	there bool
}

// Model is a map, key by key: a history of Calls and Answers is linearizable if each key's is.
var Model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		var keys []int64
		for _, o := range history {
			k := o.Input.(Call).Key
			i := slices.Index(keys, k)
			if i < 0 {
				i = len(keys)
				keys, parts = append(keys, k), append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return value{} },
	Step: func(s, in, out any) (bool, any) {
		ok, next := step(s.(value), in.(Call), out.(Answer))
		return ok, next
	},
	DescribeOperation: func(in, out any) string { return Describe(in.(Call), out.(Answer)) },
}

// step reports whether a call of a key can have an answer, and what it leaves.
func step(was value, c Call, a Answer) (bool, value) {
	switch {
	case a.Full:
		return !was.there, was
	case c.What == Set:
		return true, value{c.Value, true}
	case c.What == Delete:
		return a.lost || a.OK == was.there, value{}
	case c.What == Add:
		return a.lost || a.Value == was.is, value{was.is + c.Value, true}
	case c.What == Insert, c.What == Update:
		if changes := was.there == (c.What == Update); !changes {
			return a.lost || !a.OK, was
		}
		return a.lost || a.OK, value{c.Value, true}
	}
	return a.OK == was.there && a.Value == was.is, was
}

// A Record is the history of one execution. It is a sim.Snapshotter.
type Record struct {
	did    []porcupine.Operation
	at     []int // by rank: its last operation there
	time   int64
	good   map[uint64]bool // sums of histories that were found linearizable
	loaded []Call          // Sets before the first operation
	guess  *guesses        // of a search that compares states, or nil
	now    *frontier       // what the history has come to, for guess
}

// New is a record for a number of ranks, of a map on which some Sets were made before.
func New(ranks int, loaded ...Call) *Record {
	return &Record{good: map[uint64]bool{}, at: make([]int, ranks), loaded: loaded}
}

// Compare has Hash tell histories apart by what can follow them alone. It is for searches that
// compare states: what it keeps grows with the operations that are under way at once.
func (h *Record) Compare() {
	if h.guess == nil {
		h.guess = newGuesses(h.loaded)
		h.now = h.guess.none
	}
}

// Reset begins a history with the Sets that were made before.
func (h *Record) Reset() {
	h.did, h.time = h.did[:0], 0
	if h.guess != nil {
		h.now = h.guess.none
	}
	for _, c := range h.loaded {
		h.did = append(h.did, porcupine.Operation{ClientId: len(h.at), Input: c, Call: h.time, Output: Answer{}, Return: h.time + 1})
		h.time += 2
	}
}

// Save is of sim.Snapshotter.
func (h *Record) Save(into any) any {
	s, ok := into.(*Record)
	if !ok {
		s = &Record{}
	}
	s.did, s.at, s.time, s.now = append(s.did[:0], h.did...), append(s.at[:0], h.at...), h.time, h.now
	return s
}

// Restore is of sim.Snapshotter.
func (h *Record) Restore(from any) {
	s := from.(*Record)
	h.did, h.at, h.time, h.now = append(h.did[:0], s.did...), append(h.at[:0], s.at...), s.time, s.now
}

// Called notes that a rank begins an operation. c holds a Call. The order among calls and
// returns is what matters. It returns the operation's place in the history.
func (h *Record) Called(rank int, c any) int {
	h.time++
	h.at[rank] = len(h.did)
	h.did = append(h.did, porcupine.Operation{ClientId: rank, Input: c, Call: h.time, Return: -1})
	if h.guess != nil {
		h.now = h.guess.after(h.now, h.open(h.at[rank]), nil)
	}
	return h.at[rank]
}

// Returned notes that the last operation of a rank has ended. a holds an Answer.
func (h *Record) Returned(rank int, a any) { h.ReturnedAt(h.at[rank], a) }

// ReturnedAt is Returned for an operation at a place in the history.
func (h *Record) ReturnedAt(place int, a any) {
	h.time++
	o := &h.did[place]
	if h.guess != nil {
		answer := a.(Answer)
		h.now = h.guess.after(h.now, h.open(place), &answer)
	}
	o.Output, o.Return = a, h.time
}

// open is an operation that is under way. A rank may have several with one key: those of its dead
// predecessors.
func (h *Record) open(place int) call {
	o := call{rank: h.did[place].ClientId, Call: h.did[place].Input.(Call)}
	for i := range h.did[:place] {
		if p := &h.did[i]; p.Return < 0 && p.ClientId == o.rank && p.Input.(Call).Key == o.Key {
			o.nth++
		}
	}
	return o
}

// Hash is the hash of the history so far. With Compare it is the same for histories that can go on in
// the same ways, else for those with the same order of calls after returns.
func (h *Record) Hash() uint64 {
	if h.guess != nil {
		return h.now.hash
	}
	sum := uint64(0)
	for i := range h.did {
		o := &h.did[i]
		before := uint64(0) // operations that had returned when it began, in any order
		for j := range h.did {
			if q := &h.did[j]; q.Return >= 0 && q.Return < o.Call {
				before += 0x9E3779B97F4A7C15 ^ uint64(q.ClientId+1)*0xD6E8FEB86659FD93
			}
		}
		c := o.Input.(Call)
		x := mix(mix(basis, uint64(o.ClientId)), uint64(c.What))
		x = mix(mix(x, uint64(c.Key)), uint64(c.Value))
		if o.Return >= 0 {
			a := o.Output.(Answer)
			x = mix(mix(mix(x, uint64(a.Value)), bit(a.OK)), bit(a.Full))
		}
		x = mix(x, before)
		sum += x ^ x>>29
	}
	return sum
}

// mix adds a word to a hash: FNV-1a, with a shift that spreads the high bits.
func mix(x, v uint64) uint64 {
	x = (x ^ v) * 1099511628211
	return x ^ x>>31
}

func bit(b bool) uint64 {
	if b {
		return 3
	}
	return 2
}

// Verdict is nil for a linearizable history, or an error that wraps Err and tells the history.
func (h *Record) Verdict() error {
	sum := h.Hash()
	if h.good[sum] {
		return nil
	}
	if linearizable(h.did, h.time) {
		if len(h.good) < 1<<20 {
			h.good[sum] = true
		}
		return nil
	}
	var b strings.Builder
	for _, o := range h.did {
		if o.Return < 0 {
			fmt.Fprintf(&b, "; rank %d, from %d on: %v without an end", o.ClientId, o.Call, o.Input)
			continue
		}
		fmt.Fprintf(&b, "; rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, Model.DescribeOperation(o.Input, o.Output))
	}
	return fmt.Errorf("%w: %s", Err, strings.TrimPrefix(b.String(), "; "))
}

// linearizable reports whether the history can be explained, where each operation whose client
// died in it has taken effect at any time after its call, or never.
func linearizable(did []porcupine.Operation, end int64) bool {
	open := slices.IndexFunc(did, func(o porcupine.Operation) bool { return o.Return < 0 })
	if open < 0 {
		return porcupine.CheckOperations(Model, did)
	}
	without := slices.Delete(slices.Clone(did), open, open+1)
	if linearizable(without, end) {
		return true
	}
	if c := did[open].Input.(Call); c.What == Get || c.What == Range {
		return false
	}
	with := slices.Clone(did)
	with[open].Output, with[open].Return = Answer{lost: true}, end+1
	return linearizable(with, end+1)
}
