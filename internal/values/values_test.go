package values_test

import (
	"testing"

	"github.com/rmalock/rmalock/internal/values"
)

func TestNumber(t *testing.T) {
	if v, err := values.Number("3", 2); v != 3 || err != nil {
		t.Errorf("3 is %d, %v, want 3", v, err)
	}
	for _, text := range []string{"", "1", "-2", "3.5", "x", "99999999999999999999"} {
		if _, err := values.Number(text, 2); err == nil || err.Error() != "want a whole number from 2 on" {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

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

func TestLease(t *testing.T) {
	for text, want := range map[string]int64{"off": -1, "10ms": 10_000_000} {
		if v, err := values.Lease(text); v != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", text, v, err, want)
		}
	}
	for _, text := range []string{"", "0", "10", "-1s", "on"} {
		if _, err := values.Lease(text); err == nil {
			t.Errorf("%q is taken for a lease", text)
		}
	}
}

func TestChoice(t *testing.T) {
	if v, err := values.Choice("b", "a", "b", "c"); v != 1 || err != nil {
		t.Errorf("b is %d, %v, want 1", v, err)
	}
	if _, err := values.Choice("d", "a", "b", "c"); err == nil || err.Error() != "want a, b or c" {
		t.Errorf("d: error %v", err)
	}
}
