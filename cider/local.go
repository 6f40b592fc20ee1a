package cider

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// The clients of a node, in groups of Policy.Local, combine what they do to one key before any
// remote operation (section 3.1). A group has a table of entries, for updates and for searches. The
// first client that comes to an entry works alone. Those that come meanwhile are pushed onto the
// entry's stack. When the first has finished, it takes the stack and has the top, the last writer,
// work for all below. So an answer comes from an operation that lies inside the calls of all
// that it is for.
//
// No client depends on another one's life: one that waits for too long goes on alone. That is right
// at any time, since no other client writes its value.

// Words of a client's mail inside its node.
const (
	answerWord = iota
	linkWord   // the client below it in the stack
	stampWord  // the number of the search whose result is in the value
	localWords
)

// The fields of an ENTRY, and of ANSWER.
var (
	top    = rma.Field{Name: "top", Shift: 0, Bits: 38}
	tenure = rma.Field{Name: "tenure", Shift: 38, Bits: 13, Wraps: true} // counts clients that worked first
	tag    = rma.Field{Name: "tag", Shift: 51, Bits: 13}                 // of the key, 0 for none

	worker = rma.Field{Name: "worker", Shift: 0, Bits: 38}
	kind   = rma.Field{Name: "kind", Shift: 38, Bits: 2} // forNumber is above
)

// What ANSWER says.
const (
	waits    = iota // with a worker: work alone
	works           // work for all below in the stack
	isAbsent        // the worker has done it: the key is absent
	isThere         // the same, and the key is there
)

// The tables of a group.
const (
	updates = iota
	searches
	tables
)

// localPatience is the number of leases for which a client waits for a node-mate: longer than one
// of them waits for a queue that stands still.
const localPatience = 2 * patience

// A local is one client's place among those of its node.
type local struct {
	c       rma.Comm
	w       *rma.Window
	at      int // the client whose memory has the entries of the group
	entries int // of a table
	key     []int64
	value   []int64
	wait    int64

	number int64         // of operations
	entry  int           // that this client works at, or -1
	state  int64         // of the entry, as this client has to find it but for the top
	below  name          // the clients that this one works for
	stats  [tables]int64 // what node-mates have made
}

// Bytes of a key, and of a value, that node-mates share; longer ones are not combined.
const (
	localKey   = 32
	localValue = 1024
)

