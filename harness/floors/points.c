/* SPDX-License-Identifier: BSD-3-Clause */
/* The points of a launch: the phases of each, what they count, and whether it is sound. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pin.h"
#include "run.h"
#include "text.h"
#include "usage.h"

#define WARMUP_WINDOW_NS   UINT64_C(100000)
#define FULL_BYTES_MAX     (UINT64_C(16) << 20)
#define OP_DEADLINE_MAX_NS (UINT64_C(200) * FLOOR_NS_PER_MS)
/*
 * Long enough that a process which lost its core for a while is slow, not lost: a lost operation leaves the
 * histogram.
 */
#define OP_DEADLINE_MIN_NS          (UINT64_C(50) * FLOOR_NS_PER_MS)
#define STREAM_BUFFER_BYTES         ((size_t)256 << 10)
#define SWITCHES_BLOCK_MIN_PCT      50u /* voluntary switches in 100 operations, at least */
#define SWITCHES_POLL_MAX_PER_MILLE 10u /* in 1,000 operations, at most */

/* What endpoint 1 says after a phase. */
struct served {
	uint64_t executions, checked, full_checked, mismatches;
	char mismatch[160];
	struct drv_usage usage;
};

static size_t buffer_bytes(const struct drv_point *point)
{
	size_t bytes = (size_t)point->request_bytes;

	if (point->pattern == DRV_STREAM && bytes < STREAM_BUFFER_BYTES)
		bytes = STREAM_BUFFER_BYTES;
	return bytes + 4096;
}

static int loop_start(struct floor_loop *loop, struct floor_run *run, const struct drv_point *point,
		      uint32_t order, struct drv_fail *fail)
{
	memset(loop, 0, sizeof(*loop));
	loop->run = run;
	loop->point = point;
	loop->bytes = (size_t)point->request_bytes;
	loop->seed = drv_mix(run->launch.seed, order + 1);
	loop->out = floor_memory(buffer_bytes(point));
	loop->in = floor_memory(buffer_bytes(point));
	if (!loop->out || !loop->in)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for messages of %zu bytes", loop->bytes);
	return run->floor->begin(loop, fail);
}

static void loop_stop(struct floor_loop *loop)
{
	if (!loop->point)
		return;
	floor_memory_free(loop->out, buffer_bytes(loop->point));
	floor_memory_free(loop->in, buffer_bytes(loop->point));
	memset(loop, 0, sizeof(*loop));
}

/* Forgets the counts of the phase before. Losses stay: what is lost may still arrive late. */
static void loop_phase(struct floor_loop *loop, enum floor_mode mode, uint64_t phase)
{
	loop->mode = mode;
	loop->phase = phase;
	loop->deadline = drv_clock_now(&loop->run->clock) +
			 drv_clock_to_ticks(&loop->run->clock, loop->point->deadline_ns);
	loop->done = loop->executions = loop->checked = loop->full_checked = loop->mismatches = 0;
	loop->mismatch[0] = '\0';
	loop->stopped = false;
}

static int refuse(const struct floor_run *run, const struct drv_point *point, struct drv_fail *fail)
{
	const struct floor *floor = run->floor;

	if (point->pattern != DRV_PINGPONG && point->pattern != DRV_STREAM)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "a floor is a bare exchange: pingpong or stream, not %s",
				    drv_pattern_name(point->pattern));
	if (point->pattern == DRV_STREAM && !floor->stream)
		return drv_fail_set(fail, DRV_NO_CAP, "%s has no stream", floor->name);
	if (point->pattern == DRV_STREAM && point->request_bytes == 0)
		return drv_fail_set(fail, DRV_NO_CAP, "a stream of empty messages has no bandwidth");
	if (point->request_bytes < floor->bytes_min)
		return drv_fail_set(fail, DRV_NO_CAP, "%s", floor->bytes_min_reason);
	if (point->request_bytes > run->bytes_max)
		return drv_fail_set(fail, DRV_MSG_TOO_LARGE,
				    "%s carries at most %" PRIu64 " bytes, wanted %" PRIu64, floor->name,
				    run->bytes_max, point->request_bytes);
	return 0;
}

static int served_parse(const json_t *message, struct served *out, struct drv_fail *fail)
{
	json_int_t counts[4];
	const char *mismatch;

	if (json_unpack((json_t *)(uintptr_t)message, "{s:I, s:I, s:I, s:I, s:s}", "executions", &counts[0],
			"checked", &counts[1], "full_checked", &counts[2], "mismatches", &counts[3],
			"mismatch", &mismatch))
		return drv_fail_set(fail, DRV_PROTOCOL,
				    "the other endpoint sent no usable account of a phase");
	*out = (struct served){.executions = (uint64_t)counts[0],
			       .checked = (uint64_t)counts[1],
			       .full_checked = (uint64_t)counts[2],
			       .mismatches = (uint64_t)counts[3]};
	snprintf(out->mismatch, sizeof(out->mismatch), "%s", mismatch);
	return drv_usage_parse(json_object_get(message, "usage"), &out->usage, fail);
}

