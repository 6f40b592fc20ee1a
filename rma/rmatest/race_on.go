//go:build race

package rmatest

// RaceEnabled says that the race detector runs, which allocates by itself.
const RaceEnabled = true
