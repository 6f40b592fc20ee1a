package rma

import "fmt"

// CheckMemory reports a window for whose words, those of all ranks that the caller's machine
// keeps, the machine is too small: an error that wraps ErrMemory and says the bytes. It is
// for backends whose memory comes from the Go heap, where the process would end.
func CheckMemory(s Spec, ranks int) error {
	need, have := 8*float64(s.Words())*float64(ranks), memoryBytes()
	if have == 0 || need <= float64(have) {
		return nil
	}
	const gib = 1 << 30
	return fmt.Errorf("rma: window %q takes %.4g GiB for its %d words at each of %d ranks, and this machine has %.4g GiB; open one of fewer words, for a table of fewer locks: %w",
		s.Name, need/gib, s.Words(), ranks, float64(have)/gib, ErrMemory)
}
