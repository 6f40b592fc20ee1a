package verbs

import (
	"fmt"
	"syscall"

	"github.com/rmalock/rmalock/rma"
)

const hugePage = 2 << 20

// pages maps zeroed memory outside of Go's heap, of huge pages where the machine has them free.
func pages(bytes int) (memory []byte, huge bool, release func() error, err error) {
	const (
		access = syscall.PROT_READ | syscall.PROT_WRITE
		kind   = syscall.MAP_PRIVATE | syscall.MAP_ANON
	)
	whole := (bytes + hugePage - 1) / hugePage * hugePage
	if memory, err = syscall.Mmap(-1, 0, whole, access, kind|syscall.MAP_HUGETLB|syscall.MAP_POPULATE); err == nil {
		huge = true
	} else if memory, err = syscall.Mmap(-1, 0, whole, access, kind); err != nil {
		return nil, false, nil, fmt.Errorf("verbs: %d bytes of memory: %v: %w", whole, err, rma.ErrMemory)
	}
	// A child after fork would take the pages of the card from the parent.
	_ = syscall.Madvise(memory, syscall.MADV_DONTFORK)
	return memory[:bytes], huge, func() error { return syscall.Munmap(memory[:whole]) }, nil
}
