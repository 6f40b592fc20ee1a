/* The C library's locks between the processes of a node: PTHREAD_PROCESS_SHARED, in
 * memory of MPI_Win_allocate_shared.
 *
 *	--lock mutex | robust | rwlock-readers | rwlock-writers
 *
 * mutex is a pthread_mutex_t, robust one with PTHREAD_MUTEX_ROBUST. The others are a
 * pthread_rwlock_t that prefers readers (PTHREAD_RWLOCK_PREFER_READER_NP, the default of
 * glibc) or writers (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP). A mutex is exclusive
 * for readers too.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "modes.h"

static int is_rwlock;
static pthread_mutex_t *mutex;
static pthread_rwlock_t *rwlock;

/* Ends the job if a call failed. The owner of a robust mutex does not die here, so that
 * EOWNERDEAD is an error too. */
static inline void must(int error, const char *call) {
	if (__builtin_expect(error != 0, 0)) {
		fprintf(stderr, "%s: %s\n", call, strerror(error));
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static inline void acquire(int shared) {
	if (!is_rwlock)
		must(pthread_mutex_lock(mutex), "pthread_mutex_lock");
	else if (shared)
		must(pthread_rwlock_rdlock(rwlock), "pthread_rwlock_rdlock");
	else
		must(pthread_rwlock_wrlock(rwlock), "pthread_rwlock_wrlock");
}

static inline void release(int shared) {
	(void)shared; /* the lock knows */
	if (!is_rwlock)
		must(pthread_mutex_unlock(mutex), "pthread_mutex_unlock");
	else
		must(pthread_rwlock_unlock(rwlock), "pthread_rwlock_unlock");
}

static void init_mutex(int robust) {
	pthread_mutexattr_t a;
	must(pthread_mutexattr_init(&a), "pthread_mutexattr_init");
	must(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), "pthread_mutexattr_setpshared");
	must(pthread_mutexattr_setrobust(&a, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED), "pthread_mutexattr_setrobust");
	must(pthread_mutex_init(mutex, &a), "pthread_mutex_init");
}

static void init_rwlock(int kind) {
	pthread_rwlockattr_t a;
	must(pthread_rwlockattr_init(&a), "pthread_rwlockattr_init");
	must(pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED), "pthread_rwlockattr_setpshared");
	must(pthread_rwlockattr_setkind_np(&a, kind), "pthread_rwlockattr_setkind_np");
	must(pthread_rwlock_init(rwlock, &a), "pthread_rwlock_init");
}

enum { LINE = 128, LOCK = 256 }; /* bytes: the counters have lines of their own */

_Static_assert(sizeof(pthread_mutex_t) <= LOCK && sizeof(pthread_rwlock_t) <= LOCK, "room for the lock");

int main(int argc, char **argv) {
	static const char *const locks[] = {"mutex", "robust", "rwlock-readers", "rwlock-writers", NULL};
	bench b = bench_init(&argc, &argv, "c-pthread");
	int kind = choice(argc, argv, "--lock", locks);
	b.settings = locks[kind];
	char *mem;
	MPI_Win win;
	MPI_Aint size = b.rank == HOME ? LINE + LOCK + LINE : 0;
	int unit;
	MPI_Win_allocate_shared(size, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	MPI_Win_shared_query(win, HOME, &size, &unit, &mem);
	uintptr_t line = ((uintptr_t)mem + LINE - 1) & ~(uintptr_t)(LINE - 1);
	mutex = (pthread_mutex_t *)line;
	rwlock = (pthread_rwlock_t *)line;
	is_rwlock = kind >= 2;
	if (b.rank == HOME) {
		memset(mem, 0, LINE + LOCK + LINE);
		if (is_rwlock)
			init_rwlock(kind == 2 ? PTHREAD_RWLOCK_PREFER_READER_NP : PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
		else
			init_mutex(kind == 1);
	}
	MPI_Win_lock_all(0, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	bench_run(&b, win, (MPI_Aint)(line + LOCK - (uintptr_t)mem) / sizeof(int64_t));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
