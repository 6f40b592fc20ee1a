// The C side of package mpi, as Go sees it: every call into MPI, serialised by one mutex.
// Functions return an MPI error code, or one of the codes below, unless said otherwise.
#ifndef RMALOCK_SHIM_H
#define RMALOCK_SHIM_H

#include <mpi.h>
#include <stdint.h>

#if MPI_VERSION < 3
#error "rmalock needs MPI 3.0 or later"
#endif

enum {
	SHIM_WRONG_THREAD = -1001, // MPI grants less than MPI_THREAD_SERIALIZED, and another thread started it
	SHIM_NOT_YET = -1002,      // the time is over
	SHIM_INTERCOMM = -1003,    // the communicator is an inter-communicator
};

// These mirror rma.Kind, rma.Class, rma.Op and rma.Rel; mirror.go asserts it.
enum { SHIM_PUT, SHIM_GET, SHIM_ACCUMULATE, SHIM_FETCH_AND_OP, SHIM_COMPARE_AND_SWAP, SHIM_PUT_BULK, SHIM_GET_BULK };
enum { SHIM_FAR, SHIM_NEAR, SHIM_FLAG, SHIM_PLAIN };
enum { SHIM_SUM, SHIM_REPLACE, SHIM_NO_OP };
enum { SHIM_EQUAL, SHIM_NOT_EQUAL, SHIM_LESS, SHIM_AT_LEAST };

enum { SHIM_REDUCE_SUM, SHIM_REDUCE_MIN, SHIM_REDUCE_MAX };

#define SHIM_MAX_PENDING 64  // rma.MaxPending
#define SHIM_HEADER_WORDS 16 // words of a part before the user's
#define SHIM_MAX_CPUS 1024

// The call that is inside MPI, for the watchdog.
typedef struct {
	int64_t since_ns; // 0: none
	int32_t target;   // -1: all
	int32_t window;   // number of the window
} shim_call;

typedef struct {
	MPI_Comm comm, node;
	int rank, size, node_rank, node_size;
	int yields;        // shim_wait yields before it naps
	int serves;        // a memory node's: it has nothing to do but to serve others; one of the below
	int64_t served_ns; // when it last did
	int await_results; // operations wait for their results before the flush: operations.c
} shim_comm;

enum { SHIM_SERVES_NOT, SHIM_SERVES_WITH_NAPS, SHIM_SERVES_EAGERLY };

enum { SHIM_QUEUED, SHIM_ISSUED, SHIM_COMPLETE };

typedef struct {
	int64_t disp, operand, compare, result, words;
	int64_t *data; // of the bulk forms
	int32_t target, slot;
	uint8_t kind, op, class, epoch, state;
} shim_op;

typedef struct {
	MPI_Win win;
	int32_t number, nops;
	int await_results;
	shim_op ops[SHIM_MAX_PENDING];
	shim_op poll;
	int64_t flushes;    // calls of MPI_Win_flush and MPI_Win_flush_all
	int64_t polled;     // value that the last poll read
	int64_t since_ns;   // begin of the last flush, poll or call of MPI_Win_lock
	int64_t yielded_ns; // since_ns when the caller last went through Go's scheduler
} shim_win;

// A condition on a word in node memory, as rma.Cond.
typedef struct {
	const int64_t *word;
	int64_t value, mask;
	int rel;
} shim_look;

// start.c
int shim_start(int *started, int *level); // level: 0 to 3, MPI_THREAD_SINGLE to MULTIPLE
int shim_openmpi_yields(void);            // whether Open MPI yielded before the call
int shim_initialized(void);
int shim_finalized(void);
int shim_versions(int *version, int *subversion, char *library, int n);
int shim_error_text(int code, char *text, int n); // the length
int shim_control_variable(const char *name, char *text, int n);
void shim_abort(int code);

// finalize.c: SHIM_NOT_YET where MPI_Finalize took longer than limit_ns. Ranks call it within
// apart_ns of each other.
int shim_finalize(int64_t limit_ns, int64_t apart_ns);

// calls.c
void shim_lock(void);
void shim_unlock(void);
shim_call shim_current_call(void);
int64_t shim_now(void);

// communicators.c
int shim_comm_world(shim_comm *c, MPI_Request *r); // begins to duplicate; shim_wait ends it
int shim_comm_fortran(int handle, shim_comm *c, MPI_Request *r);
int shim_comm_describe(shim_comm *c); // learns ranks and node
int shim_comm_split(shim_comm *from, int color, int key, shim_comm *c);
int shim_comm_of(shim_comm *from, const int *ranks, int n, shim_comm *c); // these ranks call it
int shim_comm_free(shim_comm *c);
int shim_node_ranks(shim_comm *c, int *ranks);
int shim_ibarrier(shim_comm *c, MPI_Request *r);
int shim_iallgather(shim_comm *c, int on_node, const int64_t *in, int n, int64_t *out, MPI_Request *r);
int shim_iallreduce(shim_comm *c, const int64_t *in, int n, int64_t *out, int op, MPI_Request *r);
int shim_isend(shim_comm *c, const int64_t *words, int n, int to, int tag, MPI_Request *r);
int shim_irecv(shim_comm *c, int64_t *words, int n, int from, int tag, MPI_Request *r); // from -1: any
int shim_wait(shim_comm *c, MPI_Request *r, int64_t max_ns); // SHIM_NOT_YET

// windows.c
int shim_win_create(shim_comm *c, void *part, int64_t bytes, shim_win *w);
int shim_win_free(shim_win *w);
int shim_win_check(shim_win *w, void *part, int *base_ok, int *unified);

// operations.c
int shim_flush(shim_win *w, int target);
int shim_poll(shim_win *w, int target, int64_t disp, int class);
int shim_await_near(shim_win *w, const shim_look *looks, int n, int64_t max_ns); // until one holds; SHIM_NOT_YET

// epochs.c
int shim_epochs_open(shim_comm *c, shim_win *w);
int shim_epochs_lock(shim_win *w, int target, int exclusive, int probe);
int shim_epochs_unlock(shim_win *w, int target);
int shim_epochs_free(shim_win *w);

// helper.c
int shim_helper_start(void); // errno
void shim_helper_stop(void);
void shim_helper_need(int delta); // windows with far ranks

// node.c
int shim_memfd(int64_t bytes);                           // -1: errno
int shim_allocate(int fd, int64_t offset, int64_t bytes); // errno
void *shim_map(int fd, int64_t bytes);                   // NULL
void shim_unmap(void *p, int64_t bytes);
void shim_affinity(int64_t *mask); // SHIM_MAX_CPUS bits

#endif
