/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads beside the one that owns the context: every number comes once and in order, whoever has nothing to do sleeps
 * in block mode and is woken (test_wakes.c tries every order of steps), and all of them end, wherever they are.
 */
#include "threads/threads.h"
#include "threads/workers.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tap.h"
#include "measure/usage.h"

enum { WORKERS = 3, ROOM = 8, NUMBERS = 20000 };
/* nobody is to be left to it */
#define WAIT_NS UINT64_C(30000000000)

/* A layer that never has anything to do, with a descriptor that never becomes readable. */
static struct {
	int fd;
	bool has_descriptor;
	unsigned events;
	uint64_t due_ns;
} layer_state = {.due_ns = UINT64_MAX};

static atomic_uint filled;
static atomic_bool may_go_on;

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = layer_state.has_descriptor ? CADGE_CAP_EVENT_FD | CADGE_CAP_WAIT : CADGE_CAP_WAIT;
}

static int event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	(void)ctx;
	layer_state.events++;
	*fd_out = layer_state.fd;
	*due_ns_out = layer_state.due_ns;
	return CADGE_DONE;
}

static const struct cadge_layer layer = {.limits = limits, .event = event};

/* Gives back what it was given, with a mark of its own. */
static uint64_t echo(void *arg, uint32_t worker, uint64_t number)
{
	(void)arg;
	return number * WORKERS + worker;
}

/* The same, and says how many it has given back, but for the last one that it has in worker. */
static uint64_t fill(void *arg, uint32_t worker, uint64_t number)
{
	atomic_fetch_add(&filled, 1);
	return echo(arg, worker, number);
}

/* Gives nothing back. */
static uint64_t keep(void *arg, uint32_t worker, uint64_t number)
{
	(void)arg, (void)worker, (void)number;
	atomic_fetch_add(&filled, 1);
	return DRV_WORKER_SILENT;
}

/* Is at it for as long as it may be. */
static uint64_t stall(void *arg, uint32_t worker, uint64_t number)
{
	(void)arg, (void)worker;
	while (!atomic_load(&may_go_on))
		sched_yield();
	return number;
}

static bool start(struct drv_engine *engine, bool block, drv_worker_fn fn)
{
	struct drv_fail fail;

	engine->block = block;
	return !drv_workers_start(engine, fn, NULL, ROOM, &fail);
}

/* Keeps ROOM numbers on their way to and from each worker. */
static void test_echo(struct drv_engine *engine, bool block)
{
	uint64_t given[WORKERS] = {0}, taken[WORKERS] = {0}, number, waits = 0;
	struct drv_usage before, after;
	struct drv_fail fail;
	uint32_t worker;
	bool right = true;

	if (!tap_ok(start(engine, block, echo), "%s: workers start", block ? "block" : "poll"))
		return;
	drv_usage_read(&before);
	while (taken[0] + taken[1] + taken[2] < WORKERS * NUMBERS) {
		bool idle = true;

		for (uint32_t i = 0; i < WORKERS; i++)
			while (given[i] < NUMBERS && given[i] - taken[i] < ROOM &&
			       drv_workers_give(engine, i, given[i])) {
				given[i]++;
				idle = false;
			}
		while (drv_workers_take(engine, &worker, &number)) {
			right &= worker < WORKERS && number == taken[worker] * WORKERS + worker;
			taken[worker]++;
			idle = false;
		}
		if (idle && block) {
			waits++;
			if (drv_workers_wait(engine, WAIT_NS, &fail))
				break;
		}
	}
	drv_usage_read(&after);
	drv_workers_end(engine);
	tap_ok(right && taken[0] == NUMBERS && taken[1] == NUMBERS && taken[2] == NUMBERS && !engine->workers,
	       "%s: each of %d numbers came once and in order; %llu waits in %.0f ms",
	       block ? "block" : "poll", WORKERS * NUMBERS, (unsigned long long)waits,
	       (double)drv_usage_since(&before, &after).wall_ns / 1e6);
}

/* One number at a time: each makes both sides sleep, and none of them is left to its timeout. */
static void test_sleep(struct drv_engine *engine)
{
	enum { TIMES = 200 };
	struct drv_usage before, after, spent;
	struct drv_fail fail;
	uint64_t number, done = 0;
	uint32_t worker;

	if (!tap_ok(start(engine, true, echo), "block: workers start"))
		return;
	drv_usage_read(&before);
	while (done < TIMES) {
		drv_workers_give(engine, (uint32_t)(done % WORKERS), done);
		while (!drv_workers_take(engine, &worker, &number))
			if (drv_workers_wait(engine, WAIT_NS, &fail))
				break;
		done++;
	}
	drv_usage_read(&after);
	spent = drv_usage_since(&before, &after);
	drv_workers_end(engine);
	tap_ok(spent.voluntary_switches >= TIMES && spent.wall_ns < WAIT_NS,
	       "%d numbers one by one: %llu voluntary switches in %.1f ms", TIMES,
	       (unsigned long long)spent.voluntary_switches, (double)spent.wall_ns / 1e6);
}

