package main

import (
	"math"
	"testing"
)

func TestFreeMemory(t *testing.T) {
	const info = "MemTotal:       24000000 kB\nMemAvailable:    2000000 kB\n"
	for _, c := range []struct {
		info, limit string
		want        int64
	}{
		{info, "max\n", 2000000 << 10},
		{info, "", 2000000 << 10},
		{info, "1000\n", 1000},
		{info, "9000000000000\n", 2000000 << 10},
		{"MemFree: 1 kB\n", "", math.MaxInt64},
		{"MemAvailable: much\n", "", math.MaxInt64},
	} {
		if got := freeMemory(c.info, c.limit); got != c.want {
			t.Errorf("free memory by %q and %q is %d, want %d", c.info, c.limit, got, c.want)
		}
	}
}
