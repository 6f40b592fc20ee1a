package rma

// A layout is a Spec made ready for look-ups: what Allocate learns of the words once,
// so that an operation finds the class of its word without a search of the Spec.
type layout struct {
	spans []span
	// updatable has a bit for each of the first words of the window: set if CPU atomics
	// may change the word, which they may not with a flag or plain word.
	updatable []uint64
}

// A span is the words of one region.
type span struct {
	end     int     // displacement after its last word
	classes []Class // of the words of a record; one class if all have the same
	mask    int     // len(classes)-1 if that is a power of two, else -1
}

// tableWords bounds the words that layout.updatable and Window.may cover; each handle has a
// table.
const tableWords = 4096

func newLayout(s *Spec) layout {
	l := layout{spans: make([]span, 0, len(s.Regions))}
	end := 0
	for _, r := range s.Regions {
		classes := make([]Class, len(r.Words))
		same := true
		for i, w := range r.Words {
			classes[i] = w.Class
			same = same && w.Class == classes[0]
		}
		if same {
			classes = classes[:1]
		}
		end += len(r.Words) * r.Count
		mask := -1
		if n := len(classes); n&(n-1) == 0 {
			mask = n - 1
		}
		l.spans = append(l.spans, span{end, classes, mask})
	}
	n := min(end, tableWords)
	l.updatable = make([]uint64, (n+63)/64)
	for disp := range n {
		if c := l.class(disp); c == Far || c == Near {
			l.updatable[disp/64] |= 1 << (disp % 64)
		}
	}
	return l
}

// class is the class of the word at a displacement in range.
func (l *layout) class(disp int) Class {
	base := 0
	for i := range l.spans {
		s := &l.spans[i]
		if disp < s.end {
			if s.mask >= 0 { // the usual case, without a division
				return s.classes[(disp-base)&s.mask]
			}
			return s.classes[uint(disp-base)%uint(len(s.classes))]
		}
		base = s.end
	}
	return Far
}

// uniform reports whether n words from disp on, all in range, have the class of the first.
func (l *layout) uniform(disp, n int) bool {
	c, end, base := l.class(disp), disp+n, 0
	for _, s := range l.spans {
		lo, hi := max(disp, base)-base, min(end, s.end)-base
		for d := lo; d < min(hi, lo+len(s.classes)); d++ { // then records repeat
			if s.classes[d%len(s.classes)] != c {
				return false
			}
		}
		base = s.end
	}
	return true
}

// mayUpdate reports whether the table shows that CPU atomics may change a word.
func (l *layout) mayUpdate(disp int) bool {
	i := uint(disp) / 64
	return i < uint(len(l.updatable)) && l.updatable[i]>>(uint(disp)%64)&1 != 0
}
