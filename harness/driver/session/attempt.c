/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoint 0's part of an attempt: leads all endpoints through the steps, and collects what they counted. */
#include "session/attempt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "session/counts.h"
#include "session/judge.h"
#include "session/role_run.h"
#include "base/text.h"

struct conductor {
	struct drv_engine *engine;
	const struct drv_point *point;
	struct drv_attempt *attempt;
	struct drv_phases *phases;
	struct drv_role_run run;
	uint64_t deadline_ns;
	size_t endpoints;
	/* how many others measure */
	size_t others_measuring;
	/* operations may be outstanding here */
	bool prepared;
	/* who said that it is ready, and has to be told how it ends */
	bool ready[DRV_ENDPOINTS_MAX];
	struct drv_account accounts[DRV_ENDPOINTS_MAX];
};

static int no_memory(struct drv_fail *fail)
{
	return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
}

/* Sends to every other endpoint, or only to those that measure or are ready. `message` is taken over. */
static int order(struct conductor *conductor, json_t *message, bool only_measuring, bool only_ready,
		 struct drv_fail *fail)
{
	int status = message ? 0 : no_memory(fail);

	for (size_t e = 1; !status && e < conductor->endpoints; e++)
		if ((!only_measuring || conductor->accounts[e].measures) &&
		    (!only_ready || conductor->ready[e]))
			status = drv_oob_send(conductor->engine->oob, (int)e, message, conductor->deadline_ns,
					      fail);
	json_decref(message);
	return status;
}

/* A failure that another endpoint reported, with its name. */
static int reported(const struct conductor *conductor, size_t e, const json_t *message, struct drv_fail *fail)
{
	const char *reason = json_string_value(json_object_get(message, "reason"));
	const char *text = json_string_value(json_object_get(message, "text"));

	return drv_fail_set(fail, drv_reason_from_name(reason), "endpoint %zu (%s): %s", e,
			    conductor->engine->launch->endpoints[e].host, text ? text : "no reason given");
}

/* All others get ready for attempt `index`. 1: one refused, and everybody is back between attempts. */
static int begin(struct conductor *conductor, size_t index, struct drv_fail *fail)
{
	const struct drv_idle *idle = drv_engine_idle(conductor->engine);
	json_t *message = json_pack("{s:s, s:I}", "m", "begin", "index", (json_int_t)index);
	bool refused = false;

	if (order(conductor, message, false, false, fail))
		return -1;
	for (size_t e = 1; e < conductor->endpoints; e++) {
		struct drv_account *account = &conductor->accounts[e];

		if (drv_oob_expect(conductor->engine->oob, (int)e, "ready", idle, conductor->deadline_ns,
				   &message, fail))
			return -1;
		conductor->ready[e] = !json_object_get(message, "reason");
		account->sleep = (enum drv_sleep)json_integer_value(json_object_get(message, "sleep"));
		if (!conductor->ready[e] && !refused) {
			refused = true;
			reported(conductor, e, message, fail);
		}
		json_decref(message);
	}
	return refused ? 1 : 0;
}

/* Ends a phase everywhere, and collects the counts. `settled_out` may be NULL. */
static int end_phase(struct conductor *conductor, const char *name, const struct drv_phase *phase,
		     enum drv_boundary boundary, bool *settled_out, struct drv_fail *fail)
{
	struct drv_engine *engine = conductor->engine;
	const struct drv_idle *idle = drv_engine_idle(engine);
	bool settled = true;

	if (conductor->prepared)
		drv_role_run_phase(&conductor->run, phase, &conductor->accounts[0].counts[boundary]);
	if (order(conductor, drv_phase_json(name, phase), false, true, fail))
		return -1;
	if (phase->ended == DRV_STEP_COUNT)
		drv_events_end(&engine->events);
	for (size_t e = 1; e < conductor->endpoints; e++) {
		json_t *answer;
		int status;

		if (!conductor->ready[e])
			continue;
		if (drv_oob_expect(engine->oob, (int)e, "counts", idle, conductor->deadline_ns, &answer,
				   fail))
			return -1;
		status = drv_counts_parse(answer, &conductor->accounts[e].counts[boundary], fail);
		settled &= !json_is_false(json_object_get(answer, "settled"));
		if (!status && phase->last && !phase->cancelled &&
		    drv_record_merge(conductor->attempt->others, json_object_get(answer, "quantities"),
				     conductor->point->pattern->quantities, (int)e))
			status = drv_fail_set(fail, DRV_PROTOCOL, "endpoint %zu sent invalid quantities", e);
		json_decref(answer);
		if (status)
			return -1;
	}
	if (settled_out)
		*settled_out = settled;
	return 0;
}

