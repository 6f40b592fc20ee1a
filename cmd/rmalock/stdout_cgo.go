//go:build cgo

package main

/*
#include <fcntl.h>

static int closed;

// The constructor runs before Go opens /dev/null in place of a closed descriptor.
__attribute__((constructor)) static void look(void) { closed = fcntl(1, F_GETFD) == -1; }

static int stdout_closed(void) { return closed; }
*/
import "C"

// stdoutClosed reports whether the process was started with a closed standard output.
func stdoutClosed() bool { return C.stdout_closed() != 0 }
