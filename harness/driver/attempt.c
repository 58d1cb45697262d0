/* SPDX-License-Identifier: BSD-3-Clause */
#include "attempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "both.h"
#include "text.h"

#define GRACE_NS UINT64_C(2000000000)

/* Everything of one attempt on the client. One of client, stream and remote is in use. */
struct acting {
	struct drv_engine *engine;
	const struct drv_point *point;
	struct drv_attempt *attempt;
	struct drv_phases *phases;
	uint64_t deadline_ns;
	bool prepared; /* operations may be outstanding */
	struct drv_client client;
	struct drv_stream stream;
	struct drv_remote remote;
	struct drv_serving serving; /* place self */
	struct drv_both both;       /* place self */
};

/* What the acting side counted, whatever its pattern. */
struct totals {
	uint64_t posted, key_sum, checked, full_checked, mismatches, waits;
	const char *mismatch;
};

static struct totals totals_of(const struct acting *acting)
{
	switch (acting->point->pattern) {
	case DRV_STREAM: {
		const struct drv_stream *stream = &acting->stream;

		return (struct totals){stream->posted, stream->key_sum, 0, 0, stream->mismatches,
				       stream->waits,  stream->mismatch};
	}
	case DRV_ONESIDED: {
		const struct drv_remote *remote = &acting->remote;

		return (struct totals){remote->posted,     0,
				       remote->checked,    remote->full_checked,
				       remote->mismatches, remote->waits,
				       remote->mismatch};
	}
	default: {
		const struct drv_client *client = &acting->client;

		return (struct totals){client->posted,       client->key_sum,    client->checked,
				       client->full_checked, client->mismatches, client->waits,
				       client->mismatch};
	}
	}
}

static int act_verify(struct acting *acting, uint64_t phase, struct drv_fail *fail)
{
	const uint64_t started_ns = drv_now_ns();
	int status;

	if (acting->point->pattern == DRV_STREAM)
		status = drv_stream_verify(&acting->stream, phase, fail);
	else if (acting->point->pattern == DRV_ONESIDED)
		status = drv_remote_verify(&acting->remote, phase, fail);
	else
		status = drv_client_verify(&acting->client, phase, fail);
	acting->phases->verify_ns += drv_now_ns() - started_ns;
	return status;
}

static int act_warmup(struct acting *acting, struct drv_fail *fail)
{
	const uint64_t cap_ns = drv_warmup_cap_ns(acting->point->duration_ns);
	const uint64_t started_ns = drv_now_ns();
	const struct drv_warmup *warmup;
	int status;

	if (acting->point->pattern == DRV_STREAM) {
		status = drv_stream_warmup(&acting->stream, cap_ns, fail);
		warmup = &acting->stream.warmup;
	} else if (acting->point->pattern == DRV_ONESIDED) {
		status = drv_remote_warmup(&acting->remote, cap_ns, fail);
		warmup = &acting->remote.warmup;
	} else {
		status = drv_client_warmup(&acting->client, cap_ns, fail);
		warmup = &acting->client.warmup;
	}
	acting->attempt->warmup_rule = DRV_WARMUP_RULE;
	acting->attempt->warmup_operations = warmup->operations;
	acting->attempt->warmup_steady = warmup->steady;
	acting->attempt->warmup_ns = drv_now_ns() - started_ns;
	acting->phases->warmup_ns += acting->attempt->warmup_ns;
	return status;
}

static int act_measure(struct acting *acting, struct drv_fail *fail)
{
	const uint64_t started_ns = drv_now_ns();
	int status;

	if (acting->point->pattern == DRV_STREAM)
		status = drv_stream_measure(&acting->stream, acting->attempt, fail);
	else if (acting->point->pattern == DRV_ONESIDED)
		status = drv_remote_measure(&acting->remote, acting->attempt, fail);
	else
		status = drv_client_measure(&acting->client, acting->attempt, fail);
	acting->phases->measure_ns += drv_now_ns() - started_ns;
	return status;
}

/* Ends a phase at the server, gets its counts, and names the next phase. */
static int tell(struct acting *acting, const char *name, const struct drv_phase *phase,
		struct drv_counts *counts_out, struct drv_fail *fail)
{
	struct drv_engine *engine = acting->engine;
	const struct drv_idle idle = drv_engine_idle(engine);
	json_t *message, *answer;
	int status;

