//go:build cgo

#include "calls.h"

#include <time.h>

pthread_mutex_t mpi_mutex = PTHREAD_MUTEX_INITIALIZER;
int thread_level;

static shim_call call;    // written under the mutex; the watchdog reads it without
static int64_t inside_ns; // the helper reads it without the mutex

void shim_lock(void) { pthread_mutex_lock(&mpi_mutex); }
void shim_unlock(void) { pthread_mutex_unlock(&mpi_mutex); }

int64_t shim_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void nap(int64_t ns) {
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	nanosleep(&t, NULL);
}

int mpi_enter(void) {
	pthread_mutex_lock(&mpi_mutex);
	if (thread_level < MPI_THREAD_SERIALIZED) {
		int main = 0;
		MPI_Is_thread_main(&main);
		if (!main) {
			pthread_mutex_unlock(&mpi_mutex);
			return SHIM_WRONG_THREAD;
		}
	}
	return MPI_SUCCESS;
}

int64_t note_inside(void) {
	int64_t now = shim_now();
	__atomic_store_n(&inside_ns, now, __ATOMIC_RELAXED);
	return now;
}

int64_t last_inside(void) { return __atomic_load_n(&inside_ns, __ATOMIC_RELAXED); }

int64_t begin_call(int window, int target) {
	int64_t now = note_inside();
	call.window = window;
	call.target = target;
	__atomic_store_n(&call.since_ns, now, __ATOMIC_RELEASE);
	return now;
}

void end_call(void) { __atomic_store_n(&call.since_ns, 0, __ATOMIC_RELEASE); }

shim_call shim_current_call(void) {
	shim_call c;
	c.since_ns = __atomic_load_n(&call.since_ns, __ATOMIC_ACQUIRE);
	c.window = call.window;
	c.target = call.target;
	return c;
}

// A receive that no rank answers: MPI_Test of it makes MPI progress as a whole.
// MPI_Iprobe of MPICH 4.0 serves the network, but not node-mates.
static MPI_Comm progress_comm = MPI_COMM_NULL;
static MPI_Request progress_request = MPI_REQUEST_NULL;
static int progress_word;

int progress_open(void) {
	int rc;
	if (progress_comm != MPI_COMM_NULL) return MPI_SUCCESS;
	if ((rc = MPI_Comm_dup(MPI_COMM_SELF, &progress_comm)) != MPI_SUCCESS) return rc;
	return MPI_Irecv(&progress_word, 1, MPI_INT, 0, 0, progress_comm, &progress_request);
}

void progress_close(void) {
	if (progress_comm == MPI_COMM_NULL) return;
	MPI_Cancel(&progress_request);
	MPI_Wait(&progress_request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&progress_comm);
}

int progress(void) {
	int flag;
	return progress_comm == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Test(&progress_request, &flag, MPI_STATUS_IGNORE);
}

int found_work(int64_t took_ns, int times) {
	static int64_t idle_ns = INT64_MAX / 4; // time of a look that finds nothing
	if (took_ns < idle_ns) idle_ns = took_ns;
	idle_ns += idle_ns / 1024 + 1; // forget old minima
	return took_ns > times * idle_ns;
}
