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
 * The owner of a worker is one thread of its endpoint: with several, worker i is that of thread i modulo their number, and
 * every index below counts an owner's own workers. Their cost is in the process's usage; whether they waited for a
 * processor is not in run_wait_ns.
 */
#ifndef DRV_WORKERS_H
#define DRV_WORKERS_H

#include "engine/engine.h"
#include "threads/queue.h"

/* What a worker does with a number that it was given, in its thread. Returns the number that its owner gets back. */
typedef uint64_t (*drv_worker_fn)(void *arg, uint32_t worker, uint64_t number);
/* its owner gets nothing back */
#define DRV_WORKER_SILENT UINT64_MAX

/*
 * Starts the workers of the calling thread, as many as drv_workers_wanted says, and enters them in engine->workers; `room`:
 * so many numbers at most are with one worker, or on their way to it or back. -1 with the reason, and nothing started: in
 * block mode over a layer without a descriptor too. Nothing where none are wanted.
 */
int drv_workers_start(struct drv_engine *engine, drv_worker_fn work, void *arg, uint32_t room,
		      struct drv_fail *fail);
/* Ends them, wherever they are; numbers on their way are lost. Legal without. */
void drv_workers_end(struct drv_engine *engine);

/* How many workers the calling thread has by the launch file. */
uint32_t drv_workers_wanted(const struct drv_engine *engine);

/* Owner: gives a worker a number, and wakes it. False: `room` of them are there already. */
bool drv_workers_give(struct drv_engine *engine, uint32_t worker, uint64_t number);
/* Owner: takes a number that a worker gave, in turn from all of them. False: there is none. */
bool drv_workers_take(struct drv_engine *engine, uint32_t *worker_out, uint64_t *number_out);

/* As drv_engine_wait, of an engine with workers: sleeps until the layer or one of them has something. 0 or -1. */
int drv_workers_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail);

/*
 * Jobs that workers do for their owner, by a policy. A job is a number below `count`; the caller keeps by that number what it
 * is about. Its states, all changed by the owner:
 *
 *	free -> [waits ->] with a worker -> done -> free
 *
 * Only while it is with a worker does it belong to another thread.
 */
enum drv_policy {
	/* one job at a time a worker: while all have one the others wait, in order, so that none stands behind a long one */
	DRV_POLICY_FIFO,
	/* at once, to the worker with the fewest */
	DRV_POLICY_LEAST_LOADED,
	/* to whichever owner takes it from a queue that all of them look at: there are no other workers */
	DRV_POLICY_SHARED,
};

/* The queue of all owners, zeroed. It has room for so many jobs of each. */
#define DRV_JOBS_SHARED_BITS  12
#define DRV_JOBS_SHARED_BYTES DRV_QUEUE_BYTES(DRV_JOBS_SHARED_BITS)
#define DRV_JOBS_SHARE        ((1u << DRV_JOBS_SHARED_BITS) / DRV_THREADS_MAX)

struct drv_jobs {
	struct drv_engine *engine;
	enum drv_policy policy;
	drv_worker_fn work;
	void *arg;
	uint32_t count, mask, workers;
	struct drv_job_ring {
		uint32_t *slots, head, tail;
	} free, waiting, done;
	/* with workers, all and each; as many as each may have */
	uint32_t out, load[DRV_THREADS_MAX], load_max;
	/* shared: the queue of all owners, and what comes back; by job, a pointer here: its address is what goes through both */
	struct drv_queue *common, *back;
	struct drv_jobs **owners;
	/* shared: jobs of others done here */
	uint64_t helped;
};

/*
 * Starts the workers of the calling thread: `work` is called there with arg, the worker and the job, and returns the job.
 * `common`: with the shared policy, which takes at most DRV_JOBS_SHARE jobs; all owners' until all have stopped. 0, or -1
 * with the reason; to be ended with drv_jobs_stop either way, which is legal on zeroes.
 */
int drv_jobs_start(struct drv_jobs *jobs, struct drv_engine *engine, enum drv_policy policy, uint32_t count,
		   drv_worker_fn work, void *arg, struct drv_queue *common, struct drv_fail *fail);
/* Ends the workers, wherever they are. */
void drv_jobs_stop(struct drv_jobs *jobs);

/* A free job, for drv_jobs_submit. False: there is none. Both are legal inside a callback. */
bool drv_jobs_take(struct drv_jobs *jobs, uint32_t *job_out);
void drv_jobs_submit(struct drv_jobs *jobs, uint32_t job);
/* Collects what is done, and gives out what waits; with the shared policy works as well. Called after poll. */
void drv_jobs_collect(struct drv_jobs *jobs);
/* The job that was done first; false: there is none. It stays the first until drv_jobs_pop. */
bool drv_jobs_first(const struct drv_jobs *jobs, uint32_t *job_out);
void drv_jobs_pop(struct drv_jobs *jobs);
/* It is free again. False: all are. */
bool drv_jobs_release(struct drv_jobs *jobs, uint32_t job);

/* Whether there is something to be collected, now or soon. */
static inline bool drv_jobs_due(const struct drv_jobs *jobs)
{
	return jobs->out || jobs->done.head != jobs->done.tail || jobs->policy == DRV_POLICY_SHARED;
}

#endif
