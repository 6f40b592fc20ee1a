// Package nearmem is the memory of windows whose ranks are goroutines of one process: the
// words, and the way to sleep until one changes. rma/inproc is built on it.
package nearmem

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// A Memory is the words of a window: one part per host.
type Memory struct {
	order     []int32 // host -> position of its part; nil for the same
	words     []int64 // keeps first alive; nil in memory of the caller's
	first     unsafe.Pointer
	stride    uintptr
	waitLists [64]waitList
}

// New returns zeroed memory for hosts with so many words each. The part of host h lies at
// position order[h], or h without an order.
func New(words, hosts int, order []int32) *Memory {
	own := make([]int64, Bytes(words, hosts)/8)
	m := Place(unsafe.Pointer(unsafe.SliceData(own)), words, order)
	m.words = own
	return m
}

// Bytes is the memory that Place needs for hosts with so many words each.
func Bytes(words, hosts int) int { return stride(words)*hosts + 2*rma.PartAlign }

// stride is the number of bytes of a part, with the header before it.
func stride(words int) int {
	return (rma.HeaderBytes + words*8 + rma.PartAlign - 1) / rma.PartAlign * rma.PartAlign
}

// Place is New in zeroed memory of the caller's, which keeps it.
func Place(start unsafe.Pointer, words int, order []int32) *Memory {
	const align = rma.PartAlign
	// Words begin on an aligned address with the header before them.
	return &Memory{order: order, stride: uintptr(stride(words)), first: unsafe.Add(start, 2*align-int(uintptr(start)%align))}
}

// Stride is the number of bytes from a part to the next.
func (m *Memory) Stride() uintptr { return m.stride }

// Part is the address of a host's first word.
func (m *Memory) Part(host int) unsafe.Pointer {
	if m.order != nil {
		host = int(m.order[host])
	}
	return unsafe.Add(m.first, uintptr(host)*m.stride)
}

// Word is the address of a word.
func (m *Memory) Word(host, disp int) *int64 {
	return (*int64)(unsafe.Add(m.Part(host), disp*8))
}

// Wake wakes all goroutines that sleep on words of a part, after a write there.
func (m *Memory) Wake(host int) {
	l := m.waitList(host)
	l.mu.Lock()
	for at := &l.head; *at != nil; {
		z := *at
		if z.host != host {
			at = &z.next
			continue
		}
		*at = z.next
		z.listed = false
		atomic.AddUint32(m.parked(host, z.disp), ^uint32(0))
		z.wake <- struct{}{} // has room for one, and z is woken once per enter
	}
	l.mu.Unlock()
}

// A waitList has the sleepers on words of certain parts.
type waitList struct {
	mu   sync.Mutex
	head *entry
	_    [64]byte
}

// entry is a sleeper's place in a waitList.
type entry struct {
	host   int
	disp   int
	wake   chan struct{}
	next   *entry
	listed bool // in the list; under the list's mutex
	woken  bool // the wake-up has been taken from the channel
}

// parked counts the sleepers on a word, and on some others, in the header of its part.
func (m *Memory) parked(host, disp int) *uint32 { return rma.SleeperCount(m.Part(host), disp) }

func (m *Memory) waitList(host int) *waitList { return &m.waitLists[host%len(m.waitLists)] }

// enter puts an entry on the list of a word.
func (m *Memory) enter(z *entry, host, disp int) {
	l := m.waitList(host)
	l.mu.Lock()
	z.host, z.disp, z.next, z.listed, z.woken = host, disp, l.head, true, false
	l.head = z
	atomic.AddUint32(m.parked(host, disp), 1)
	l.mu.Unlock()
}

// leave takes an entry off its list. It consumes a wake-up that has come meanwhile.
func (m *Memory) leave(z *entry) {
	l := m.waitList(z.host)
	l.mu.Lock()
	was := z.listed
	if was {
		at := &l.head
		for *at != z {
			at = &(*at).next
		}
		*at = z.next
		z.listed = false
		atomic.AddUint32(m.parked(z.host, z.disp), ^uint32(0))
	}
	l.mu.Unlock()
	if !was && !z.woken {
		<-z.wake
	}
}
