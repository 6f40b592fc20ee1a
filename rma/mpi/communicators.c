//go:build cgo

#include "calls.h"

#include <sched.h>
#include <stdlib.h>

// Calls that block in MPI come after a barrier of all members. So they hold the mutex for as
// long as the call takes, and not until the last rank arrives.

static int begin_duplicate(MPI_Comm given, shim_comm *c, MPI_Request *r) {
	int inter = 0, rc;
	TRY(MPI_Comm_test_inter(given, &inter));
	if (inter) return SHIM_INTERCOMM;
	TRY(progress_open());
	TRY(MPI_Comm_idup(given, &c->comm, r));
out:
	return rc;
}

int shim_comm_world(shim_comm *c, MPI_Request *r) {
	ENTER();
	LEAVE(begin_duplicate(MPI_COMM_WORLD, c, r));
}

int shim_comm_fortran(int handle, shim_comm *c, MPI_Request *r) {
	ENTER();
	MPI_Comm given = MPI_Comm_f2c((MPI_Fint)handle);
	LEAVE(given == MPI_COMM_NULL ? MPI_ERR_COMM : begin_duplicate(given, c, r));
}

int shim_comm_split(shim_comm *from, int color, int key, shim_comm *c) {
	ENTER();
	LEAVE(MPI_Comm_split(from->comm, color < 0 ? MPI_UNDEFINED : color, key, &c->comm));
}

int shim_comm_of(shim_comm *from, const int *ranks, int n, shim_comm *c) {
	int rc;
	MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
	ENTER();
	TRY(MPI_Comm_group(from->comm, &all));
	TRY(MPI_Group_incl(all, n, ranks, &some));
	rc = MPI_Comm_create_group(from->comm, some, 0, &c->comm);
out:
	if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
	if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
	LEAVE(rc);
}

int shim_comm_describe(shim_comm *c) {
	int rc;
	ENTER();
	MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	TRY(MPI_Comm_rank(c->comm, &c->rank));
	TRY(MPI_Comm_size(c->comm, &c->size));
	TRY(MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &c->node));
	MPI_Comm_set_errhandler(c->node, MPI_ERRORS_RETURN);
	TRY(MPI_Comm_rank(c->node, &c->node_rank));
	TRY(MPI_Comm_size(c->node, &c->node_size));
out:
	LEAVE(rc);
}

int shim_comm_free(shim_comm *c) {
	ENTER();
	if (c->node != MPI_COMM_NULL) MPI_Comm_free(&c->node);
	LEAVE(MPI_Comm_free(&c->comm));
}

int shim_node_ranks(shim_comm *c, int *ranks) {
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

int shim_ibarrier(shim_comm *c, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Ibarrier(c->comm, r));
}

int shim_iallgather(shim_comm *c, int on_node, const int64_t *in, int n, int64_t *out, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Iallgather(in, n, MPI_INT64_T, out, n, MPI_INT64_T, on_node ? c->node : c->comm, r));
}

int shim_iallreduce(shim_comm *c, const int64_t *in, int n, int64_t *out, int op, MPI_Request *r) {
	MPI_Op o = op == SHIM_REDUCE_SUM ? MPI_SUM : op == SHIM_REDUCE_MIN ? MPI_MIN : MPI_MAX;
	ENTER();
	LEAVE(MPI_Iallreduce(in, out, n, MPI_INT64_T, o, c->comm, r));
}

int shim_isend(shim_comm *c, const int64_t *words, int n, int to, int tag, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Isend(words, n, MPI_INT64_T, to, tag, c->comm, r));
}

int shim_irecv(shim_comm *c, int64_t *words, int n, int from, int tag, MPI_Request *r) {
	ENTER();
	LEAVE(MPI_Irecv(words, n, MPI_INT64_T, from < 0 ? MPI_ANY_SOURCE : from, tag, c->comm, r));
}

enum { YIELD_FOR_NS = 2000000, NAP_LEAST_NS = 20000, NAP_MOST_NS = 1000000, NAP_SERVING_NS = 200000 };

// shim_wait tests the request until it is complete. Between tests it naps, for a sixteenth of the
// time waited; with yields it yields for 2 ms first. Yields of many ranks on few cores keep the
// cores from the rank that all wait for, under MPICH and while MPI starts. For a memory node,
// whose tests are what serves others, time begins anew whenever one has found something to do,
// and it does not nap where it has a core.
int shim_wait(shim_comm *c, MPI_Request *r, int64_t max_ns) {
	int64_t start = 0, before = 0;
	for (;;) {
		int done = 0, rc;
		ENTER();
		if (c->serves) before = shim_now();
		rc = MPI_Test(r, &done, MPI_STATUS_IGNORE);
		int64_t now = note_inside();
		if (c->serves && found_work(now - before, 2)) c->served_ns = now;
		pthread_mutex_unlock(&mpi_mutex);
		if (rc != MPI_SUCCESS || done) return rc;
		if (start == 0) start = now;
		if (now - start > max_ns) return SHIM_NOT_YET;
		int64_t waited = now - (c->serves ? c->served_ns : start);
		if (c->serves == SHIM_SERVES_EAGERLY || (c->yields && waited < YIELD_FOR_NS)) {
			sched_yield();
			continue;
		}
		int64_t ns = waited / 16, most = c->serves ? NAP_SERVING_NS : NAP_MOST_NS;
		nap(ns < NAP_LEAST_NS ? NAP_LEAST_NS : ns > most ? most : ns);
	}
}
