/* MPI_Win_lock(EXCLUSIVE) and MPI_Win_unlock as a lock: one epoch per acquire. */
#include "bench.h"

static MPI_Win win;

static void acquire(void) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win); }
static void release(void) { MPI_Win_unlock(HOME, win); }

int main(int argc, char **argv) {
	bench b = bench_init(&argc, &argv);
	int64_t *mem;
	MPI_Win_allocate(sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	bench_lock l = {.name = "c-winlock", .settings = "", .win = win, .counter = 0, .acquire = acquire, .release = release};
	MPI_Barrier(MPI_COMM_WORLD);
	bench_run(&b, &l);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
