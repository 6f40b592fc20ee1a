//go:build !race

package rmatest

// raceEnabled says that the race detector runs, which allocates by itself.
const raceEnabled = false
