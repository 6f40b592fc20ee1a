package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestScheduleText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		choices := make([]int, rng.IntN(40))
		for i := range choices {
			switch rng.IntN(4) {
			case 0:
				choices[i] = rng.IntN(30)
			case 1:
				choices[i] = rng.IntN(1 << 16)
			}
		}
		text := encode(choices)
		back, err := decode(text)
		if err != nil || !slices.Equal(back, choices) {
			t.Fatalf("%v became %q and %v (%v)", choices, text, back, err)
		}
	}
	for text, want := range map[string]string{
		"a?":                              "character 2 ",
		"A":                               "character 1 ",
		"3(4":                             "character 2 ",
		"()":                              "character 1 ",
		"(x)":                             "character 1 ",
		"(-1)":                            "character 1 ",
		"-a":                              "character 1 ",
		"999999999":                       "more than",
		strings.Repeat("16000000a", 1000): "more than",
	} {
		if _, err := decode(text); !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %q, want one with %q", text, err, want)
		}
	}
}

// FuzzSchedule: what can be read is written so that it is read alike.
func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"-", "", "12a3bz(27)4", "0", "00a", "(0)(1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		choices, err := decode(text)
		if err != nil {
			if !errors.Is(err, ErrSchedule) {
				t.Fatal(err)
			}
			return
		}
		back, err := decode(encode(choices))
		if err != nil || !slices.Equal(back, choices) {
			t.Fatalf("%q became %q and %v", text, encode(choices), err)
		}
	})
}
