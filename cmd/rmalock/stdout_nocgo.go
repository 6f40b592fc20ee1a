//go:build !cgo

package main

// stdoutClosed is false: Go has opened /dev/null in place of a closed standard output before
// any Go code runs.
func stdoutClosed() bool { return false }
