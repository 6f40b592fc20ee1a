package sim

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// Ranks that are alike (Comm.Alike) run the same code, and neither that code nor a word says
// which of them a rank is. To rename them makes a schedule into another schedule. So two states
// that differ by such names are one state of a search.

// ErrAlike is wrapped where ranks are said to be alike and are not.
var ErrAlike = errors.New("ranks are not alike")

// mostAlike is the number of ranks up to which all own steps have names in sleep sets. Such a
// name goes with its rank, and a step without one must not get one by a rank's change of places.
const mostAlike = 8

// alike is what a search knows of ranks that are alike.
type alike struct {
	on     bool
	kin    []kinship             // by rank
	places []int                 // by rank: its place in a sleep set
	of     func(rank int) uint64 // what the check keeps of a rank
}

// kinship is a rank's part in it.
type kinship struct {
	class  uint64 // the same for ranks that are alike
	mates  []int  // the rank and those like it, ascending
	figure uint64 // hash of the rank's state, by which mates are compared
}

func (e *search) alikeAs(r *rank, class uint64) {
	a := &e.alike
	if a.kin == nil {
		for i := range e.w.ranks {
			a.kin = append(a.kin, kinship{class: learnt(1<<58, int64(i))}) // like no other
		}
		a.places = make([]int, len(e.w.ranks))
	}
	if r.generation == 0 {
		a.on, a.kin[r.id].class = true, learnt(1<<59, int64(class))
	}
}

func (e *search) extraHashOf(hash func(rank int) uint64) { e.alike.of = hash }

// pair finds which ranks are alike, at Begin.
func (e *search) pair() {
	a := &e.alike
	if a.on = len(e.w.ranks) <= mostAlike && len(e.Faults) == 0; !a.on {
		return
	}
	for _, s := range e.w.segments {
		if s.spec.Hosts != rma.MemoryNodes && e.violation == nil {
			e.violation = fmt.Errorf("%w: window %q has words on ranks, and not on memory nodes", ErrAlike, s.spec.Name)
		}
	}
	for i := range a.kin {
		k := &a.kin[i]
		k.mates = k.mates[:0]
		for j := range a.kin {
			if a.kin[j].class == k.class {
				k.mates = append(k.mates, j)
			}
		}
	}
}

// hashAlike is hash with the states of ranks that are alike in any order. It finds the ranks'
// places as well: those of mates go by their states. Mates in equal states may have either
// place, since to rename them changes nothing.
func (e *search) hashAlike() uint64 {
	a := &e.alike
	h := e.mem + mix(1<<53, e.ticked())
	for i, r := range e.w.ranks {
		k := &a.kin[i]
		k.figure = e.figureOf(r, k.class)
		h += mix(k.class, k.figure)
	}
	for i := range a.kin {
		k, before := &a.kin[i], 0
		for _, j := range k.mates {
			if f := a.kin[j].figure; f < k.figure || f == k.figure && j < i {
				before++
			}
		}
		a.places[i] = k.mates[before]
	}
	if e.extra != nil {
		h += e.extra()
	}
	return h
}

// figureOf is the hash of a rank's state, and of what the check keeps of it.
func (e *search) figureOf(r *rank, class uint64) uint64 {
	x := learnt(class, int64(r.history))
	if e.deaths > 0 {
		x = learnt(x, int64(2*uint64(r.generation)+b2u(r.state == dead)))
		for i, o := range r.ghosts {
			x = learnt(x, int64(o.hash(1<<55+uint64(i))))
			if o.half {
				x = learnt(x, o.seen)
			}
		}
	}
	if e.MaxDelay > 0 {
		for _, o := range r.pending {
			x = learnt(x, int64(o.ticks))
		}
		for _, o := range r.ghosts {
			x = learnt(x, int64(o.ticks))
		}
	}
	if e.Ages {
		x = learnt(x, int64(e.hashMoments(r)))
	}
	if e.alike.of != nil {
		x = learnt(x, int64(e.alike.of(r.id)))
	}
	return x
}

// place is a rank's place in a sleep set.
func (e *search) place(rank int) int {
	if !e.alike.on || rank < 0 {
		return rank
	}
	return e.alike.places[rank]
}

// nameOfLast is a number for the rank of the last step, the same for ranks that have changed
// places.
func (s *State) nameOfLast() uint64 {
	if s.e.alike.on && s.Last >= 0 {
		return s.e.alike.kin[s.Last].figure
	}
	return uint64(s.Last + 2)
}