/* What an endpoint that measures reports of its step. */
static int take_step_done(struct conductor *conductor, enum drv_step step, const json_t *message,
			  struct drv_fail *fail)
{
	const size_t e = (size_t)json_integer_value(json_object_get(message, "from"));
	struct drv_record *record = &conductor->attempt->record;
	struct drv_account *account = &conductor->accounts[e];
	json_int_t operations, bytes, lost, late, elapsed, overflows, warm;
	int steady;

	if (json_object_get(message, "reason"))
		return reported(conductor, e, message, fail);
	if (step == DRV_STEP_VERIFY)
		return 0;
	if (json_unpack((json_t *)(uintptr_t)message, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
			"operations", &operations, "bytes", &bytes, "lost", &lost, "late", &late,
			"elapsed_ns", &elapsed, "overflows", &overflows, "warmup_operations", &warm, "steady",
			&steady) ||
	    drv_usage_parse(json_object_get(message, "usage"), &account->usage, fail))
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %zu sent no valid report of a step", e);
	if (step == DRV_STEP_COUNT) {
		account->system_calls = account->usage.system_calls;
		conductor->attempt->counted_operations += (uint64_t)warm;
		return 0;
	}
	if (step == DRV_STEP_WARMUP) {
		record->warmup_operations += (uint64_t)warm;
		record->warmup_steady &= steady != 0;
		return 0;
	}
	account->operations = (uint64_t)operations;
	record->operations += (uint64_t)operations;
	record->bytes += (uint64_t)bytes;
	record->lost += (uint64_t)lost;
	record->late += (uint64_t)late;
	if ((uint64_t)elapsed > record->elapsed_ns)
		record->elapsed_ns = (uint64_t)elapsed;
	conductor->attempt->overflows += (uint64_t)overflows;
	return 0;
}

/* Serves until all others that measure have said that they are done. */
static int await_step_done(struct conductor *conductor, enum drv_step step, struct drv_fail *fail)
{
	struct drv_fail first = {0};
	int result = 0;

	for (size_t left = conductor->others_measuring; left > 0;) {
		json_t *message;
		const char *name;

		if (drv_role_run_serve(&conductor->run, &message, fail))
			return -1;
		name = json_string_value(json_object_get(message, "m"));
		if (strcmp(name, "acted") != 0) {
			drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent \"%s\" during a step",
				     (int)json_integer_value(json_object_get(message, "from")), name);
			json_decref(message);
			return -1;
		}
		left--;
		if (take_step_done(conductor, step, message, fail) && !result) {
			first = *fail;
			result = -1;
		}
		json_decref(message);
	}
	if (result)
		*fail = first;
	return result;
}

/* One step at all endpoints that measure. */
static int run_step(struct conductor *conductor, enum drv_step step, uint64_t serial, struct drv_fail *fail)
{
	struct drv_account *own = &conductor->accounts[0];
	struct drv_usage usage;

	if (conductor->others_measuring &&
	    order(conductor,
		  json_pack("{s:s, s:i, s:I}", "m", "act", "step", (int)step, "serial", (json_int_t)serial),
		  true, true, fail))
		return -1;
	if (own->measures) {
		if (drv_role_run_step(&conductor->run, step, serial, &usage, fail))
			return -1;
		if (step == DRV_STEP_COUNT) {
			own->system_calls = usage.system_calls;
			conductor->attempt->counted_operations +=
				conductor->attempt->record.warmup_operations;
		}
		if (step == DRV_STEP_MEASURE) {
			own->usage = usage;
			own->operations = conductor->attempt->record.operations;
		}
	} else if (step == DRV_STEP_WARMUP) {
		conductor->attempt->record.warmup_steady = true; /* unless somebody else's is not */
	}
	return conductor->others_measuring ? await_step_done(conductor, step, fail) : 0;
}