// newLocal opens the words of a node. Collective.
func newLocal(c rma.Comm, p *Policy) (*local, error) {
	l := &local{
		c: c, entries: p.LocalKeys, wait: localPatience * p.Lease, entry: -1, number: int64(rma.Generation(c)) << 16,
		key: make([]int64, 1+localKey/8), value: make([]int64, 1+localValue/8),
	}
	l.at = leader(c, p.Local)
	var err error
	l.w, err = c.Allocate(rma.Spec{Name: "cider node", Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{
			{Name: "ANSWER", Class: rma.Near, Fields: []rma.Field{forNumber, kind, worker}},
			{Name: "LINK", Class: rma.Near, Fields: []rma.Field{forNumber, from}},
			{Name: "STAMP", Class: rma.Near},
		}},
		{Count: len(l.key), Words: []rma.Word{{Name: "KEY", Class: rma.Plain}}},
		{Count: len(l.value), Words: []rma.Word{{Name: "VALUE", Class: rma.Plain}}},
		{Count: tables * l.entries, Words: []rma.Word{{Name: "ENTRY", Class: rma.Near, Fields: []rma.Field{tag, tenure, top}}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	return l, nil
}

func (l *local) keyAt() int   { return localWords }
func (l *local) valueAt() int { return localWords + len(l.key) }
func (l *local) entryAt(table int, hash uint64) int {
	return l.valueAt() + len(l.value) + table*l.entries + int(hash%uint64(l.entries))
}

// enter comes to a key's entry. It reports done with the answer of a node-mate that has worked for
// this client; else this client works, alone or for others, and leaves.
func (l *local) enter(table int, key, dst []byte) (out []byte, there, done bool, err error) {
	l.entry, l.below = -1, 0
	if len(key) > localKey {
		return dst, false, false, nil
	}
	hash := hashOf(key)
	at, mark := l.entryAt(table, hash), int64(hash>>51)|1
	if l.number++; l.number&numbers == 0 {
		l.number++
	}
	me := nameOf(l.c.Rank(), l.number)
	s, err := l.w.GetFlush(l.at, at)
	for said := false; err == nil; {
		next := tag.With(top.With(s, 0), mark)
		switch {
		case tag.Get(s) != 0 && tag.Get(s) != mark:
			return dst, false, false, nil // the entry is another key's
		case tag.Get(s) != 0:
			if !said {
				err, said = l.say(me, key), true
			}
			l.w.Put(from.With(forNumber.With(0, me.number()), top.Get(s)), me.client(), linkWord)
			err = errors.Join(err, l.w.Flush(me.client()))
			next = top.With(s, int64(me))
		}
		if err != nil {
			break
		}
		found, cerr := l.w.CompareAndSwapFlush(next, s, l.at, at)
		switch {
		case cerr != nil:
			err = cerr
		case found != s:
			s = found
		case tag.Get(s) == 0:
			l.entry, l.state = at, next
			return dst, false, false, nil
		default:
			return l.await(at, me, next, s, table, dst)
		}
	}
	return dst, false, false, unlessGone(err)
}

// say makes the client ready for an answer.
func (l *local) say(me name, key []byte) error {
	l.key[(len(key)+7)/8] = 0 // the bytes behind the key's last
	l.key[0] = int64(len(key))
	copy(bytesOf(l.key[1:]), key)
	l.w.PutBulk(l.key[:1+(len(key)+7)/8], me.client(), l.keyAt())
	l.w.Put(forNumber.With(0, me.number()), me.client(), answerWord)
	return l.w.Flush(me.client())
}

// await waits for the answer. One that does not come is not waited for longer than the lease.
func (l *local) await(at int, me name, pushed, below int64, table int, dst []byte) ([]byte, bool, bool, error) {
	waiting := forNumber.With(0, me.number())
	m, came, err := l.w.AwaitUntil(me.client(), answerWord, rma.NotEqual(waiting), l.c.Now()+l.wait)
	if err != nil {
		return dst, false, false, unlessGone(err)
	}
	if !came {
		if m, err = l.w.CompareAndSwapFlush(worker.With(waiting, 1), waiting, me.client(), answerWord); err != nil {
			return dst, false, false, unlessGone(err)
		}
		if m == waiting {
			return dst, false, false, unlessGone(l.clear(at, pushed))
		}
	}
	switch kind.Get(m) {
	case works:
		l.entry, l.state, l.below = at, pushed, name(top.Get(below))
	case isAbsent:
		l.stats[table]++
		return dst, false, true, nil
	case isThere:
		if table == updates {
			l.stats[table]++
			return dst, true, true, nil
		}
		out, done, err := l.take(name(worker.Get(m)), dst)
		return out, done, done, unlessGone(err)
	}
	return dst, false, false, nil
}

// take appends the result of a node-mate's search, unless its next search is in the way.
func (l *local) take(of name, dst []byte) ([]byte, bool, error) {
	n, err := l.w.GetFlush(of.client(), l.valueAt())
	if err != nil || n < 0 || n > localValue {
		return dst, false, err
	}
	v := l.value[1 : 1+(n+7)/8]
	l.w.GetBulk(v, of.client(), l.valueAt()+1)
	if err := l.w.Flush(of.client()); err != nil {
		return dst, false, err
	}
	stamp, err := l.w.GetFlush(of.client(), stampWord)
	if err != nil || stamp != of.number() {
		return dst, false, err
	}
	l.stats[searches]++
	return append(dst, bytesOf(v)[:n]...), true, nil
}

// clear frees an entry whose worker does not answer.
func (l *local) clear(at int, pushed int64) error {
	s, err := l.w.GetFlush(l.at, at)
	for err == nil && tag.Get(s) == tag.Get(pushed) && tenure.Get(s) == tenure.Get(pushed) {
		found, cerr := l.w.CompareAndSwapFlush(tenure.With(0, tenure.Get(s)+1), s, l.at, at)
		if cerr != nil || found == s {
			return cerr
		}
		s = found
	}
	return err
}

// leave gives the clients below their answer, and the entry to those that came meanwhile. value is
// that of a search. Where the work failed the others work alone.
func (l *local) leave(table int, key, value []byte, there, failed bool) error {
	if l.entry < 0 {
		return nil
	}
	me := nameOf(l.c.Rank(), l.number)
	answer := worker.With(0, int64(me))
	switch {
	case failed || len(value) > localValue: // they work alone
	case there:
		answer = kind.With(answer, isThere)
	default:
		answer = kind.With(answer, isAbsent)
	}
	var err error
	if l.below != 0 && table == searches && kind.Get(answer) == isThere {
		err = l.publish(me, value)
	}
	for m := l.below; m != 0 && err == nil; {
		m, err = l.tell(m, key, answer)
	}
	return unlessGone(errors.Join(err, l.release()))
}

// publish puts the result of a search where node-mates find it.
func (l *local) publish(me name, value []byte) error {
	if err := l.w.PutFlush(0, me.client(), stampWord); err != nil {
		return err
	}
	n := (len(value) + 7) / 8
	l.value[n] = 0
	l.value[0] = int64(len(value))
	copy(bytesOf(l.value[1:]), value)
	l.w.PutBulk(l.value[:1+n], me.client(), l.valueAt())
	if err := l.w.Flush(me.client()); err != nil {
		return err
	}
	return l.w.PutFlush(me.number(), me.client(), stampWord)
}

// tell gives a client its answer, and returns the one below it. One that no longer waits has
// taken its link along.
func (l *local) tell(m name, key []byte, answer int64) (name, error) {
	link, err := l.w.GetFlush(m.client(), linkWord)
	if err != nil || forNumber.Get(link) != m.number() {
		return 0, err
	}
	k := l.key[:1+(len(key)+7)/8]
	l.w.GetBulk(k, m.client(), l.keyAt())
	if err := l.w.Flush(m.client()); err != nil {
		return 0, err
	}
	if k[0] != int64(len(key)) || string(bytesOf(k[1:])[:len(key)]) != string(key) {
		answer = kind.With(answer, waits) // another key with this one's tag
	}
	waiting := forNumber.With(0, m.number())
	_, err = l.w.CompareAndSwapFlush(waiting|answer, waiting, m.client(), answerWord)
	return name(from.Get(link)), err
}

// release frees the entry, or has the client at the top of its stack work.
func (l *local) release() error {
	at := l.entry
	l.entry = -1
	s, err := l.w.GetFlush(l.at, at)
	for err == nil && tag.Get(s) == tag.Get(l.state) && tenure.Get(s) == tenure.Get(l.state) {
		next, last := top.With(s, 0), name(top.Get(s))
		if last == 0 {
			next = tenure.With(0, tenure.Get(s)+1)
		}
		found, cerr := l.w.CompareAndSwapFlush(next, s, l.at, at)
		switch {
		case cerr != nil:
			return cerr
		case found != s:
			s = found
			continue
		case last == 0:
			return nil
		}
		waiting := forNumber.With(0, last.number())
		if found, err = l.w.CompareAndSwapFlush(kind.With(waiting, works), waiting, last.client(), answerWord); err != nil || found == waiting {
			return err
		}
		s = next // the last has gone on alone; those below it will
	}
	return err
}

// unlessGone is an error but for that of a node-mate that has died.
func unlessGone(err error) error {
	if errors.Is(err, rma.ErrPeer) {
		return nil
	}
	return err
}

// hashOf is FNV-1a's hash of a key.
func hashOf(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range key {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h ^ h>>29
}
