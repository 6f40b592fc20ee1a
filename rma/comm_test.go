package rma_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// locking is a Comm with locks of its own.
type locking struct{ rma.Comm }

func (locking) OpenEpochs() (rma.Epochs, error) { return nil, errors.ErrUnsupported }

func TestEpochLockerIsFoundUnderDecorators(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		var n hook.Tally
		if _, ok := rma.AsEpochLocker(hook.Check(hook.Count(c, &n))); ok {
			t.Error("inproc has locks of its own")
		}
		bottom := locking{c}
		for name, top := range map[string]rma.Comm{
			"itself":           bottom,
			"under one":        hook.Check(bottom),
			"under two":        hook.Count(hook.Check(bottom), &n),
			"under none of it": nil,
		} {
			got, ok := rma.AsEpochLocker(top)
			if want := top != nil; ok != want || want && got != rma.EpochLocker(bottom) {
				t.Errorf("%s: found %v, %v", name, got, ok)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nameless is an error without a text.
type nameless struct{}

func (nameless) Error() string { return "" }

func TestAgreeOnOddTexts(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		for _, k := range []struct {
			err  error
			text string
		}{
			{nameless{}, "rank 1: unnamed error"},
			{errors.New(strings.Repeat("x", 5000)), "rank 1: " + strings.Repeat("x", 2000) + ":"},
		} {
			mine := k.err
			if c.Rank() == 0 {
				mine = nil
			}
			got := rma.Agree(c, mine)
			if c.Rank() == 1 && got != mine {
				t.Errorf("the rank that failed got %v", got)
			}
			if c.Rank() == 0 && (!errors.Is(got, rma.ErrPeer) || !strings.HasPrefix(got.Error(), k.text)) {
				t.Errorf("the other rank got %v, want %q", got, k.text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAgreeWhenItCannot: when the gathering itself fails, a rank's own error is not
// lost.
func TestAgreeWhenItCannot(t *testing.T) {
	mine := errors.New("mine")
	var got error
	err := inproc.Run(2, func(c rma.Comm) error {
		if c.Rank() == 1 {
			return errors.New("gone")
		}
		got = rma.Agree(c, mine)
		return got
	})
	if err == nil || !errors.Is(got, mine) || !errors.Is(got, rma.ErrPeer) {
		t.Errorf("Agree with a peer that is gone: %v; the run: %v", got, err)
	}
}
