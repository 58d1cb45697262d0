/* SPDX-License-Identifier: BSD-3-Clause */
/* The other threads of an endpoint: starting them, giving them jobs, hearing when they are done. */
#include "threads/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads/workers.h"
#include "measure/pin.h"

/* how long a thread without a layer sleeps between looks for an order */
#define NAP_NS 200000L

struct thread {
	struct drv_threads *threads;
	pthread_t id;
	bool started;
	int cpu;
	struct drv_pin pin;
	struct drv_engine engine;
	int status;
	struct drv_fail fail;
};

struct drv_threads {
	uint32_t size;
	/* jobs given so far; a thread does the next one when this grows */
	atomic_uint posted;
	/* jobs done so far, by all threads together */
	atomic_uint done;
	/* how many have come to drv_threads_reach in this job */
	atomic_uint reached;
	/* the last job that was told to come back */
	atomic_uint recalled;
	atomic_bool over;
	drv_job_fn job;
	void *arg;
	struct thread each[];
};

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = NAP_NS};

	nanosleep(&pause, NULL);
}

/* Until the next job, or the end: false. */
static bool next_job(struct thread *thread, unsigned done)
{
	while (atomic_load_explicit(&thread->threads->posted, memory_order_acquire) == done) {
		const struct drv_idle *idle = drv_engine_idle(&thread->engine);
		struct drv_fail ignored; /* what is wrong shows in the next job */

		if (atomic_load(&thread->threads->over))
			return false;
		if (!idle || idle->step(idle->arg, &ignored))
			nap();
	}
	return true;
}

static void *be_thread(void *arg)
{
	struct thread *thread = arg;
	struct drv_threads *threads = thread->threads;

	drv_pin_set(&thread->pin, thread->cpu);
	for (unsigned done = 0; next_job(thread, done); done++) {
		thread->engine.awaited_at = done + 1;
		thread->status = threads->job(&thread->engine, threads->arg, &thread->fail);
		drv_pin_check(&thread->pin);
		atomic_fetch_add_explicit(&threads->done, 1, memory_order_release);
	}
	return NULL;
}

int drv_threads_start(struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const size_t size = drv_endpoint_threads(here) - 1;
	struct drv_threads *threads;

	if (!size)
		return 0;
	threads = calloc(1, sizeof(*threads) + size * sizeof(threads->each[0]));
	if (!threads)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %zu threads", size + 1);
	engine->threads = threads;
	for (size_t i = 0; i < size; i++) {
		struct thread *thread = &threads->each[i];

		thread->threads = threads;
		thread->cpu = here->cpus[i + 1];
		thread->engine = *engine;
		/* the first thread's alone: whoever is idle polls the context that it has */
		thread->engine.ctx = NULL;
		thread->engine.threads = NULL;
		thread->engine.oob = NULL;
		thread->engine.thread = (uint32_t)i + 1;
		thread->engine.awaited_count = &threads->recalled;
		thread->engine.reached = &threads->reached;
		thread->engine.sink = &thread->engine.port.sink;
		drv_port_start(&thread->engine.port, &thread->engine);
		if (pthread_create(&thread->id, NULL, be_thread, thread))
			return drv_fail_set(fail, DRV_SYSTEM, "thread %zu could not be started", i + 1);
		thread->started = true;
		threads->size++;
	}
	return 0;
}

void drv_threads_end(struct drv_engine *engine)
{
	struct drv_threads *threads = engine->threads;

	if (!threads)
		return;
	atomic_store(&threads->over, true);
	for (uint32_t i = 0; i < threads->size; i++) {
		pthread_join(threads->each[i].id, NULL);
		drv_pin_free(&threads->each[i].pin);
	}
	engine->threads = NULL;
	free(threads);
}

uint32_t drv_threads_size(const struct drv_engine *engine)
{
	return engine->threads ? engine->threads->size : 0;
}

void drv_threads_post(struct drv_engine *engine, drv_job_fn job, void *arg)
{
	struct drv_threads *threads = engine->threads;

	for (uint32_t i = 0; i < threads->size; i++) {
		struct drv_engine *other = &threads->each[i].engine;

		/* what the first thread knows by now; all other threads are between jobs */
		other->needs = engine->needs;
		other->offer = engine->offer;
		other->deadline = engine->deadline;
		other->deadline_ns = engine->deadline_ns;
	}
	threads->job = job;
	threads->arg = arg;
	atomic_store(&threads->reached, 0);
	atomic_fetch_add_explicit(&threads->posted, 1, memory_order_release);
}

void drv_threads_reach(struct drv_engine *engine)
{
	atomic_fetch_add_explicit(engine->reached, 1, memory_order_release);
}

void drv_threads_watch(struct drv_engine *engine)
{
	engine->awaited_count = &engine->threads->reached;
	engine->awaited_at = engine->threads->size;
}

void drv_threads_ring(struct drv_engine *engine)
{
	atomic_store_explicit(&engine->threads->recalled, atomic_load(&engine->threads->posted),
			      memory_order_release);
}

int drv_threads_join(struct drv_engine *engine, struct drv_fail *fail)
{
	struct drv_threads *threads = engine->threads;
	const struct drv_idle *idle = drv_engine_idle(engine);
	const unsigned wanted = atomic_load(&threads->posted) * threads->size;
	struct drv_fail ignored;

	engine->awaited_count = NULL;
	while (atomic_load_explicit(&threads->done, memory_order_acquire) != wanted)
		if (!idle || idle->step(idle->arg, &ignored))
			nap();
	for (uint32_t i = 0; i < threads->size; i++) {
		struct thread *thread = &threads->each[i];

		if (!thread->status)
			continue;
		if (thread->engine.down_code && !engine->down_code) {
			engine->down_code = thread->engine.down_code;
			engine->down_channel = thread->engine.down_channel;
		}
		drv_fail_set(fail, thread->fail.reason, "thread %u: %s", i + 1, thread->fail.text);
		/* whether its peer died is known to the out-of-band channel */
		return thread->engine.down_code ? drv_engine_explain(engine, fail) : -1;
	}
	return 0;
}

int drv_threads_all(struct drv_engine *engine, drv_job_fn job, void *arg, struct drv_fail *fail)
{
	struct drv_fail why;
	int status;

	if (!engine->threads)
		return job(engine, arg, fail);
	drv_threads_post(engine, job, arg);
	status = job(engine, arg, fail);
	if (status)
		drv_threads_ring(engine);
	if (drv_threads_join(engine, &why) && !status) {
		*fail = why;
		status = -1;
	}
	return status;
}

bool drv_threads_pinned(struct drv_engine *engine, char *detail, size_t detail_bytes)
{
	for (uint32_t i = 0; engine->threads && i < engine->threads->size; i++) {
		const struct drv_pin *pin = &engine->threads->each[i].pin;

		if (!drv_workers_pinned(&engine->threads->each[i].engine, detail, detail_bytes))
			return false;
		if (!pin->ok) {
			snprintf(detail, detail_bytes, "thread %u: %.120s", i + 1, pin->detail);
			return false;
		}
	}
	return true;
}
