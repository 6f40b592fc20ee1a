package verbs

import (
	"fmt"
	"os"
	"syscall"

	"github.com/rmalock/rmalock/rma"
)

const hugePage = 2 << 20

// pages maps zeroed memory outside of Go's heap. Memory that fills half a huge page or more is of
// huge pages where the machine has them free; elsewhere the kernel is asked to make some.
func pages(bytes int) (memory []byte, huge bool, release func() error, err error) {
	const (
		access = syscall.PROT_READ | syscall.PROT_WRITE
		kind   = syscall.MAP_PRIVATE | syscall.MAP_ANON
	)
	unit := os.Getpagesize()
	if bytes >= hugePage/2 {
		unit = hugePage
	}
	whole := (bytes + unit - 1) / unit * unit
	if unit == hugePage {
		memory, err = syscall.Mmap(-1, 0, whole, access, kind|syscall.MAP_HUGETLB|syscall.MAP_POPULATE)
		huge = err == nil
	}
	if !huge {
		if memory, err = syscall.Mmap(-1, 0, whole, access, kind); err != nil {
			return nil, false, nil, fmt.Errorf("verbs: %d bytes of memory: %v: %w", whole, err, rma.ErrMemory)
		}
		if unit == hugePage {
			_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE)
		}
	}
	// A child after fork would take the pages of the card from the parent.
	_ = syscall.Madvise(memory, syscall.MADV_DONTFORK)
	return memory[:bytes], huge, func() error { return syscall.Munmap(memory[:whole]) }, nil
}
