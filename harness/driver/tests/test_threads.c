/* SPDX-License-Identifier: BSD-3-Clause */
/* The other threads of an endpoint: none of them touches a context before it has one of its own, and each job is done once by each. */
#include "threads/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tap.h"

enum { THREADS = 8, JOBS = 50 };

/* One context a thread that opened it. */
struct cadge_ctx {
	pthread_t owner;
};

static struct cadge_ctx contexts[THREADS];
static atomic_uint opened, polls, strangers, done;

static int poll_layer(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)sink;
	atomic_fetch_add(&polls, 1);
	if (!pthread_equal(ctx->owner, pthread_self()))
		atomic_fetch_add(&strangers, 1);
	return 0;
}

static const struct cadge_layer layer = {.poll = poll_layer};

static void open_own(struct drv_engine *engine)
{
	engine->ctx = &contexts[atomic_fetch_add(&opened, 1)];
	engine->ctx->owner = pthread_self();
}

static int open_job(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	(void)arg, (void)fail;
	if (engine->thread)
		open_own(engine);
	return 0;
}

static int count_job(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	(void)arg, (void)fail;
	atomic_fetch_or(&done, 1u << engine->thread);
	return 0;
}

static void pause_ms(long ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

int main(void)
{
	struct drv_endpoint endpoint = {.cpus_count = THREADS};
	struct drv_launch launch = {.endpoints = &endpoint, .endpoints_count = 1};
	static struct drv_engine engine;
	struct drv_fail fail = {0};
	unsigned whole = 0;

	for (size_t i = 0; i < THREADS; i++)
		endpoint.cpus[i] = -1;
	engine = (struct drv_engine){.launch = &launch, .layer = &layer, .deadline = UINT64_MAX};
	engine.sink = &engine.port.sink;
	drv_port_start(&engine.port, &engine);
	/* as a session does it: the first thread's is open before there are others */
	open_own(&engine);
	tap_ok(drv_threads_start(&engine, &fail) == 0 && drv_threads_size(&engine) == THREADS - 1,
	       "%d more threads %s", THREADS - 1, fail.text);
	pause_ms(20);
	tap_ok(atomic_load(&strangers) == 0,
	       "none polls the first one's context before it has its own: %u did", atomic_load(&strangers));
	tap_ok(drv_threads_all(&engine, open_job, NULL, &fail) == 0, "each opens its own %s", fail.text);
	pause_ms(20);
	tap_ok(atomic_load(&polls) > 0 && atomic_load(&strangers) == 0,
	       "idle, each polls its own, %u times in all", atomic_load(&polls));
	for (int i = 0; i < JOBS; i++) {
		atomic_store(&done, 0);
		whole += drv_threads_all(&engine, count_job, NULL, &fail) == 0 && done == (1u << THREADS) - 1;
	}
	tap_ok(whole == JOBS, "a job is done by all before it is over: %u of %d", whole, JOBS);
	drv_threads_end(&engine);
	tap_ok(!engine.threads, "and the threads end");
	return tap_done();
}
