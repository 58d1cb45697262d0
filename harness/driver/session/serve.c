/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of all endpoints but 0 in the attempts of a launch: does what endpoint 0 orders, and answers. */
#include <string.h>

#include "engine/engine.h"
#include "session/attempt.h"
#include "session/counts.h"
#include "session/role_run.h"
#include "base/text.h"

/* Sends an answer to endpoint 0; `message` is taken over. */
static int answer(struct drv_engine *engine, json_t *message, uint64_t deadline_ns, struct drv_fail *fail)
{
	const int status = message ? drv_oob_send(engine->oob, 0, message, deadline_ns, fail)
				   : drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");

	json_decref(message);
	return status;
}

static json_t *failure(const char *name, const struct drv_fail *why)
{
	return json_pack("{s:s, s:s, s:o}", "m", name, "reason", drv_reason_name(why->reason), "text",
			 drv_json_text(why->text));
}

/* Ends a phase and says what was counted. *over_out: that was the last one. */
static int end_phase(struct drv_role_run *run, const json_t *message, uint64_t deadline_ns, bool *over_out,
		     struct drv_fail *fail)
{
	struct drv_counts counts;
	struct drv_phase phase;
	bool settled = true;
	json_t *reply;

	if (drv_phase_parse(message, &phase, fail))
		return -1;
	if (phase.cancelled)
		settled = drv_role_run_settle(run);
	drv_role_run_phase(run, &phase, &counts);
	if (phase.ended == DRV_STEP_COUNT)
		drv_events_end(&run->engine->events);
	reply = drv_counts_json(&counts);
	if (reply && phase.last &&
	    (json_object_set_new(reply, "settled", json_boolean(settled)) ||
	     (!phase.cancelled &&
	      json_object_set_new(reply, "quantities", drv_record_json(run->record, 0))))) {
		json_decref(reply);
		reply = NULL;
	}
	*over_out = phase.last;
	return answer(run->engine, reply, deadline_ns, fail);
}

/* Runs one step and says how it went. A failure is endpoint 0's to judge, unless the channel to it broke. */
static int run_step(struct drv_role_run *run, const json_t *message, uint64_t deadline_ns,
		    struct drv_fail *fail)
{
	const json_int_t step = json_integer_value(json_object_get(message, "step"));
	const json_int_t serial = json_integer_value(json_object_get(message, "serial"));
	const struct drv_record *record = run->record;
	struct drv_usage usage;
	struct drv_fail why;

	if (!run->role->measures || step < DRV_STEP_VERIFY || step > DRV_STEP_MEASURE)
		return drv_fail_set(fail, DRV_PROTOCOL,
				    "endpoint 0 ordered a step that this role does not have");
	if (drv_role_run_step(run, (enum drv_step)step, (uint64_t)serial, &usage, &why)) {
		if (why.reason == DRV_PEER_LOST)
			drv_engine_explain(run->engine, &why);
		if (why.reason == DRV_STOPPED || why.reason == DRV_PEER_LOST || run->engine->broken) {
			*fail = why;
			return -1;
		}
		return answer(run->engine, failure("acted", &why), deadline_ns, fail);
	}
	return answer(run->engine,
		      json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "m", "acted",
				"operations", drv_json_count(record->operations), "bytes",
				drv_json_count(record->bytes), "lost", drv_json_count(record->lost), "late",
				drv_json_count(record->late), "elapsed_ns",
				drv_json_count(record->elapsed_ns), "overflows",
				drv_json_count(drv_record_overflows(record)), "warmup_operations",
				drv_json_count(record->warmup_operations), "steady", record->warmup_steady,
				"usage", drv_usage_json(&usage, 1)),
		      deadline_ns, fail);
}

/* From "ready" to "finish" or "cancel". */
static int serve_phases(struct drv_role_run *run, uint64_t deadline_ns, struct drv_fail *fail)
{
	bool over = false;

	while (!over) {
		json_t *message;
		const char *name;
		int status;

		if (drv_role_run_serve(run, &message, fail))
			return -1;
		name = json_string_value(json_object_get(message, "m"));
		if (!strcmp(name, "act"))
			status = run_step(run, message, deadline_ns, fail);
		else if (!strcmp(name, "phase") || !strcmp(name, "finish") || !strcmp(name, "cancel"))
			status = end_phase(run, message, deadline_ns, &over, fail);
		else
			status = drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 sent \"%s\" during an attempt",
					      name);
		json_decref(message);
		if (status)
			return -1;
	}
	return 0;
}

static int serve_attempt(struct drv_engine *engine, size_t index, struct drv_fail *fail)
{
	const struct drv_point *point = &engine->launch->points[index];
	const uint64_t deadline_ns = drv_engine_allow(engine, point->deadline_ns + DRV_GRACE_NS);
	struct cadge_sink *before = engine->sink;
	struct drv_record record;
	struct drv_role_run run;
	struct drv_fail why;
	int status;

	drv_record_start(&record, point->pattern->quantities);
	if (drv_role_run_start(&run, engine, index, &record, &why)) {
		status = answer(engine, failure("ready", &why), deadline_ns, fail);
	} else {
		status = answer(engine, json_pack("{s:s, s:i}", "m", "ready", "sleep", (int)run.sleep),
				deadline_ns, fail);
		if (!status)
			status = serve_phases(&run, deadline_ns, fail);
	}
	drv_role_run_stop(&run);
	drv_record_free(&record);
	engine->sink = before;
	return status;
}

/* The partner's part of the machine probe. */
static int probe(struct drv_engine *engine, const json_t *message, uint64_t deadline_ns,
		 struct drv_fail *fail)
{
	const uint32_t at = (uint32_t)json_integer_value(json_object_get(message, "at"));
	const struct drv_machine_probe_values values = drv_machine_probe_measure(&engine->probe, at);
	json_t *reply = drv_machine_probe_json(&values, at, engine->endpoint);

	if (reply && drv_json_set(reply, "m", json_string("witness"))) {
		json_decref(reply);
		reply = NULL;
	}
	return answer(engine, reply, deadline_ns, fail);
}

int drv_serve(struct drv_engine *engine, uint64_t deadline_ns, struct drv_fail *fail)
{
	const struct drv_idle *idle = drv_engine_idle(engine);

	for (;;) {
		json_t *message;
		json_int_t index;
		const char *name;

		if (drv_oob_receive(engine->oob, idle, deadline_ns, &message, fail))
			return -1;
		name = json_string_value(json_object_get(message, "m"));
		if (!strcmp(name, "done")) {
			json_decref(message);
			return 0;
		}
		if (!strcmp(name, "witness")) {
			const int status = probe(engine, message, deadline_ns, fail);

			json_decref(message);
			if (status)
				return -1;
			continue;
		}
		if (strcmp(name, "begin") != 0) {
			drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 sent \"%s\" between attempts", name);
			json_decref(message);
			return -1;
		}
		index = json_is_integer(json_object_get(message, "index"))
				? json_integer_value(json_object_get(message, "index"))
				: -1;
		json_decref(message);
		if (index < 0 || (size_t)index >= engine->launch->points_count)
			return drv_fail_set(fail, DRV_PROTOCOL,
					    "endpoint 0 began an attempt that is not planned");
		if (serve_attempt(engine, (size_t)index, fail))
			return -1;
	}
}
