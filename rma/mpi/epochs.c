//go:build cgo

#include "calls.h"

#include <string.h>

// MPI_Win_lock as a lock of its own, to be measured against. The call may return before the
// lock is held; with probe an operation and a flush make sure.
int shim_epochs_open(shim_comm *c, shim_win *w) {
	int64_t *words;
	int rc;
	ENTER();
	TRY(MPI_Win_allocate(4096, 8, MPI_INFO_NULL, c->comm, &words, &w->win));
	MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
	memset(words, 0, 4096);
out:
	LEAVE(rc);
}

int shim_epochs_lock(shim_win *w, int target, int exclusive, int probe) {
	int64_t unused = 0;
	int rc;
	ENTER();
	w->since_ns = begin_call(w->number, target);
	TRY(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w->win));
	if (probe) {
		TRY(MPI_Fetch_and_op(&unused, &w->polled, MPI_INT64_T, target, 0, MPI_NO_OP, w->win));
		TRY(MPI_Win_flush(target, w->win));
	}
out:
	end_call();
	LEAVE(rc);
}

int shim_epochs_unlock(shim_win *w, int target) {
	int rc;
	ENTER();
	w->since_ns = begin_call(w->number, target);
	rc = MPI_Win_unlock(target, w->win);
	end_call();
	LEAVE(rc);
}

int shim_epochs_free(shim_win *w) {
	ENTER();
	LEAVE(MPI_Win_free(&w->win));
}