/* Sends one message that needs no answer. */
static int say(struct floor_run *run, json_t *message, struct drv_fail *fail)
{
	int status = message ? drv_oob_send(run->oob, message, drv_now_ns() + 5 * FLOOR_NS_PER_S, fail)
			     : drv_fail_set(fail, DRV_MEMORY, "no memory for a message");

	json_decref(message);
	return status;
}

/*
 * One phase, seen from endpoint 0: the other side serves, this one loops, the other side tells what it saw.
 */
static int phase_run(struct floor_loop *loop, uint32_t order, struct served *served,
		     struct drv_usage *usage_out, struct drv_fail *fail)
{
	const uint64_t answer_ns = loop->point->deadline_ns + 5 * FLOOR_NS_PER_S;
	struct drv_usage before, after;
	struct floor_run *run = loop->run;
	json_t *message;
	int status;

	if (say(run,
		json_pack("{s:s, s:i, s:i, s:o}", "m", "phase", "point", (int)order, "mode", (int)loop->mode,
			  "phase", drv_json_count(loop->phase)),
		fail) ||
	    drv_oob_expect(run->oob, "serving", NULL, drv_now_ns() + answer_ns, &message, fail))
		return -1;
	json_decref(message);
	/* Waiting out of band is no part of the work: the counters are read around the loop alone. */
	drv_usage_read(&before);
	loop->end = drv_clock_now(&run->clock) + drv_clock_to_ticks(&run->clock, loop->point->duration_ns);
	status = loop->point->pattern == DRV_STREAM ? run->floor->stream_client(loop)
						    : run->floor->client(loop);
	drv_usage_read(&after);
	*usage_out = drv_usage_since(&before, &after);
	if (status) {
		*fail = loop->fail;
		return -1;
	}
	if (say(run, json_pack("{s:s}", "m", "stop"), fail) ||
	    drv_oob_expect(run->oob, "served", NULL, drv_now_ns() + answer_ns, &message, fail))
		return -1;
	status = served_parse(message, served, fail);
	json_decref(message);
	return status;
}

/* Endpoint 1 counts what came; here it is compared with what was sent. */
static void account(struct floor_loop *loop, struct drv_attempt *attempt, const struct served *served)
{
	attempt->verified_in_loop += loop->checked + served->checked;
	attempt->mismatches += loop->mismatches + served->mismatches;
	if (loop->mismatches)
		drv_check_add(&attempt->checks, "payload", false, "%s", loop->mismatch);
	if (served->mismatches)
		drv_check_add(&attempt->checks, "payload", false, "%s", served->mismatch);
}

static void check_wait_mode(const struct floor_run *run, struct drv_attempt *attempt)
{
	for (int side = 0; side < 2; side++) {
		const uint64_t switches = attempt->cpu[side].thread_voluntary_switches,
			       operations = attempt->operations;
		bool ok = true;

		if (run->block && attempt->point->pattern == DRV_PINGPONG)
			ok = switches * 100 >= operations * SWITCHES_BLOCK_MIN_PCT;
		else if (!run->block)
			ok = switches * 1000 <= operations * SWITCHES_POLL_MAX_PER_MILLE + 1000;
		drv_check_add(&attempt->checks, "wait_mode", ok,
			      "%s: %" PRIu64 " voluntary switches in %" PRIu64 " operations",
			      side ? "server" : "client", switches, operations);
	}
}

static void judge(const struct floor_run *run, struct drv_attempt *attempt, uint64_t lost)
{
	const bool all = attempt->executions_server >= attempt->executions_expected - lost &&
			 attempt->executions_server <= attempt->executions_expected;

	drv_check_add(&attempt->checks, "payload", attempt->mismatches == 0, "%" PRIu64 " mismatches",
		      attempt->mismatches);
	drv_check_add(&attempt->checks, "executions", all,
		      "%" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " lost",
		      attempt->executions_expected, attempt->executions_server, lost);
	if (attempt->histogram)
		drv_check_add(&attempt->checks, "range", attempt->histogram->overflows == 0,
			      "%" PRIu64 " operations took more than 100 s", attempt->histogram->overflows);
	check_wait_mode(run, attempt);
	if (drv_checks_hold(&attempt->checks)) {
		attempt->status = DRV_DONE;
		return;
	}
	attempt->status = DRV_UNSOUND;
	for (size_t i = 0; i < attempt->checks.count; i++)
		if (!attempt->checks.list[i].ok) {
			drv_fail_set(&attempt->fail, DRV_CHECK, "%s: %s", attempt->checks.list[i].name,
				     attempt->checks.list[i].detail);
			return;
		}
}

