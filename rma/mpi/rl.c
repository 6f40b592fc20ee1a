//go:build cgo

#define _GNU_SOURCE
#include "rl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int level;        // of thread support
static rl_call call;     // under mu; read by the watchdog without it
static int64_t inside_ns; // when the rank was inside MPI last; read by the helper without mu

// A receive that nobody answers: MPI_Test of it makes MPI progress as a whole. (In
// MPICH 4.0 MPI_Iprobe serves the network, but not node-mates.)
static MPI_Comm own = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL;
static int never_word;

static int own_open(void) {
	int rc;
	if (own != MPI_COMM_NULL) return MPI_SUCCESS;
	if ((rc = MPI_Comm_dup(MPI_COMM_SELF, &own)) != MPI_SUCCESS) return rc;
	return MPI_Irecv(&never_word, 1, MPI_INT, 0, 0, own, &never);
}

static void own_close(void) {
	if (own == MPI_COMM_NULL) return;
	MPI_Cancel(&never);
	MPI_Wait(&never, MPI_STATUS_IGNORE);
	MPI_Comm_free(&own);
}

// progress lets MPI serve whoever is waiting for this rank.
static int progress(void) {
	int flag;
	return own == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Test(&never, &flag, MPI_STATUS_IGNORE);
}

int64_t rl_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// give gives the core away between two looks. Politely, that is by a nap: with yields
// eight ranks on two cores were twenty times slower.
static void give(int polite) {
	static const struct timespec nap = {0, 20000}; // 75 us with the timer's slack
	if (polite) nanosleep(&nap, NULL);
	else sched_yield();
}

void rl_lock(void) { pthread_mutex_lock(&mu); }
void rl_unlock(void) { pthread_mutex_unlock(&mu); }

// enter takes the mutex. Below MPI_THREAD_SERIALIZED only the thread that
// initialised MPI may call it.
static int enter(void) {
	pthread_mutex_lock(&mu);
	if (level < MPI_THREAD_SERIALIZED) {
		int main = 0;
		MPI_Is_thread_main(&main);
		if (!main) {
			pthread_mutex_unlock(&mu);
			return RL_WRONG_THREAD;
		}
	}
	return MPI_SUCCESS;
}

#define ENTER() do { int e_ = enter(); if (e_ != MPI_SUCCESS) return e_; } while (0)
#define LEAVE(rc) do { int rc_ = (rc); pthread_mutex_unlock(&mu); return rc_; } while (0)
#define TRY(x) do { rc = (x); if (rc != MPI_SUCCESS) goto out; } while (0)

// inside notes that the rank is in MPI now, for the helper, and returns the time.
static int64_t inside(void) {
	int64_t now = rl_now();
	__atomic_store_n(&inside_ns, now, __ATOMIC_RELAXED);
	return now;
}

static int64_t begin(int window, int target) {
	int64_t now = inside();
	call.window = window;
	call.target = target;
	__atomic_store_n(&call.since_ns, now, __ATOMIC_RELEASE);
	return now;
}

static void end(void) { __atomic_store_n(&call.since_ns, 0, __ATOMIC_RELEASE); }

rl_call rl_current(void) {
	rl_call c;
	c.since_ns = __atomic_load_n(&call.since_ns, __ATOMIC_ACQUIRE);
	c.window = call.window;
	c.target = call.target;
	return c;
}

