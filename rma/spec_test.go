package rma

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// example has regions of all sorts: several words, one word, none, one record.
var example = Spec{Name: "example", Regions: []Region{
	{Count: 3, Words: []Word{{Name: "NEXT", Class: Flag}, {Name: "WAIT", Class: Flag}}},
	{Count: 0, Words: []Word{{Name: "NONE", Class: Near}}},
	{Count: 1, Words: []Word{{Name: "TAIL", Class: Far}}},
	{Count: 2, Words: []Word{{Name: "A", Class: Near}, {Name: "B", Class: Far}, {Name: "C", Class: Flag}}},
}}

func TestSpecNamesEveryWord(t *testing.T) {
	want := []struct {
		name  string
		class Class
	}{
		{"NEXT[0]", Flag}, {"WAIT[0]", Flag}, {"NEXT[1]", Flag}, {"WAIT[1]", Flag}, {"NEXT[2]", Flag}, {"WAIT[2]", Flag},
		{"TAIL", Far},
		{"A[0]", Near}, {"B[0]", Far}, {"C[0]", Flag}, {"A[1]", Near}, {"B[1]", Far}, {"C[1]", Flag},
	}
	if example.Words() != len(want) {
		t.Fatalf("%d words, want %d", example.Words(), len(want))
	}
	for disp, w := range want {
		if got := example.WordName(disp); got != w.name {
			t.Errorf("word %d is %s, want %s", disp, got, w.name)
		}
		if got := example.Class(disp); got != w.class {
			t.Errorf("word %s has class %v, want %v", w.name, got, w.class)
		}
	}
	if got := example.WordName(len(want)); got != "?" {
		t.Errorf("a word out of range is called %q, want ?", got)
	}
	for region, base := range []int{0, 6, 6, 7} {
		if got := example.Base(region); got != base {
			t.Errorf("region %d begins at %d, want %d", region, got, base)
		}
	}
}

// TestLayoutAgreesWithSpec compares a layout with a look at every word, for random Specs.
func TestLayoutAgreesWithSpec(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		s := Spec{Name: "random"}
		for range 1 + r.IntN(4) {
			g := Region{Count: r.IntN(4)}
			for range 1 + r.IntN(3) {
				g.Words = append(g.Words, Word{Name: "W", Class: Class(r.IntN(3) / 2 * 2)}) // Far twice as often as Flag
			}
			s.Regions = append(s.Regions, g)
		}
		l := newLayout(&s)
		for disp := range s.Words() {
			want := s.Class(disp)
			if c, u := l.class(disp), l.mayUpdate(disp); c != want || u != (want != Flag) {
				t.Fatalf("%+v: word %d has class %v, may be updated: %v; want %v", s, disp, c, u, want)
			}
			for n := 1; disp+n <= s.Words(); n++ {
				uniform := true
				for d := disp; d < disp+n; d++ {
					uniform = uniform && s.Class(d) == want
				}
				if u := l.uniform(disp, n); u != uniform {
					t.Fatalf("%+v: words %d to %d have one class: %v, want %v", s, disp, disp+n-1, u, uniform)
				}
			}
		}
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	if err := example.Validate(); err != nil {
		t.Error(err)
	}
	word := []Word{{Name: "W"}}
	for _, c := range []struct {
		spec Spec
		text string
	}{
		{Spec{Regions: []Region{{word, 1}}}, "a window needs a name"},
		{Spec{Name: "w"}, `window "w" has 0 words per host`},
		{Spec{Name: "w", Regions: []Region{{word, 0}}}, `window "w" has 0 words per host`},
		{Spec{Name: "w", Regions: []Region{{word, 1}, {nil, 1}}}, `window "w": region 1 has no words`},
		{Spec{Name: "w", Regions: []Region{{word, -2}}}, `window "w": region 0 has count -2`},
		{Spec{Name: "w", Regions: []Region{{word, maxWords + 1}}}, `window "w": region 0 has count 281474976710657`},
		{Spec{Name: "w", Regions: []Region{{word, maxWords}, {word, 1}}}, `window "w" has 281474976710657 words per host`},
		{Spec{Name: "w", Regions: []Region{{[]Word{{Name: "X", Class: 7}}, 1}}}, `window "w": word X has unknown class(7)`},
	} {
		err := c.spec.Validate()
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want an error with %q", err, c.text)
		}
	}
	if err := (Spec{Name: "w", Regions: []Region{{word, maxWords}}}).Validate(); err != nil {
		t.Errorf("the largest window is refused: %v", err)
	}
}

func TestFingerprintTellsSpecsApart(t *testing.T) {
	w := func(name string, c Class) Word { return Word{Name: name, Class: c} }
	specs := []Spec{
		example,
		{Name: "Example", Regions: example.Regions},
		{Name: "example", Regions: example.Regions[:3]},
		{Name: "a", Regions: []Region{{[]Word{w("b", Far), w("c", Far)}, 2}}},
		{Name: "a", Regions: []Region{{[]Word{w("b", Far), w("c", Near)}, 2}}},
		{Name: "a", Regions: []Region{{[]Word{w("bc", Far)}, 4}}},
		{Name: "a", Regions: []Region{{[]Word{w("b", Far), w("c", Far)}, 1}, {[]Word{w("b", Far), w("c", Far)}, 1}}},
		{Name: "a", Regions: []Region{{[]Word{w("c", Far), w("b", Far)}, 2}}},
		DataSpec("a", 4), DataSpec("a", 5), CounterSpec("a", 4), DataSpec("b", 4),
	}
	seen := map[int64]int{}
	for i, s := range specs {
		if j, ok := seen[s.Fingerprint()]; ok {
			t.Errorf("specs %d and %d have the same fingerprint", i, j)
		}
		seen[s.Fingerprint()] = i
		if again := s.Fingerprint(); again != s.Fingerprint() {
			t.Errorf("spec %d has no fixed fingerprint", i)
		}
	}
}

func TestDataAndCounters(t *testing.T) {
	d, c := DataSpec("d", 5), CounterSpec("c", 6)
	if d.Words() != 5 || d.Class(4) != Flag || c.Words() != 6 || c.Class(5) != Far {
		t.Errorf("Data has %d words of class %v, Counters %d of class %v", d.Words(), d.Class(4), c.Words(), c.Class(5))
	}
}

func TestNodeFindsRanks(t *testing.T) {
	for _, ranks := range [][]int{{}, {0}, {3}, {0, 1, 2}, {4, 5, 6, 7}, {1, 3, 5, 7}, {0, 5}, {2, 3, 9, 10, 11, 40}, {0, 1, 2, 7}} {
		n := Node{Ranks: ranks}
		place := map[int]int{}
		for i, r := range ranks {
			place[r] = i
		}
		for r := -3; r < 50; r++ {
			want, has := place[r]
			if !has {
				want = -1
			}
			if n.Has(r) != has || n.index(r) != want {
				t.Errorf("node %v: Has(%d) is %v and its place %d, want %v and %d", ranks, r, n.Has(r), n.index(r), has, want)
			}
		}
	}
}
