package values_test

import (
	"testing"

	"github.com/rmalock/rmalock/internal/values"
)

func TestTime(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "10ms": 10_000_000, "1.5us": 1500, "0s": 0} {
		if v, err := values.Time(text); v != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", text, v, err, want)
		}
	}
	for _, text := range []string{"", "10", "-1s", "soon"} {
		if _, err := values.Time(text); err == nil {
			t.Errorf("%q is taken for a time", text)
		}
	}
}

func TestChoice(t *testing.T) {
	if v, err := values.Choice("b", "a", "b"); v != 1 || err != nil {
		t.Errorf("b is %d, %v, want 1", v, err)
	}
	if _, err := values.Choice("c", "a", "b"); err == nil {
		t.Error("c is taken for one of a and b")
	}
}
