//go:build cgo

#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Some MPI_Finalize never return (MPICH 4.0.2 with UCX over TCP). A thread of its own calls
// MPI_Finalize, and the process leaves without the thread. Peers that are still inside
// MPI_Finalize then get a fatal error, which ends the job with a bad status. Ranks enter at
// about the same time, so each parks its thread first and leaves apart_ns later.
static pthread_mutex_t returned_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned_cond;
static int returned;

static void *finalize_thread(void *unused) {
	(void)unused;
	MPI_Finalize();
	pthread_mutex_lock(&returned_mutex);
	returned = 1;
	pthread_cond_signal(&returned_cond);
	pthread_mutex_unlock(&returned_mutex);
	return NULL;
}

static int returned_within(int64_t limit_ns) {
	int64_t end = shim_now() + limit_ns;
	struct timespec t = {end / 1000000000, end % 1000000000};
	pthread_mutex_lock(&returned_mutex);
	while (!returned && pthread_cond_timedwait(&returned_cond, &returned_mutex, &t) != ETIMEDOUT) {}
	int r = returned;
	pthread_mutex_unlock(&returned_mutex);
	return r;
}

static void park_thread(int sig) {
	(void)sig;
	for (;;) pause();
}

// pmi_finalize says to MPICH's launcher, Hydra, what MPI_Finalize would say, and waits for the
// answer. Hydra speaks PMI-1 over a socket, and sets MPI_LOCALNRANKS. Without the message it may
// take a process that leaves with status 0 for failed: when it sees the end of the process
// before the end of the connection.
static void pmi_finalize(void) {
	static const char message[] = "cmd=finalize\n";
	const char *name = getenv("PMI_FD");
	if (name == NULL || getenv("MPI_LOCALNRANKS") == NULL) return;
	int fd = atoi(name), domain = 0;
	socklen_t n = sizeof domain;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) != 0 || domain != AF_UNIX) return; // MPI has said it, and closed the socket
	if (send(fd, message, sizeof message - 1, MSG_NOSIGNAL) < 0) return;
	char answer[1024];
	int64_t deadline = shim_now() + 10000000000; // the launcher may lack a core
	for (size_t have = 0; shim_now() < deadline && have < sizeof answer;) {
		struct pollfd p = {fd, POLLIN, 0};
		if (poll(&p, 1, 100) <= 0) continue;
		ssize_t more = recv(fd, answer + have, sizeof answer - have, MSG_DONTWAIT);
		if (more <= 0) return;
		have += more;
		if (memmem(answer, have, "finalize_ack", 12) != NULL) return;
	}
}

int shim_finalize(int64_t limit_ns, int64_t apart_ns) {
	pthread_condattr_t monotonic;
	pthread_t t;
	ENTER();
	progress_close();
	pthread_mutex_unlock(&mpi_mutex);
	shim_helper_stop();
	pthread_mutex_lock(&mpi_mutex); // for ever: no thread may call MPI any more
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&returned_cond, &monotonic);
	if (pthread_create(&t, NULL, finalize_thread, NULL) != 0) return MPI_Finalize();
	if (returned_within(limit_ns)) {
		pthread_join(t, NULL);
		return MPI_SUCCESS;
	}
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = park_thread;
	sigaction(SIGRTMAX, &a, NULL);
	pthread_kill(t, SIGRTMAX);
	nap(apart_ns); // not under returned_mutex, which the parked thread may hold
	pmi_finalize();
	return SHIM_NOT_YET;
}