static int verify(struct floor_loop *loop, uint32_t order, uint64_t phase, struct drv_attempt *attempt,
		  uint64_t *full_out, struct drv_fail *fail)
{
	const uint64_t fit = loop->bytes ? FULL_BYTES_MAX / loop->bytes : 4;
	struct drv_usage usage;
	struct served served;

	loop_phase(loop, FLOOR_VERIFY, phase);
	loop->limit = fit < 1 ? 1 : fit < 4 ? fit : 4;
	if (phase_run(loop, order, &served, &usage, fail))
		return -1;
	account(loop, attempt, &served);
	*full_out = loop->full_checked + served.full_checked;
	return 0;
}

static int warm_up(struct floor_loop *loop, uint32_t order, struct drv_attempt *attempt,
		   struct drv_fail *fail)
{
	const struct drv_clock *clock = &loop->run->clock;
	struct drv_usage usage;
	struct served served;
	uint64_t deadline_ns;

	loop_phase(loop, FLOOR_WARMUP, 0);
	drv_warmup_start(&loop->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, WARMUP_WINDOW_NS),
			 drv_clock_to_ticks(clock, drv_warmup_cap_ns(loop->point->duration_ns)));
	if (phase_run(loop, order, &served, &usage, fail))
		return -1;
	account(loop, attempt, &served);
	attempt->warmup_operations = loop->done;
	attempt->warmup_ns = drv_clock_to_ns(clock, loop->ended - loop->started);
	attempt->warmup_steady = loop->warmup.steady;
	attempt->warmup_rule = DRV_WARMUP_RULE;
	/* From here on an operation is lost after 100 times what is usual, within reason. */
	deadline_ns = drv_clock_to_ns(clock, loop->warmup.median) * 100;
	if (deadline_ns > OP_DEADLINE_MAX_NS || !loop->warmup.median)
		deadline_ns = OP_DEADLINE_MAX_NS;
	if (deadline_ns < OP_DEADLINE_MIN_NS)
		deadline_ns = OP_DEADLINE_MIN_NS;
	loop->op_deadline = drv_clock_to_ticks(clock, deadline_ns);
	return 0;
}

static int measure(struct floor_loop *loop, uint32_t order, struct drv_attempt *attempt,
		   struct drv_fail *fail)
{
	const struct drv_clock *clock = &loop->run->clock;
	const uint64_t lost = loop->lost, late = loop->late;
	struct served served;

	loop_phase(loop, FLOOR_MEASURE, 0);
	loop->attempt = attempt;
	if (phase_run(loop, order, &served, &attempt->cpu[0], fail))
		return -1;
	account(loop, attempt, &served);
	attempt->elapsed_ns = drv_clock_to_ns(clock, loop->ended - loop->started);
	attempt->operations = loop->done;
	attempt->bytes = loop->done * loop->bytes * (loop->point->pattern == DRV_STREAM ? 1 : 2);
	attempt->lost = loop->lost - lost;
	attempt->late = loop->late - late;
	attempt->executions_known = true;
	attempt->executions_expected = loop->done + attempt->lost;
	attempt->executions_server = served.executions;
	attempt->cpu[1] = served.usage;
	attempt->cpu_count = 2;
	return 0;
}

static int attempt_make(struct floor_run *run, uint32_t order, struct drv_result *result,
			struct drv_fail *fail)
{
	struct drv_attempt *attempt = &result->attempts[order];
	uint64_t began = drv_now_ns(), now;
	struct floor_loop *loop = calloc(1, sizeof(*loop));
	int status = -1;

	if (!loop)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a point");
	if (drv_attempt_prepare(attempt, attempt->point->pattern == DRV_PINGPONG, false, fail))
		goto out;
	/* Endpoint 1 begins the point before this one does. */
	if (floor_exchange(run, "begin", json_pack("{s:i}", "point", (int)order), NULL, fail) ||
	    loop_start(loop, run, attempt->point, order, fail))
		goto out;
	loop->op_deadline = drv_clock_to_ticks(&run->clock, OP_DEADLINE_MAX_NS);
	if (verify(loop, order, 1, attempt, &attempt->verified_before, fail))
		goto out;
	now = drv_now_ns();
	result->phases.verify_ns += now - began;
	began = now;
	if (warm_up(loop, order, attempt, fail))
		goto out;
	now = drv_now_ns();
	result->phases.warmup_ns += now - began;
	began = now;
	if (measure(loop, order, attempt, fail))
		goto out;
	now = drv_now_ns();
	result->phases.measure_ns += now - began;
	began = now;
	if (verify(loop, order, 2, attempt, &attempt->verified_after, fail))
		goto out;
	result->phases.verify_ns += drv_now_ns() - began;
	judge(run, attempt, attempt->lost);
	status = 0;
out:
	loop_stop(loop);
	free(loop);
	return status;
}