// rl_start initialises MPI if nobody has. MPI libraries install handlers for the
// signals of a crash, without SA_ONSTACK; the Go runtime needs its own back.
int rl_start(int *started, int *lvl) {
	static const int sigs[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
	struct sigaction old[4];
	int on = 0, rc;
	MPI_Initialized(&on);
	*started = !on;
	if (!on) {
		for (int i = 0; i < 4; i++) sigaction(sigs[i], NULL, &old[i]);
		rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
		for (int i = 0; i < 4; i++) sigaction(sigs[i], &old[i], NULL);
		if (rc != MPI_SUCCESS) return rc;
	} else if ((rc = MPI_Query_thread(&level)) != MPI_SUCCESS) {
		return rc;
	}
	*lvl = level;
	return MPI_SUCCESS;
}

// rl_yield has Open MPI yield while it waits. It decides that in MPI_Init, before ranks know
// how many of them share a machine; the function is not for users, and may be missing.
// It reports whether Open MPI yielded before.
int rl_yield(void) {
	bool (*set)(bool) = (bool (*)(bool))dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	return set != NULL && set(true);
}

int rl_level(int *lvl) {
	*lvl = level <= MPI_THREAD_SINGLE ? 0 : level <= MPI_THREAD_FUNNELED ? 1 : level <= MPI_THREAD_SERIALIZED ? 2 : 3;
	return MPI_SUCCESS;
}

int rl_initialized(void) {
	int on = 0;
	MPI_Initialized(&on);
	return on;
}

int rl_finalized(void) {
	int f = 0;
	MPI_Finalized(&f);
	return f;
}

int rl_versions(int *version, int *subversion, char *lib, int n) {
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int len = 0;
	ENTER();
	int rc = MPI_Get_version(version, subversion);
	if (rc == MPI_SUCCESS) rc = MPI_Get_library_version(text, &len);
	strncpy(lib, text, n - 1);
	lib[n - 1] = 0;
	LEAVE(rc);
}

// Some MPI_Finalize never return (MPICH 4.0.2 with UCX over TCP): a thread of its own calls
// it, and the process leaves without it. What ranks see that are still in it then is a
// fatal error, which ends the job with a bad status. They entered it at the same time,
// and so will leave at about the same time: until then the thread is kept from looking.
static volatile int finalized;
static void *finalize_thread(void *arg) {
	(void)arg;
	MPI_Finalize();
	__atomic_store_n(&finalized, 1, __ATOMIC_RELEASE);
	return NULL;
}
static void freeze(int sig) {
	(void)sig;
	for (;;) pause();
}

// MPICH's launcher, Hydra, takes a process that leaves without a word of its protocol, PMI-1,
// for failed, though its status be 0, where it sees the end of the process before that of the
// connection; and one that has gone before it could answer. MPI_LOCALNRANKS is what Hydra sets.
static void say_finalized(void) {
	static const char word[] = "cmd=finalize\n";
	const char *name = getenv("PMI_FD");
	if (name == NULL || getenv("MPI_LOCALNRANKS") == NULL) return;
	int fd = atoi(name), domain = 0;
	socklen_t n = sizeof domain;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) != 0 || domain != AF_UNIX) return; // MPI has closed it: it was said
	if (send(fd, word, sizeof word - 1, MSG_NOSIGNAL) < 0) return;
	char answer[1024];
	int64_t deadline = rl_now() + 10000000000; // ns: a launcher that has no core
	for (size_t have = 0; rl_now() < deadline && have < sizeof answer;) {
		struct pollfd p = {fd, POLLIN, 0};
		if (poll(&p, 1, 100) <= 0) continue;
		ssize_t more = recv(fd, answer + have, sizeof answer - have, MSG_DONTWAIT);
		if (more <= 0) return;
		have += more;
		if (memmem(answer, have, "finalize_ack", 12) != NULL) return;
	}
}

static int helper_stop;
static pthread_t helper;
static int helper_on;

int rl_finalize(int64_t wait_ns, int64_t apart_ns) {
	ENTER();
	own_close();
	pthread_mutex_unlock(&mu);
	if (helper_on) {
		__atomic_store_n(&helper_stop, 1, __ATOMIC_RELEASE);
		pthread_join(helper, NULL);
	}
	pthread_mutex_lock(&mu); // for ever: nobody calls MPI any more
	pthread_t t;
	if (pthread_create(&t, NULL, finalize_thread, NULL) != 0) {
		MPI_Finalize();
		return MPI_SUCCESS;
	}
	struct timespec nap = {0, 200000};
	int64_t deadline = rl_now() + wait_ns;
	while (!__atomic_load_n(&finalized, __ATOMIC_ACQUIRE)) {
		if (rl_now() > deadline) {
			struct sigaction a;
			memset(&a, 0, sizeof a);
			a.sa_handler = freeze;
			sigaction(SIGRTMAX, &a, NULL);
			pthread_kill(t, SIGRTMAX);
			while (rl_now() < deadline + apart_ns) nanosleep(&nap, NULL);
			say_finalized();
			return RL_AGAIN;
		}
		nanosleep(&nap, NULL);
	}
	pthread_join(t, NULL);
	return MPI_SUCCESS;
}

void rl_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int rl_error_text(int code, char *text, int n) {
	char buf[MPI_MAX_ERROR_STRING];
	int len = 0;
	MPI_Error_string(code, buf, &len);
	strncpy(text, buf, n - 1);
	text[n - 1] = 0;
	return len;
}

