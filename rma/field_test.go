package rma_test

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// dslrWord is the lock word of papers/dslr, section 4.1.
var dslrWord = rma.Word{Name: "LOCK", Fields: []rma.Field{
	{Name: "nX", Shift: 48, Bits: 16}, {Name: "nS", Shift: 32, Bits: 16}, {Name: "maxX", Shift: 16, Bits: 16}, {Name: "maxS", Bits: 16},
}}

func TestFields(t *testing.T) {
	f := dslrWord.Fields
	v := int64(0)
	for i := range f {
		v = f[i].With(v, int64(0xffff-i))
	}
	for i := range f {
		if got := f[i].Get(v); got != int64(0xffff-i) {
			t.Errorf("%s is %#x, want %#x", f[i].Name, got, 0xffff-i)
		}
		if got := f[i].Get(f[i].With(v, 1<<16|5)); got != 5 {
			t.Errorf("%s with a value too large is %d, want its lower bits, 5", f[i].Name, got)
		}
	}
	if got, want := dslrWord.Format(f[0].One()+2*f[2].One()), "nX=1 nS=0 maxX=2 maxS=0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	part := rma.Word{Fields: f[2:]}
	if got, want := part.Format(1<<62|7), "maxX=0 maxS=7 rest=0x4000000000000000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&rma.Word{}).Format(-5); got != "-5" {
		t.Errorf("a word without fields is %q, want -5", got)
	}
	whole := rma.Field{Name: "v", Bits: 64}
	if whole.Mask() != -1 || whole.Get(-7) != -7 || whole.With(3, -7) != -7 {
		t.Error("a field of 64 bits is not the word")
	}
}

// TestCarried: a sum that leaves its field is seen in the lowest field that it leaves.
func TestCarried(t *testing.T) {
	f := dslrWord.Fields
	full := f[3].With(0, 0xffff)
	for _, c := range []struct {
		before, operand int64
		want            string
	}{
		{0, f[0].One(), ""},
		{full, f[0].One() + f[2].One(), ""},
		{full, f[3].One(), "maxS"},
		{f[2].With(0, 0xffff), f[2].One(), "maxX"},
		{f[0].With(0, 0xffff), f[0].One(), "nX"},
		{0, -f[3].One(), "maxS"},
		{5, -f[3].One(), ""},
		{f[3].With(f[1].With(0, 3), 4), -f[1].One() - f[3].One(), ""},
		{f[3].With(0, 4), -f[1].One() - f[3].One(), "nS"},
		{0, 0, ""},
	} {
		if got := dslrWord.Carried(c.before, c.operand); got != c.want {
			t.Errorf("%#x plus %#x carries out of %q, want %q", c.before, c.operand, got, c.want)
		}
	}
	free := rma.Word{}
	if free.Carried(-1, 1) != "" {
		t.Error("a word without fields has none to carry out of")
	}
}

func TestBadFieldsRefused(t *testing.T) {
	for _, fields := range [][]rma.Field{
		{{Name: "a", Bits: 0}}, {{Name: "a", Shift: 60, Bits: 5}}, {{Name: "a", Bits: 8}, {Name: "b", Shift: 7, Bits: 2}},
	} {
		s := rma.Spec{Name: "w", Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "W", Fields: fields}}}}}
		if err := s.Validate(); err == nil {
			t.Errorf("fields %+v are taken", fields)
		}
	}
	s := rma.Spec{Name: "w", Regions: []rma.Region{{Count: 1, Words: []rma.Word{dslrWord}}}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	other := s
	other.Regions = []rma.Region{{Count: 1, Words: []rma.Word{{Name: "LOCK"}}}}
	if s.Fingerprint() == other.Fingerprint() {
		t.Error("fields do not count in the fingerprint")
	}
}
