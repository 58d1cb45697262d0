/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker threads of a role. They own no context, and touch one only by turns (under the lock of a shared connection). The
 * thread that owns the context gives each numbers and gets numbers back, through two queues a worker; what a number means is
 * the pattern's business. Workers live for one attempt; the launch file gives each its core.
 *
 * In poll mode a worker spins, and so does its owner. In block mode both sleep: a worker until it was given something, the
 * owner in drv_engine_wait until the layer has something to do or a worker gave it something. That takes a descriptor of
 * the layer's (EVENT_FD), since a sleep in the layer's own wait cannot be ended by another thread.
 *
 * The owner of a worker is one thread of its endpoint: where several play the role, worker i is that of thread i modulo
 * their number, and every index below counts an owner's own workers. Their cost is in the process's usage; whether they
 * waited for a processor is not in run_wait_ns.
 */
#ifndef DRV_WORKERS_H
#define DRV_WORKERS_H

#include "engine/engine.h"
#include "threads/queue.h"

/* What a worker does with a number that it was given, in its thread. Returns the number that its owner gets back. */
typedef uint64_t (*drv_work_fn)(void *arg, uint32_t worker, uint64_t number);
#define DRV_WORK_NOTHING UINT64_MAX

/*
 * Starts the workers of the calling thread, as many as drv_workers_wanted says, and enters them in engine->workers; `room`:
 * so many numbers at most are with one worker, or on their way to it or back. -1 with the reason, and nothing started: in
 * block mode over a layer without a descriptor too. Nothing where none are wanted.
 */
int drv_workers_start(struct drv_engine *engine, drv_work_fn work, void *arg, uint32_t room,
		      struct drv_fail *fail);
/* Ends them, wherever they are; numbers on their way are lost. Legal without. */
void drv_workers_end(struct drv_engine *engine);

/* How many workers the calling thread has by the launch file. */
uint32_t drv_workers_wanted(const struct drv_engine *engine);

/* Owner: gives a worker a number, and wakes it. False: `room` of them are there already. */
bool drv_workers_give(struct drv_engine *engine, uint32_t worker, uint64_t number);
/* Owner: takes a number that a worker gave, in turn from all of them. False: there is none. */
bool drv_workers_take(struct drv_engine *engine, uint32_t *worker_out, uint64_t *number_out);

/* Whether all workers that ended stayed on their cores; `detail` gets the first that did not. */
bool drv_workers_pinned(const struct drv_engine *engine, char *detail, size_t detail_bytes);

/* As drv_engine_wait, of an engine with workers: sleeps until the layer or one of them has something. 0 or -1. */
int drv_workers_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail);

#endif
