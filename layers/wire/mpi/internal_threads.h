/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for the three headers of Open MPI 5's threads component that Debian does not install although all
 * its other internal headers include them. Only the types matter, since they are members of structures that
 * path.c reads: on Linux they are those of POSIX threads. The functions are named by inline code of those
 * headers, and never called from here.
 */
#ifndef CADGE_WIRE_MPI_INTERNAL_THREADS_H
#define CADGE_WIRE_MPI_INTERNAL_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;
typedef pthread_key_t opal_tsd_key_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER

int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex, bool recursive);
int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex);
void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex);
void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex);
void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex);
int opal_thread_internal_cond_init(opal_thread_internal_cond_t *cond);
void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *cond);
void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *cond);
int opal_tsd_get(opal_tsd_key_t key, void **value_out);

/* Open MPI declares it static. */
static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