// rl_cvar reads a string control variable: Open MPI's component selections.
int rl_cvar(const char *name, char *text, int n) {
	int provided, index, count = 0, rc;
	MPI_T_cvar_handle h;
	text[0] = 0;
	ENTER();
	if ((rc = MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided)) != MPI_SUCCESS) LEAVE(rc);
	if ((rc = MPI_T_cvar_get_index(name, &index)) == MPI_SUCCESS &&
	    (rc = MPI_T_cvar_handle_alloc(index, NULL, &h, &count)) == MPI_SUCCESS) {
		if (count < n) {
			rc = MPI_T_cvar_read(h, text);
			text[count] = 0;
		}
		MPI_T_cvar_handle_free(&h);
	}
	MPI_T_finalize();
	LEAVE(rc);
}

// Communicators. Calls that block in MPI come after a barrier of all members, so
// that they hold the mutex for as long as the call takes and not for as long as
// the last rank takes to arrive.

static int fill_comm(rl_comm *c) {
	int rc;
	MPI_Comm leaders = MPI_COMM_NULL;
	MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	TRY(MPI_Comm_rank(c->comm, &c->rank));
	TRY(MPI_Comm_size(c->comm, &c->size));
	TRY(MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &c->node));
	MPI_Comm_set_errhandler(c->node, MPI_ERRORS_RETURN);
	TRY(MPI_Comm_rank(c->node, &c->node_rank));
	TRY(MPI_Comm_size(c->node, &c->node_size));
	TRY(MPI_Comm_split(c->comm, c->node_rank == 0 ? 0 : MPI_UNDEFINED, c->rank, &leaders));
	int at[2] = {0, 0};
	if (leaders != MPI_COMM_NULL) {
		MPI_Comm_rank(leaders, &at[0]);
		MPI_Comm_size(leaders, &at[1]);
		MPI_Comm_free(&leaders);
	}
	TRY(MPI_Bcast(at, 2, MPI_INT, 0, c->node));
	c->node_index = at[0];
	c->node_count = at[1];
out:
	return rc;
}

int rl_comm_world(rl_comm *c) {
	int rc;
	ENTER();
	TRY(MPI_Comm_dup(MPI_COMM_WORLD, &c->comm));
	TRY(fill_comm(c));
	TRY(own_open());
out:
	LEAVE(rc);
}

int rl_comm_fortran(int f, rl_comm *c) {
	int rc;
	ENTER();
	MPI_Comm given = MPI_Comm_f2c((MPI_Fint)f);
	if (given == MPI_COMM_NULL) LEAVE(MPI_ERR_COMM);
	TRY(MPI_Comm_dup(given, &c->comm));
	TRY(fill_comm(c));
	TRY(own_open());
out:
	LEAVE(rc);
}

int rl_comm_split(rl_comm *from, int color, int key, rl_comm *c) {
	int rc;
	ENTER();
	TRY(MPI_Comm_split(from->comm, color < 0 ? MPI_UNDEFINED : color, key, &c->comm));
	if (c->comm != MPI_COMM_NULL) TRY(fill_comm(c));
out:
	LEAVE(rc);
}

int rl_comm_free(rl_comm *c) {
	ENTER();
	if (c->node != MPI_COMM_NULL) MPI_Comm_free(&c->node);
	LEAVE(MPI_Comm_free(&c->comm));
}

int rl_node_ranks(rl_comm *c, int *ranks) {
	int rc;
	MPI_Group all = MPI_GROUP_NULL, node = MPI_GROUP_NULL;
	int *local = malloc(sizeof(int) * c->node_size);
	ENTER();
	TRY(MPI_Comm_group(c->comm, &all));
	TRY(MPI_Comm_group(c->node, &node));
	for (int i = 0; i < c->node_size; i++) local[i] = i;
	TRY(MPI_Group_translate_ranks(node, c->node_size, local, all, ranks));
out:
	if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
	if (node != MPI_GROUP_NULL) MPI_Group_free(&node);
	free(local);
	LEAVE(rc);
}

int rl_ibarrier(rl_comm *c, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Ibarrier(c->comm, r));
}

int rl_iallgather(rl_comm *c, int on_node, const int64_t *in, int n, int64_t *out, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Iallgather(in, n, MPI_INT64_T, out, n, MPI_INT64_T, on_node ? c->node : c->comm, r));
}

int rl_iallreduce(rl_comm *c, const int64_t *in, int n, int64_t *out, int op, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Iallreduce(in, out, n, MPI_INT64_T, op == 0 ? MPI_SUM : op == 1 ? MPI_MIN : MPI_MAX, c->comm, r));
}