static int run_step_timed(struct conductor *conductor, enum drv_step step, uint64_t serial,
			  uint64_t *total_ns, struct drv_fail *fail)
{
	const uint64_t started_ns = drv_now_ns();
	const int status = run_step(conductor, step, serial, fail);
	const uint64_t span_ns = drv_now_ns() - started_ns;

	*total_ns += span_ns;
	if (step == DRV_STEP_WARMUP) {
		conductor->attempt->warmup_ns = span_ns;
		conductor->attempt->warmup_rule = DRV_WARMUP_RULE;
	}
	return status;
}

static struct drv_phase phase_after(const struct conductor *conductor, enum drv_step ended, bool full,
				    uint64_t serial, bool last)
{
	return (struct drv_phase){
		.ended = ended,
		.full = full,
		.serial = serial,
		.last = last,
		.control = conductor->run.role->control ? conductor->run.role->control(&conductor->run) : 0,
	};
}

/* What each endpoint stamped while it measured. */
static void conclude(struct conductor *conductor)
{
	struct drv_stamps stamps[DRV_ENDPOINTS_MAX];

	if (!conductor->run.role->conclude)
		return;
	for (size_t e = 0; e < conductor->endpoints; e++) {
		const struct drv_stamps *before = &conductor->accounts[e].counts[DRV_BEFORE].stamps,
					*after = &conductor->accounts[e].counts[DRV_AFTER].stamps;

		for (size_t sort = 0; sort < 2; sort++) {
			stamps[e].count[sort] = after->count[sort] - before->count[sort];
			stamps[e].sum[sort] = after->sum[sort] - before->sum[sort];
		}
	}
	conductor->run.role->conclude(&conductor->run, stamps, conductor->endpoints);
}

/* System calls, where this launch counts them. */
static int count(struct conductor *conductor, struct drv_fail *fail)
{
	struct drv_phase phase;

	if (!conductor->engine->events.calls)
		return 0;
	if (run_step_timed(conductor, DRV_STEP_COUNT, 1, &conductor->phases->warmup_ns, fail))
		return -1;
	phase = phase_after(conductor, DRV_STEP_COUNT, false, 1, false);
	if (end_phase(conductor, "phase", &phase, DRV_COUNTED, NULL, fail))
		return -1;
	for (size_t e = 0; e < conductor->endpoints; e++)
		if (!conductor->accounts[e].measures)
			conductor->accounts[e].system_calls =
				conductor->accounts[e].counts[DRV_COUNTED].usage.system_calls;
	return 0;
}

