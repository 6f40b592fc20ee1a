//go:build cgo

#include "calls.h"

#include <signal.h>

// The progress helper: a thread that lets MPI serve other ranks' operations on this rank's
// memory while the rank computes. After a look that found something to do, seen by the time it
// took, it looks every 50 us. It goes down to a look in 500 us while nothing happens, and to one
// in 1 ms while the rank is inside MPI and serves others itself: a thread that wakes takes the
// core from a rank that spins.

enum { NAP_LEAST_NS = 50000, NAP_MOST_NS = 500000, NAP_INSIDE_NS = 1000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int needed, stopped; // under mutex
static pthread_t helper;
static int started;

// await_need sleeps while no window has far ranks. It returns 0 when the helper is to end.
static int await_need(void) {
	pthread_mutex_lock(&mutex);
	while (needed <= 0 && !stopped) pthread_cond_wait(&changed, &mutex);
	int go_on = !stopped;
	pthread_mutex_unlock(&mutex);
	return go_on;
}

static int64_t longer(int64_t ns, int64_t most) { return ns + ns / 4 > most ? most : ns + ns / 4; }

static void *helper_thread(void *unused) {
	int64_t pause = NAP_LEAST_NS;
	(void)unused;
	while (await_need()) {
		nap(pause);
		int64_t start = shim_now();
		if (start - last_inside() < NAP_LEAST_NS || pthread_mutex_trylock(&mpi_mutex) != 0) {
			pause = longer(pause, NAP_INSIDE_NS);
			continue;
		}
		progress();
		pause = found_work(shim_now() - start, 3) ? NAP_LEAST_NS : longer(pause, NAP_MOST_NS);
		pthread_mutex_unlock(&mpi_mutex);
	}
	return NULL;
}

int shim_helper_start(void) {
	if (started) return 0;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); // signals are the Go runtime's
	int rc = pthread_create(&helper, NULL, helper_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	started = rc == 0;
	return rc;
}

static void change(int *what, int delta) {
	pthread_mutex_lock(&mutex);
	*what += delta;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
}

void shim_helper_stop(void) {
	if (!started) return;
	change(&stopped, 1);
	pthread_join(helper, NULL);
}

void shim_helper_need(int delta) { change(&needed, delta); }
