//go:build !linux

package sim

func huge([]slot) {}
