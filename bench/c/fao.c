/* MPI_Fetch_and_op(SUM) and MPI_Win_flush between two ranks, each on a word of the
 * other, so that both are always inside MPI. What is measured is the transport's way.
 *
 *	mpirun -n 2 PROGRAM [--duration SECONDS]
 *
 * The first tenth is warm-up. Minimum and median of the nanoseconds per operation of
 * rank 0's batches of 10. A word that has not what was added ends the job with
 * status 1.
 */
#include "bench.h"

#include <signal.h>
#include <unistd.h>

/* MPICH 4.0.2 over TCP hangs in MPI_Finalize at times. */
static void leave(int sig) {
	(void)sig;
	_exit(0);
}

enum { OPS = 10 }; /* per reading of the clock */

int main(int argc, char **argv) {
	bench b = {.lock = "c-fao", .mode = "far", .writers = 1};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
	b.seconds = atof(option(argc, argv, "--duration", "1"));
	if (b.ranks != 2 || !(b.seconds > 0 && b.seconds <= 3600)) {
		fprintf(stderr, "want 2 ranks and a --duration in (0, 3600] seconds\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int64_t *mem, one = 1, old, made = 0, theirs = 0;
	MPI_Win win;
	MPI_Win_allocate(sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t begin = now_ns(), warm = begin + (int64_t)(b.seconds * 1e8), stop = begin + (int64_t)(b.seconds * 1e9);
	size_t batches = 0, room = 1 << 20;
	double *ns = malloc(room * sizeof *ns);
	for (int64_t start = begin, end; start < stop; start = end) {
		for (int i = 0; i < OPS; i++) {
			MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1 - b.rank, 0, MPI_SUM, win);
			MPI_Win_flush(1 - b.rank, win);
		}
		made += OPS;
		end = now_ns();
		if ((start >= warm || end >= stop) && batches < room)
			ns[batches++] = (double)(end - start) / OPS;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(&made, 1, MPI_INT64_T, 1 - b.rank, 0, &theirs, 1, MPI_INT64_T, 1 - b.rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_sync(win);
	if (*mem != theirs) {
		fprintf(stderr, "fao: %lld additions made the word %lld\n", (long long)theirs, (long long)*mem);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (b.rank == 0) {
		qsort(ns, batches, sizeof *ns, by_value);
		const char *yields = getenv("OMPI_MCA_mpi_yield_when_idle");
		char settings[64];
		snprintf(settings, sizeof settings, "yield_when_idle=%s", yields ? yields : "default");
		b.settings = settings;
		print_head(&b);
		printf(",\"ns_per_acquire_min\":%.2f,\"ns_per_acquire_median\":%.2f,\"acquires_per_rank\":[%lld]}\n",
		       ns[0], ns[batches / 2], (long long)made);
	}
	free(ns);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	fflush(stdout);
	signal(SIGALRM, leave);
	alarm(5);
	MPI_Finalize();
	return 0;
}
