//go:build !linux

package rma

// memoryBytes is how much memory the machine has, 0 if it does not say.
func memoryBytes() uint64 { return 0 }