	if (engine->self) {
		drv_serving_phase(&acting->serving, phase, counts_out);
		return 0;
	}
	message = json_pack("{s:s, s:b, s:I, s:i, s:I}", "m", name, "full", phase->full, "phase",
			    (json_int_t)phase->phase, "inspect", phase->inspect, "puts",
			    (json_int_t)phase->puts);
	if (!message)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_send(engine->oob, message, acting->deadline_ns, fail);
	json_decref(message);
	if (status || drv_oob_expect(engine->oob, "counts", &idle, acting->deadline_ns, &answer, fail))
		return -1;
	status = drv_counts_parse(answer, counts_out, fail);
	json_decref(answer);
	return status;
}

/* The phase that follows, with what the server has to look at in memory that we put to. */
static struct drv_phase phase_after(const struct acting *acting, bool full, uint64_t serial, int inspect)
{
	const bool put = acting->point->operation == DRV_PUT;

	return (struct drv_phase){full, serial, put ? inspect : 0, put ? acting->remote.next_number : 0};
}

static void check_executions(struct acting *acting, const struct drv_counts *before,
			     const struct drv_counts *after, const struct totals *from,
			     const struct totals *to)
{
	struct drv_attempt *attempt = acting->attempt;
	const bool reliable = (acting->engine->both.caps & CADGE_CAP_RELIABLE) != 0;
	const uint64_t expected = to->posted - from->posted;
	uint64_t seen = after->executions - before->executions;
	bool ok;

	if (acting->point->pattern == DRV_ONESIDED && acting->point->operation != DRV_FETCH_ADD)
		return;
	if (acting->point->operation == DRV_FETCH_ADD) {
		seen = after->counter - before->counter;
		ok = seen == expected;
	} else if (reliable) {
		ok = seen == expected && to->key_sum == after->key_sum;
	} else {
		ok = seen <= expected && attempt->operations <= seen;
	}
	attempt->executions_known = true;
	attempt->executions_expected = expected;
	attempt->executions_server = seen;
	drv_check_add(&attempt->checks, "executions", ok, "%s%" PRIu64 " handed over, %" PRIu64 " executed",
		      seen == expected && !ok ? "counts agree, contents do not: " : "", expected, seen);
}

/*
 * One side's proof that it waited as asked. A message may be there before its receiver has gone to sleep, and
 * parts of a long one are: a tenth is asked of a layer that sleeps, as by the conformance suite; one that
 * only looks never does.
 */
static void check_wait(struct drv_attempt *attempt, const char *side, bool block, uint64_t switches,
		       uint64_t operations, bool sleeps_due)
{
	if (!block)
		/* a handful may be page faults or the kernel's own work: too few to be a way of waiting */
		drv_check_add(&attempt->checks, "wait_mode", switches < 4 || switches * 100 < operations,
			      "%s polled, yet slept %" PRIu64 " times in %" PRIu64 " operations", side,
			      switches, operations);
	else if (sleeps_due)
		drv_check_add(&attempt->checks, "wait_mode", switches * 10 >= operations,
			      "%s was to sleep, and did %" PRIu64 " times in %" PRIu64 " operations", side,
			      switches, operations);
}

static void check_waits(struct acting *acting, uint64_t waits)
{
	struct drv_attempt *attempt = acting->attempt;
	const struct drv_point *point = acting->point;
	const bool block = acting->engine->block;
	const bool round_trips =
		point->depth == 1 && (point->pattern == DRV_PINGPONG || point->pattern == DRV_RPC);
	/* where an operation may be over at once, sleeping is due only if the loop had to wait */
	const bool client_due =
		point->depth == 1 && point->pattern != DRV_STREAM &&
		(acting->engine->self || !round_trips ? waits * 2 >= attempt->operations : true);

	drv_check_add(&attempt->checks, "wait_mode", true, "%s", "");
	check_wait(attempt, "client", block, attempt->cpu[0].thread_voluntary_switches, attempt->operations,
		   client_due);
	if (acting->engine->self || (point->pattern == DRV_ONESIDED && point->target == DRV_TARGET_PASSIVE))
		return;
	check_wait(attempt, "server", block, attempt->cpu[1].thread_voluntary_switches, attempt->operations,
		   round_trips);
}

