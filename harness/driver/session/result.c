/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the launch result. */
#include "session/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cadge/layer.h"
#include "engine/mapped.h"
#include "base/out.h"
#include "base/text.h"
#include "base/version.h"

static const char *const status_names[] = {"done", "refused", "failed", "unsound"};

void drv_check_add(struct drv_checks *checks, const char *name, bool ok, const char *format, ...)
{
	struct drv_sound_check *check = NULL;
	va_list arguments;

	for (size_t i = 0; i < checks->count; i++)
		if (!strcmp(checks->list[i].name, name))
			check = &checks->list[i];
	if (check && (ok || !check->ok))
		return;
	if (!check) {
		if (checks->count == DRV_CHECKS_MAX)
			abort(); /* names are few and static: a mistake of ours */
		check = &checks->list[checks->count++];
	}
	check->name = name;
	check->ok = ok;
	va_start(arguments, format);
	if (vsnprintf(check->detail, sizeof(check->detail), format, arguments) < 0)
		check->detail[0] = '\0';
	va_end(arguments);
}

void drv_attempt_free(struct drv_attempt *attempt)
{
	drv_record_free(&attempt->record);
	json_decref(attempt->others);
	attempt->others = NULL;
	free(attempt->cpu);
	attempt->cpu = NULL;
	attempt->cpu_count = 0;
	json_decref(attempt->counters);
	attempt->counters = NULL;
}

void drv_result_start(struct drv_result *result, const struct drv_launch *launch)
{
	struct timespec now;
	struct tm parts;
	char day[32];

	memset(result, 0, sizeof(*result));
	result->launch = launch;
	result->started_ns = drv_now_ns();
	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &parts) && strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts))
		snprintf(result->started_utc, sizeof(result->started_utc), "%.19s.%06dZ", day,
			 (int)(now.tv_nsec / 1000));
}

void drv_result_free(struct drv_result *result)
{
	json_decref(result->library);
	json_decref(result->adapter);
	json_decref(result->limits);
	json_decref(result->path);
	json_decref(result->objects);
	json_decref(result->probe);
	json_decref(result->control_bytes);
	for (unsigned i = 0; i < DRV_ENDPOINTS_MAX; i++) {
		json_decref(result->clock[i]);
		json_decref(result->pinning[i]);
		json_decref(result->endpoint[i]);
		json_decref(result->threads[i]);
		json_decref(result->rss[i]);
	}
	for (size_t i = 0; i < result->attempts_count; i++)
		drv_attempt_free(&result->attempts[i]);
	free(result->attempts);
	memset(result, 0, sizeof(*result));
}

/*
 * A growing object that remembers whether any member could not be made, so that building one is a list of
 * lines.
 */
struct builder {
	json_t *object;
	bool failed;
};

static void put(struct builder *builder, const char *key, json_t *value)
{
	if (drv_json_set(builder->object, key, value))
		builder->failed = true;
}

static void put_count(struct builder *builder, const char *key, uint64_t count)
{
	put(builder, key, drv_json_count(count));
}

static void put_text(struct builder *builder, const char *key, const char *text)
{
	put(builder, key, drv_json_text(text));
}

static json_t *finish(struct builder *builder)
{
	if (!builder->failed)
		return builder->object;
	json_decref(builder->object);
	return NULL;
}

