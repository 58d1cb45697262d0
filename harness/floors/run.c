/* SPDX-License-Identifier: BSD-3-Clause */
/* One launch of a floor: both endpoints, from the launch file to the result. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "facts.h"
#include "floor.h"
#include "pin.h"
#include "run.h"
#include "text.h"
#include "version.h"
#include "watchdog.h"

const struct floor *const floors[] = {&floor_cacheline, &floor_copyflag, &floor_futex, &floor_tcp,
				      &floor_udp,       &floor_xdp,      NULL};

static const struct floor *find_floor(const char *name)
{
	for (size_t i = 0; floors[i]; i++)
		if (!strcmp(floors[i]->name, name))
			return floors[i];
	return NULL;
}

/* What can be said from the launch file alone. */
static int suits(const struct floor_run *run, struct drv_fail *fail)
{
	const struct drv_launch *launch = &run->launch;
	const struct floor *floor = run->floor;

	if (launch->place == DRV_PLACE_SELF || (launch->place == DRV_PLACE_WITHIN && !floor->within) ||
	    (launch->place == DRV_PLACE_BETWEEN && !floor->between))
		return drv_fail_set(fail, DRV_NO_CAP, "%s is not measured at place '%s'", floor->name,
				    drv_place_name(launch->place));
	if (launch->wait == DRV_WAIT_BLOCK ? !floor->block : !floor->poll)
		return drv_fail_set(fail, DRV_NO_WAIT, "%s does not wait by '%s'", floor->name,
				    drv_wait_name(launch->wait));
	return 0;
}

static json_t *adapter_json(const struct floor *floor)
{
	return json_pack("{s:s, s:s, s:s, s:n, s:n, s:n, s:[], s:{}, s:{}}", "name", floor->name, "style",
			 "floor", "substrate", floor->substrate, "file", "build_id", "rpc", "caps", "traits",
			 "semantics");
}

static json_t *library_json(void)
{
	struct utsname system;

	return json_pack("{s:s, s:o, s:n, s:n}", "name", "Linux", "stated_version",
			 json_string(uname(&system) ? "unknown" : system.release), "file", "build_id");
}

static json_t *limits_json(const struct floor_run *run)
{
	return json_pack("{s:o, s:i, s:i, s:o, s:s, s:s, s:i}", "message_bytes_max",
			 drv_json_count(run->bytes_max), "depth_max", 1, "iov_max", 1, "short_bytes_max",
			 drv_json_count(run->bytes_max), "short_path", run->path.used, "long_path",
			 run->path.used, "wire_overhead_bytes", 0);
}

/* What one side says of itself at the end. */
static json_t *facts_json(struct floor_run *run, struct drv_pin *pin)
{
	const struct drv_endpoint *self = &run->launch.endpoints[run->endpoint];

	drv_clock_finish(&run->clock);
	drv_pin_check(pin);
	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "path", drv_facts_path(&run->path), "clock",
			 drv_result_clock_json(&run->clock), "pinning", drv_pin_json(pin), "endpoint",
			 drv_result_endpoint_json(self->host), "pin_detail", pin->detail);
}

static json_t *taken(const json_t *facts, const char *key)
{
	return json_incref(json_object_get(facts, key));
}

static void add_facts(struct drv_result *result, int endpoint, const json_t *facts)
{
	const char *const host = result->launch->endpoints[endpoint].host;
	const json_t *clock = json_object_get(facts, "clock"), *pinning = json_object_get(facts, "pinning");

	result->path[endpoint] = taken(facts, "path");
	result->clock[endpoint] = taken(facts, "clock");
	result->pinning[endpoint] = taken(facts, "pinning");
	result->endpoint[endpoint] = taken(facts, "endpoint");
	drv_check_add(&result->checks, "path",
		      json_is_true(json_object_get(json_object_get(facts, "path"), "as_asked")), "%s", host);
	drv_check_add(&result->checks, "clock", json_is_true(json_object_get(clock, "ok")),
		      "%s: drift of %.1f ppm", host, json_real_value(json_object_get(clock, "drift_ppm")));
	drv_check_add(&result->checks, "pinning", json_is_true(json_object_get(pinning, "ok")), "%s: %s",
		      host, json_string_value(json_object_get(facts, "pin_detail")));
}

/* Both say whether they could open; the first reason counts, a refusal of either refuses the launch. */
static int agree_open(struct floor_run *run, int status, struct drv_fail *fail)
{
	json_t *theirs = NULL;
	const char *text, *name;
	json_int_t bytes_max;
	struct drv_fail comms;

	if (floor_exchange(run, "opened",
			   json_pack("{s:s, s:o, s:o}", "reason",
				     status ? drv_reason_name(fail->reason) : "OK", "text",
				     drv_json_text(status ? fail->text : ""), "bytes_max",
				     drv_json_count(run->bytes_max)),
			   &theirs, &comms)) {
		if (!status)
			*fail = comms;
		return -1;
	}
	name = json_string_value(json_object_get(theirs, "reason"));
	text = json_string_value(json_object_get(theirs, "text"));
	bytes_max = json_integer_value(json_object_get(theirs, "bytes_max"));
	if (!status && (!name || strcmp(name, "OK")))
		status = drv_fail_set(fail, drv_reason_from_name(name ? name : ""), "%s: %s",
				      run->launch.endpoints[1 - run->endpoint].host, text ? text : "");
	if (!status && bytes_max >= 0 && (uint64_t)bytes_max < run->bytes_max)
		run->bytes_max = (uint64_t)bytes_max;
	json_decref(theirs);
	return status;
}

