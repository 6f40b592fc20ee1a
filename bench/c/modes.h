/* The workloads of the C comparison programs, as package bench of this module has them.
 *
 *	mpirun -n N PROGRAM --mode latency|ecsb [--duration SECONDS] [--writers SHARE]
 *
 * A program defines acquire and release and calls bench_init and bench_run. The first
 * tenth of the duration is warm-up.
 *
 * latency: rank 0 alone acquires and releases; the other ranks wait without burning a
 * core. The result is minimum and median of the nanoseconds per acquire and release, of
 * batches of 1000. There is one batch at least, however short the duration.
 *
 * ecsb: all ranks acquire and release, with nothing in the critical section. An acquire
 * is exclusive with probability SHARE (default 1), by the same random numbers as in Go.
 * One acquire in a few, in 128 at most, is timed, so that the clock costs as much as in
 * Go. The result is the number of acquires of each rank, and their sum divided by the
 * time between two barriers.
 *
 * Before ecsb each rank writes two counters of the window 1000 times under the lock, and
 * a rank that has the lock in shared mode compares them. A wrong counter ends the job
 * with status 1.
 */
#ifndef MODES_H
#define MODES_H

#include "bench.h"

enum {
	HOME = 0,          /* rank that holds the lock and the counters */
	BATCH = 1000,      /* acquires per reading of the clock in latency */
	SAMPLE_NS = 5000,  /* of usual acquires per timed one in ecsb */
	SAMPLE_MOST = 128, /* acquires per timed one at most */
	USUAL = 1024,      /* last acquires of the warm-up, whose median is the usual one */
	VERIFY = 1000      /* increments by each rank */
};

/* What a program defines: acquire returns with the lock, release gives it back. */
static inline void acquire(int shared);
static inline void release(int shared);

