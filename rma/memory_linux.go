package rma

import "syscall"

// memoryBytes is how much memory the machine has, 0 if it does not say.
func memoryBytes() uint64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(max(1, info.Unit))
}