int rl_wait(rl_comm *c, MPI_Request *r, int64_t max_ns) {
	int64_t deadline = 0;
	for (int i = 0;; i++) {
		int done = 0, rc;
		ENTER();
		rc = MPI_Test(r, &done, MPI_STATUS_IGNORE);
		pthread_mutex_unlock(&mu);
		if (rc != MPI_SUCCESS || done) return rc;
		int64_t now = inside();
		if (i == 0) deadline = now + max_ns;
		else if (now > deadline) return RL_AGAIN;
		give(c->polite);
	}
}

// Windows.

int rl_win_create(rl_comm *c, void *part, int64_t bytes, rl_win *w) {
	int rc;
	ENTER();
	TRY(MPI_Win_create(part, (MPI_Aint)bytes, 8, MPI_INFO_NULL, c->comm, &w->win));
	w->polite = c->polite;
	MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
	TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win));
out:
	LEAVE(rc);
}

int rl_win_free(rl_win *w) {
	int rc;
	ENTER();
	TRY(MPI_Win_unlock_all(w->win));
	TRY(MPI_Win_free(&w->win));
out:
	LEAVE(rc);
}

int rl_win_check(rl_win *w, void *part, int *base_ok, int *unified) {
	void *base = NULL;
	int *model = NULL, flag = 0, rc;
	*base_ok = *unified = 0;
	ENTER();
	TRY(MPI_Win_get_attr(w->win, MPI_WIN_BASE, &base, &flag));
	*base_ok = flag && base == part;
	TRY(MPI_Win_get_attr(w->win, MPI_WIN_MODEL, &model, &flag));
	*unified = flag && *model == MPI_WIN_UNIFIED;
out:
	LEAVE(rc);
}

enum { PUT, GET, ACC, FAO, CAS, PUTN, GETN };
enum { FAR, NEAR, FLAG };

static MPI_Op mpi_op(int op) { return op == 0 ? MPI_SUM : op == 1 ? MPI_REPLACE : MPI_NO_OP; }

// issue starts one operation. Words of class far travel by the accumulate family, which
// is atomic element by element; all others by plain Put and Get.
static int issue(rl_win *w, rl_op *o) {
	MPI_Aint d = (MPI_Aint)(o->disp + RL_HEAD);
	int plain = o->cls != FAR;
	switch (o->kind) {
	case PUT:
		if (plain) return MPI_Put(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, w->win);
		return MPI_Accumulate(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, MPI_REPLACE, w->win);
	case GET:
		if (plain) return MPI_Get(&o->result, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, w->win);
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case ACC:
		if (o->op == 2) return MPI_SUCCESS;
		return MPI_Accumulate(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, mpi_op(o->op), w->win);
	case FAO:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, mpi_op(o->op), w->win);
	case CAS:
		return MPI_Compare_and_swap(&o->operand, &o->compare, &o->result, MPI_INT64_T, o->target, d, w->win);
	case PUTN:
		if (plain) return MPI_Put(o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, w->win);
		return MPI_Accumulate(o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, MPI_REPLACE, w->win);
	case GETN:
		if (plain) return MPI_Get(o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, w->win);
		return MPI_Get_accumulate(NULL, 0, MPI_INT64_T, o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, MPI_NO_OP, w->win);
	}
	return MPI_ERR_ARG;
}

// The polite way, under MPICH where ranks are more than cores. MPICH's flush spins:
// it keeps the core that its target needs to answer, for a time slice. So every
// operation gets a result, which MPI overwrites when the target has answered; until
// then this rank serves others and naps, without the mutex. The flush that follows
// finds nothing to wait for; it is what completes the operations. Everything travels
// by the accumulate family, flag words too: they have one writer at a time, so that a
// swap does what a Put does.

static const int64_t PATIENCE = 10000000000; // ns; then the flush waits, for a dead rank or a result that is PENDING itself
static const int64_t PENDING = 0x5eed0fa11ab1e5;

static volatile int64_t *watched(rl_op *o) {
	return o->kind == GETN ? &o->data[o->words - 1] : &o->result;
}