/* The checks in the order of what they say about the data, then the verdict. */
static void judge(struct acting *acting, const struct drv_counts *before, const struct drv_counts *after,
		  const struct drv_counts *last, const struct totals *from, const struct totals *to)
{
	struct drv_attempt *attempt = acting->attempt;
	const struct totals mine = totals_of(acting);
	const uint64_t overflows = attempt->histogram ? attempt->histogram->overflows : 0;
	const bool confirmed_too_many = acting->point->pattern == DRV_STREAM &&
					acting->stream.confirmed_count > acting->stream.run_posted;

	attempt->mismatches = mine.mismatches + last->mismatches + confirmed_too_many;
	drv_check_add(&attempt->checks, "payload", attempt->mismatches == 0, "%s",
		      mine.mismatches      ? mine.mismatch
		      : confirmed_too_many ? "more messages confirmed than were sent"
					   : last->mismatch);
	check_executions(acting, before, after, from, to);
	check_waits(acting, to->waits - from->waits);
	drv_check_add(&attempt->checks, "range", overflows == 0, "%" PRIu64 " samples above 100 s",
		      overflows);
	drv_check_add(&attempt->checks, "samples", attempt->operations > 0, "%" PRIu64 " operations",
		      attempt->operations);
	attempt->status = DRV_DONE;
	for (size_t i = 0; i < attempt->checks.count; i++)
		if (!attempt->checks.list[i].ok && attempt->status == DRV_DONE) {
			attempt->status = DRV_UNSOUND;
			drv_fail_set(&attempt->fail, DRV_CHECK, "check %s failed: %s",
				     attempt->checks.list[i].name, attempt->checks.list[i].detail);
		}
}

/* All steps between "begin" and the verdict. */
static int go_through(struct acting *acting, struct drv_fail *fail)
{
	struct drv_attempt *attempt = acting->attempt;
	struct drv_counts warm, before, after, last;
	struct totals first, from, to, end;
	struct drv_usage usage[2];
	struct drv_phase phase;

	if (act_verify(acting, 1, fail))
		return -1;
	phase = phase_after(acting, false, 1, 2);
	if (tell(acting, "phase", &phase, &warm, fail) || act_warmup(acting, fail))
		return -1;
	first = totals_of(acting);
	attempt->verified_before = first.full_checked + warm.full_checked;
	phase = phase_after(acting, false, 1, 0);
	if (tell(acting, "phase", &phase, &before, fail))
		return -1;
	from = totals_of(acting);
	drv_usage_read(&usage[0]);
	if (act_measure(acting, fail))
		return -1;
	drv_usage_read(&usage[1]);
	to = totals_of(acting);
	phase = phase_after(acting, true, 2, 1);
	if (tell(acting, "phase", &phase, &after, fail) || act_verify(acting, 2, fail))
		return -1;
	phase = phase_after(acting, false, 2, 2);
	if (tell(acting, "finish", &phase, &last, fail))
		return -1;
	end = totals_of(acting);
	attempt->cpu[0] = drv_usage_since(&usage[0], &usage[1]);
	attempt->cpu[1] = drv_usage_since(&before.usage, &after.usage);
	attempt->cpu_count = acting->engine->self ? 1 : 2;
	attempt->verified_in_loop = to.checked - from.checked + after.checked - before.checked;
	attempt->verified_after = end.full_checked - to.full_checked + last.full_checked - after.full_checked;
	judge(acting, &before, &after, &last, &from, &to);
	return 0;
}

/* Asks the server to get ready, and gets ready. */
static int prepare(struct acting *acting, size_t index, const struct drv_target_memory *target,
		   struct cadge_remote *handle, struct drv_fail *fail)
{
	struct drv_engine *engine = acting->engine;
	const struct drv_point *point = acting->point;
	const uint64_t seed = drv_attempt_seed(engine->launch, index);
	struct drv_server *server =
		engine->self && point->pattern != DRV_ONESIDED ? &acting->serving.server : NULL;
	int status;

