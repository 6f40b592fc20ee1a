/* What the C comparison programs share: arguments, timing, the two modes, and the
 * result as one line of JSON on standard output of rank 0.
 *
 *	mpirun -n N PROGRAM --mode uncontended|contended [--duration SECONDS]
 *
 * uncontended: rank 0 alone takes and releases the lock, whose home is rank 0; the
 * other ranks wait without burning a core. The first tenth is warm-up. Minimum and
 * median of the nanoseconds per acquire and release of batches of 1000.
 *
 * contended: all ranks take and release the lock, with nothing in the critical
 * section, for the duration. Before that, as warm-up, each rank adds 1 to a counter
 * in the window 1000 times under the lock, by MPI_Get and MPI_Put; a wrong sum ends
 * the job with status 1.
 */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	HOME = 0,     /* rank that holds the lock */
	BATCH = 1000, /* acquires per reading of the clock, uncontended */
	ROUND = 16,   /* the same, contended */
	VERIFY = 1000 /* increments of each rank */
};

typedef struct {
	const char *mode;
	double seconds;
	int rank, ranks;
} bench;

/* A lock under test. The window has room for its words and the counter. */
typedef struct {
	const char *name;
	const char *settings; /* for people: the program's own options */
	MPI_Win win;
	MPI_Aint counter; /* displacement in 8-byte words, at HOME */
	void (*acquire)(void);
	void (*release)(void);
} bench_lock;

static inline int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

_Noreturn static void usage(const char *what) {
	fprintf(stderr, "%s; usage: PROGRAM --mode uncontended|contended [--duration SECONDS] and the program's own options\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

/* The value of an option, or def. */
static const char *option(int argc, char **argv, const char *name, const char *def) {
	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return def;
}

static inline bench bench_init(int *argc, char ***argv) {
	bench b;
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
	b.mode = option(*argc, *argv, "--mode", "");
	b.seconds = atof(option(*argc, *argv, "--duration", "1"));
	if (strcmp(b.mode, "uncontended") != 0 && strcmp(b.mode, "contended") != 0)
		usage("--mode is missing or unknown");
	if (!(b.seconds > 0 && b.seconds <= 3600))
		usage("--duration is not in (0, 3600] seconds");
	return b;
}

static int by_value(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The head of the result line, up to the mode's own fields. */
static void print_head(const bench *b, const bench_lock *l) {
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n\"\\")] = 0;
	for (char *p = version; (p = strchr(p, '\t')); *p = ' ') {} /* MPICH's */
	const char *osc = getenv("OMPI_MCA_osc");
	printf("{\"lock\":\"%s\",\"mode\":\"%s\",\"ranks\":%d,\"settings\":\"%s\",\"library\":\"%s\",\"component\":\"%s\"",
	       l->name, b->mode, b->ranks, l->settings, version, osc ? osc : "default");
}

/* Waits for all ranks without burning a core, which MPI_Barrier would. */
static void idle_barrier(void) {
	MPI_Request r;
	int done = 0;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	for (;;) {
		MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (done)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void uncontended(const bench *b, const bench_lock *l) {
	MPI_Barrier(MPI_COMM_WORLD);
	if (b->rank == 0) {
		int64_t begin = now_ns(), warm = begin + (int64_t)(b->seconds * 1e8), stop = begin + (int64_t)(b->seconds * 1e9);
		size_t batches = 0, room = 0;
		double *ns = NULL;
		for (int64_t start = begin, end; start < stop; start = end) {
			for (int i = 0; i < BATCH; i++) {
				l->acquire();
				l->release();
			}
			end = now_ns();
			if (start < warm)
				continue;
			if (batches == room) {
				room = room ? 2 * room : 1 << 16;
				if (!(ns = realloc(ns, room * sizeof *ns)))
					abort();
				end = now_ns();
			}
			ns[batches++] = (double)(end - start) / BATCH;
		}
		if (batches == 0)
			usage("--duration is too short for one batch");
		qsort(ns, batches, sizeof *ns, by_value);
		print_head(b, l);
		printf(",\"ns_per_acquire_min\":%.2f,\"ns_per_acquire_median\":%.2f,\"acquires_per_rank\":[%zu]}\n",
		       ns[0], ns[batches / 2], batches * BATCH);
		free(ns);
	}
	idle_barrier();
}

/* One plain read and write of the counter, which only the lock protects. */
static void increment(const bench_lock *l) {
	int64_t v;
	MPI_Get(&v, 1, MPI_INT64_T, HOME, l->counter, 1, MPI_INT64_T, l->win);
	MPI_Win_flush(HOME, l->win);
	v++;
	MPI_Put(&v, 1, MPI_INT64_T, HOME, l->counter, 1, MPI_INT64_T, l->win);
	MPI_Win_flush(HOME, l->win);
}

static void verify(const bench *b, const bench_lock *l) {
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < VERIFY; i++) {
		l->acquire();
		increment(l);
		l->release();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t v;
	l->acquire();
	MPI_Get(&v, 1, MPI_INT64_T, HOME, l->counter, 1, MPI_INT64_T, l->win);
	MPI_Win_flush(HOME, l->win);
	l->release();
	int64_t want = (int64_t)VERIFY * b->ranks;
	if (v != want) {
		fprintf(stderr, "%s: %lld increments under the lock made the counter %lld\n", l->name, (long long)want, (long long)v);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void contended(const bench *b, const bench_lock *l) {
	verify(b, l);
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t start = now_ns(), stop = start + (int64_t)(b->seconds * 1e9), count = 0;
	while (now_ns() < stop) {
		for (int i = 0; i < ROUND; i++) {
			l->acquire();
			l->release();
		}
		count += ROUND;
	}
	int64_t elapsed = now_ns() - start, longest = 0;
	int64_t *counts = malloc(sizeof *counts * b->ranks);
	MPI_Reduce(&elapsed, &longest, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Gather(&count, 1, MPI_INT64_T, counts, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
	if (b->rank == 0) {
		int64_t total = 0;
		for (int r = 0; r < b->ranks; r++)
			total += counts[r];
		print_head(b, l);
		printf(",\"acquires_per_second\":%.0f,\"acquires_per_rank\":[", total / (longest / 1e9));
		for (int r = 0; r < b->ranks; r++)
			printf("%s%lld", r ? "," : "", (long long)counts[r]);
		printf("]}\n");
	}
	free(counts);
}

static inline void bench_run(const bench *b, const bench_lock *l) {
	if (strcmp(b->mode, "uncontended") == 0)
		uncontended(b, l);
	else
		contended(b, l);
}

#endif
