//go:build cgo

#include "calls.h"

int shim_win_create(shim_comm *c, void *part, int64_t bytes, shim_win *w) {
	int rc;
	ENTER();
	TRY(MPI_Win_create(part, (MPI_Aint)bytes, 8, MPI_INFO_NULL, c->comm, &w->win));
	w->await_results = c->await_results;
	MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
	TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win));
out:
	LEAVE(rc);
}

int shim_win_free(shim_win *w) {
	int rc;
	ENTER();
	TRY(MPI_Win_unlock_all(w->win));
	TRY(MPI_Win_free(&w->win));
out:
	LEAVE(rc);
}

int shim_win_check(shim_win *w, void *part, int *base_ok, int *unified) {
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
