/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs: which waits, which worker gets it, and which is done. */
#include "threads/jobs.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static void push(const struct drv_jobs *jobs, struct drv_job_ring *ring, uint32_t job)
{
	ring->slots[ring->tail++ & jobs->mask] = job;
}

static bool first(const struct drv_jobs *jobs, const struct drv_job_ring *ring, uint32_t *job_out)
{
	*job_out = ring->slots[ring->head & jobs->mask];
	return ring->head != ring->tail;
}

int drv_jobs_start(struct drv_jobs *jobs, struct drv_engine *engine, enum drv_policy policy, uint32_t count,
		   drv_work_fn work, void *arg, struct drv_queue *common, struct drv_fail *fail)
{
	const bool shared = policy == DRV_POLICY_SHARED;
	uint32_t ring = 1;

	while (ring < count)
		ring *= 2;
	*jobs = (struct drv_jobs){.engine = engine,
				  .policy = policy,
				  .work = work,
				  .arg = arg,
				  .count = count,
				  .mask = ring - 1,
				  .workers = shared ? 0 : drv_workers_wanted(engine),
				  .load_max = policy == DRV_POLICY_FIFO ? 1 : count,
				  .common = common};
	if (!shared && !jobs->workers)
		return drv_fail_set(fail, DRV_ARGUMENT, "the launch file gives this endpoint no workers");
	jobs->free.slots = calloc(3, ring * sizeof(*jobs->free.slots));
	if (shared) {
		jobs->selves = calloc(count, sizeof(struct drv_jobs *));
		jobs->back = aligned_alloc(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	}
	if (!jobs->free.slots || (shared && (!jobs->selves || !jobs->back)))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for jobs of workers");
	jobs->waiting.slots = jobs->free.slots + ring;
	jobs->done.slots = jobs->waiting.slots + ring;
	for (uint32_t i = 0; i < count; i++)
		push(jobs, &jobs->free, i);
	if (!shared)
		return drv_workers_start(engine, work, arg, jobs->load_max, fail);
	memset(jobs->back, 0, DRV_JOBS_SHARED_BYTES);
	for (uint32_t i = 0; i < count; i++)
		jobs->selves[i] = jobs;
	return 0;
}

void drv_jobs_stop(struct drv_jobs *jobs)
{
	if (!jobs->engine)
		return;
	if (jobs->policy != DRV_POLICY_SHARED)
		drv_workers_end(jobs->engine);
	free(jobs->free.slots);
	free(jobs->selves);
	free(jobs->back);
	memset(jobs, 0, sizeof(*jobs));
}

bool drv_jobs_take(struct drv_jobs *jobs, uint32_t *job_out)
{
	const bool is_free = first(jobs, &jobs->free, job_out);

	jobs->free.head += is_free;
	return is_free;
}

static void give_out(struct drv_jobs *jobs)
{
	uint32_t job;

	while (first(jobs, &jobs->waiting, &job)) {
		uint32_t least = 0;

		for (uint32_t i = 1; i < jobs->workers; i++)
			if (jobs->load[i] < jobs->load[least])
				least = i;
		/* where its load allows one more, its queue has room for it */
		if (jobs->load[least] == jobs->load_max || !drv_workers_give(jobs->engine, least, job))
			return;
		jobs->load[least]++;
		jobs->out++;
		jobs->waiting.head++;
	}
}

void drv_jobs_submit(struct drv_jobs *jobs, uint32_t job)
{
	if (jobs->policy != DRV_POLICY_SHARED) {
		push(jobs, &jobs->waiting, job);
		give_out(jobs);
		return;
	}
	/* it has room for all that can be on their way */
	drv_queue_put(jobs->common, DRV_JOBS_SHARED_BITS, (uintptr_t)&jobs->selves[job], true);
	jobs->out++;
}

static void take_back(struct drv_jobs *jobs, struct drv_jobs **self)
{
	jobs->out--;
	push(jobs, &jobs->done, (uint32_t)(self - jobs->selves));
}

static void collect_back(struct drv_jobs *jobs)
{
	uint64_t number;

	while (jobs->out && drv_queue_take(jobs->back, DRV_JOBS_SHARED_BITS, &number, false))
		take_back(jobs, (struct drv_jobs **)(uintptr_t)number);
}

/* Does one job of the common queue. False: it is empty. */
static bool help(struct drv_jobs *jobs)
{
	struct drv_jobs **self, *owner;
	uint64_t number;

	if (!drv_queue_take(jobs->common, DRV_JOBS_SHARED_BITS, &number, true))
		return false;
	self = (struct drv_jobs **)(uintptr_t)number;
	owner = *self;
	owner->work(owner->arg, jobs->engine->thread, (uint64_t)(self - owner->selves));
	if (owner == jobs) {
		take_back(jobs, self);
	} else {
		jobs->helped++;
		drv_queue_put(owner->back, DRV_JOBS_SHARED_BITS, number, true);
	}
	return true;
}

void drv_jobs_collect(struct drv_jobs *jobs)
{
	uint64_t job;
	uint32_t worker;

	if (jobs->policy == DRV_POLICY_SHARED) {
		collect_back(jobs);
		help(jobs);
		/* in block mode an owner whose jobs are with others does not go to sleep: nobody could wake it */
		while (jobs->engine->block && jobs->out) {
			if (!help(jobs))
				sched_yield();
			collect_back(jobs);
		}
		return;
	}
	while (jobs->out && drv_workers_take(jobs->engine, &worker, &job)) {
		jobs->load[worker]--;
		jobs->out--;
		push(jobs, &jobs->done, (uint32_t)job);
	}
	give_out(jobs);
}

bool drv_jobs_first(const struct drv_jobs *jobs, uint32_t *job_out)
{
	return first(jobs, &jobs->done, job_out);
}

void drv_jobs_pop(struct drv_jobs *jobs)
{
	jobs->done.head++;
}

bool drv_jobs_release(struct drv_jobs *jobs, uint32_t job)
{
	if (jobs->free.tail - jobs->free.head >= jobs->count)
		return false;
	push(jobs, &jobs->free, job);
	return true;
}
