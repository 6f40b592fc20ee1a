package main

import (
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// memoryOf is the share of the machine's free memory of each of so many ranks, in bytes; 0 if
// it is unknown.
func memoryOf(ranks int) int64 {
	info, _ := os.ReadFile("/proc/meminfo") // there is none but on Linux
	limit, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	if free := freeMemory(string(info), string(limit)); free < math.MaxInt64 {
		return max(1, free/int64(ranks))
	}
	return 0
}

// freeMemory is the lesser of MemAvailable in the text of /proc/meminfo and the limit of the
// control group, in bytes; math.MaxInt64 if neither is there.
func freeMemory(meminfo, limit string) int64 {
	free := int64(math.MaxInt64)
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			if kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53); err == nil {
				free = kB << 10
			}
		}
	}
	if bytes, err := strconv.ParseInt(strings.TrimSpace(limit), 10, 64); err == nil { // otherwise "max"
		free = min(free, bytes)
	}
	return free
}

// agreedMemory is the least memoryOf of all ranks. Collective.
func agreedMemory(c rma.Comm, ranksHere int) (int64, error) {
	all, err := c.Allgather([]int64{memoryOf(ranksHere)})
	if err != nil {
		return 0, err
	}
	least := all[0]
	for _, n := range all {
		least = min(least, n)
	}
	return least, nil
}
