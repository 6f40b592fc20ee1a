//go:build cgo

#include "calls.h"

#include <sched.h>

static MPI_Op mpi_op(int op) { return op == SHIM_SUM ? MPI_SUM : op == SHIM_REPLACE ? MPI_REPLACE : MPI_NO_OP; }

// issue starts one operation. Far words, and plain ones, which several ranks may write at once,
// travel by the accumulate family, which is atomic element by element; all others by Put and Get.
static int issue(shim_win *w, shim_op *o) {
	MPI_Aint d = (MPI_Aint)(o->disp + SHIM_HEADER_WORDS);
	int plain = o->class == SHIM_FLAG || o->class == SHIM_NEAR, n = (int)o->words;
	switch (o->kind) {
	case SHIM_PUT:
		if (plain) return MPI_Put(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, w->win);
		return MPI_Accumulate(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, MPI_REPLACE, w->win);
	case SHIM_GET:
		if (plain) return MPI_Get(&o->result, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, w->win);
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case SHIM_ACCUMULATE:
		if (o->op == SHIM_NO_OP) return MPI_SUCCESS;
		return MPI_Accumulate(&o->operand, 1, MPI_INT64_T, o->target, d, 1, MPI_INT64_T, mpi_op(o->op), w->win);
	case SHIM_FETCH_AND_OP:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, mpi_op(o->op), w->win);
	case SHIM_COMPARE_AND_SWAP:
		return MPI_Compare_and_swap(&o->operand, &o->compare, &o->result, MPI_INT64_T, o->target, d, w->win);
	case SHIM_PUT_BULK:
		if (plain) return MPI_Put(o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, w->win);
		return MPI_Accumulate(o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, MPI_REPLACE, w->win);
	case SHIM_GET_BULK:
		if (plain) return MPI_Get(o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, w->win);
		return MPI_Get_accumulate(NULL, 0, MPI_INT64_T, o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, MPI_NO_OP, w->win);
	}
	return MPI_ERR_ARG;
}

// MPICH's flush spins. Where ranks exceed cores it keeps the core that its target needs to
// answer, for a time slice. So each operation gets a result there, which MPI overwrites when the
// target has answered. Until then this rank serves others and naps, without the mutex. The flush
// that follows has nothing to wait for; it completes the operations. All operations travel by the
// accumulate family, those on flag words too: a flag word has one writer at a time, so that a
// swap does what a Put does.

static const int64_t RESULT_LIMIT_NS = 10000000000; // then the flush waits: for a dead rank, or a result that equals NO_RESULT
static const int64_t NO_RESULT = 0x5eed0fa11ab1e5;

static volatile int64_t *result_word(shim_op *o) {
	return o->kind == SHIM_GET_BULK ? &o->data[o->words - 1] : &o->result;
}

static int issue_with_result(shim_win *w, shim_op *o) {
	MPI_Aint d = (MPI_Aint)(o->disp + SHIM_HEADER_WORDS);
	int n = (int)o->words, rc;
	if (n == 0 || (o->kind == SHIM_ACCUMULATE && o->op == SHIM_NO_OP)) {
		o->state = SHIM_COMPLETE;
		return MPI_SUCCESS;
	}
	*result_word(o) = NO_RESULT;
	switch (o->kind) {
	case SHIM_PUT:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_REPLACE, w->win);
	case SHIM_GET:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case SHIM_ACCUMULATE:
	case SHIM_FETCH_AND_OP:
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, mpi_op(o->op), w->win);
	case SHIM_COMPARE_AND_SWAP:
		return MPI_Compare_and_swap(&o->operand, &o->compare, &o->result, MPI_INT64_T, o->target, d, w->win);
	case SHIM_PUT_BULK: // and a read behind it, to have a result
		TRY(MPI_Accumulate(o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, MPI_REPLACE, w->win));
		return MPI_Fetch_and_op(&o->operand, &o->result, MPI_INT64_T, o->target, d, MPI_NO_OP, w->win);
	case SHIM_GET_BULK:
		return MPI_Get_accumulate(NULL, 0, MPI_INT64_T, o->data, n, MPI_INT64_T, o->target, d, n, MPI_INT64_T, MPI_NO_OP, w->win);
	}
	rc = MPI_ERR_ARG;
out:
	return rc;
}

static int results_missing(shim_op *o, int n, int target) {
	for (int i = 0; i < n; i++)
		if (o[i].state == SHIM_ISSUED && (target < 0 || o[i].target == target) && *result_word(&o[i]) == NO_RESULT) return 1;
	return 0;
}

// relax_cpu gives the core away between two looks at what MPI has done. In place of yields it
// naps where ranks exceed cores: with yields eight ranks on two cores were twenty times slower.
static void relax_cpu(int naps) {
	if (naps) nap(20000); // 75 us with the timer's slack
	else sched_yield();
}

