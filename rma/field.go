package rma

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Field is a part of a packed word: Bits bits from bit Shift on, an unsigned number.
type Field struct {
	Name  string // as in the paper; appears in traces
	Shift uint8
	Bits  uint8
	Wraps bool // a Sum may carry out of it: a search does not report it
}

// Mask has the field's bits set.
func (f Field) Mask() int64 { return f.max() << f.Shift }

// max is the field's greatest value.
func (f Field) max() int64 { return int64(^uint64(0) >> (64 - f.Bits)) }

// Get is the field's value in a word.
func (f Field) Get(word int64) int64 { return int64(uint64(word)>>f.Shift) & f.max() }

// With is a word with another value of the field; bits of v beyond the field are dropped.
func (f Field) With(word, v int64) int64 { return word&^f.Mask() | v<<f.Shift&f.Mask() }

// One is what a Sum adds to a word to add 1 to the field. A field that is full carries into
// the next one.
func (f Field) One() int64 { return 1 << f.Shift }

// checkFields refuses fields that are empty, beyond the word, or overlap.
func checkFields(fields []Field) error {
	taken := int64(0)
	for _, f := range fields {
		if f.Bits == 0 || int(f.Shift)+int(f.Bits) > 64 {
			return fmt.Errorf("field %s has %d bits from bit %d on, want 1 or more of 64: %w", f.Name, f.Bits, f.Shift, ErrSpec)
		}
		if taken&f.Mask() != 0 {
			return fmt.Errorf("field %s shares bits with another one: %w", f.Name, ErrSpec)
		}
		taken |= f.Mask()
	}
	return nil
}

// Format is the value of a word as text: by fields, as in "nX=1 nS=0", or as a number.
func (w *Word) Format(v int64) string {
	if len(w.Fields) == 0 {
		return strconv.FormatInt(v, 10)
	}
	var b strings.Builder
	rest := v
	for i, f := range w.Fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", f.Name, f.Get(v))
		rest &^= f.Mask()
	}
	if rest != 0 {
		fmt.Fprintf(&b, " rest=%#x", uint64(rest))
	}
	return b.String()
}

// Carried is the name of the lowest field that a Sum of operand overflows or underflows, ""
// for none; fields that wrap do not count. The operand is taken for a sum of parts, one for each field: each part is the
// number nearest to 0 that has the field's bits.
func (w *Word) Carried(before, operand int64) string {
	left := operand
	for _, f := range byShift(w.Fields) {
		if f.Bits == 64 {
			break
		}
		part := left << (64 - int(f.Shift) - int(f.Bits)) >> (64 - int(f.Bits)) // signed
		left -= part << f.Shift
		if sum := f.Get(before) + part; (sum < 0 || sum > f.max()) && !f.Wraps {
			return f.Name
		}
	}
	return ""
}

// byShift is the fields, the lowest first.
func byShift(fields []Field) []Field {
	lower := func(a, b Field) int { return int(a.Shift) - int(b.Shift) }
	if slices.IsSortedFunc(fields, lower) {
		return fields
	}
	out := slices.Clone(fields)
	slices.SortFunc(out, lower)
	return out
}

// Word is the word at a displacement; a word without a name for one out of range.
func (s *Spec) Word(disp int) Word {
	if disp >= 0 {
		if r, _, w := s.at(disp); r >= 0 {
			return s.Regions[r].Words[w]
		}
	}
	return Word{Name: "?"}
}
