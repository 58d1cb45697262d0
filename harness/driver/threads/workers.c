/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker threads, how each wakes its owner and the other way round, and the jobs that they do. Whoever is about to sleep
 * says so, looks once more, and sleeps; whoever gives looks afterwards whether the other said so. Both order their two
 * steps by a fence, so that one of them sees the other (Dekker's argument), and nobody makes a system call while both are
 * awake.
 */
#include "threads/workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/relax.h"
#include "threads/threads.h"

struct worker {
	/* 1: the worker sleeps, or is about to */
	_Alignas(DRV_QUEUE_ALIGN) atomic_uint asleep;
	struct drv_queue *to_worker, *to_owner;
	struct drv_workers *all;
	uint32_t index;
	struct drv_thread thread;
};

struct drv_workers {
	/* the owner sleeps, or is about to */
	_Alignas(DRV_QUEUE_ALIGN) atomic_bool owner_asleep;
	/* in block mode: what ends the owner's sleep; else -1 */
	int wake_fd;
	atomic_bool over;
	bool block;
	/* a queue has room for 2^bits */
	unsigned bits;
	uint32_t count, next;
	drv_worker_fn work;
	void *arg;
	/* behind them lie their queues */
	struct worker each[];
};

static bool is_over(const struct worker *worker)
{
	return atomic_load_explicit(&worker->all->over, memory_order_relaxed);
}

/* Sleeps until the owner gives something, or it is over. */
static void sleep_until_given(struct worker *worker)
{
	atomic_store_explicit(&worker->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	while (!drv_queue_holds(worker->to_worker, worker->all->bits) && !atomic_load(&worker->all->over) &&
	       atomic_load(&worker->asleep))
		syscall(SYS_futex, &worker->asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	atomic_store(&worker->asleep, 0);
}

/* Waits for the next number. False: it is over. */
static bool take(struct worker *worker, uint64_t *number_out)
{
	while (!is_over(worker)) {
		if (drv_queue_take(worker->to_worker, worker->all->bits, number_out, false))
			return true;
		if (worker->all->block)
			sleep_until_given(worker);
		else
			drv_relax();
	}
	return false;
}

static void give_back(struct worker *worker, uint64_t number)
{
	struct drv_workers *workers = worker->all;
	const uint64_t one = 1;

	/* there is room, unless the owner gave more than it may; then it is not lost, but waits */
	while (!drv_queue_put(worker->to_owner, workers->bits, number, false) && !is_over(worker))
		sched_yield();
	if (!workers->block)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&workers->owner_asleep, memory_order_relaxed) &&
	    atomic_exchange(&workers->owner_asleep, false))
		(void)!write(workers->wake_fd, &one, sizeof(one));
}

static void be_worker(void *arg)
{
	struct worker *worker = arg;
	const struct drv_workers *workers = worker->all;
	uint64_t number;

	while (take(worker, &number)) {
		number = workers->work(workers->arg, worker->index, number);
		if (number != DRV_WORKER_SILENT)
			give_back(worker, number);
	}
}

uint32_t drv_workers_wanted(const struct drv_engine *engine)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const size_t threads = drv_endpoint_threads(here);

	return (uint32_t)((here->worker_cpus_count + threads - 1 - engine->thread) / threads);
}

static bool has_descriptor(const struct drv_engine *engine)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	engine->layer->limits(engine->ctx, &limits);
	return limits.caps & CADGE_CAP_EVENT_FD;
}

/* Zeroed, with queues for `room` numbers behind them. NULL: no memory. */
static struct drv_workers *make(uint32_t count, uint32_t room)
{
	const size_t head = sizeof(struct drv_workers) + count * sizeof(struct worker);
	unsigned bits = 0;
	struct drv_workers *workers;

