/* SPDX-License-Identifier: BSD-3-Clause */
/* The other threads of an endpoint: starting them, giving them jobs, hearing when they are done. */
#include "threads/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads/workers.h"
#include "measure/pin.h"

/* how long a thread without a layer sleeps between looks for an order */
#define NAP_NS 200000L

struct worker {
	struct drv_crew *crew;
	pthread_t thread;
	bool started;
	int cpu;
	struct drv_pin pin;
	struct drv_engine engine;
	int status;
	struct drv_fail fail;
};

struct drv_crew {
	uint32_t size;
	/* jobs given so far; a worker does the next one when this grows */
	atomic_uint posted;
	/* jobs done so far, by all workers together */
	atomic_uint done;
	/* how many have come to drv_crew_reach in this job */
	atomic_uint reached;
	/* the last job that was told to come back */
	atomic_uint rung;
	atomic_bool over;
	drv_job_fn job;
	void *arg;
	struct worker workers[];
};

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = NAP_NS};

	nanosleep(&pause, NULL);
}

/* Until the next job, or the end: false. */
static bool next_job(struct worker *worker, unsigned done)
{
	while (atomic_load_explicit(&worker->crew->posted, memory_order_acquire) == done) {
		const struct drv_idle *idle = drv_engine_idle(&worker->engine);
		struct drv_fail ignored; /* what is wrong shows in the next job */

		if (atomic_load(&worker->crew->over))
			return false;
		if (!idle || idle->step(idle->arg, &ignored))
			nap();
	}
	return true;
}

static void *be_worker(void *arg)
{
	struct worker *worker = arg;
	struct drv_crew *crew = worker->crew;

	drv_pin_set(&worker->pin, worker->cpu);
	for (unsigned done = 0; next_job(worker, done); done++) {
		worker->engine.bell_at = done + 1;
		worker->status = crew->job(&worker->engine, crew->arg, &worker->fail);
		drv_pin_check(&worker->pin);
		atomic_fetch_add_explicit(&crew->done, 1, memory_order_release);
	}
	return NULL;
}

int drv_crew_start(struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const size_t size = drv_endpoint_threads(here) - 1;
	struct drv_crew *crew;

	if (!size)
		return 0;
	crew = calloc(1, sizeof(*crew) + size * sizeof(crew->workers[0]));
	if (!crew)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %zu threads", size + 1);
	engine->crew = crew;
	for (size_t i = 0; i < size; i++) {
		struct worker *worker = &crew->workers[i];

		worker->crew = crew;
		worker->cpu = here->cpus[i + 1];
		worker->engine = *engine;
		/* the first thread's alone: whoever is idle polls the context that it has */
		worker->engine.ctx = NULL;
		worker->engine.crew = NULL;
		worker->engine.oob = NULL;
		worker->engine.thread = (uint32_t)i + 1;
		worker->engine.bell = &crew->rung;
		worker->engine.reached = &crew->reached;
		worker->engine.sink = &worker->engine.port.sink;
		drv_port_start(&worker->engine.port, &worker->engine);
		if (pthread_create(&worker->thread, NULL, be_worker, worker))
			return drv_fail_set(fail, DRV_SYSTEM, "thread %zu could not be started", i + 1);
		worker->started = true;
		crew->size++;
	}
	return 0;
}

void drv_crew_end(struct drv_engine *engine)
{
	struct drv_crew *crew = engine->crew;

	if (!crew)
		return;
	atomic_store(&crew->over, true);
	for (uint32_t i = 0; i < crew->size; i++) {
		pthread_join(crew->workers[i].thread, NULL);
		drv_pin_free(&crew->workers[i].pin);
	}
	engine->crew = NULL;
	free(crew);
}

uint32_t drv_crew_size(const struct drv_engine *engine)
{
	return engine->crew ? engine->crew->size : 0;
}

void drv_crew_post(struct drv_engine *engine, drv_job_fn job, void *arg)
{
	struct drv_crew *crew = engine->crew;

	for (uint32_t i = 0; i < crew->size; i++) {
		struct drv_engine *other = &crew->workers[i].engine;

		/* what the first thread knows by now; all other threads are between jobs */
		other->needs = engine->needs;
		other->offer = engine->offer;
		other->deadline = engine->deadline;
		other->deadline_ns = engine->deadline_ns;
	}
	crew->job = job;
	crew->arg = arg;
	atomic_store(&crew->reached, 0);
	atomic_fetch_add_explicit(&crew->posted, 1, memory_order_release);
}

void drv_crew_reach(struct drv_engine *engine)
{
	atomic_fetch_add_explicit(engine->reached, 1, memory_order_release);
}

void drv_crew_watch(struct drv_engine *engine)
{
	engine->bell = &engine->crew->reached;
	engine->bell_at = engine->crew->size;
}

void drv_crew_ring(struct drv_engine *engine)
{
	atomic_store_explicit(&engine->crew->rung, atomic_load(&engine->crew->posted), memory_order_release);
}

int drv_crew_join(struct drv_engine *engine, struct drv_fail *fail)
{
	struct drv_crew *crew = engine->crew;
	const struct drv_idle *idle = drv_engine_idle(engine);
	const unsigned wanted = atomic_load(&crew->posted) * crew->size;
	struct drv_fail ignored;

	engine->bell = NULL;
	while (atomic_load_explicit(&crew->done, memory_order_acquire) != wanted)
		if (!idle || idle->step(idle->arg, &ignored))
			nap();
	for (uint32_t i = 0; i < crew->size; i++) {
		struct worker *worker = &crew->workers[i];

		if (!worker->status)
			continue;
		if (worker->engine.down_code && !engine->down_code) {
			engine->down_code = worker->engine.down_code;
			engine->down_channel = worker->engine.down_channel;
		}
		drv_fail_set(fail, worker->fail.reason, "thread %u: %s", i + 1, worker->fail.text);
		/* whether its peer died is known to the out-of-band channel */
		return worker->engine.down_code ? drv_engine_explain(engine, fail) : -1;
	}
	return 0;
}

int drv_crew_all(struct drv_engine *engine, drv_job_fn job, void *arg, struct drv_fail *fail)
{
	struct drv_fail why;
	int status;

	if (!engine->crew)
		return job(engine, arg, fail);
	drv_crew_post(engine, job, arg);
	status = job(engine, arg, fail);
	if (status)
		drv_crew_ring(engine);
	if (drv_crew_join(engine, &why) && !status) {
		*fail = why;
		status = -1;
	}
	return status;
}

bool drv_crew_pinned(struct drv_engine *engine, char *detail, size_t detail_bytes)
{
	for (uint32_t i = 0; engine->crew && i < engine->crew->size; i++) {
		const struct drv_pin *pin = &engine->crew->workers[i].pin;

		if (!drv_workers_pinned(&engine->crew->workers[i].engine, detail, detail_bytes))
			return false;
		if (!pin->ok) {
			snprintf(detail, detail_bytes, "thread %u: %.120s", i + 1, pin->detail);
			return false;
		}
	}
	return true;
}
