/* SPDX-License-Identifier: BSD-3-Clause */
/* The other threads of an endpoint: starting them, giving them jobs, waiting until they are done. */
#include "threads/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* how long a thread without a layer sleeps between checks for an order */
#define IDLE_SLEEP_NS 200000L

struct other {
	struct drv_thread thread;
	struct drv_threads *threads;
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
	/* how many have come to drv_threads_arrive in this job */
	atomic_uint reached;
	/* the last job that was told to come back */
	atomic_uint recalled;
	atomic_bool over;
	drv_thread_fn job;
	void *arg;
	struct other each[];
};

static void *be_thread(void *arg)
{
	struct drv_thread *thread = arg;

	drv_pin_set(&thread->pin, thread->cpu);
	thread->run(thread->arg);
	drv_pin_check(&thread->pin);
	return NULL;
}

int drv_thread_start(struct drv_thread *thread, int cpu, void (*run)(void *arg), void *arg, uint32_t number,
		     struct drv_fail *fail)
{
	*thread = (struct drv_thread){.cpu = cpu, .run = run, .arg = arg};
	thread->started = !pthread_create(&thread->id, NULL, be_thread, thread);
	return thread->started ? 0 : drv_fail_set(fail, DRV_SYSTEM, "thread %u could not be started", number);
}

void drv_thread_join(struct drv_thread *thread)
{
	if (!thread->started)
		return;
	pthread_join(thread->id, NULL);
	drv_pin_free(&thread->pin);
}

void drv_thread_note_core(const struct drv_thread *thread, const char *what, uint32_t number,
			  struct drv_engine *engine)
{
	if (thread->started && !thread->pin.ok && !engine->left_core[0])
		snprintf(engine->left_core, sizeof(engine->left_core), "%s %u: %.120s", what, number,
			 thread->pin.detail);
}

static void idle_sleep(void)
{
	const struct timespec pause = {.tv_nsec = IDLE_SLEEP_NS};

	nanosleep(&pause, NULL);
}

/* Until the next job, or the end: false. */
static bool next_job(struct other *other, unsigned done)
{
	while (atomic_load_explicit(&other->threads->posted, memory_order_acquire) == done) {
		const struct drv_idle *idle = drv_engine_idle(&other->engine);
		struct drv_fail ignored; /* what is wrong shows in the next job */

		if (atomic_load(&other->threads->over))
			return false;
		if (!idle || idle->step(idle->arg, &ignored))
			idle_sleep();
	}
	return true;
}

static void do_jobs(void *arg)
{
	struct other *other = arg;
	struct drv_threads *threads = other->threads;

	for (unsigned done = 0; next_job(other, done); done++) {
		other->engine.awaited_at = done + 1;
		other->status = threads->job(&other->engine, threads->arg, &other->fail);
		drv_pin_check(&other->thread.pin);
		atomic_fetch_add_explicit(&threads->done, 1, memory_order_release);
	}
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
	for (uint32_t i = 0; i < size; i++) {
		struct other *other = &threads->each[i];

		other->threads = threads;
		other->engine = *engine;
		/* the first thread's alone: whoever is idle polls the context that it has */
		other->engine.ctx = NULL;
		other->engine.threads = NULL;
		other->engine.oob = NULL;
		other->engine.thread = i + 1;
		other->engine.awaited_count = &threads->recalled;
		other->engine.reached = &threads->reached;
		other->engine.sink = &other->engine.port.sink;
		drv_port_start(&other->engine.port, &other->engine);
		if (drv_thread_start(&other->thread, here->cpus[i + 1], do_jobs, other, i + 1, fail))
			return -1;
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
	for (uint32_t i = 0; i < threads->size; i++)
		drv_thread_join(&threads->each[i].thread);
	engine->threads = NULL;
	free(threads);
}

uint32_t drv_threads_size(const struct drv_engine *engine)
{
	return engine->threads ? engine->threads->size : 0;
}

void drv_threads_post(struct drv_engine *engine, drv_thread_fn job, void *arg)
{
	struct drv_threads *threads = engine->threads;

	for (uint32_t i = 0; i < threads->size; i++) {
		struct drv_engine *own = &threads->each[i].engine;

		/* what the first thread knows by now; all other threads are between jobs */
		own->needs = engine->needs;
		own->offer = engine->offer;
		own->deadline = engine->deadline;
		own->deadline_ns = engine->deadline_ns;
	}
	threads->job = job;
	threads->arg = arg;
	atomic_store(&threads->reached, 0);
	atomic_fetch_add_explicit(&threads->posted, 1, memory_order_release);
}

void drv_threads_arrive(struct drv_engine *engine)
{
	atomic_fetch_add_explicit(engine->reached, 1, memory_order_release);
}

void drv_threads_watch(struct drv_engine *engine)
{
	engine->awaited_count = &engine->threads->reached;
	engine->awaited_at = engine->threads->size;
}

void drv_threads_recall(struct drv_engine *engine)
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
			idle_sleep();
	for (uint32_t i = 0; i < threads->size; i++) {
		const struct other *other = &threads->each[i];

		if (!other->status)
			continue;
		if (other->engine.down_code && !engine->down_code) {
			engine->down_code = other->engine.down_code;
			engine->down_channel = other->engine.down_channel;
		}
		drv_fail_set(fail, other->fail.reason, "thread %u: %s", i + 1, other->fail.text);
		/* whether its peer died is known to the out-of-band channel */
		return other->engine.down_code ? drv_engine_explain(engine, fail) : -1;
	}
	return 0;
}

int drv_threads_all(struct drv_engine *engine, drv_thread_fn job, void *arg, struct drv_fail *fail)
{
	struct drv_fail why;
	int status;

	if (!engine->threads)
		return job(engine, arg, fail);
	drv_threads_post(engine, job, arg);
	status = job(engine, arg, fail);
	if (status)
		drv_threads_recall(engine);
	if (drv_threads_join(engine, &why) && !status) {
		*fail = why;
		status = -1;
	}
	return status;
}

bool drv_threads_pinned(struct drv_engine *engine, char *detail, size_t detail_bytes)
{
	for (uint32_t i = 0; i < drv_threads_size(engine); i++) {
		const struct other *other = &engine->threads->each[i];

		if (!engine->left_core[0])
			memcpy(engine->left_core, other->engine.left_core, sizeof(engine->left_core));
		drv_thread_note_core(&other->thread, "thread", i + 1, engine);
	}
	if (engine->left_core[0])
		snprintf(detail, detail_bytes, "%s", engine->left_core);
	return !engine->left_core[0];
}