static json_t *checks_json(const struct drv_checks *checks)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < checks->count; i++) {
		struct builder check = {.object = json_object()};

		put_text(&check, "name", checks->list[i].name);
		put(&check, "ok", json_boolean(checks->list[i].ok));
		put_text(&check, "detail", checks->list[i].detail);
		if (json_array_append_new(list, finish(&check))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* One part of each endpoint that is known. */
static json_t *parts_json(json_t *const parts[DRV_ENDPOINTS_MAX])
{
	json_t *list = json_array();

	for (unsigned i = 0; list && i < DRV_ENDPOINTS_MAX; i++)
		if (parts[i] && json_array_append(list, parts[i])) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *maybe(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

/* What endpoint 0 measured, and then the others. */
static json_t *quantities_json(const struct drv_attempt *attempt)
{
	json_t *object = drv_record_json(&attempt->record, 0);
	const char *name;
	json_t *list;

	json_object_foreach(attempt->others, name, list)
	{
		json_t *ours = json_object_get(object, name);

		if (ours ? json_array_extend(ours, list) : json_object_set(object, name, list)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *warmup_json(const struct drv_attempt *attempt)
{
	struct builder object = {.object = json_object()};

	put_count(&object, "operations", attempt->record.warmup_operations);
	put_count(&object, "ns", attempt->warmup_ns);
	put(&object, "steady", json_boolean(attempt->record.warmup_steady));
	put_text(&object, "rule", attempt->warmup_rule ? attempt->warmup_rule : "none");
	return finish(&object);
}

static json_t *counted_json(const struct drv_attempt *attempt)
{
	struct builder object = {.object = json_object()};

	if (!attempt->executions_known) {
		json_decref(object.object);
		return json_null();
	}
	put_count(&object, "expected", attempt->executions_expected);
	put_count(&object, "server", attempt->executions_server);
	return finish(&object);
}

static json_t *verified_json(const struct drv_attempt *attempt)
{
	struct builder object = {.object = json_object()};

	put_count(&object, "in_loop", attempt->verified_in_loop);
	put_count(&object, "full_before", attempt->verified_before);
	put_count(&object, "full_after", attempt->verified_after);
	put_count(&object, "mismatches", attempt->mismatches);
	return finish(&object);
}

static json_t *attempt_json(const struct drv_attempt *attempt)
{
	struct builder object = {.object = json_object()};
	const struct drv_point *point = attempt->point;
	const bool explained = attempt->status != DRV_DONE;
	json_t *cpu = json_array();

	put_text(&object, "attempt_id", point->attempt_id);
	put_text(&object, "point_id", point->point_id);
	put(&object, "workload", json_incref(point->workload));
	put_count(&object, "order", attempt->order);
	put_text(&object, "status", status_names[attempt->status]);
	put_text(&object, "reason", explained ? attempt->fail.text : NULL);
	put_text(&object, "reason_code", explained ? drv_reason_name(attempt->fail.reason) : NULL);
	put_count(&object, "started_ns_since_launch", attempt->started_ns);
	put(&object, "warmup", warmup_json(attempt));
	put_count(&object, "counted_operations", attempt->counted_operations);
	put_count(&object, "elapsed_ns", attempt->record.elapsed_ns);
	put_count(&object, "operations", attempt->record.operations);
	put_count(&object, "bytes", attempt->record.bytes);
	put_count(&object, "lost", attempt->record.lost);
	put_count(&object, "late", attempt->record.late);
	put(&object, "quantities", quantities_json(attempt));
	put(&object, "executions", counted_json(attempt));
	put(&object, "verified", verified_json(attempt));
	for (size_t i = 0; i < attempt->cpu_count; i++)
		if (json_array_append_new(cpu, drv_usage_json(&attempt->cpu[i], 0)))
			object.failed = true;
	put(&object, "cpu", cpu);
	if (attempt->counters)
		put(&object, "counters", json_incref(attempt->counters));
	put(&object, "checks", checks_json(&attempt->checks));
	return finish(&object);
}

static json_t *phases_json(const struct drv_phases *phases)
{
	struct builder object = {.object = json_object()};

	put_count(&object, "open", phases->open_ns);
	put_count(&object, "connect", phases->connect_ns);
	put_count(&object, "verify", phases->verify_ns);
	put_count(&object, "warmup", phases->warmup_ns);
	put_count(&object, "measure", phases->measure_ns);
	put_count(&object, "close", phases->close_ns);
	return finish(&object);
}

json_t *drv_driver_json(void)
{
	struct builder object = {.object = json_object()};

	put_text(&object, "version", drv_version());
	put_count(&object, "abi", CADGE_ABI);
	put_text(&object, "revision", drv_revision());
	put_text(&object, "compiler", drv_compiler());
	return finish(&object);
}

json_t *drv_result_clock_json(const struct drv_clock *clock)
{
	struct builder object = {.object = json_object()};

	put_text(&object, "source", drv_clock_source(clock));
	put_count(&object, "hz", clock->hz);
	put_count(&object, "read_cost_ns", clock->read_cost_ns);
	put(&object, "drift_ppm", json_real(clock->drift_ppm));
	put_count(&object, "bracket_ns", clock->bracket_ns);
	put(&object, "step_ns",
	    json_real((double)clock->step_ticks * (double)clock->ns_per_tick / 4294967296.0));
	put(&object, "ok", json_boolean(clock->ok));
	return finish(&object);
}

json_t *drv_result_endpoint_json(const struct drv_endpoint *endpoint, const struct drv_events *events)
{
	struct builder object = {.object = json_object()};
	struct utsname system;

	put_text(&object, "role", endpoint->role);
	put_text(&object, "host", endpoint->host);
	put_count(&object, "pid", (uint64_t)getpid());
	put_text(&object, "kernel", uname(&system) ? "unknown" : system.release);
	put(&object, "counted", drv_events_json(events));
	put(&object, "scheduling", drv_scheduling_json());
	return finish(&object);
}

char *drv_result_text(const struct drv_result *result)
{
	struct builder object = {.object = json_object()};
	const struct drv_launch *launch = result->launch;
	const bool explained = result->status != DRV_DONE;
	json_t *attempts = json_array();
	json_t *document;
	char *text;

	put_text(&object, "schema", DRV_RESULT_SCHEMA);
	put_text(&object, "launch_id", launch->launch_id);
	put_text(&object, "kind", launch->kind == DRV_KIND_FLOOR ? "floor" : "layer");
	put_text(&object, "layer", launch->layer);
	put_text(&object, "place", drv_place_names[launch->place]);
	put_text(&object, "wait", drv_wait_names[launch->wait]);
	put_count(&object, "seed", launch->seed);
	put_text(&object, "status", status_names[result->status]);
	put_text(&object, "reason", explained ? result->fail.text : NULL);
	put_text(&object, "reason_code", explained ? drv_reason_name(result->fail.reason) : NULL);
	put(&object, "driver", drv_driver_json());
	put_text(&object, "started_utc", result->started_utc);
	put_count(&object, "wall_ns", drv_now_ns() - result->started_ns);
	put(&object, "phases_ns", phases_json(&result->phases));
	put(&object, "library", maybe(result->library));
	put(&object, "adapter", maybe(result->adapter));
	put(&object, "limits", maybe(result->limits));
	put(&object, "path", result->path ? json_incref(result->path) : json_array());
	put(&object, "clock", parts_json(result->clock));
	put(&object, "pinning", parts_json(result->pinning));
	put(&object, "endpoints", parts_json(result->endpoint));
	put(&object, "objects", result->objects ? json_incref(result->objects) : json_array());
	put(&object, "threads", parts_json(result->threads));
	if (result->rss[0])
		put(&object, "resident_bytes", parts_json(result->rss));
	if (result->control_bytes)
		put(&object, "control_bytes", json_incref(result->control_bytes));
	put(&object, "checks", checks_json(&result->checks));
	/* a launch that was refused or failed as a whole has no attempts to show */
	for (size_t i = 0; !explained && i < result->attempts_count; i++)
		if (json_array_append_new(attempts, attempt_json(&result->attempts[i])))
			object.failed = true;
	put(&object, "witness", result->probe ? json_incref(result->probe) : json_array());
	put(&object, "attempts", attempts);
	document = finish(&object);
	text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(document);
	return text;
}

int drv_result_store(const char *path, const char *text, struct drv_fail *fail)
{
	struct drv_out out;

	if (drv_out_find(path, &out, fail))
		return -1;
	if (drv_out_write(&out, text, strlen(text)))
		return drv_fail_set(fail, DRV_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
	return 0;
}