int points_measure(struct floor_run *run, struct drv_result *result, struct drv_fail *fail)
{
	const struct drv_launch *launch = &run->launch;
	bool broken = false;

	result->attempts = calloc(launch->points_count, sizeof(*result->attempts));
	if (!result->attempts)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the attempts");
	result->attempts_count = launch->points_count;
	for (uint32_t i = 0; i < launch->points_count; i++) {
		struct drv_attempt *attempt = &result->attempts[i];

		attempt->point = &launch->points[i];
		attempt->order = i;
		attempt->started_ns = drv_now_ns() - result->started_ns;
		if (broken) {
			attempt->status = DRV_FAILED;
			attempt->fail = *fail;
		} else if (refuse(run, attempt->point, &attempt->fail)) {
			attempt->status = DRV_REFUSED;
		} else if (attempt_make(run, i, result, fail)) {
			attempt->status = DRV_FAILED;
			attempt->fail = *fail;
			broken = true;
		}
	}
	if (broken)
		return -1;
	return say(run, json_pack("{s:s}", "m", "end"), fail);
}

static json_t *served_json(const struct floor_loop *loop, const struct drv_usage *usage)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:o}", "m", "served", "executions",
			 drv_json_count(loop->executions), "checked", drv_json_count(loop->checked),
			 "full_checked", drv_json_count(loop->full_checked), "mismatches",
			 drv_json_count(loop->mismatches), "mismatch", loop->mismatch, "usage",
			 drv_usage_json(usage, 1));
}

static int phase_serve(struct floor_loop *loop, int mode, uint64_t phase, struct drv_fail *fail)
{
	struct drv_usage before, after;
	int status;

	loop_phase(loop, (enum floor_mode)mode, phase);
	loop->deadline += drv_clock_to_ticks(&loop->run->clock, 2 * FLOOR_NS_PER_S);
	if (say(loop->run, json_pack("{s:s}", "m", "serving"), fail))
		return -1;
	drv_usage_read(&before);
	status = loop->point->pattern == DRV_STREAM ? loop->run->floor->stream_server(loop)
						    : loop->run->floor->server(loop);
	drv_usage_read(&after);
	if (status) {
		*fail = loop->fail;
		return -1;
	}
	after = drv_usage_since(&before, &after);
	return say(loop->run, served_json(loop, &after), fail);
}

/* Handles one message of endpoint 0. 1: it was the last. */
static int handle(struct floor_run *run, struct floor_loop *loop, const json_t *message,
		  struct drv_fail *fail)
{
	const char *name = json_string_value(json_object_get(message, "m"));
	json_int_t point = json_integer_value(json_object_get(message, "point"));
	json_int_t mode = json_integer_value(json_object_get(message, "mode"));
	json_int_t phase = json_integer_value(json_object_get(message, "phase"));

	if (name && !strcmp(name, "end"))
		return 1;
	if (!name || point < 0 || (uint64_t)point >= run->launch.points_count || mode < FLOOR_VERIFY ||
	    mode > FLOOR_MEASURE)
		return drv_fail_set(fail, DRV_PROTOCOL,
				    "endpoint 0 said nothing that makes sense between phases");
	if (!strcmp(name, "begin")) {
		loop_stop(loop);
		if (loop_start(loop, run, &run->launch.points[point], (uint32_t)point, fail))
			return -1;
		return say(run, json_pack("{s:s}", "m", "begin"), fail);
	}
	if (strcmp(name, "phase") || loop->point != &run->launch.points[point])
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 said '%s' between phases", name);
	return phase_serve(loop, (int)mode, (uint64_t)phase, fail);
}

int points_serve(struct floor_run *run, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + run->launch.deadline_ns;
	struct floor_loop *loop = calloc(1, sizeof(*loop));
	json_t *message;
	int status = 0;

	if (!loop)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a point");
	while (!status) {
		status = drv_oob_receive(run->oob, NULL, until_ns, &message, fail);
		if (status)
			break;
		status = handle(run, loop, message, fail);
		json_decref(message);
	}
	loop_stop(loop);
	free(loop);
	return status < 0 ? -1 : 0;
}