// await_results waits for the results of the first n operations, as far as they go to target
// (-1: any). It releases the mutex meanwhile.
static int await_results(shim_op *o, int n, int target) {
	int64_t deadline = 0;
	for (int i = 0; results_missing(o, n, target); i++) {
		int rc = progress();
		if (rc != MPI_SUCCESS) return rc;
		if (!results_missing(o, n, target)) break;
		int64_t now = note_inside();
		if (i == 0) deadline = now + RESULT_LIMIT_NS;
		else if (now > deadline) break;
		pthread_mutex_unlock(&mpi_mutex);
		relax_cpu(1);
		pthread_mutex_lock(&mpi_mutex);
	}
	return MPI_SUCCESS;
}

static int complete(shim_win *w, int n, int target) {
	if (w->await_results) {
		int rc = await_results(w->ops, n, target);
		if (rc != MPI_SUCCESS) return rc;
		begin_call(w->number, target); // another goroutine may have been inside MPI
	}
	w->flushes++;
	return target < 0 ? MPI_Win_flush_all(w->win) : MPI_Win_flush(target, w->win);
}

// Operations of one origin on one word must take effect in the order of issue. MPI promises
// that for accumulates alone, and Open MPI 4.1's osc/pt2pt does not keep it between those of
// different kinds. So an operation on words that an earlier one of the batch touches waits for
// it, unless both only read. So does one that a fence separates from an earlier one.
static int reads(const shim_op *o) {
	return o->kind == SHIM_GET || o->kind == SHIM_GET_BULK ||
	       ((o->kind == SHIM_FETCH_AND_OP || o->kind == SHIM_ACCUMULATE) && o->op == SHIM_NO_OP);
}

static int conflicts(const shim_win *w, int i) {
	const shim_op *o = &w->ops[i];
	for (int j = 0; j < i; j++) {
		const shim_op *p = &w->ops[j];
		if (p->state != SHIM_ISSUED || p->target != o->target) continue;
		if (p->epoch < o->epoch) return 1; // a fence
		if (p->disp < o->disp + o->words && o->disp < p->disp + p->words && !(reads(p) && reads(o))) return 1;
	}
	return 0;
}

// complete_before completes the operations before the i-th towards its target.
static int complete_before(shim_win *w, int i) {
	int target = w->ops[i].target, rc = complete(w, i, target);
	for (int j = 0; rc == MPI_SUCCESS && j < i; j++)
		if (w->ops[j].state == SHIM_ISSUED && w->ops[j].target == target) w->ops[j].state = SHIM_COMPLETE;
	return rc;
}

int shim_flush(shim_win *w, int target) {
	int rc = MPI_SUCCESS;
	ENTER();
	w->since_ns = begin_call(w->number, target);
	for (int i = 0; i < w->nops; i++) {
		shim_op *o = &w->ops[i];
		if (target >= 0 && o->target != target) continue;
		if (conflicts(w, i)) TRY(complete_before(w, i));
		o->state = SHIM_ISSUED;
		TRY(w->await_results ? issue_with_result(w, o) : issue(w, o));
	}
	rc = complete(w, w->nops, target);
out:
	end_call();
	LEAVE(rc);
}

int shim_poll(shim_win *w, int target, int64_t disp, int class) {
	shim_op *o = &w->poll;
	int rc;
	ENTER();
	w->since_ns = begin_call(w->number, target);
	*o = (shim_op){.kind = SHIM_GET, .class = class, .target = target, .disp = disp, .words = 1, .state = SHIM_ISSUED};
	if (w->await_results) {
		TRY(issue_with_result(w, o));
		TRY(await_results(o, 1, target));
		begin_call(w->number, target);
	} else {
		TRY(issue(w, o));
	}
	rc = MPI_Win_flush(target, w->win);
	w->polled = o->result;
out:
	end_call();
	LEAVE(rc);
}

static int holds(int rel, int64_t v, int64_t value, int64_t mask) {
	if (mask) v &= mask;
	switch (rel) {
	case SHIM_EQUAL: return v == value;
	case SHIM_NOT_EQUAL: return v != value;
	case SHIM_LESS: return v < value;
	}
	return v >= value;
}

static int any_holds(const shim_look *looks, int n) {
	for (int i = 0; i < n; i++)
		if (holds(looks[i].rel, __atomic_load_n(looks[i].word, __ATOMIC_ACQUIRE), looks[i].value, looks[i].mask)) return 1;
	return 0;
}

// shim_await_near watches words in node memory while it lets MPI serve others.
int shim_await_near(shim_win *w, const shim_look *looks, int n, int64_t max_ns) {
	int64_t deadline = shim_now() + max_ns;
	for (;;) {
		int rc;
		for (int i = 0; i < 20; i++)
			if (any_holds(looks, n)) return MPI_SUCCESS;
		ENTER();
		rc = progress();
		pthread_mutex_unlock(&mpi_mutex);
		if (rc != MPI_SUCCESS) return rc;
		if (any_holds(looks, n)) return MPI_SUCCESS;
		if (note_inside() > deadline) return SHIM_NOT_YET;
		relax_cpu(w->await_results);
	}
}
