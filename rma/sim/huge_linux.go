package sim

import (
	"syscall"
	"unsafe"
)

// huge asks for large pages for slots that are looked up at random: with small ones each look
// misses the TLB as well. Where there are none, nothing happens.
func huge(slots []slot) {
	const page = 2 << 20
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(slots))), len(slots)*int(unsafe.Sizeof(slot{})))
	if off := int(-uintptr(unsafe.Pointer(&b[0])) % page); off+page <= len(b) {
		_ = syscall.Madvise(b[off:], syscall.MADV_HUGEPAGE)
	}
}
