//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// longest is the number of words of a bulk operation that is one operation of the card.
const longest = 1 << 17

// bulk fills in a bulk operation. It reports false if that is over already, or cannot be.
func (t *transport) bulk(q *issued, c *C.nic_op) bool {
	if c.kind = C.NIC_READ; q.Kind == rma.KindPutBulk {
		c.kind = C.NIC_WRITE
	}
	if s := t.registered(q.Data); s != nil && len(q.Data) <= int(t.n.nic.d.way.max_message/8) {
		c.local, c.local_key = C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(q.Data)))), s.region.m.lkey
		c.bytes = C.uint32_t(len(q.Data) * 8)
		return true
	}
	if len(q.Data) > longest {
		t.pieces(q.Operation)
		return false
	}
	buffer, key, err := t.stage(len(q.Data))
	if err != nil {
		t.fail(err)
		return false
	}
	q.buffer = buffer
	c.local, c.local_key, c.bytes = C.uint64_t(uintptr(buffer)), key, C.uint32_t(len(q.Data)*8)
	if q.Kind == rma.KindPutBulk {
		copy(unsafe.Slice((*int64)(buffer), len(q.Data)), q.Data)
	}
	return true
}

// buffer makes registered memory of the window's user.
func (t *transport) buffer(words int) ([]int64, error) {
	s, err := t.n.newStage(words * 8)
	if err != nil {
		return nil, err
	}
	t.buffers = append(t.buffers, s)
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s.memory))), words), nil
}

// registered is the buffer that has all of some words, or nil.
func (t *transport) registered(data []int64) *stage {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	for _, s := range t.buffers {
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(s.memory))); from >= at && from+uintptr(len(data))*8 <= at+uintptr(len(s.memory)) {
			return s
		}
	}
	return nil
}

// pieces does a bulk operation that is too long for one, at once.
func (t *transport) pieces(o rma.Operation) {
	if _, err := t.Flush(o.Target, &t.early); err != nil { // what it may follow
		t.fail(err)
		return
	}
	for data := o.Data; len(data) > 0; {
		n := min(len(data), longest)
		o.Data = data[:n]
		t.Issue(o)
		if _, err := t.Flush(o.Target, &t.early); err != nil {
			t.fail(err)
			return
		}
		o.Disp += n
		data = data[n:]
	}
}

func (t *transport) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// stage finds registered memory for so many words: in the handle, or of the transport's own.
func (t *transport) stage(words int) (unsafe.Pointer, C.uint32_t, error) {
	if len(t.stages) == 0 && t.staged+words <= C.NIC_STAGE {
		t.staged += words
		return unsafe.Pointer(&t.h.stage[t.staged-words]), t.key, nil
	}
	if n := len(t.stages); n == 0 || t.staged+words > len(t.stages[n-1].memory)/8 {
		room := 2 * words
		if n > 0 {
			room = max(room, len(t.stages[n-1].memory)/4)
		}
		s, err := t.n.newStage(room * 8)
		if err != nil {
			return nil, 0, err
		}
		t.stages = append(t.stages, s)
		t.staged = 0
	}
	s := t.stages[len(t.stages)-1]
	t.staged += words
	return unsafe.Pointer(&s.memory[(t.staged-words)*8]), s.region.m.lkey, nil
}

// shrink gives all stages but the longest back, when no operation has any.
func (t *transport) shrink() {
	if len(t.stages) < 2 {
		return
	}
	last := len(t.stages) - 1
	for _, s := range t.stages[:last] {
		if err := s.close(); err != nil {
			t.fail(err)
		}
	}
	t.stages = append(t.stages[:0], t.stages[last])
}