static int issue_polite(rl_win *w, rl_op *o) {
	MPI_Aint d = (MPI_Aint)(o->disp + RL_HEAD);
	int rc;
	if (o->words == 0 || (o->kind == ACC && o->op == 2)) {
		o->done = 2;
		return MPI_SUCCESS;
	}
	*watched(o) = PENDING;
	switch (o->kind) {
	case PUT:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_REPLACE, w->win);
	case GET:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case ACC:
	case FAO:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, mpi_op(o->op), w->win);
	case CAS:
		return MPI_Compare_and_swap(&o->operand, &o->compare, &o->result, MPI_INT64_T, o->target, d, w->win);
	case PUTN: // and a read behind it, to have an answer
		TRY(MPI_Accumulate(o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, MPI_REPLACE, w->win));
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case GETN:
		return MPI_Get_accumulate(NULL, 0, MPI_INT64_T, o->data, (int)o->words, MPI_INT64_T, o->target, d, (int)o->words, MPI_INT64_T, MPI_NO_OP, w->win);
	}
	rc = MPI_ERR_ARG;
out:
	return rc;
}

static int pending(rl_op *o, int n, int target) {
	for (int i = 0; i < n; i++)
		if (o[i].done == 1 && (target < 0 || o[i].target == target) && *watched(&o[i]) == PENDING) return 1;
	return 0;
}

// settle waits for the answers to the first n operations, as far as they go to
// target (-1: any). It lets go of the mutex meanwhile.
static int settle(rl_op *o, int n, int target) {
	int64_t deadline = 0;
	for (int i = 0; pending(o, n, target); i++) {
		int rc = progress();
		if (rc != MPI_SUCCESS) return rc;
		if (!pending(o, n, target)) break;
		int64_t now = inside();
		if (i == 0) deadline = now + PATIENCE;
		else if (now > deadline) break;
		pthread_mutex_unlock(&mu);
		give(1);
		pthread_mutex_lock(&mu);
	}
	return MPI_SUCCESS;
}

static int complete(rl_win *w, int n, int target) {
	if (w->polite) {
		int rc = settle(w->ops, n, target);
		if (rc != MPI_SUCCESS) return rc;
		begin(w->number, target); // somebody else may have been inside MPI
	}
	return target < 0 ? MPI_Win_flush_all(w->win) : MPI_Win_flush(target, w->win);
}

// Operations of one origin on one word must take effect in the order of issue. MPI
// promises that for accumulates alone, and Open MPI 4.1's osc/pt2pt does not keep
// it between those of different kinds: an operation on words that an earlier one
// of the batch touches waits for it, unless both only read.
static int reads(const rl_op *o) {
	return o->kind == GET || o->kind == GETN || ((o->kind == FAO || o->kind == ACC) && o->op == 2);
}

static int conflicts(const rl_win *w, int i) {
	const rl_op *o = &w->ops[i];
	for (int j = 0; j < i; j++) {
		const rl_op *p = &w->ops[j];
		if (p->done == 1 && p->target == o->target && p->disp < o->disp + o->words && o->disp < p->disp + p->words &&
		    !(reads(p) && reads(o)))
			return 1;
	}
	return 0;
}

int rl_flush(rl_win *w, int target) {
	int rc = MPI_SUCCESS;
	ENTER();
	w->since_ns = begin(w->number, target);
	for (int i = 0; i < w->nops; i++) {
		rl_op *o = &w->ops[i];
		if (target >= 0 && o->target != target) continue;
		if (conflicts(w, i)) {
			TRY(complete(w, i, o->target));
			for (int j = 0; j < i; j++)
				if (w->ops[j].done && w->ops[j].target == o->target) w->ops[j].done = 2; // complete
		}
		o->done = 1;
		TRY(w->polite ? issue_polite(w, o) : issue(w, o));
	}
	rc = complete(w, w->nops, target);
out:
	end();
	LEAVE(rc);
}

int rl_poll(rl_win *w, int target, int64_t disp, int cls) {
	rl_op *o = &w->poll;
	int rc;
	ENTER();
	w->since_ns = begin(w->number, target);
	*o = (rl_op){.kind = GET, .cls = cls, .target = target, .disp = disp, .words = 1, .done = 1};
	if (w->polite) {
		TRY(issue_polite(w, o));
		TRY(settle(o, 1, target));
		begin(w->number, target);
	} else {
		TRY(issue(w, o));
	}
	rc = MPI_Win_flush(target, w->win);
	w->one = o->result;
out:
	end();
	LEAVE(rc);
}

// rl_await_near watches a word in node memory while it lets MPI serve others.
int rl_await_near(rl_win *w, const int64_t *word, int rel, int64_t value, int64_t max_ns) {
	int64_t deadline = rl_now() + max_ns;
	for (;;) {
		int rc;
		for (int i = 0; i < 20; i++)
			if (rl_holds(rel, __atomic_load_n(word, __ATOMIC_ACQUIRE), value)) return MPI_SUCCESS;
		ENTER();
		rc = progress();
		pthread_mutex_unlock(&mu);
		if (rc != MPI_SUCCESS) return rc;
		if (rl_holds(rel, __atomic_load_n(word, __ATOMIC_ACQUIRE), value)) return MPI_SUCCESS;
		if (inside() > deadline) return RL_AGAIN;
		give(w->polite);
	}
}