/* Each worker has given numbers back: they are taken in turn. And the owner sleeps no longer than until the layer is due. */
static void test_turns(struct drv_engine *engine)
{
	uint32_t from[2 * WORKERS];
	struct drv_fail fail;
	uint64_t number, began_ns;
	bool in_turn = true;

	atomic_store(&filled, 0);
	if (!tap_ok(start(engine, true, fill), "workers that are given all there is room for start"))
		return;
	for (uint32_t i = 0; i < WORKERS * ROOM; i++)
		drv_workers_give(engine, i % WORKERS, i / WORKERS);
	/* of the last one of each, nothing says that it is on its way already */
	while (atomic_load(&filled) < WORKERS * ROOM)
		sched_yield();
	for (uint32_t i = 0; i < 2 * WORKERS; i++)
		in_turn &= drv_workers_take(engine, &from[i], &number) &&
			   number == i / WORKERS * WORKERS + from[i];
	for (uint32_t i = 1; i < 2 * WORKERS; i++)
		in_turn &= from[i] == (from[i - 1] + 1) % WORKERS;
	tap_ok(in_turn, "their numbers are taken in turn");
	for (uint32_t left = WORKERS * (ROOM - 2); left;)
		left -= drv_workers_take(engine, &from[0], &number);
	layer_state.due_ns = 1000000;
	began_ns = drv_now_ns();
	tap_ok(!drv_workers_wait(engine, WAIT_NS, &fail) && !drv_workers_wait(engine, WAIT_NS, &fail) &&
		       drv_now_ns() - began_ns < WAIT_NS,
	       "the owner wakes when the layer is due");
	layer_state.due_ns = UINT64_MAX;
	drv_workers_end(engine);
}

static void test_ends(struct drv_engine *engine)
{
	struct drv_fail fail;
	uint64_t number;
	uint32_t worker, given = 0;

	for (int block = 0; block < 2; block++) {
		tap_ok(start(engine, block, echo), "workers that are given nothing start");
		drv_workers_end(engine);
		atomic_store(&filled, 0);
		tap_ok(start(engine, block, keep), "and workers that give nothing back");
		for (uint32_t i = 0; i < ROOM; i++)
			given += drv_workers_give(engine, 0, i);
		while (atomic_load(&filled) < ROOM)
			sched_yield();
		tap_ok(!drv_workers_take(engine, &worker, &number), "nothing comes of %d numbers", ROOM);
		drv_workers_end(engine);
	}
	atomic_store(&may_go_on, false);
	tap_ok(start(engine, false, stall), "a worker that is long at it starts");
	/* whether the first one is in its worker already: one more there is room for */
	for (given = 0; given < 2 * ROOM && drv_workers_give(engine, 1, given); given++)
		;
	tap_ok(given == ROOM || given == ROOM + 1, "a worker is given what there is room for: %u", given);
	atomic_store(&may_go_on, true);
	/* more than it may have: they are not lost, but wait; and it ends all the same */
	for (uint32_t i = 0; i < given;)
		i += drv_workers_take(engine, &worker, &number) && number == i && worker == 1;
	drv_workers_end(engine);
	atomic_store(&filled, 0);
	tap_ok(start(engine, false, fill), "a worker that is given too much starts");
	while (atomic_load(&filled) <= ROOM)
		drv_workers_give(engine, 0, 0);
	drv_workers_end(engine);
	layer_state.has_descriptor = false;
	engine->block = true;
	tap_ok(drv_workers_start(engine, echo, NULL, ROOM, &fail) && fail.reason == DRV_NO_WAIT &&
		       !engine->workers,
	       "block, and a layer without a descriptor: %s", fail.text);
	drv_workers_end(engine);
}

/* Two threads of a role share three workers. */
static void test_shares(struct drv_engine *engine, struct drv_endpoint *here)
{
	uint32_t first, second;

	here->cpus_count = 2;
	engine->thread = 0;
	first = drv_workers_wanted(engine);
	engine->thread = 1;
	second = drv_workers_wanted(engine);
	tap_ok(first == 2 && second == 1, "of three workers the first of two threads has %u, the second %u",
	       first, second);
	here->worker_cpus_count = 0;
	engine->thread = 0;
	layer_state.has_descriptor = true;
	tap_ok(start(engine, true, echo) && !engine->workers && !drv_workers_wanted(engine),
	       "and none of none");
}

int main(void)
{
	struct drv_endpoint here = {.worker_cpus = {-1, -1, -1}, .worker_cpus_count = WORKERS};
	const struct drv_launch launch = {.endpoints = &here, .endpoints_count = 1};
	struct drv_engine engine = {.launch = &launch, .layer = &layer};
	char detail[160] = "";

	layer_state.fd = eventfd(0, EFD_CLOEXEC);
	layer_state.has_descriptor = true;
	test_echo(&engine, false);
	test_echo(&engine, true);
	test_sleep(&engine);
	test_turns(&engine);
	test_ends(&engine);
	tap_ok(drv_threads_pinned(&engine, detail, sizeof(detail)), "none of them left its cores");
	test_shares(&engine, &here);
	close(layer_state.fd);
	return tap_done();
}