static int hello(struct floor_run *run, struct drv_fail *fail)
{
	json_t *mine = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s}", "m", "hello", "version", drv_version(),
				 "abi", CADGE_ABI, "schema", DRV_RESULT_SCHEMA, "revision", drv_revision(),
				 "launch", run->launch.digest);
	json_t *theirs = NULL;
	int status;

	if (!mine)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	status = drv_oob_hello(run->oob, mine, drv_now_ns() + 5 * FLOOR_NS_PER_S, &theirs, fail);
	json_decref(mine);
	json_decref(theirs);
	return status;
}

/* Opens, connects, measures. What was measured stays in `result` (endpoint 0) also when this fails. */
static int run_both(struct floor_run *run, struct drv_result *result, struct drv_pin *pin,
		    struct drv_fail *fail)
{
	uint64_t began = drv_now_ns();
	json_t *mine, *theirs = NULL;
	int status;

	if (hello(run, fail))
		return -1;
	status = suits(run, fail);
	if (!status)
		status = run->floor->open(run, fail);
	if (agree_open(run, status, fail))
		return -1;
	result->phases.open_ns = drv_now_ns() - began;
	began = drv_now_ns();
	if (run->floor->connect(run, fail) ||
	    drv_oob_barrier(run->oob, "connected", NULL, drv_now_ns() + 10 * FLOOR_NS_PER_S, fail))
		return -1;
	result->phases.connect_ns = drv_now_ns() - began;
	if (run->endpoint == 0)
		result->limits = limits_json(run);
	status = run->endpoint == 0 ? points_measure(run, result, fail) : points_serve(run, fail);
	mine = facts_json(run, pin);
	if (mine && run->endpoint == 0)
		add_facts(result, 0, mine);
	if (status) {
		json_decref(mine);
		return -1;
	}
	if (floor_exchange(run, "facts", mine, &theirs, fail))
		return -1;
	if (run->endpoint == 0)
		add_facts(result, 1, theirs);
	json_decref(theirs);
	return 0;
}

static bool attempts_usable(const struct drv_result *result)
{
	for (size_t i = 0; i < result->attempts_count; i++)
		if (result->attempts[i].status == DRV_DONE || result->attempts[i].status == DRV_UNSOUND)
			return result->attempts[i].operations > 0;
	return false;
}

static int store(struct drv_result *result, const char *out_path)
{
	struct drv_fail fail;
	char *text;
	int status;

	if (!out_path)
		return 0;
	text = drv_result_text(result);
	status = text ? drv_result_store(out_path, text, &fail)
		      : drv_fail_set(&fail, DRV_MEMORY, "no memory for the result");
	if (status)
		fprintf(stderr, "cadge-floor: %s\n", fail.text);
	free(text);
	return status;
}

int floor_run_launch(const char *launch_path, int endpoint, const char *host_port, const char *token_path,
		     const char *out_path)
{
	struct floor_run *run = calloc(1, sizeof(*run));
	struct drv_fail fail = {.reason = DRV_OK};
	struct drv_oob_token token;
	struct drv_result result;
	struct drv_pin pin;
	int status;

	if (!run)
		return 70;
	run->endpoint = endpoint;
	if (drv_launch_read(launch_path, &run->launch, &fail)) {
		fprintf(stderr, "cadge-floor: %s\n", fail.text);
		free(run);
		return drv_reason_exit(fail.reason);
	}
	drv_result_start(&result, &run->launch);
	result.adapter = NULL;
	run->block = run->launch.wait == DRV_WAIT_BLOCK;
	run->floor = find_floor(run->launch.layer);
	if (run->launch.kind != DRV_KIND_FLOOR || !run->floor || run->launch.endpoints_count != 2)
		status = drv_fail_set(
			&fail, DRV_ARGUMENT,
			"the launch file does not name a floor for two endpoints (kind \"floor\", "
			"layer \"%s\"): cadge-floor list names them",
			run->launch.layer);
	else
		status = drv_watchdog_start(run->launch.deadline_ns, &fail);
	if (!status && run->floor) {
		result.adapter = adapter_json(run->floor);
		result.library = library_json();
		drv_pin_set(&pin, run->launch.endpoints[endpoint].cpu);
		drv_clock_start(&run->clock, true);
		status = drv_oob_token_read(token_path, &token, &fail);
	}
	if (!status)
		status = drv_oob_open(endpoint, host_port, &token, drv_now_ns() + run->launch.deadline_ns / 2,
				      &run->oob, &fail);
	if (!status) {
		uint64_t began;

		status = run_both(run, &result, &pin, &fail);
		if (status)
			drv_oob_abort(run->oob, fail.reason, fail.text);
		began = drv_now_ns();
		run->floor->close(run);
		result.phases.close_ns = drv_now_ns() - began;
	}
	drv_oob_close(run->oob);
	if (status) {
		/*
		 * Points that were measured before something broke stay measured; the others carry the
		 * reason.
		 */
		result.status = attempts_usable(&result)             ? DRV_DONE
				: drv_reason_is_refusal(fail.reason) ? DRV_REFUSED
								     : DRV_FAILED;
		result.fail = fail;
		fprintf(stderr, "cadge-floor: endpoint %d: %s\n", endpoint, fail.text);
	}
	if (endpoint == 0 && fail.reason != DRV_ARGUMENT && store(&result, out_path))
		status = -1;
	drv_result_free(&result);
	drv_launch_free(&run->launch);
	free(run);
	return status ? drv_reason_exit(fail.reason) : 0;
}