static inline bench bench_init(int *argc, char ***argv, const char *lock) {
	bench b = {.lock = lock, .settings = ""};
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
	b.mode = option(*argc, *argv, "--mode", "");
	b.seconds = atof(option(*argc, *argv, "--duration", "1"));
	b.writers = atof(option(*argc, *argv, "--writers", "1"));
	if (strcmp(b.mode, "latency") != 0 && strcmp(b.mode, "ecsb") != 0)
		usage("--mode is missing or unknown");
	if (!(b.seconds > 0 && b.seconds <= 3600))
		usage("--duration is not in (0, 3600] seconds");
	if (!(b.writers >= 0 && b.writers <= 1))
		usage("--writers is not in [0, 1]");
	return b;
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

static void latency(const bench *b) {
	MPI_Barrier(MPI_COMM_WORLD);
	if (b->rank == 0) {
		int64_t begin = now_ns(), warm = begin + (int64_t)(b->seconds * 1e8), stop = begin + (int64_t)(b->seconds * 1e9);
		size_t batches = 0, room = 0;
		double *ns = NULL;
		for (int64_t start = begin, end; start < stop || batches == 0; start = end) {
			for (int i = 0; i < BATCH; i++) {
				acquire(0);
				release(0);
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
		qsort(ns, batches, sizeof *ns, by_value);
		print_head(b);
		printf(",\"ns_per_acquire_min\":%.2f,\"ns_per_acquire_median\":%.2f,\"acquires_per_rank\":[%zu]}\n",
		       ns[0], ns[batches / 2], batches * BATCH);
		free(ns);
	}
	idle_barrier();
}

/* A rank's random choices: rand.PCG of Go (PCG-DXSM), with the seeds of package bench. */
typedef struct {
	unsigned __int128 state;
	uint64_t readers; /* of 2^63 acquires */
} choices;

static inline choices choices_of(const bench *b) {
	return (choices){
		.state = (unsigned __int128)(uint64_t)b->rank << 64 | UINT64_C(0x9E3779B97F4A7C15),
		.readers = (uint64_t)((1 - b->writers) * 9223372036854775808.0 + 0.5),
	};
}

static inline uint64_t next_random(choices *c) {
	const unsigned __int128 mul = (unsigned __int128)UINT64_C(2549297995355413924) << 64 | UINT64_C(4865540595714422341);
	const unsigned __int128 inc = (unsigned __int128)UINT64_C(6364136223846793005) << 64 | UINT64_C(1442695040888963407);
	c->state = c->state * mul + inc;
	uint64_t hi = (uint64_t)(c->state >> 64), lo = (uint64_t)c->state;
	hi ^= hi >> 32;
	hi *= UINT64_C(0xda942042e4dd58b5);
	hi ^= hi >> 48;
	return hi * (lo | 1);
}

/* The next acquire is in shared mode. */
static inline int next_shared(choices *c) {
	return c->readers > 0 && next_random(c) >> 1 < c->readers;
}

/* n acquires and releases. */
static inline void run(choices *c, int n) {
	if (c->readers == 0) {
		for (int i = 0; i < n; i++) {
			acquire(0);
			release(0);
		}
		return;
	}
	for (int i = 0; i < n; i++) {
		int shared = next_shared(c);
		acquire(shared);
		release(shared);
	}
}

/* Acquires and releases until begin + ns, timing each; the median of the last ones. */
static double usual_ns(choices *c, int64_t begin, int64_t ns) {
	static double gaps[USUAL];
	size_t n = 0;
	for (int64_t last = begin, now; last < begin + ns; last = now) {
		run(c, 1);
		now = now_ns();
		gaps[n++ % USUAL] = (double)(now - last);
	}
	if (n > USUAL)
		n = USUAL;
	if (n == 0)
		return 1;
	qsort(gaps, n, sizeof *gaps, by_value);
	return gaps[n / 2] > 1 ? gaps[n / 2] : 1;
}

/* The counters, which only the lock protects. */
static MPI_Win counters;
static MPI_Aint counters_at; /* displacement of the first in words */

static int64_t counter(int i) {
	int64_t v;
	MPI_Get(&v, 1, MPI_INT64_T, HOME, counters_at + i, 1, MPI_INT64_T, counters);
	MPI_Win_flush(HOME, counters);
	return v;
}

static void set_counter(int i, int64_t v) {
	MPI_Put(&v, 1, MPI_INT64_T, HOME, counters_at + i, 1, MPI_INT64_T, counters);
	MPI_Win_flush(HOME, counters);
}

static void wrong(const bench *b, const char *what, int64_t v, int64_t want) {
	fprintf(stderr, "%s: %s is %lld, want %lld: the lock does not exclude\n", b->lock, what, (long long)v, (long long)want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compare_counters(const bench *b, int shared) {
	acquire(shared);
	int64_t first = counter(0), second = counter(1);
	release(shared);
	if (first != second)
		wrong(b, "the second counter", second, first);
}

static void verify(const bench *b) {
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < VERIFY; i++) {
		acquire(0);
		int64_t v = counter(0) + 1;
		set_counter(0, v);
		set_counter(1, v);
		release(0);
		if (b->writers < 1)
			compare_counters(b, 1);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	compare_counters(b, 0);
	acquire(0);
	int64_t v = counter(0);
	release(0);
	if (v != (int64_t)VERIFY * b->ranks)
		wrong(b, "the counter", v, (int64_t)VERIFY * b->ranks);
}

static void ecsb(const bench *b) {
	verify(b);
	choices c = choices_of(b);
	int64_t tenth = (int64_t)(b->seconds * 1e8);
	double wish = SAMPLE_NS / usual_ns(&c, now_ns(), tenth);
	int every = wish < 1 ? 1 : wish > SAMPLE_MOST ? SAMPLE_MOST : (int)wish;
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t begin = now_ns(), count = 0, sampled = 0, now;
	do {
		int64_t start = now_ns();
		run(&c, 1);
		now = now_ns();
		sampled += now - start;
		run(&c, every - 1);
		count += every;
	} while (now < begin + 9 * tenth);
	MPI_Barrier(MPI_COMM_WORLD);
	int64_t elapsed = now_ns() - begin, longest = 0;
	int64_t mine[2] = {count, sampled / (count / every)};
	int64_t *all = malloc(sizeof mine * b->ranks);
	MPI_Reduce(&elapsed, &longest, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Gather(mine, 2, MPI_INT64_T, all, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
	if (b->rank == 0) {
		double total = 0, sum = 0;
		for (int r = 0; r < b->ranks; r++) {
			total += all[2 * r];
			sum += (double)all[2 * r] * all[2 * r + 1];
		}
		print_head(b);
		printf(",\"acquires_per_second\":%.0f,\"ns_per_acquire_mean\":%.1f,\"acquires_per_rank\":[", total / (longest / 1e9), sum / total);
		for (int r = 0; r < b->ranks; r++)
			printf("%s%lld", r ? "," : "", (long long)all[2 * r]);
		printf("]}\n");
	}
	free(all);
}

/* Runs the mode. The window holds two counters, both 0, at HOME from displacement at on. */
static inline void bench_run(const bench *b, MPI_Win win, MPI_Aint at) {
	counters = win;
	counters_at = at;
	if (strcmp(b->mode, "latency") == 0)
		latency(b);
	else
		ecsb(b);
}

#endif
