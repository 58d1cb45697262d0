/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns whose client is several threads that share one connection, by turns (shared_connection.h).
 * Each of them has a role run of its own, with a client, samples and a warm-up, and does the same steps; here they are started,
 * given their steps, and added up. All but the first are workers (workers.h), which touch the context under the lock alone.
 *
 * Direct: the first thread, whose the context is between steps, is one of them. Dispatched: all of them are workers, and
 * the first thread polls for them.
 */
#ifndef DRV_CLIENT_THREADS_H
#define DRV_CLIENT_THREADS_H

#include "launch/pattern.h"
#include "traffic/responder.h"

struct drv_client_threads;

/* What each thread does in a step, on its own role run, whose state is a struct drv_requester. 0, or -1 with *fail. */
typedef int (*drv_client_threads_fn)(struct drv_role_run *run, uint64_t number, struct drv_fail *fail);

/* Whether threads can take turns on a layer's context: 0, or -1 with what is lacking. */
int drv_client_threads_negotiate(const struct drv_ability *both, struct drv_fail *fail);

/*
 * For one attempt: `threads` of them, each with exchange.depth calls outstanding. The role run's engine has their sink from now
 * on. To be ended with drv_client_threads_stop in any case.
 */
int drv_client_threads_start(struct drv_client_threads **shared_out, struct drv_role_run *run,
			     struct drv_exchange exchange, uint32_t threads, bool dispatched,
			     struct drv_fail *fail);
/* Legal with NULL. */
void drv_client_threads_stop(struct drv_client_threads *clients);

/* A step in all threads, until all have done it. 0, or -1 with the reason of the first that failed. */
int drv_client_threads_run(struct drv_client_threads *clients, drv_client_threads_fn fn, uint64_t number,
			   struct drv_fail *fail);
/* After a step: adds what the threads recorded to the role run's record; `warmup_only` as in drv_record_add. */
void drv_client_threads_record(struct drv_client_threads *clients, bool warmup_only);
/* Adds what they counted. */
void drv_client_threads_counts(struct drv_client_threads *clients, struct drv_counts *counts);

#endif
