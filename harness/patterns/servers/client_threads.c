/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that share one connection: making them, and steps in all of them. */
#include "servers/client_threads.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traffic/requester.h"
#include "threads/workers.h"
#include "servers/shared_connection.h"

#define ALIGN   128u
#define PAGE    4096u
#define WAIT_NS UINT64_C(10000000)
#define NS      UINT64_C(1000000000)

struct client_thread {
	_Alignas(ALIGN) struct drv_engine engine;
	struct drv_role_run run;
	struct drv_requester requester;
	/* of all but the first to be added up; that has the role run's */
	struct drv_record record;
	bool recorded;
	int status;
	struct drv_fail fail;
};

struct drv_client_threads {
	struct drv_role_run *run;
	struct drv_shared_connection *shared;
	bool dispatched;
	uint32_t threads, workers;
	/* the step under way; written while all rest */
	drv_client_threads_fn fn;
	uint64_t number;
	unsigned steps;
	/* steps done so far by all workers together; the last step that was given up */
	_Alignas(ALIGN) atomic_uint done;
	_Alignas(ALIGN) atomic_uint recalled;
	struct client_thread thread[];
};

int drv_client_threads_negotiate(const struct drv_ability *both, struct drv_fail *fail)
{
	if (both->caps & CADGE_CAP_ONE_INIT)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted several threads on one connection, this library starts once a "
				    "process, for one thread");
	if ((both->caps & CADGE_CAP_WAIT) && !(both->caps & CADGE_CAP_EVENT_FD))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "the layer has no descriptor to wait for (EVENT_FD), so whoever sleeps "
				    "in it keeps all others from their connection");
	return 0;
}

static void do_step(struct drv_client_threads *clients, uint32_t index)
{
	struct client_thread *thread = &clients->thread[index];

	thread->status = clients->fn(&thread->run, clients->number, &thread->fail);
	drv_shared_connection_leave(clients->shared, index);
}

