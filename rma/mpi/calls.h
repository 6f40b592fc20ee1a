// What the files of the C side share: the mutex around MPI, and what is noted of each call.
#ifndef RMALOCK_CALLS_H
#define RMALOCK_CALLS_H

#include "shim.h"

#include <pthread.h>

extern pthread_mutex_t mpi_mutex;
extern int thread_level; // as MPI granted it

// mpi_enter takes the mutex. Below MPI_THREAD_SERIALIZED only the thread that started MPI may
// call it.
int mpi_enter(void);

#define ENTER() do { int e_ = mpi_enter(); if (e_ != MPI_SUCCESS) return e_; } while (0)
#define LEAVE(rc) do { int rc_ = (rc); pthread_mutex_unlock(&mpi_mutex); return rc_; } while (0)
#define TRY(x) do { rc = (x); if (rc != MPI_SUCCESS) goto out; } while (0)

// note_inside notes that the rank is inside MPI now, and returns the time.
int64_t note_inside(void);
int64_t last_inside(void);

// begin_call and end_call enclose what the watchdog watches. Under the mutex.
int64_t begin_call(int window, int target);
void end_call(void);

// progress lets MPI serve the ranks that wait for this one. Under the mutex.
int progress(void);
int progress_open(void);

// found_work reports whether a look at what MPI has to do found something: it took so many times
// as long as the shortest ones, which find nothing. Under the mutex.
int found_work(int64_t took_ns, int times);
void progress_close(void);

void nap(int64_t ns);

#endif
