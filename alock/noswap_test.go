package alock_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSearchNoSwap: the lock on a transport whose swap is a loop.
func TestSearchNoSwap(t *testing.T) {
	for _, name := range []string{"alock", "alock-rw"} {
		t.Run(name, func(t *testing.T) { locktest.RunNoSwap(t, name, nil) })
	}
}
