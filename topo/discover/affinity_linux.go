package discover

import (
	"math/bits"
	"os"
	"syscall"
	"unsafe"

	"github.com/rmalock/rmalock/topo"
)

// affinity is the processors that the calling thread may run on. The kernel refuses a mask
// that is shorter than its own, so this one is as long as any.
func affinity() (topo.Set, error) {
	mask := make([]uint, maxCPUs/bits.UintSize)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, uintptr(maxCPUs/8), uintptr(unsafe.Pointer(&mask[0])))
	if errno != 0 {
		return "", os.NewSyscallError("sched_getaffinity", errno)
	}
	var cpus []int
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			cpus = append(cpus, i*bits.UintSize+bits.TrailingZeros(word))
		}
	}
	return topo.MakeSet(cpus...), nil
}
