package history

import "slices"

// A frontier is what a history has come to: for each key all ways in which its operations can have
// taken effect so far. Of two histories with one frontier each can go on as the other can: an
// operation that has returned says no more than what it leaves in the key. So a search need
// not tell them apart.
type frontier struct {
	keys []ways
	hash uint64
}

// ways are those of one key.
type ways struct {
	key  int64
	open []call // under way
	may  []way
}

// A call is an operation that is under way.
type call struct {
	rank, nth int
	Call
}

// A way is the key's state, and which of the open operations have taken effect in it.
type way struct {
	is   value
	took []taken // by open operation
}

// taken is the moment at which an operation took effect: what its answer follows from.
type taken struct {
	done, full bool
	was        value
}

// guesses makes frontiers. It has each once, and remembers which follows which.
type guesses struct {
	loaded []Call
	none   *frontier // of no operations
	known  map[uint64]*frontier
	next   map[event]*frontier
}

// An event is a call, or the return of one.
type event struct {
	from    *frontier
	of      call
	returns bool
	with    Answer
}

func newGuesses(loaded []Call) *guesses {
	g := &guesses{loaded: loaded, none: &frontier{}, known: map[uint64]*frontier{}, next: map[event]*frontier{}}
	g.known[0] = g.none
	return g
}

// after is what a history comes to when an operation begins, or returns with an answer.
func (g *guesses) after(f *frontier, c call, a *Answer) *frontier {
	e := event{from: f, of: c}
	if a != nil {
		e.returns, e.with = true, *a
	}
	to := g.next[e]
	if to != nil {
		return to
	}
	to = &frontier{keys: slices.Clone(f.keys)}
	i := slices.IndexFunc(to.keys, func(w ways) bool { return w.key == c.Key })
	if i < 0 {
		i = len(to.keys)
		to.keys = append(to.keys, g.first(c.Key))
	}
	if a == nil {
		to.keys[i] = to.keys[i].called(c)
	} else {
		to.keys[i] = to.keys[i].returned(c, *a)
	}
	for k := range to.keys {
		to.hash += to.keys[k].sum()
	}
	if same := g.known[to.hash]; same != nil {
		to = same
	} else {
		g.known[to.hash] = to
	}
	g.next[e] = to
	return to
}

// first are the ways of a key before the first operation.
func (g *guesses) first(key int64) ways {
	w := way{}
	for _, c := range g.loaded {
		if c.Key == key {
			_, w.is = step(w.is, c, Answer{})
		}
	}
	return ways{key: key, may: []way{w}}
}

// called adds an operation, which may take effect from now on.
func (w ways) called(c call) ways {
	out := ways{key: w.key, open: append(slices.Clone(w.open), c)}
	seen := map[uint64]bool{}
	for _, m := range w.may {
		out.add(way{m.is, append(slices.Clone(m.took), taken{})}, seen)
	}
	for i := 0; i < len(out.may); i++ { // grows
		m := out.may[i]
		for k, c := range out.open {
			if m.took[k].done {
				continue
			}
			for _, full := range [...]bool{false, true} {
				if full && (m.is.there || c.What != Set && c.What != Insert && c.What != Add) {
					continue
				}
				_, is := step(m.is, c.Call, Answer{Full: full, lost: true})
				took := slices.Clone(m.took)
				took[k] = taken{true, full, c.sees(m.is)}
				out.add(way{is, took}, seen)
			}
		}
	}
	return out
}

// sees is the part of a key's state from which an operation's answer follows.
func (c *Call) sees(is value) value {
	switch c.What {
	case Set:
		return value{}
	case Delete, Insert, Update:
		return value{there: is.there}
	case Add:
		return value{is: is.is}
	}
	return is
}

// returned leaves the ways in which an operation has taken effect and has this answer.
func (w ways) returned(c call, a Answer) ways {
	k := slices.Index(w.open, c)
	out := ways{key: w.key, open: slices.Delete(slices.Clone(w.open), k, k+1)}
	seen := map[uint64]bool{}
	for _, m := range w.may {
		t := &m.took[k]
		if !t.done || t.full != a.Full {
			continue
		}
		if ok, _ := step(t.was, c.Call, a); ok {
			out.add(way{m.is, slices.Delete(slices.Clone(m.took), k, k+1)}, seen)
		}
	}
	return out
}

// add adds a way, once.
func (w *ways) add(m way, seen map[uint64]bool) {
	if h := w.sumOf(&m); !seen[h] {
		seen[h] = true
		w.may = append(w.may, m)
	}
}

// sum is a hash of the ways of a key, in any order.
func (w *ways) sum() uint64 {
	all := uint64(0)
	for i := range w.open {
		all += scatter(w.open[i].sum())
	}
	for i := range w.may {
		all += w.sumOf(&w.may[i])
	}
	return scatter(mix(mix(mix(basis, uint64(w.key)), uint64(len(w.may))), all))
}

// sumOf is a hash of one of them, whose open operations are in any order.
func (w *ways) sumOf(m *way) uint64 {
	all := uint64(0)
	for k := range w.open {
		t := &m.took[k]
		all += scatter(mix(mix(w.open[k].sum(), bit(t.done)<<8|bit(t.full)<<4|bit(t.was.there)), uint64(t.was.is)))
	}
	return scatter(mix(mix(mix(basis, uint64(m.is.is)), bit(m.is.there)), all))
}

func (c *call) sum() uint64 {
	return mix(mix(mix(mix(basis, uint64(c.rank)), uint64(c.nth)), uint64(c.What)), uint64(c.Value))
}

// scatter spreads a hash that is to be added to others.
func scatter(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 29
	x *= 0x9E3779B97F4A7C15
	return x ^ x>>32
}

const basis = uint64(14695981039346656037)
