package dslr

import (
	"math/bits"

	"github.com/rmalock/rmalock/rma"
)

// A kind is what a ticket is for.
type kind uint8

const (
	exclusive kind = iota
	shared
	update // section 5.2: reads beside shared tickets before it, and excludes all behind it
	kinds
)

// A layout is a lock's word: a counter of released tickets, n, and one of tickets given out,
// max, for each kind; Figure 3, and Figure 7 with update locks. All zero is a free lock.
type layout struct {
	n, max [kinds]rma.Field
	// gen counts the resets. With it no operation on an old value of the word succeeds on a new
	// one that looks the same. The paper has none.
	gen rma.Field
	// died says that an exclusive or update ticket was passed over: its holder may have
	// died in the middle. The paper has none.
	died rma.Field
	// countMax is COUNT_MAX: at a max of it or more the counters are to be reset, and no
	// ticket is given out.
	countMax int64
}

const (
	leastGen = 3 // bits
	// spare are draws of ranks that died in the middle of one and began again, within two leases.
	spare = 64
)

// layoutFor makes the counters as wide as they need to be if at most inFlight tickets are drawn at
// once. All other bits are gen's: the more, the longer a rank may sleep in the middle of an
// operation. It reports whether leastGen are left.
func layoutFor(tickets []kind, countMax, inFlight int64) (l layout, ok bool) {
	l.countMax = countMax
	width, shift := uint8(bits.Len64(uint64(countMax+inFlight+spare))), uint8(0)
	for _, counter := range [...]struct {
		name string
		of   *[kinds]rma.Field
	}{{"max", &l.max}, {"n", &l.n}} {
		for _, k := range tickets {
			counter.of[k] = rma.Field{Name: counter.name + letters[k], Shift: shift, Bits: width}
			shift += width
		}
	}
	if shift+leastGen > 63 {
		return l, false
	}
	l.gen = rma.Field{Name: "gen", Shift: shift, Bits: 63 - shift}
	l.died = rma.Field{Name: "died", Shift: 63, Bits: 1}
	return l, true
}

var letters = [kinds]string{exclusive: "X", shared: "S", update: "U"}

// before says which kinds of tickets given out before one of a kind must be released first.
var before = [kinds][]kind{
	exclusive: {exclusive, update, shared},
	shared:    {exclusive, update},
	update:    {exclusive, update},
}

// fields are the word's fields as rma shows them.
func (l *layout) fields() []rma.Field {
	out := []rma.Field{l.died, l.gen}
	for _, f := range [...]rma.Field{
		l.n[update], l.n[exclusive], l.n[shared], l.max[update], l.max[exclusive], l.max[shared],
	} {
		if f.Bits > 0 {
			out = append(out, f)
		}
	}
	return out
}

// released is the part of a word that changes when a ticket is released or the word is reset.
func (l *layout) released() int64 {
	return l.gen.Mask() | l.n[exclusive].Mask() | l.n[shared].Mask() | l.n[update].Mask()
}

// given is the part of a word by which a ticket is known: gen and the tickets drawn.
func (l *layout) given() int64 {
	return l.gen.Mask() | l.max[exclusive].Mask() | l.max[shared].Mask() | l.max[update].Mask()
}

// frozen reports whether the word waits for its reset (A1:4, A1:18).
func (l *layout) frozen(v int64) bool {
	for k := range kinds {
		if l.max[k].Get(v) >= l.countMax {
			return true
		}
	}
	return false
}

// open reports whether a ticket of a kind that is drawn at v is served at once.
func (l *layout) open(v int64, k kind) bool {
	for _, b := range before[k] {
		if l.n[b].Get(v) != l.max[b].Get(v) {
			return false
		}
	}
	return !l.frozen(v)
}

// outstanding is the number of tickets that are drawn and not released.
func (l *layout) outstanding(v int64) int64 {
	n := int64(0)
	for k := range kinds {
		n += l.max[k].Get(v) - l.n[k].Get(v)
	}
	return n
}

// zero is the word after a reset of v.
func (l *layout) zero(v int64) int64 {
	return l.gen.With(v&l.died.Mask(), l.gen.Get(v)+1)
}
