/* MPI_Win_lock and MPI_Win_unlock as a lock: one epoch per acquire, MPI_LOCK_EXCLUSIVE
 * for writers and MPI_LOCK_SHARED for readers. */
#include "modes.h"

static MPI_Win win;

static inline void acquire(int shared) {
	MPI_Win_lock(shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, HOME, 0, win);
}

static inline void release(int shared) {
	(void)shared; /* MPI knows */
	MPI_Win_unlock(HOME, win);
}

int main(int argc, char **argv) {
	bench b = bench_init(&argc, &argv, "c-winlock");
	int64_t *mem;
	MPI_Win_allocate(2 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	mem[0] = mem[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	bench_run(&b, win, 0);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
