/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole attempts at place self over the layer of fake.h, and what is expected of them. */
#ifndef DRV_TESTS_ROLE_RUNS_H
#define DRV_TESTS_ROLE_RUNS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "session/attempt.h"
#include "fake.h"
#include "points.h"
#include "tap.h"
#include "traffic/payload.h"

struct outcome {
	struct drv_attempt attempt;
	/* of its record, which is gone */
	uint64_t operations, lost, elapsed_ns;
	/* see fake.h */
	uint64_t mem_regs, buffers, left_registered, held, left_lent;
	uint32_t queued_most;
	bool broken;
	char failed_checks[200]; /* names, each followed by a space */
};

static struct drv_clock shared_clock;
/* what the caches of the machine are said to hold; 0: what they do */
static uint64_t shared_caches_bytes;

/* Once, before everything else. */
static inline void role_runs_start(void)
{
	drv_clock_start(&shared_clock, true);
}

/* One launch of one attempt, as the session does it at place self. */
static inline struct outcome run(struct drv_point point, struct fake_orders orders)
{
	struct drv_endpoint endpoint = {
		.role = (char *)(uintptr_t)"client",
		.device = (char *)(uintptr_t)"lo",
		.address = (char *)(uintptr_t)"lo",
		.peers_count = 1,
		.worker_cpus = {-1, -1},
		.worker_cpus_count = point_get(&point, "reply") ? 1 : point_get(&point, "workers")};
	struct drv_launch launch = {.place = DRV_PLACE_SELF,
				    .seed = 42,
				    .points = &point,
				    .points_count = 1,
				    .endpoints = &endpoint,
				    .endpoints_count = 1,
				    .deadline_ns = 5000000000};
	struct drv_engine engine = {.launch = &launch,
				    .loaded.layer = fake_layer(),
				    .layer = fake_layer(),
				    .self = true,
				    .clock = shared_clock,
				    .launch_deadline_ns = UINT64_MAX};
	struct outcome outcome = {.attempt.point = &point};
	struct drv_phases phases = {0};
	struct drv_fail fail = {0};
	struct drv_needs needs;
	struct drv_port port;

	fake = (struct fake_orders){.native = orders.native,
				    .in_sink = orders.in_sink,
				    .reserve = orders.reserve,
				    .lends = orders.lends,
				    .registers = orders.registers,
				    .unreliable = orders.unreliable,
				    .unordered = orders.unordered};
	drv_port_start(&port, &engine);
	engine.sink = &port.sink;
	engine.deadline = UINT64_MAX;
	needs = engine.needs = drv_launch_needs(&launch);
	if (drv_engine_open(&engine, &fail) ||
	    drv_engine_connect(&engine, drv_now_ns() + 1000000000, &fail)) {
		printf("# %s\n", fail.text);
		exit(1);
	}
	engine.offer.place = launch.place;
	drv_ability_read(engine.layer, engine.ctx, &engine.offer.both);
	if (shared_caches_bytes)
		engine.offer.both.caches_bytes = shared_caches_bytes;
	if (drv_negotiate_point(&point, &engine.offer, &fail)) {
		outcome.attempt.status = DRV_REFUSED;
		outcome.attempt.fail = fail;
		drv_engine_close(&engine);
		return outcome;
	}
	if (drv_engine_regions(&engine, needs.region_bytes, true, true, drv_now_ns() + 1000000000, &fail)) {
		printf("# %s\n", fail.text);
		exit(1);
	}
	fake = orders;
	outcome.broken = drv_attempt_run(&engine, 0, &outcome.attempt, &phases) != 0;
	fake = (struct fake_orders){.registers = orders.registers, .lends = orders.lends};
	outcome.held = fake_held;
	outcome.left_lent = fake_lent;
	outcome.queued_most = fake_queued_most;
	outcome.mem_regs = fake_mem_regs;
	outcome.buffers = fake_buffers;
	drv_engine_close(&engine);
	outcome.left_registered = fake_registered;
	for (size_t i = 0; i < outcome.attempt.checks.count; i++)
		if (!outcome.attempt.checks.list[i].ok) {
			const size_t used = strlen(outcome.failed_checks);

			snprintf(outcome.failed_checks + used, sizeof(outcome.failed_checks) - used, "%s ",
				 outcome.attempt.checks.list[i].name);
		}
	outcome.operations = outcome.attempt.record.operations;
	outcome.lost = outcome.attempt.record.lost;
	outcome.elapsed_ns = outcome.attempt.record.elapsed_ns;
	drv_attempt_free(&outcome.attempt);
	return outcome;
}