// MPI_Win_lock as a lock of its own, to be measured against. The call may return
// before the lock is held; with probe an operation and a flush make sure.
int rl_epochs_open(rl_comm *c, rl_win *w) {
	int64_t *mem;
	int rc;
	ENTER();
	TRY(MPI_Win_allocate(4096, 8, MPI_INFO_NULL, c->comm, &mem, &w->win));
	MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
	memset(mem, 0, 4096);
out:
	LEAVE(rc);
}

int rl_epochs_lock(rl_win *w, int target, int exclusive, int probe) {
	int64_t unused = 0;
	int rc;
	ENTER();
	w->since_ns = begin(w->number, target);
	TRY(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w->win));
	if (probe) {
		TRY(MPI_Fetch_and_op(&unused, &w->one, MPI_INT64_T, target, 0, MPI_NO_OP, w->win));
		TRY(MPI_Win_flush(target, w->win));
	}
out:
	end();
	LEAVE(rc);
}

int rl_epochs_unlock(rl_win *w, int target) {
	int rc;
	ENTER();
	w->since_ns = begin(w->number, target);
	rc = MPI_Win_unlock(target, w->win);
	end();
	LEAVE(rc);
}

int rl_epochs_free(rl_win *w) {
	ENTER();
	LEAVE(MPI_Win_free(&w->win));
}

// The progress helper: one thread that lets MPI serve other ranks' operations on
// this rank's memory while the rank computes. It looks every 50 us after a look
// that found something to do, seen by the time it took, and goes down to one in
// 500 us while nothing happens, and to one in 1 ms while the rank serves others itself, as it
// is inside MPI whenever the helper looks, or was a moment ago: a thread that wakes takes
// the core from a rank that spins.

enum { NAP_MIN = 50000, NAP_MAX = 500000, NAP_INSIDE = 1000000 };

static int64_t longer(int64_t nap, int64_t most) { return nap + nap / 4 > most ? most : nap + nap / 4; }

static int helper_needed; // windows with far ranks

static void *helper_thread(void *arg) {
	int64_t nap = NAP_MIN, quiet = INT64_MAX;
	(void)arg;
	while (!__atomic_load_n(&helper_stop, __ATOMIC_ACQUIRE)) {
		int needed = __atomic_load_n(&helper_needed, __ATOMIC_ACQUIRE) > 0;
		struct timespec t = {0, needed ? nap : 2000000};
		nanosleep(&t, NULL);
		if (!needed) continue;
		int64_t t0 = rl_now();
		if (t0 - __atomic_load_n(&inside_ns, __ATOMIC_RELAXED) < NAP_MIN || pthread_mutex_trylock(&mu) != 0) {
			nap = longer(nap, NAP_INSIDE);
			continue;
		}
		progress();
		int64_t took = rl_now() - t0;
		pthread_mutex_unlock(&mu);
		if (took < quiet) quiet = took;
		quiet += quiet / 1024 + 1; // forget old minima
		nap = took > 3 * quiet ? NAP_MIN : longer(nap, NAP_MAX);
	}
	return NULL;
}

int rl_helper_start(void) {
	if (helper_on) return 0;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); // signals are the Go runtime's
	int rc = pthread_create(&helper, NULL, helper_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	helper_on = rc == 0;
	return rc;
}

void rl_helper_need(int delta) { __atomic_fetch_add(&helper_needed, delta, __ATOMIC_ACQ_REL); }

void rl_affinity(int64_t *mask) {
	cpu_set_t set;
	memset(mask, 0, RL_CPUS / 8);
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) != 0) return;
	for (int i = 0; i < RL_CPUS && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) mask[i / 64] |= (int64_t)1 << (i % 64);
}

// Node memory.

int rl_memfd(int64_t bytes) {
	int fd = memfd_create("rmalock", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, bytes) != 0) {
		int e = errno;
		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

int rl_fill(int fd, int64_t offset, int64_t bytes) { return posix_fallocate(fd, offset, bytes); }

void *rl_map(int fd, int64_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void rl_unmap(void *p, int64_t bytes) { munmap(p, bytes); }
