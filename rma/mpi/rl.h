// The C side of package mpi: every call into MPI, serialised by one mutex.
#ifndef RMALOCK_RL_H
#define RMALOCK_RL_H

#include <mpi.h>
#include <stdint.h>

#if MPI_VERSION < 3
#error "rmalock needs MPI 3.0 or later"
#endif

enum { RL_WRONG_THREAD = -1001, RL_AGAIN = -1002 };

// What the watchdog sees of the call that is inside MPI; written under the mutex.
typedef struct {
	int64_t since_ns; // 0: none
	int32_t target;   // -1: all
	int32_t window;   // number of the window
} rl_call;

typedef struct {
	MPI_Comm comm, node;
	int rank, size, node_rank, node_size, node_index, node_count;
	int polite; // more ranks than cores, under MPICH: see settle
} rl_comm;

typedef struct {
	int64_t disp, operand, compare, result, words;
	int64_t *data; // of the bulk forms
	int32_t target, slot;
	uint8_t kind, op, cls, done;
} rl_op;

#define RL_MAX 64
#define RL_HEAD 16 // words before the user's in a part

typedef struct {
	MPI_Win win;
	int32_t number, nops;
	int polite;
	rl_op ops[RL_MAX];
	int64_t one;      // result of a poll
	int64_t since_ns; // begin of the last flush, poll or call of MPI_Win_lock
	int64_t shown_ns; // since_ns when Go's scheduler last saw the caller: show
	rl_op poll;
} rl_win;

// Start and end.
int rl_start(int *started, int *level);
int rl_yield(void);
int rl_level(int *level);
int rl_initialized(void);
int rl_finalized(void);
int rl_versions(int *version, int *subversion, char *lib, int n);
int rl_finalize(int64_t wait_ns, int64_t apart_ns); // RL_AGAIN: did not return in time; ranks enter up to apart_ns one after the other
void rl_abort(int code);
void rl_lock(void);
void rl_unlock(void);
rl_call rl_current(void);
int64_t rl_now(void);
int rl_error_text(int code, char *text, int n);
int rl_cvar(const char *name, char *text, int n);

// Communicators.
int rl_comm_world(rl_comm *c);
int rl_comm_fortran(int f, rl_comm *c);
int rl_comm_split(rl_comm *from, int color, int key, rl_comm *c);
int rl_comm_free(rl_comm *c);
int rl_node_ranks(rl_comm *c, int *ranks);
int rl_ibarrier(rl_comm *c, MPI_Request *r);
int rl_iallgather(rl_comm *c, int on_node, const int64_t *in, int n, int64_t *out, MPI_Request *r);
int rl_iallreduce(rl_comm *c, const int64_t *in, int n, int64_t *out, int op, MPI_Request *r);
int rl_wait(rl_comm *c, MPI_Request *r, int64_t max_ns); // RL_AGAIN: not yet

// Windows.
int rl_win_create(rl_comm *c, void *part, int64_t bytes, rl_win *w);
int rl_win_free(rl_win *w);
int rl_win_check(rl_win *w, void *part, int *base_ok, int *unified);
int rl_flush(rl_win *w, int target);
int rl_poll(rl_win *w, int target, int64_t disp, int cls);
int rl_await_near(rl_win *w, const int64_t *word, int rel, int64_t value, int64_t max_ns);

// MPI_Win_lock.
int rl_epochs_open(rl_comm *c, rl_win *w);
int rl_epochs_lock(rl_win *w, int target, int exclusive, int probe);
int rl_epochs_unlock(rl_win *w, int target);
int rl_epochs_free(rl_win *w);

// The progress helper.
int rl_helper_start(void);
void rl_helper_need(int delta);

// The cores that this process may run on.
#define RL_CPUS 1024
void rl_affinity(int64_t *mask);

// Node memory.
int rl_memfd(int64_t bytes);
int rl_fill(int fd, int64_t offset, int64_t bytes); // errno
void *rl_map(int fd, int64_t bytes);
void rl_unmap(void *p, int64_t bytes);

static inline int rl_holds(int rel, int64_t v, int64_t value) {
	switch (rel) {
	case 0: return v == value;
	case 1: return v != value;
	case 2: return v < value;
	}
	return v >= value;
}

#endif