/* In words; valid until the next call. */
static inline const char *show(const struct outcome *outcome)
{
	static char text[800];

	snprintf(text, sizeof(text),
		 "status %d, %s, %" PRIu64 " operations, %" PRIu64 " lost, %" PRIu64 " mismatches",
		 outcome->attempt.status, outcome->attempt.status ? outcome->attempt.fail.text : "sound",
		 outcome->operations, outcome->lost, outcome->attempt.mismatches);
	return text;
}

/* Where no deadline is looked for: other work on the machine is no fault. */
static inline struct drv_point patient(struct drv_point point)
{
	if (point.deadline_ns < 5000000000)
		point.deadline_ns = 5000000000;
	return point;
}

/* A faultless layer in all its ways gives a sound attempt with equal counts. */
static inline struct outcome expect_sound(struct drv_point point, struct fake_orders orders, const char *what)
{
	const struct outcome outcome = run(patient(point), orders);
	const struct drv_attempt *attempt = &outcome.attempt;

	tap_ok(attempt->status == DRV_DONE && outcome.operations > 0 && attempt->mismatches == 0 &&
		       outcome.lost == 0 &&
		       (!attempt->executions_known ||
			attempt->executions_expected == attempt->executions_server) &&
		       attempt->verified_before > 0 && attempt->verified_after > 0 && outcome.elapsed_ns > 0,
	       "%s, %" PRIu64 "/%" PRIu64 " bytes, depth %" PRIu64 ": %s", what,
	       point_get(&point, "bytes") + point_get(&point, "request_bytes"),
	       point_get(&point, "reply_bytes"), point_get(&point, "depth"), show(&outcome));
	return outcome;
}

/*
 * Whether a fault that comes every n-th time may not have come, or not where it is looked for, because the machine was
 * at other work and little was measured: the point is then given more time, a few times. What is wrong stays wrong.
 */
static inline bool again(struct drv_point *point, const struct outcome *outcome)
{
	const uint64_t enough = 5000, least_ns = 1000000, most_ns = 1000000000;

	if (outcome->attempt.status == DRV_FAILED || outcome->attempt.status == DRV_REFUSED ||
	    outcome->operations >= enough || point->duration_ns >= most_ns)
		return false;
	point->duration_ns = 4 * (point->duration_ns < least_ns ? least_ns : point->duration_ns);
	if (point->deadline_ns < 2 * point->duration_ns)
		point->deadline_ns = 2 * point->duration_ns;
	return true;
}

static inline void expect_unsound(struct drv_point point, struct fake_orders orders, const char *check,
				  const char *what)
{
	struct outcome outcome;
	bool said;

	point = patient(point);
	do {
		outcome = run(point, orders);
		said = outcome.attempt.status == DRV_UNSOUND && strstr(outcome.failed_checks, check);
	} while (!said && again(&point, &outcome));
	tap_ok(said, "%s: check %s says so: %s", what, check, show(&outcome));
}

/* A deadline is held to the clock; any other failure to the event that brings it, however long that takes to come. */
static inline void expect_failed(struct drv_point point, struct fake_orders orders, enum drv_reason reason,
				 bool broken, const char *what)
{
	const bool timed = reason == DRV_DEADLINE;
	const uint64_t started_ns = drv_now_ns();
	struct outcome outcome;

	if (!timed)
		point.deadline_ns = UINT64_C(60000000000);
	else if (!broken && point.deadline_ns > 100000000)
		point.deadline_ns = 100000000; /* it polls until then, and nothing has to come before */
	do
		outcome = run(point, orders);
	while (outcome.attempt.status == DRV_DONE && again(&point, &outcome));
	tap_ok(outcome.attempt.status == DRV_FAILED && outcome.attempt.fail.reason == reason &&
		       outcome.broken == broken && (!timed || drv_now_ns() - started_ns < 5000000000),
	       "%s: fails with %s%s: %s", what, drv_reason_name(reason), timed ? " in time" : "",
	       show(&outcome));
}

/* Of an unreliable layer that loses few messages: played until it lost some and few, for as long as little was measured. */
static inline struct outcome run_lossy(struct drv_point point, struct fake_orders orders)
{
	struct outcome outcome;

	do
		outcome = run(point, orders);
	while ((outcome.lost == 0 || outcome.lost * 10 >= outcome.operations) && again(&point, &outcome));
	return outcome;
}

/* The same point with messages that are written anew and read whole. */
static inline struct drv_point touched(struct drv_point point)
{
	point_set(&point, "touch", DRV_TOUCH_WRITE_READ);
	return point;
}

#endif
