/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attempt.h"
#include "text.h"

#define GRACE_NS UINT64_C(2000000000)

uint64_t drv_attempt_seed(const struct drv_launch *launch, size_t index)
{
	return drv_mix(launch->seed, index + 1);
}

json_t *drv_counts_json(const struct drv_counts *counts)
{
	char key_sum[20];

	snprintf(key_sum, sizeof(key_sum), "%" PRIx64, counts->key_sum);
	return json_pack(
		"{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "m", "counts", "executions",
		drv_json_count(counts->executions), "key_sum", key_sum, "checked",
		drv_json_count(counts->checked), "full_checked", drv_json_count(counts->full_checked),
		"mismatches", drv_json_count(counts->mismatches), "counter", drv_json_count(counts->counter),
		"mismatch", drv_json_text(counts->mismatch), "usage", drv_usage_json(&counts->usage, 1));
}

int drv_counts_parse(const json_t *object, struct drv_counts *counts_out, struct drv_fail *fail)
{
	json_int_t executions, checked, full_checked, mismatches, counter;
	const char *key_sum, *mismatch;
	json_t *usage;
	char end;

	if (json_unpack((json_t *)object, "{s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "executions",
			&executions, "key_sum", &key_sum, "checked", &checked, "full_checked", &full_checked,
			"mismatches", &mismatches, "counter", &counter, "mismatch", &mismatch, "usage",
			&usage) ||
	    sscanf(key_sum, "%" SCNx64 "%c", &counts_out->key_sum, &end) != 1 || executions < 0 ||
	    checked < 0 || full_checked < 0 || mismatches < 0 || counter < 0)
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent counts that make no sense");
	counts_out->executions = (uint64_t)executions;
	counts_out->checked = (uint64_t)checked;
	counts_out->full_checked = (uint64_t)full_checked;
	counts_out->mismatches = (uint64_t)mismatches;
	counts_out->counter = (uint64_t)counter;
	snprintf(counts_out->mismatch, sizeof(counts_out->mismatch), "%s", mismatch);
	return drv_usage_parse(usage, &counts_out->usage, fail);
}

int drv_serving_start(struct drv_serving *serving, struct drv_engine *engine, const struct drv_point *point,
		      size_t index, const struct drv_target_memory *target, struct drv_fail *fail)
{
	memset(serving, 0, sizeof(*serving));
	serving->engine = engine;
	serving->point = point;
	serving->target = target;
	serving->seed = drv_attempt_seed(engine->launch, index);
	serving->phase = 1;
	if (point->pattern == DRV_ONESIDED) {
		drv_port_start(&serving->server.port, engine);
		drv_target_prepare(target, point, serving->seed, serving->phase);
	} else {
		if (drv_server_start(&serving->server, engine, point, serving->seed, fail))
			return -1;
		drv_server_phase(&serving->server, true, serving->phase);
	}
	return 0;
}

void drv_serving_stop(struct drv_serving *serving)
{
	if (serving->point && serving->point->pattern != DRV_ONESIDED)
		drv_server_stop(&serving->server);
}

static void inspect(struct drv_serving *serving, const struct drv_phase *phase)
{
	serving->mismatches += drv_target_inspect(serving->target, serving->point, serving->seed,
						  serving->phase, phase->inspect == 2, phase->puts);
	if (phase->inspect == 2)
		serving->full_checked += drv_full_messages(serving->point);
}

void drv_serving_phase(struct drv_serving *serving, const struct drv_phase *phase,
		       struct drv_counts *counts_out)
{
	struct drv_server *server = &serving->server;

	memset(counts_out, 0, sizeof(*counts_out));
	if (serving->point->pattern == DRV_ONESIDED) {
		if (phase->inspect)
			inspect(serving, phase);
		counts_out->full_checked = serving->full_checked;
		counts_out->mismatches = serving->mismatches;
		counts_out->counter = drv_target_counter(serving->target);
		if (serving->mismatches)
			snprintf(counts_out->mismatch, sizeof(counts_out->mismatch),
				 "server: %" PRIu64 " slots of the region do not hold what was put",
				 serving->mismatches);
		/* what gets find changes with the phase, so that stale bytes show */
		if (phase->phase != serving->phase && serving->point->operation == DRV_GET)
			drv_target_prepare(serving->target, serving->point, serving->seed, phase->phase);
	} else {
		counts_out->executions = server->executions;
		counts_out->key_sum = server->key_sum;
		counts_out->checked = server->checked;
		counts_out->full_checked = server->full_checked;
		counts_out->mismatches = server->mismatches;
		snprintf(counts_out->mismatch, sizeof(counts_out->mismatch), "%s", server->mismatch);
		drv_server_phase(server, phase->full, phase->phase);
	}
	serving->phase = phase->phase;
	drv_usage_read(&counts_out->usage);
}

