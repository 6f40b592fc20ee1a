//go:build cgo

package mpi

// #include <unistd.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// segment is the memory of a window on this node: one part per rank of the node, each on
// its own pages. A part has 16 header words, then the user's words:
//
//	word 0 to 5   the self-test's
//	word 8 to 11  ranks asleep on words of the part (rma.HeaderBytes before the user's words)
//	word 12       low half: futex; counts wake-ups
type segment struct {
	mem    unsafe.Pointer
	bytes  int64
	stride int64 // bytes from part to part
}

const (
	headerWords = C.SHIM_HEADER_WORDS
	pageBytes   = 4096
	futexWord   = 12
)

// part is the address of the part of a rank of the node.
func (s *segment) part(nodeRank int) unsafe.Pointer {
	return unsafe.Add(s.mem, int64(nodeRank)*s.stride)
}

// word is the address of one of the user's words.
func (s *segment) word(nodeRank, disp int) *int64 { return s.header(nodeRank, headerWords+disp) }

// header is the address of a header word.
func (s *segment) header(nodeRank, word int) *int64 {
	return (*int64)(unsafe.Add(s.part(nodeRank), word*8))
}

// sleepers is the counter of the ranks that sleep on a word; words share counters.
func (s *segment) sleepers(nodeRank, disp int) *uint32 {
	return rma.SleeperCount(unsafe.Pointer(s.word(nodeRank, 0)), disp)
}

// futexSeq is the futex of all ranks that sleep on a part: a wake-up increments it.
func (s *segment) futexSeq(nodeRank int) *uint32 {
	return (*uint32)(unsafe.Pointer(s.header(nodeRank, futexWord)))
}

func (s *segment) free() {
	if s != nil && s.mem != nil {
		C.shim_unmap(s.mem, C.int64_t(s.bytes))
		s.mem = nil
	}
}

// partBytes is the size of a part.
func partBytes(words int) int64 {
	return (int64(headerWords+words)*8 + pageBytes - 1) / pageBytes * pageBytes
}

// ownSegment makes a segment of one part, which no other process sees.
func ownSegment(name string, bytes int64) (*segment, error) {
	fd, errno := C.shim_memfd(C.int64_t(bytes))
	if fd < 0 {
		return nil, fmt.Errorf("mpi: window %q: no memory file of %d bytes on %s: %w: %w", name, bytes, host(), errno, rma.ErrTransport)
	}
	defer syscall.Close(int(fd))
	if errno := syscall.Errno(C.shim_allocate(fd, 0, C.int64_t(bytes))); errno != 0 {
		return nil, fmt.Errorf("mpi: window %q: %s has no memory for %d bytes: %w: %w", name, host(), bytes, errno, rma.ErrTransport)
	}
	s := &segment{stride: bytes, bytes: bytes, mem: C.shim_map(fd, C.int64_t(bytes))}
	if s.mem == nil {
		return nil, fmt.Errorf("mpi: window %q: cannot map %d bytes on %s: %w", name, bytes, host(), rma.ErrTransport)
	}
	return s, nil
}

// newSegment makes the node's segment. The lowest rank of the node opens a memory
// file, the others open it through /proc. Every rank allocates its own part, which
// places it on the rank's NUMA node. Collective over the node: where one rank fails
// all return an error.
func (c *comm) newSegment(name string, words int) (*segment, error) {
	stride := partBytes(words)
	s := &segment{stride: stride, bytes: stride * int64(len(c.node.Ranks))}

	fd, err := -1, error(nil)
	if free := available(); c.nodeRank == 0 && s.bytes > free {
		err = fmt.Errorf("mpi: window %q needs %d bytes on %s, which has %d available: %w", name, s.bytes, host(), free, rma.ErrTransport)
	} else if c.nodeRank == 0 {
		var errno error
		var f C.int
		if f, errno = C.shim_memfd(C.int64_t(s.bytes)); f < 0 {
			err = fmt.Errorf("mpi: window %q: no memory file of %d bytes on %s: %w: %w", name, s.bytes, host(), errno, rma.ErrTransport)
		}
		fd = int(f)
	}
	at, gerr := c.gather([]int64{int64(os.Getpid()), int64(fd)}, true)
	if gerr != nil {
		return nil, gerr
	}
	if c.nodeRank != 0 && at[1] >= 0 {
		path := fmt.Sprintf("/proc/%d/fd/%d", at[0], at[1])
		if fd, err = syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0); err != nil {
			fd = -1
			err = fmt.Errorf("mpi: window %q: rank %d cannot open the node's memory at rank %d (%s on %s): %w; ranks of a node must run as one user, in one user namespace, and see each other's /proc: %w",
				name, c.rank, c.node.Ranks[0], path, host(), err, rma.ErrTransport)
		}
	}
	if fd >= 0 {
		switch errno := syscall.Errno(C.shim_allocate(C.int(fd), C.int64_t(stride*int64(c.nodeRank)), C.int64_t(stride))); {
		case errno != 0:
			err = fmt.Errorf("mpi: window %q: %s has no memory for %d bytes of rank %d: %w: %w", name, host(), stride, c.rank, errno, rma.ErrTransport)
		default:
			if s.mem = C.shim_map(C.int(fd), C.int64_t(s.bytes)); s.mem == nil {
				err = fmt.Errorf("mpi: window %q: cannot map %d bytes on %s: %w", name, s.bytes, host(), rma.ErrTransport)
			}
		}
	}
	// All must have opened the file before its owner closes it.
	if aerr := rma.Agree(c, err); aerr != nil {
		s.free()
		if fd >= 0 {
			syscall.Close(fd)
		}
		return nil, aerr
	}
	syscall.Close(fd)
	return s, nil
}

// available is MemAvailable of the kernel, in bytes. No file system limits a memory file: to
// fill more than this calls the kernel's out-of-memory killer.
func available() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	_, rest, ok := strings.Cut(string(text), "MemAvailable:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return math.MaxInt64
	}
	return kib * 1024
}
