package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDemo: all scenes come to their ends, no lock loses an update, and the death of a rank is told.
func TestDemo(t *testing.T) {
	out := rmalock(t, "demo", "--pace", "20ms").good(t).stdout
	require.Equal(t, 2, strings.Count(out, "none lost"), out)
	require.Contains(t, out, "may have died")
	require.Equal(t, 7*4-1, strings.Count(out, "|\n"), "lines of ranks in seven pictures: %s", out)
	for _, picture := range strings.Split(out, "\n\n") {
		if strings.Contains(picture, "|") {
			require.Contains(t, picture, "#")
		}
	}
	rmalock(t, "demo", "--pace", "0s").bad(t, 2, "--pace is 0s")
}