	if (engine->self && drv_serving_start(&acting->serving, engine, point, index, target, fail))
		return -1;
	if (drv_attempt_prepare(acting->attempt, point->pattern != DRV_STREAM, point->operation == DRV_PUT,
				fail))
		return -1;
	if (point->pattern == DRV_STREAM)
		status = drv_stream_start(&acting->stream, engine, point, seed, server, fail);
	else if (point->pattern == DRV_ONESIDED)
		status = drv_remote_start(&acting->remote, engine, point, seed, handle, fail);
	else
		status = drv_client_start(&acting->client, engine, point, seed, server, fail);
	if (status)
		return -1;
	if (point->pattern == DRV_STREAM)
		engine->sink = acting->stream.sink;
	else if (point->pattern == DRV_ONESIDED)
		engine->sink = &acting->remote.port.sink;
	else
		engine->sink = acting->client.sink;
	if (server) {
		drv_both_start(&acting->both, engine, server,
			       point->pattern == DRV_STREAM ? NULL : &acting->client,
			       point->pattern == DRV_STREAM ? &acting->stream : NULL);
		engine->sink = &acting->both.port.sink;
	}
	return 0;
}

static void put_away(struct acting *acting)
{
	if (acting->point->pattern == DRV_STREAM)
		drv_stream_stop(&acting->stream);
	else if (acting->point->pattern == DRV_ONESIDED)
		drv_remote_stop(&acting->remote);
	else
		drv_client_stop(&acting->client);
	drv_serving_stop(&acting->serving);
}

/* Tells the server that attempt `index` begins. 1: it refused, and is back between attempts. */
static int begin(struct acting *acting, size_t index, struct drv_fail *fail)
{
	struct drv_engine *engine = acting->engine;
	const struct drv_idle idle = drv_engine_idle(engine);
	json_t *message = json_pack("{s:s, s:I}", "m", "begin", "index", (json_int_t)index);
	json_t *ready;
	int status = 0;

	if (!message)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_send(engine->oob, message, acting->deadline_ns, fail);
	json_decref(message);
	if (status || drv_oob_expect(engine->oob, "ready", &idle, acting->deadline_ns, &ready, fail))
		return -1;
	if (json_object_get(ready, "reason")) {
		const char *text = json_string_value(json_object_get(ready, "text"));

		drv_fail_set(fail, drv_reason_from_name(json_string_value(json_object_get(ready, "reason"))),
			     "the server could not get ready: %s", text ? text : "no reason given");
		status = 1;
	}
	json_decref(ready);
	return status;
}

/* After a failure: can the launch go on? Everything must come back, and the server must be between attempts
 * again. */
static bool recover(struct acting *acting, const struct drv_fail *fail)
{
	struct drv_engine *engine = acting->engine;
	const struct drv_phase phase = {.phase = 9};
	struct drv_counts counts;
	struct drv_fail why;
	bool settled;

	if (engine->broken || engine->down_code || drv_stop_signal)
		return false;
	if (fail->reason != DRV_DEADLINE && fail->reason != DRV_LIBRARY && fail->reason != DRV_MEMORY)
		return false;
	if (!acting->prepared)
		settled = true;
	else if (acting->point->pattern == DRV_STREAM)
		settled = drv_stream_settle(&acting->stream);
	else if (acting->point->pattern == DRV_ONESIDED)
		settled = drv_remote_settle(&acting->remote);
	else
		settled = drv_client_settle(&acting->client);
	if (!settled)
		return false;
	acting->deadline_ns = drv_now_ns() + GRACE_NS;
	return tell(acting, "cancel", &phase, &counts, &why) == 0;
}

int drv_attempt_run(struct drv_engine *engine, size_t index, const struct drv_target_memory *target,
		    struct cadge_remote *handle, struct drv_attempt *attempt, struct drv_phases *phases)
{
	static struct acting acting; /* large; one attempt at a time */
	struct cadge_sink *sink = engine->sink;
	struct drv_fail fail = {0};
	int status;

	memset(&acting, 0, sizeof(acting));
	acting.engine = engine;
	acting.point = attempt->point;
	acting.attempt = attempt;
	acting.phases = phases;
	acting.deadline_ns = drv_engine_allow(engine, attempt->point->deadline_ns) + GRACE_NS;
	status = engine->self ? 0 : begin(&acting, index, &fail);
	if (!status)
		status = prepare(&acting, index, target, handle, &fail);
	acting.prepared = !status;
	if (!status)
		status = go_through(&acting, &fail);
	if (status < 0 && fail.reason == DRV_PEER_LOST)
		drv_engine_explain(engine, &fail);
	if (status) {
		attempt->status = DRV_FAILED;
		attempt->fail = fail;
		if (status < 0 && !recover(&acting, &fail))
			engine->broken = true;
	}
	put_away(&acting);
	engine->sink = sink;
	return engine->broken ? -1 : 0;
}