/* All steps between "begin" and the verdict. */
static int run_phases(struct conductor *conductor, struct drv_fail *fail)
{
	struct drv_phases *phases = conductor->phases;
	struct drv_phase phase;

	if (run_step_timed(conductor, DRV_STEP_VERIFY, 1, &phases->verify_ns, fail))
		return -1;
	phase = phase_after(conductor, DRV_STEP_VERIFY, false, 1, false);
	if (end_phase(conductor, "phase", &phase, DRV_AFTER_VERIFY, NULL, fail) || count(conductor, fail) ||
	    run_step_timed(conductor, DRV_STEP_WARMUP, 1, &phases->warmup_ns, fail))
		return -1;
	phase = phase_after(conductor, DRV_STEP_WARMUP, false, 1, false);
	if (end_phase(conductor, "phase", &phase, DRV_BEFORE, NULL, fail) ||
	    run_step_timed(conductor, DRV_STEP_MEASURE, 1, &phases->measure_ns, fail))
		return -1;
	phase = phase_after(conductor, DRV_STEP_MEASURE, true, 2, false);
	if (end_phase(conductor, "phase", &phase, DRV_AFTER, NULL, fail))
		return -1;
	conclude(conductor);
	if (run_step_timed(conductor, DRV_STEP_VERIFY, 2, &phases->verify_ns, fail))
		return -1;
	phase = phase_after(conductor, DRV_STEP_VERIFY, false, 2, true);
	if (end_phase(conductor, "finish", &phase, DRV_LAST, NULL, fail))
		return -1;
	memset(conductor->ready, 0, sizeof(conductor->ready));
	drv_judge(conductor->attempt, conductor->accounts, conductor->endpoints,
		  (conductor->engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0, conductor->engine->block);
	return 0;
}

/* Everybody who is ready gives up the attempt. True: nothing is outstanding anywhere. */
static bool cancel(struct conductor *conductor)
{
	const struct drv_phase phase = {.serial = 9, .last = true, .cancelled = true};
	struct drv_fail why;
	bool settled;

	conductor->prepared = false; /* our own counts are of no use any more */
	conductor->deadline_ns = drv_now_ns() + DRV_GRACE_NS;
	return end_phase(conductor, "cancel", &phase, DRV_LAST, &settled, &why) == 0 && settled;
}

/* After a failure: can the launch go on? Everything must come back, and all must be between attempts again. */
static bool recover(struct conductor *conductor, const struct drv_fail *fail)
{
	struct drv_engine *engine = conductor->engine;

	if (engine->broken || engine->down_code || drv_stop_signal)
		return false;
	if (fail->reason != DRV_DEADLINE && fail->reason != DRV_LIBRARY && fail->reason != DRV_MEMORY &&
	    fail->reason != DRV_NO_CAP)
		return false;
	if (conductor->prepared && !drv_role_run_settle(&conductor->run))
		return false;
	return cancel(conductor);
}

/* Which endpoint has which role. */
static void assign_roles(struct conductor *conductor)
{
	const struct drv_launch *launch = conductor->engine->launch;

	conductor->endpoints = launch->endpoints_count;
	for (size_t e = 0; e < conductor->endpoints; e++) {
		const struct drv_pattern *pattern = conductor->point->pattern;
		const struct drv_role role = conductor->engine->self
						     ? drv_role_self(pattern)
						     : *drv_role_find(pattern, launch->endpoints[e].role);

		conductor->accounts[e].role = role.name;
		conductor->accounts[e].measures = drv_role_measures(&role, conductor->point->parameters);
		conductor->accounts[e].system_calls = -1;
		conductor->others_measuring += e > 0 && conductor->accounts[e].measures;
	}
}

int drv_attempt_run(struct drv_engine *engine, size_t index, struct drv_attempt *attempt,
		    struct drv_phases *phases)
{
	struct conductor *conductor = calloc(1, sizeof(*conductor));
	struct cadge_sink *sink = engine->sink;
	struct drv_fail fail = {0};
	int status;

	drv_record_start(&attempt->record, attempt->point->pattern->quantities);
	attempt->others = json_object();
	attempt->cpu = calloc(engine->launch->endpoints_count, sizeof(*attempt->cpu));
	if (!conductor || !attempt->others || !attempt->cpu) {
		free(conductor);
		attempt->status = DRV_FAILED;
		drv_fail_set(&attempt->fail, DRV_MEMORY, "no memory for an attempt");
		return 0;
	}
	conductor->engine = engine;
	conductor->point = attempt->point;
	conductor->attempt = attempt;
	conductor->phases = phases;
	conductor->deadline_ns = drv_engine_allow(engine, attempt->point->deadline_ns) + DRV_GRACE_NS;
	assign_roles(conductor);
	status = engine->self ? 0 : begin(conductor, index, &fail);
	if (!status) {
		status = drv_role_run_start(&conductor->run, engine, index, &attempt->record, &fail);
		conductor->prepared = !status;
		conductor->accounts[0].sleep = conductor->run.sleep;
	}
	if (!status)
		status = run_phases(conductor, &fail);
	if (status < 0 && fail.reason == DRV_PEER_LOST)
		drv_engine_explain(engine, &fail);
	if (status) {
		/* what an end lacks for it is found when it gets ready, before anything was begun */
		attempt->status = status > 0 && drv_reason_is_refusal(fail.reason) ? DRV_REFUSED : DRV_FAILED;
		attempt->fail = fail;
		if (status < 0 ? !recover(conductor, &fail) : !cancel(conductor))
			engine->broken = true;
	}
	drv_role_run_stop(&conductor->run);
	engine->sink = sink;
	free(conductor);
	return engine->broken ? -1 : 0;
}
