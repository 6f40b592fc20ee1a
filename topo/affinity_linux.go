package topo

import "golang.org/x/sys/unix"

// affinity is the processors that the calling thread may run on.
func affinity() (Set, error) {
	// The kernel refuses a mask shorter than its own, which may be longer than the
	// usual 1024.
	for n := 1024; ; n *= 4 {
		mask := unix.NewCPUSet(n)
		err := unix.SchedGetaffinityDynamic(0, mask)
		if err == unix.EINVAL && n < maxCPUs {
			continue
		}
		if err != nil {
			return "", err
		}
		var cpus []int
		for c := range n {
			if mask.IsSet(c) {
				cpus = append(cpus, c)
			}
		}
		return MakeSet(cpus...), nil
	}
}