static uint64_t run_client_thread(void *arg, uint32_t worker, uint64_t step)
{
	struct drv_client_threads *clients = arg;
	/* how many steps are done once it is over in all workers; the next one may begin as soon as it is */
	const unsigned all = clients->steps * clients->workers;

	(void)step;
	drv_warmup_count(drv_engine_operations(clients->run->engine));
	do_step(clients, worker + clients->threads - clients->workers);
	/* nothing of the context from here on: it is the first thread's again */
	if (atomic_fetch_add(&clients->done, 1) + 1 == all) {
		if (clients->dispatched)
			drv_shared_connection_wake(clients->shared);
		else if (clients->run->engine->block)
			syscall(SYS_futex, &clients->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return DRV_WORKER_SILENT;
}

/* Memory of one thread's buffers: as much as a client takes. */
static size_t buffers_of(const struct drv_exchange *exchange)
{
	const size_t one = drv_memory_stride(drv_form_bytes(exchange->form, exchange->request_bytes)) +
			   drv_memory_stride(exchange->reply_bytes);

	return (exchange->depth * one + PAGE - 1) / PAGE * PAGE;
}

/* A thread with its engine, a copy on a slot, and its client. */
static int make_client_thread(struct drv_client_threads *clients, uint32_t index,
			      struct drv_exchange exchange, uint8_t *buffers, struct drv_fail *fail)
{
	const struct drv_role_run *all = clients->run;
	struct client_thread *thread = &clients->thread[index];
	struct drv_engine *engine = &thread->engine;
	const size_t bytes = buffers_of(&exchange);

	*engine = *all->engine;
	engine->workers = NULL;
	if (index || clients->dispatched) {
		/* that of a thread beside the first, which alone has the out-of-band channel */
		engine->thread = index + 1;
		engine->oob = NULL;
		engine->awaited_count = &clients->recalled;
	}
	memset(engine->pools, 0, sizeof(engine->pools));
	/* the layer knows these pages already, and they are another's to free */
	engine->pools[DRV_POOL_REQUESTER] =
		(struct drv_memory){.base = buffers + index * bytes, .bytes = bytes};
	drv_port_start(&engine->port, engine);
	drv_shared_connection_take(clients->shared, index, engine);
	thread->run = *all;
	thread->run.engine = engine;
	thread->run.state = &thread->requester;
	thread->run.shared = NULL;
	if (index) {
		drv_record_start(&thread->record, all->record->quantities);
		thread->recorded = true;
		thread->run.record = &thread->record;
	}
	exchange.reply = DRV_REPLY_CONT;
	if (drv_requester_role_prepare(&thread->run, exchange, fail))
		return -1;
	thread->requester.next_number = drv_shared_connection_first_number(index);
	return 0;
}

int drv_client_threads_start(struct drv_client_threads **shared_out, struct drv_role_run *run,
			     struct drv_exchange exchange, uint32_t threads, bool dispatched,
			     struct drv_fail *fail)
{
	const size_t bytes = sizeof(struct drv_client_threads) + threads * sizeof(struct client_thread);
	const uint32_t workers = dispatched ? threads : threads - 1;
	struct drv_client_threads *clients;
	uint8_t *buffers;

	if (drv_workers_wanted(run->engine) != workers)
		return drv_fail_set(
			fail, DRV_ARGUMENT,
			"%u threads share a connection beside the first one, and the launch has %u", workers,
			drv_workers_wanted(run->engine));
	clients = drv_zeroed(ALIGN, bytes);
	if (!clients)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u threads", threads);
	clients->run = run;
	clients->dispatched = dispatched;
	clients->threads = threads;
	clients->workers = workers;
	*shared_out = clients;
	buffers = drv_pool_take(run->engine, DRV_POOL_REQUESTER, threads * buffers_of(&exchange), fail);
	if (!buffers ||
	    drv_shared_connection_make(run->engine, threads, exchange.depth,
				       (size_t)drv_form_bytes(exchange.form, exchange.reply_bytes),
				       dispatched, &clients->shared, fail))
		return -1;
	for (uint32_t i = 0; i < threads; i++)
		if (make_client_thread(clients, i, exchange, buffers, fail))
			return -1;
	run->engine->sink = drv_shared_connection_sink(clients->shared);
	return drv_workers_start(run->engine, run_client_thread, clients, 1, fail);
}

void drv_client_threads_stop(struct drv_client_threads *clients)
{
	if (!clients)
		return;
	drv_workers_end(clients->run->engine);
	/* starting may have failed halfway */
	for (uint32_t i = 0; i < clients->threads; i++) {
		struct client_thread *thread = &clients->thread[i];

		if (thread->run.state)
			drv_requester_role_stop(&thread->run);
		if (thread->recorded)
			drv_record_free(&thread->record);
	}
	drv_shared_connection_free(clients->shared);
	free(clients);
}

/* Until the workers are done, who has done its own part, or has none, polls for them, or sleeps; and hears if a peer died. */
static int await_workers(struct drv_client_threads *clients, int status, struct drv_fail *fail)
{
	struct drv_engine *own = clients->dispatched ? clients->run->engine : &clients->thread[0].engine;
	const unsigned wanted = clients->steps * clients->workers;
	const uint64_t sleep_ns = own->sleep_ns ? own->sleep_ns : WAIT_NS;
	const struct timespec span = {(time_t)(sleep_ns / NS), (long)(sleep_ns % NS)};
	uint32_t idle = 0;
	unsigned done;

	if (status)
		atomic_store(&clients->recalled, clients->steps);
	while ((done = atomic_load(&clients->done)) != wanted) {
		int events = 0;

		if (clients->dispatched)
			events = drv_shared_connection_dispatch(clients->shared, sleep_ns);
		else if (own->block)
			syscall(SYS_futex, &clients->done, FUTEX_WAIT_PRIVATE, done, &span, NULL, 0);
		else
			events = own->layer->poll(own->ctx, own->sink);
		if (status || events > 0 || (events == 0 && !own->block && (++idle & 63)))
			continue;
		if (events < 0)
			status = drv_engine_fail("poll", events, fail);
		else if (drv_engine_poll_oob(own, drv_clock_now(&own->clock), NULL, fail))
			status = -1;
		if (status)
			atomic_store(&clients->recalled, clients->steps);
	}
	return status;
}

/* What the engine of a thread knows now, the first thread's has to know as well. */
static int gather(struct drv_client_threads *clients, int status, struct drv_fail *fail)
{
	struct drv_engine *engine = clients->run->engine;

	for (uint32_t i = 0; i < clients->threads; i++) {
		const struct client_thread *thread = &clients->thread[i];

		engine->broken |= thread->engine.broken;
		if (!thread->status || status)
			continue;
		status = drv_fail_set(fail, thread->fail.reason, "thread %u: %.200s", i + 1,
				      thread->fail.text);
		/* whether its peer died is known to the out-of-band channel */
		if (engine->down_code)
			status = drv_engine_explain(engine, fail);
	}
	return status;
}

int drv_client_threads_run(struct drv_client_threads *clients, drv_client_threads_fn fn, uint64_t number,
			   struct drv_fail *fail)
{
	const struct drv_engine *engine = clients->run->engine;
	int status = 0;

	clients->fn = fn;
	clients->number = number;
	clients->steps++;
	for (uint32_t i = 0; i < clients->threads; i++) {
		struct drv_engine *own = &clients->thread[i].engine;

		own->deadline = engine->deadline;
		own->deadline_ns = engine->deadline_ns;
		own->awaited_at = clients->steps;
	}
	for (uint32_t i = 0; i < clients->workers; i++)
		drv_workers_give(clients->run->engine, i, clients->steps);
	if (!clients->dispatched) {
		do_step(clients, 0);
		status = clients->thread[0].status;
		if (status)
			*fail = clients->thread[0].fail;
	}
	return gather(clients, await_workers(clients, status, fail), fail);
}

void drv_client_threads_record(struct drv_client_threads *clients, bool warmup_only)
{
	for (uint32_t i = 1; i < clients->threads; i++)
		drv_record_add(clients->run->record, &clients->thread[i].record, warmup_only);
}

void drv_client_threads_counts(struct drv_client_threads *clients, struct drv_counts *counts)
{
	const uint64_t stale = drv_shared_connection_stale(clients->shared);

	for (uint32_t i = 0; i < clients->threads; i++)
		drv_requester_counts(&clients->thread[i].requester, counts);
	/* where messages get lost there may be no room for those that are late */
	if (!stale || !(clients->run->engine->offer.both.caps & CADGE_CAP_RELIABLE))
		return;
	if (!counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%" PRIu64 " replies were no thread's",
			 stale);
	counts->mismatches += stale;
}