	while (1u << bits < room)
		bits++;
	workers = drv_zeroed(DRV_QUEUE_ALIGN, head + 2 * count * DRV_QUEUE_BYTES(bits));
	if (!workers)
		return NULL;
	workers->bits = bits;
	workers->count = count;
	for (uint32_t i = 0; i < count; i++) {
		char *queues = (char *)workers + head + 2 * i * DRV_QUEUE_BYTES(bits);

		workers->each[i] = (struct worker){
			.to_worker = (struct drv_queue *)(void *)queues,
			.to_owner = (struct drv_queue *)(void *)(queues + DRV_QUEUE_BYTES(bits)),
			.all = workers,
			.index = i};
	}
	return workers;
}

int drv_workers_start(struct drv_engine *engine, drv_worker_fn work, void *arg, uint32_t room,
		      struct drv_fail *fail)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const uint32_t count = drv_workers_wanted(engine);
	struct drv_workers *workers;

	if (!count)
		return 0;
	if (engine->block && !has_descriptor(engine))
		return drv_fail_set(
			fail, DRV_NO_WAIT,
			"the layer has no descriptor to wait for (EVENT_FD), and its own wait cannot "
			"be ended by another thread");
	workers = make(count, room);
	if (!workers)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u threads", count);
	workers->block = engine->block;
	workers->work = work;
	workers->arg = arg;
	workers->wake_fd = engine->block ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	engine->workers = workers;
	engine->workers_wait = drv_workers_wait;
	if (engine->block && workers->wake_fd < 0) {
		drv_workers_end(engine);
		return drv_fail_set(fail, DRV_SYSTEM, "no descriptor for %u threads", count);
	}
	for (uint32_t i = 0; i < count; i++) {
		const int cpu = here->worker_cpus[engine->thread + i * drv_endpoint_threads(here)];

		if (drv_thread_start(&workers->each[i].thread, cpu, be_worker, &workers->each[i], i + 1,
				     fail)) {
			drv_workers_end(engine);
			return -1;
		}
	}
	return 0;
}

/* After what a worker is to see was written: ends its sleep, if it said that it sleeps. */
static void wake(struct worker *worker)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&worker->asleep, memory_order_relaxed) &&
	    atomic_exchange(&worker->asleep, 0))
		syscall(SYS_futex, &worker->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void drv_workers_end(struct drv_engine *engine)
{
	struct drv_workers *workers = engine->workers;

	if (!workers)
		return;
	atomic_store(&workers->over, true);
	for (uint32_t i = 0; i < workers->count; i++) {
		struct worker *worker = &workers->each[i];

		wake(worker);
		drv_thread_join(&worker->thread);
		drv_thread_note_core(&worker->thread, "worker", i, engine);
	}
	if (workers->wake_fd >= 0)
		close(workers->wake_fd);
	engine->workers = NULL;
	free(workers);
}

bool drv_workers_give(struct drv_engine *engine, uint32_t worker, uint64_t number)
{
	struct drv_workers *workers = engine->workers;

	if (!drv_queue_put(workers->each[worker].to_worker, workers->bits, number, false))
		return false;
	if (workers->block)
		wake(&workers->each[worker]);
	return true;
}

bool drv_workers_take(struct drv_engine *engine, uint32_t *worker_out, uint64_t *number_out)
{
	struct drv_workers *workers = engine->workers;

	for (uint32_t i = 0; i < workers->count; i++) {
		const uint32_t at = workers->next;

		workers->next = at + 1 == workers->count ? 0 : at + 1;
		if (drv_queue_take(workers->each[at].to_owner, workers->bits, number_out, false)) {
			*worker_out = at;
			return true;
		}
	}
	return false;
}

static bool any_gave(struct drv_workers *workers)
{
	for (uint32_t i = 0; i < workers->count; i++)
		if (drv_queue_holds(workers->each[i].to_owner, workers->bits))
			return true;
	return false;
}

int drv_workers_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail)
{
	struct drv_workers *workers = engine->workers;
	uint64_t due_ns = UINT64_MAX, count;
	int fd = -1;
	const int code = engine->layer->event(engine->ctx, &fd, &due_ns);
	struct pollfd watched[2] = {{.fd = fd, .events = POLLIN}, {.fd = workers->wake_fd, .events = POLLIN}};
	struct timespec span;

	if (code == CADGE_BUSY)
		return 0;
	if (code < 0)
		return drv_engine_fail("event", code, fail);
	if (due_ns < timeout_ns)
		timeout_ns = due_ns;
	span.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000));
	span.tv_nsec = (long)(timeout_ns % UINT64_C(1000000000));
	atomic_store_explicit(&workers->owner_asleep, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!any_gave(workers) && ppoll(watched, 2, &span, NULL) < 0 && errno != EINTR) {
		atomic_store(&workers->owner_asleep, false);
		return drv_fail_set(fail, DRV_SYSTEM, "ppoll: %s", strerror(errno));
	}
	/* whoever took the mark away has written, or is about to: then the next sleep ends early, which is legal */
	if (!atomic_exchange(&workers->owner_asleep, false) || watched[1].revents)
		(void)!read(workers->wake_fd, &count, sizeof(count));
	return 0;
}

