/* D-MCS on MPI-3 RMA: Listings 2 and 3 of
 *
 *	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
 *	HPDC 2016 (rma-rw).
 *
 * One window, one lock_all for its lifetime, MPI_Win_flush after every operation
 * whose effect must be seen. As in this module's package dmcs, WAIT is set only
 * when there is a predecessor, before the link that shows it this node.
 *
 * Words are written by MPI_Accumulate(REPLACE), not by MPI_Put. Open MPI's osc/sm
 * copies a word by memcpy, and glibc's memcpy of 8 bytes stores them twice: a reader
 * that sees the first store and lets the word be used again can lose to the second.
 * The accumulate operations exclude each other; MPI_Put and loads ignore that.
 *
 * Options, so that C can have what is fastest on a machine:
 *
 *	--own fop|load    how one's own NEXT and WAIT are read: MPI_Fetch_and_op(NO_OP) and
 *	                  flush; or a load (unified memory model), and once it shows what
 *	                  was awaited, one such Fetch_and_op, which waits for the writer
 *	--yield no|yes    sched_yield between polls, for more ranks than cores
 */
#include "modes.h"

#include <sched.h>

enum { NEXT, WAIT, TAIL, COUNTERS, WORDS = COUNTERS + 2 };

static MPI_Win win;
static volatile int64_t *own;
static int me, load, yield;
static int64_t id; /* queue node: rank + 1; 0 is the paper's null */

static void store(int64_t v, int target, int disp) {
	MPI_Accumulate(&v, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_REPLACE, win);
	MPI_Win_flush(target, win);
}

/* Writes a word of one's own, which nobody else writes now, before operations that
 * show it to others. */
static void store_own(int64_t v, int disp) {
	if (load) {
		own[disp] = v;
		MPI_Win_sync(win);
	} else {
		store(v, me, disp);
	}
}

static int64_t fetch_own(int disp) {
	int64_t v;
	MPI_Fetch_and_op(NULL, &v, MPI_INT64_T, me, disp, MPI_NO_OP, win);
	MPI_Win_flush(me, win);
	return v;
}

/* Reads a word of one's own: a value other than null is there to stay. */
static int64_t read_own(int disp, int64_t null) {
	if (load && own[disp] == null)
		return null;
	return fetch_own(disp);
}

/* Waits until a word of one's own is something else than null. */
static int64_t await_own(int disp, int64_t null) {
	int64_t v;
	while ((v = read_own(disp, null)) == null)
		if (yield)
			sched_yield();
	return v;
}

static inline void acquire(int shared) { /* Listing 2 */
	(void)shared; /* the lock is exclusive in both modes */
	int64_t pred;
	store_own(0, NEXT); /* line 3 */
	MPI_Fetch_and_op(&id, &pred, MPI_INT64_T, HOME, TAIL, MPI_REPLACE, win); /* line 6 */
	MPI_Win_flush(HOME, win);
	if (pred == 0)
		return;
	store_own(1, WAIT);               /* line 4 */
	store(id, (int)(pred - 1), NEXT); /* line 10 */
	await_own(WAIT, 1);               /* lines 11 to 14 */
}

static inline void release(int shared) { /* Listing 3 */
	(void)shared;
	int64_t succ = read_own(NEXT, 0); /* line 2 */
	if (succ == 0) {
		int64_t null = 0, last;
		MPI_Compare_and_swap(&null, &id, &last, MPI_INT64_T, HOME, TAIL, win); /* line 5 */
		MPI_Win_flush(HOME, win);
		if (last == id)
			return;
		succ = await_own(NEXT, 0); /* lines 9 to 11 */
	}
	store(0, (int)(succ - 1), WAIT); /* line 14 */
}

int main(int argc, char **argv) {
	bench b = bench_init(&argc, &argv, "c-dmcs");
	load = choice(argc, argv, "--own", (const char *[]){"fop", "load", NULL});
	yield = choice(argc, argv, "--yield", (const char *[]){"no", "yes", NULL});
	me = b.rank;
	id = b.rank + 1;
	int64_t *mem;
	MPI_Win_allocate(WORDS * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	own = mem;
	memset(mem, 0, WORDS * sizeof *mem);
	MPI_Win_lock_all(0, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	char settings[64];
	snprintf(settings, sizeof settings, "own=%s yield=%s", load ? "load" : "fop", yield ? "yes" : "no");
	b.settings = settings;
	bench_run(&b, win, COUNTERS);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
