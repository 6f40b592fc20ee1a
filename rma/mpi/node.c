//go:build cgo

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int shim_memfd(int64_t bytes) {
	int fd = memfd_create("rmalock", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, bytes) != 0) {
		int e = errno;
		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

int shim_allocate(int fd, int64_t offset, int64_t bytes) { return posix_fallocate(fd, offset, bytes); }

void *shim_map(int fd, int64_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void shim_unmap(void *p, int64_t bytes) { munmap(p, bytes); }

// shim_affinity sets the bits of the cores that this process may run on.
void shim_affinity(int64_t *mask) {
	cpu_set_t set;
	memset(mask, 0, SHIM_MAX_CPUS / 8);
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) != 0) return;
	for (int i = 0; i < SHIM_MAX_CPUS && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) mask[i / 64] |= (int64_t)1 << (i % 64);
}