/* ---- jobs: which waits, which worker gets it, and which is done ---- */

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
		   drv_worker_fn work, void *arg, struct drv_queue *common, struct drv_fail *fail)
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
		jobs->owners = calloc(count, sizeof(struct drv_jobs *));
		jobs->back = drv_zeroed(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	}
	if (!jobs->free.slots || (shared && (!jobs->owners || !jobs->back)))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for jobs of workers");
	jobs->waiting.slots = jobs->free.slots + ring;
	jobs->done.slots = jobs->waiting.slots + ring;
	for (uint32_t i = 0; i < count; i++)
		push(jobs, &jobs->free, i);
	if (!shared)
		return drv_workers_start(engine, work, arg, jobs->load_max, fail);
	for (uint32_t i = 0; i < count; i++)
		jobs->owners[i] = jobs;
	return 0;
}

void drv_jobs_stop(struct drv_jobs *jobs)
{
	if (!jobs->engine)
		return;
	if (jobs->policy != DRV_POLICY_SHARED)
		drv_workers_end(jobs->engine);
	free(jobs->free.slots);
	free(jobs->owners);
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
	drv_queue_put(jobs->common, DRV_JOBS_SHARED_BITS, (uintptr_t)&jobs->owners[job], true);
	jobs->out++;
}

static void finish(struct drv_jobs *jobs, uint32_t job)
{
	jobs->out--;
	push(jobs, &jobs->done, job);
}

static void collect_done(struct drv_jobs *jobs)
{
	uint32_t worker;
	uint64_t number;

	if (jobs->policy == DRV_POLICY_SHARED) {
		while (jobs->out && drv_queue_take(jobs->back, DRV_JOBS_SHARED_BITS, &number, false))
			finish(jobs, (uint32_t)((struct drv_jobs **)(uintptr_t)number - jobs->owners));
		return;
	}
	while (jobs->out && drv_workers_take(jobs->engine, &worker, &number)) {
		jobs->load[worker]--;
		finish(jobs, (uint32_t)number);
	}
}

/* Does one job of the common queue. False: it is empty. */
static bool help(struct drv_jobs *jobs)
{
	struct drv_jobs **at, *owner;
	uint64_t number;
	uint32_t job;

	if (!drv_queue_take(jobs->common, DRV_JOBS_SHARED_BITS, &number, true))
		return false;
	at = (struct drv_jobs **)(uintptr_t)number;
	owner = *at;
	job = (uint32_t)(at - owner->owners);
	owner->work(owner->arg, jobs->engine->thread, job);
	if (owner == jobs) {
		finish(jobs, job);
	} else {
		jobs->helped++;
		drv_queue_put(owner->back, DRV_JOBS_SHARED_BITS, number, true);
	}
	return true;
}

void drv_jobs_collect(struct drv_jobs *jobs)
{
	collect_done(jobs);
	if (jobs->policy != DRV_POLICY_SHARED) {
		give_out(jobs);
		return;
	}
	help(jobs);
	/* in block mode an owner whose jobs are with others does not go to sleep: nobody could wake it */
	while (jobs->engine->block && jobs->out) {
		if (!help(jobs))
			sched_yield();
		collect_done(jobs);
	}
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
