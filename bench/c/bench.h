/* What the C comparison programs share: arguments, the clock, and the head of the
 * result, which is one line of JSON on standard output of rank 0.
 */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
	const char *lock;
	const char *settings; /* the program's own options, as text */
	const char *mode;
	double seconds; /* warm-up and measurement together */
	double writers; /* share of acquires in exclusive mode */
	int rank, ranks;
} bench;

static inline int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

_Noreturn static inline void usage(const char *what) {
	fprintf(stderr, "%s; the usage is in the first lines of bench/c/modes.h and of the program's source\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

/* The value of an option, or def. */
static inline const char *option(int argc, char **argv, const char *name, const char *def) {
	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return def;
}

/* The place of an option's value in a list that ends with NULL. The first is the default. */
static inline int choice(int argc, char **argv, const char *name, const char *const *values) {
	const char *v = option(argc, argv, name, values[0]);
	for (int i = 0; values[i]; i++)
		if (strcmp(v, values[i]) == 0)
			return i;
	fprintf(stderr, "%s is %s: ", name, v);
	usage("unknown value");
}

static inline int by_value(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The head of the result line, up to the mode's own fields. */
static inline void print_head(const bench *b) {
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n\"\\")] = 0;
	for (char *p = version; (p = strchr(p, '\t')); *p = ' ') {} /* MPICH's */
	const char *osc = getenv("OMPI_MCA_osc");
	printf("{\"lock\":\"%s\",\"mode\":\"%s\",\"ranks\":%d,\"writers\":%g,\"settings\":\"%s\",\"library\":\"%s\",\"component\":\"%s\"",
	       b->lock, b->mode, b->ranks, b->writers, b->settings, version, osc ? osc : "default");
}

#endif
