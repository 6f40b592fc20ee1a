package bench

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestSamplesAreAHistogram: samples, sent in two parts, make the very histogram that had all
// values from the start, and have its median.
func TestSamplesAreAHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, values := range []int{0, 1, 2, 3, 1000} {
		want := hdrhistogram.New(1, maxTracked, 3)
		parts := [2]samples{{}, {}}
		for range values {
			v, n := rng.Int64N(1<<rng.IntN(47)), 1+rng.IntN(5)
			if err := want.RecordValues(v, int64(n)); err != nil {
				t.Fatal(err)
			}
			parts[rng.IntN(2)].record(v, n)
		}
		got := samples{}
		for _, p := range parts {
			if err := got.merge(p.encode()); err != nil {
				t.Fatal(err)
			}
		}
		if !got.histogram().Equals(want) {
			t.Errorf("%d values: another histogram", values)
		}
		if got, want := got.median(), want.ValueAtQuantile(50); got != want {
			t.Errorf("%d values: median %d, want %d", values, got, want)
		}
	}
	s := samples{}
	s.record(-5, 1)
	s.record(maxTracked+1<<40, 2)
	if h := s.histogram(); h.TotalCount() != 3 || h.Min() != 0 {
		t.Errorf("values out of range: %v", s)
	}
}

func TestGarbledSamples(t *testing.T) {
	for _, b := range [][]byte{{1}, {0x80}, {1, 0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}} {
		if err := (samples{}).merge(b); !errors.Is(err, errSamples) {
			t.Errorf("%x: %v", b, err)
		}
	}
}