/* Waits for the client's next word, in the way that the point asks of its target. */
static int next_word(struct drv_serving *serving, uint64_t deadline_ns, json_t **message_out,
		     struct drv_fail *fail)
{
	struct drv_engine *engine = serving->engine;
	const struct drv_idle idle = drv_engine_idle(engine);

	if (serving->point->pattern != DRV_ONESIDED)
		return drv_server_run(&serving->server, message_out, fail);
	return drv_oob_receive(engine->oob, serving->point->target == DRV_TARGET_PASSIVE ? NULL : &idle,
			       deadline_ns, message_out, fail);
}

static int read_phase(const json_t *message, struct drv_phase *phase_out, struct drv_fail *fail)
{
	json_int_t serial, puts;
	int full, look;

	if (json_unpack((json_t *)message, "{s:b, s:I, s:i, s:I}", "full", &full, "phase", &serial, "inspect",
			&look, "puts", &puts) ||
	    serial < 0 || puts < 0)
		return drv_fail_set(fail, DRV_PROTOCOL,
				    "the other endpoint sent a phase that makes no sense");
	*phase_out = (struct drv_phase){full != 0, (uint64_t)serial, look, (uint64_t)puts};
	return 0;
}

static int send_counts(struct drv_engine *engine, const struct drv_counts *counts, uint64_t deadline_ns,
		       struct drv_fail *fail)
{
	json_t *answer = drv_counts_json(counts);
	int status;

	if (!answer)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_send(engine->oob, answer, deadline_ns, fail);
	json_decref(answer);
	return status;
}

/* From "ready" to "finish" or "cancel". */
static int serve_phases(struct drv_serving *serving, uint64_t deadline_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = serving->engine;
	bool over = false;

	while (!over) {
		struct drv_phase phase;
		struct drv_counts counts;
		json_t *message;
		const char *name;
		int status;

		if (next_word(serving, deadline_ns, &message, fail))
			return -1;
		name = json_string_value(json_object_get(message, "m"));
		over = !strcmp(name, "finish") || !strcmp(name, "cancel");
		if (!over && strcmp(name, "phase") != 0)
			status = drv_fail_set(fail, DRV_PROTOCOL,
					      "the other endpoint sent \"%s\" during an attempt", name);
		else
			status = read_phase(message, &phase, fail);
		json_decref(message);
		if (status)
			return -1;
		drv_serving_phase(serving, &phase, &counts);
		if (send_counts(engine, &counts, deadline_ns, fail))
			return -1;
	}
	return 0;
}

static int serve_attempt(struct drv_engine *engine, size_t index, const struct drv_target_memory *target,
			 struct drv_fail *fail)
{
	const struct drv_point *point = &engine->launch->points[index];
	const uint64_t deadline_ns = drv_engine_allow(engine, point->deadline_ns + GRACE_NS);
	struct cadge_sink *before = engine->sink;
	struct drv_serving serving;
	struct drv_fail why;
	json_t *ready;
	int status;

	if (drv_serving_start(&serving, engine, point, index, target, &why)) {
		ready = json_pack("{s:s, s:s, s:o}", "m", "ready", "reason", drv_reason_name(why.reason),
				  "text", drv_json_text(why.text));
		status = ready ? drv_oob_send(engine->oob, ready, deadline_ns, fail) : -1;
		json_decref(ready);
		return status;
	}
	engine->sink = &serving.server.port.sink;
	ready = json_pack("{s:s}", "m", "ready");
	status = ready ? drv_oob_send(engine->oob, ready, deadline_ns, fail)
		       : drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	json_decref(ready);
	if (!status)
		status = serve_phases(&serving, deadline_ns, fail);
	engine->sink = before;
	drv_serving_stop(&serving);
	return status;
}

int drv_serve(struct drv_engine *engine, const struct drv_target_memory *target, uint64_t deadline_ns,
	      struct drv_fail *fail)
{
	const struct drv_idle idle = drv_engine_idle(engine);

	for (;;) {
		json_t *message;
		json_int_t index;
		const char *name;

		if (drv_oob_receive(engine->oob, &idle, deadline_ns, &message, fail))
			return -1;
		name = json_string_value(json_object_get(message, "m"));
		if (!strcmp(name, "done")) {
			json_decref(message);
			return 0;
		}
		if (strcmp(name, "begin") != 0) {
			drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent \"%s\" between attempts",
				     name);
			json_decref(message);
			return -1;
		}
		index = json_is_integer(json_object_get(message, "index"))
				? json_integer_value(json_object_get(message, "index"))
				: -1;
		json_decref(message);
		if (index < 0 || (size_t)index >= engine->launch->points_count)
			return drv_fail_set(fail, DRV_PROTOCOL,
					    "the other endpoint began an attempt that is not planned");
		if (serve_attempt(engine, (size_t)index, target, fail))
			return -1;
	}
}
