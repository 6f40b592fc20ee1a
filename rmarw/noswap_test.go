package rmarw_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSearchNoSwap: the lock on a transport whose swap is a loop.
func TestSearchNoSwap(t *testing.T) {
	for _, dc := range []string{"sym", "asym"} {
		t.Run(dc, func(t *testing.T) {
			locktest.RunNoSwap(t, "rmarw", func(levels int) map[string]string {
				return map[string]string{"TL": "1/1/1/1"[:2*levels-1], "TR": "1", "DC": dc}
			})
		})
	}
}
