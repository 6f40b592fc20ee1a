//go:build cgo

#define _GNU_SOURCE
#include "calls.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

// shim_start initialises MPI if it is not. MPI libraries install handlers for the signals of
// a crash, without SA_ONSTACK; the Go runtime needs its own back. MPICH has one for SIGUSR1 too.
int shim_start(int *started, int *level) {
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGUSR1};
	enum { N = sizeof signals / sizeof *signals };
	struct sigaction old[N];
	int on = 0, rc;
	MPI_Initialized(&on);
	*started = !on;
	if (!on) {
		for (int i = 0; i < N; i++) sigaction(signals[i], NULL, &old[i]);
		rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &thread_level);
		for (int i = 0; i < N; i++) sigaction(signals[i], &old[i], NULL);
	} else {
		rc = MPI_Query_thread(&thread_level);
	}
	int l = thread_level; // MPI gives the levels an order, but no numbers
	*level = l <= MPI_THREAD_SINGLE ? 0 : l <= MPI_THREAD_FUNNELED ? 1 : l <= MPI_THREAD_SERIALIZED ? 2 : 3;
	return rc;
}

// shim_openmpi_yields has Open MPI yield while it waits. Open MPI decides that in MPI_Init,
// before ranks know how many of them share a machine. The function is internal to Open MPI,
// and may be missing.
int shim_openmpi_yields(void) {
	bool (*set)(bool) = (bool (*)(bool))dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	return set != NULL && set(true);
}

int shim_initialized(void) {
	int on = 0;
	MPI_Initialized(&on);
	return on;
}

int shim_finalized(void) {
	int off = 0;
	MPI_Finalized(&off);
	return off;
}

int shim_versions(int *version, int *subversion, char *library, int n) {
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length = 0;
	ENTER();
	int rc = MPI_Get_version(version, subversion);
	if (rc == MPI_SUCCESS) rc = MPI_Get_library_version(text, &length);
	strncpy(library, text, n - 1);
	library[n - 1] = 0;
	LEAVE(rc);
}

int shim_error_text(int code, char *text, int n) {
	char buffer[MPI_MAX_ERROR_STRING];
	int length = 0;
	MPI_Error_string(code, buffer, &length);
	strncpy(text, buffer, n - 1);
	text[n - 1] = 0;
	return length;
}

// shim_control_variable reads a string from MPI_T: Open MPI's component selections.
int shim_control_variable(const char *name, char *text, int n) {
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

void shim_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }
