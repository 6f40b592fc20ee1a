package rmamcs_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSearchNoSwap: the lock on a transport whose swap is a loop.
func TestSearchNoSwap(t *testing.T) {
	locktest.RunNoSwap(t, "rmamcs", func(levels int) map[string]string {
		return map[string]string{"TL": "1/1/1/1"[:2*levels-1]}
	})
}
