/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that workers do for the thread that owns the context, by a policy. A job is a number below `count`; the caller keeps
 * by that number what it is about. Its states, all told by the owner:
 *
 *	free -> [waits ->] with a worker -> done -> free
 *
 * Only while it is with a worker does it belong to another thread.
 */
#ifndef DRV_JOBS_H
#define DRV_JOBS_H

#include "threads/workers.h"

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

struct drv_job_ring {
	uint32_t *slots, head, tail;
};

struct drv_jobs {
	struct drv_engine *engine;
	enum drv_policy policy;
	drv_work_fn work;
	void *arg;
	uint32_t count, mask, workers;
	struct drv_job_ring free, waiting, done;
	/* with workers, all and each; as many as each may have */
	uint32_t out, load[DRV_THREADS_MAX], load_max;
	/* shared: the queue of all owners, and what comes back; by job, a pointer here, whose address is in the queues */
	struct drv_queue *common, *back;
	struct drv_jobs **selves;
	/* shared: jobs of others done here */
	uint64_t helped;
};

/*
 * Starts the workers of the calling thread: `work` is called there with arg, the worker and the job, and returns the job.
 * `common`: with the shared policy, which takes at most DRV_JOBS_SHARE jobs; all owners' until all have stopped. 0, or -1
 * with the reason; to be ended with drv_jobs_stop either way, which is legal on zeroes.
 */
int drv_jobs_start(struct drv_jobs *jobs, struct drv_engine *engine, enum drv_policy policy, uint32_t count,
		   drv_work_fn work, void *arg, struct drv_queue *common, struct drv_fail *fail);
/* Ends the workers, wherever they are. */
void drv_jobs_stop(struct drv_jobs *jobs);

/* A free job, for drv_jobs_submit. False: there is none. Both are legal inside a callback. */
bool drv_jobs_take(struct drv_jobs *jobs, uint32_t *job_out);
void drv_jobs_submit(struct drv_jobs *jobs, uint32_t job);
/* Hears of what is done, and gives out what waits; with the shared policy works as well. Called after poll. */
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
