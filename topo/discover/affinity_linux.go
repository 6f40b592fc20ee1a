package discover

import (
	"math/bits"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rmalock/rmalock/topo"
)

// mask is what the kernel writes an affinity to. The kernel refuses a mask that is shorter
// than its own, so this one is as long as any: 32 KiB, which ten thousand ranks of one
// process shall not have on a stack each.
var mask struct {
	sync.Mutex
	words [maxCPUs / bits.UintSize]uint
}

// affinity is the processors that the calling thread may run on.
func affinity() (topo.Set, error) {
	mask.Lock()
	defer mask.Unlock()
	n, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask.words), uintptr(unsafe.Pointer(&mask.words)))
	if errno != 0 {
		return "", os.NewSyscallError("sched_getaffinity", errno)
	}
	var cpus []int
	for i, word := range mask.words[:n*8/bits.UintSize] {
		for ; word != 0; word &= word - 1 {
			cpus = append(cpus, i*bits.UintSize+bits.TrailingZeros(word))
		}
	}
	return topo.MakeSet(cpus...), nil
}
