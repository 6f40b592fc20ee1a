package dmcs_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSearchNoSwap: the lock on a transport whose swap is a loop.
func TestSearchNoSwap(t *testing.T) { locktest.RunNoSwap(t, "dmcs", nil) }
