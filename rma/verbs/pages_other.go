//go:build !linux

package verbs

// pages makes zeroed memory. No system but Linux has libibverbs: it is for the tests of control.
func pages(bytes int) (memory []byte, huge bool, release func() error, err error) {
	return make([]byte, bytes), false, func() error { return nil }, nil
}
