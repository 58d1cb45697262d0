/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "engine.h"
#include "facts.h"
#include "pin.h"
#include "remote.h"
#include "result.h"
#include "text.h"
#include "version.h"
#include "watchdog.h"

#define MEET_NS UINT64_C(10000000000) /* for the endpoints to find each other, at most */
#define STEP_NS UINT64_C(10000000000) /* for one agreement, at most */
/* kept back of the launch's deadline to end in order, at most a quarter of it */
#define STORE_NS UINT64_C(1500000000)
#define CLOSE_NS UINT64_C(3000000000)

struct session {
	const struct drv_session_args *args;
	const struct drv_launch *launch;
	struct drv_engine engine;
	struct drv_result result; /* of use on endpoint 0 */
	struct drv_pin pin;
	struct drv_target_memory target;
	struct cadge_remote *handle; /* the peer's region */
	uint64_t deadline_ns;        /* soft: no step may last longer */
	char *fallback;              /* what the watchdog stores if the layer never comes back */
};

static uint64_t step_deadline(const struct session *session)
{
	const uint64_t until_ns = drv_now_ns() + STEP_NS;

	return until_ns < session->deadline_ns ? until_ns : session->deadline_ns;
}

/*
 * Both ends say whether a step worked here; it worked only if it did on both. `mine` (stolen) may carry
 * facts; `why` is NULL when it worked. *theirs_out is what the other end said, at place self what we said.
 */
static int agree(struct session *session, const char *step, json_t *mine, const struct drv_fail *why,
		 json_t **theirs_out, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const struct drv_idle idle = drv_engine_idle(engine);
	json_t *theirs = NULL;
	const char *text;
	int status = 0;

	if (!mine || drv_json_set(mine, "m", json_string(step)) ||
	    (why && (drv_json_set(mine, "reason", json_string(drv_reason_name(why->reason))) ||
		     drv_json_set(mine, "text", drv_json_text(why->text))))) {
		json_decref(mine);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	}
	if (!engine->oob)
		theirs = json_incref(mine);
	else
		status = drv_oob_exchange(engine->oob, step, mine, engine->ctx ? &idle : NULL,
					  step_deadline(session), &theirs, fail);
	json_decref(mine);
	if (why) {
		/* our own reason counts more than what became of the message */
		json_decref(theirs);
		*fail = *why;
		return -1;
	}
	if (status)
		return -1;
	if (json_object_get(theirs, "reason")) {
		text = json_string_value(json_object_get(theirs, "text"));
		drv_fail_set(fail, drv_reason_from_name(json_string_value(json_object_get(theirs, "reason"))),
			     "endpoint %d (%s): %s", 1 - session->args->endpoint,
			     session->launch->endpoints[1 - session->args->endpoint].host,
			     text ? text : "no reason given");
		json_decref(theirs);
		return -1;
	}
	*theirs_out = theirs;
	return 0;
}

static int agree_plainly(struct session *session, const char *step, const struct drv_fail *why,
			 struct drv_fail *fail)
{
	json_t *theirs;

	if (agree(session, step, json_object(), why, &theirs, fail))
		return -1;
	json_decref(theirs);
	return 0;
}

static int meet(struct session *session, struct drv_fail *fail)
{
	const uint64_t meet_ns = drv_now_ns() + MEET_NS;
	const uint64_t deadline_ns = meet_ns < session->deadline_ns ? meet_ns : session->deadline_ns;
	json_t *mine, *theirs;
	int status;

	if (drv_oob_open(session->args->endpoint, session->args->host_port, session->args->token, deadline_ns,
			 &session->engine.oob, fail))
		return -1;
	mine = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s}", "m", "hello", "version", drv_version(), "abi",
			 (int)CADGE_ABI, "schema", DRV_RESULT_SCHEMA, "revision", drv_revision(), "launch",
			 session->launch->digest);
	if (!mine)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_hello(session->engine.oob, mine, step_deadline(session), &theirs, fail);
	json_decref(mine);
	if (!status)
		json_decref(theirs);
	return status;
}

/* Finds the layer and asks its table whether this launch can be at all. */
static int load(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const struct drv_launch *launch = session->launch;
	struct drv_fail why;
	bool bad = drv_loader_load(session->args->modules, launch->layer,
				   launch->shims_count ? launch->shims[0] : NULL, &engine->loaded, &why) != 0;

	if (!bad) {
		engine->layer = engine->loaded.layer;
		session->result.library = drv_facts_library(drv_loaded_adapter(&engine->loaded));
		bad = drv_negotiate_launch(launch->place, launch->wait,
					   drv_loaded_adapter(&engine->loaded)->caps, &why) != 0;
	}
	return agree_plainly(session, "loaded", bad ? &why : NULL, fail);
}

/* Opens the layer on both ends and finds out what both can. */
static int open_layer(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	const uint64_t started_ns = drv_now_ns();
	struct drv_ability here = {0}, there;
	struct drv_fail why;
	json_t *mine, *theirs;
	int status;
	bool bad = drv_engine_open(engine, &why) != 0;

	session->result.phases.open_ns = drv_now_ns() - started_ns;
	if (!bad) {
		const struct cadge_layer *adapter = drv_loaded_adapter(&engine->loaded);

		engine->layer->limits(engine->ctx, &limits);
		drv_ability_read(engine->layer, engine->ctx, &here);
		session->result.limits = drv_facts_limits(&limits);
		session->result.adapter = drv_facts_adapter(adapter, engine->layer, engine->ctx, here.caps);
		json_decref(session->result.library); /* some libraries know themselves only once started */
		session->result.library = drv_facts_library(adapter);
		bad = drv_negotiate_launch(session->launch->place, session->launch->wait, here.caps, &why) !=
		      0;
	}
	mine = bad ? json_object() : drv_ability_json(&here);
	if (agree(session, "opened", mine, bad ? &why : NULL, &theirs, fail))
		return -1;
	status = drv_ability_parse(theirs, &there, fail);
	json_decref(theirs);
	engine->both = drv_ability_both(&here, &there);
	return status;
}

/* The points that can be made. Both ends work it out, and must come to the same. */
static int negotiate(struct session *session, struct drv_fail *fail)
{
	const struct drv_launch *launch = session->launch;
	json_t *list = json_array(), *mine, *theirs;
	int status = 0;

	session->result.attempts = calloc(launch->points_count, sizeof(*session->result.attempts));
	if (!session->result.attempts || !list) {
		json_decref(list);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the attempts");
	}
	session->result.attempts_count = launch->points_count;
	for (size_t i = 0; i < launch->points_count; i++) {
		struct drv_attempt *attempt = &session->result.attempts[i];

		attempt->point = &launch->points[i];
		attempt->order = (uint32_t)i;
		if (drv_negotiate_point(attempt->point, launch->place, &session->engine.both, &attempt->fail))
			attempt->status = DRV_REFUSED;
		if (json_array_append_new(list, json_string(drv_reason_name(attempt->fail.reason))))
			status = -1;
	}
	mine = status ? NULL : json_pack("{s:O}", "points", list);
	if (agree(session, "points", mine, NULL, &theirs, fail)) {
		json_decref(list);
		return -1;
	}
	if (!json_equal(list, json_object_get(theirs, "points")))
		status = drv_fail_set(fail, DRV_PROTOCOL,
				      "the endpoints came to different answers about what can be measured");
	json_decref(theirs);
	json_decref(list);
	return status;
}

/* Regions, where a granted point needs one. */
static int expose(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const uint64_t bytes = drv_region_bytes(session->launch, &engine->both);
	const bool mine_too = engine->self || session->args->endpoint == 1;
	char hex[2 * sizeof(session->target.key) + 1] = "";
	uint8_t key[sizeof(session->target.key)];
	struct drv_fail why;
	json_t *theirs;
	const char *text;
	size_t key_bytes;
	int code, status = 0;
	bool bad = false;

	if (!bytes)
		return 0;
	if (mine_too) {
		bad = drv_target_make(engine, bytes, &session->target, &why) != 0;
		drv_hex(session->target.key, bad ? 0 : session->target.key_bytes, hex);
	}
	if (agree(session, "region", json_pack("{s:s}", "key", hex), bad ? &why : NULL, &theirs, fail))
		return -1;
	if (session->args->endpoint == 0) {
		text = json_string_value(json_object_get(theirs, "key"));
		key_bytes = text ? strlen(text) / 2 : 0;
		if (!text || key_bytes > sizeof(key) || drv_unhex(text, key, key_bytes)) {
			status = drv_fail_set(&why, DRV_PROTOCOL,
					      "the other endpoint sent a key that is none");
		} else {
			code = engine->layer->attach(engine->chan, key, key_bytes, &session->handle);
			if (code < 0)
				status = drv_engine_fail("attach", code, &why);
		}
	}
	json_decref(theirs);
	return agree_plainly(session, "attached", status ? &why : NULL, fail);
}

/* Connects, reads back where the bytes go on both sides. */
static int join(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const uint64_t started_ns = drv_now_ns();
	struct cadge_path path = {.bytes = sizeof(path)};
	json_t *mine, *theirs;
	struct drv_fail why;
	int code;

	if (drv_engine_connect(engine, drv_engine_allow(engine, STEP_NS), fail))
		return -1;
	code = engine->layer->describe_path(engine->chan, &path);
	if (code < 0)
		drv_engine_fail("describe_path", code, &why);
	mine = json_pack("{s:o}", "path", code < 0 ? json_null() : drv_facts_path(&path));
	if (agree(session, "path", mine, code < 0 ? &why : NULL, &theirs, fail))
		return -1;
	session->result.path[0] = drv_facts_path(&path);
	if (!engine->self)
		session->result.path[1] = json_incref(json_object_get(theirs, "path"));
	json_decref(theirs);
	session->result.phases.connect_ns = drv_now_ns() - started_ns;
	return 0;
}

/* Endpoint 0: makes every attempt that was granted. Whatever stops the launch stands on all that remain. */
static int make_attempts(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	struct drv_result *result = &session->result;
	const struct drv_fail *stopped_by = NULL;
	json_t *done;
	int status;

	for (size_t i = 0; i < result->attempts_count; i++) {
		struct drv_attempt *attempt = &result->attempts[i];

		attempt->started_ns = drv_now_ns() - result->started_ns;
		if (attempt->status == DRV_REFUSED)
			continue;
		if (!stopped_by && drv_stop_signal) {
			drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
			stopped_by = fail;
		}
		if (!stopped_by && drv_now_ns() + attempt->point->duration_ns >= session->deadline_ns) {
			drv_fail_set(fail, DRV_DEADLINE,
				     "the launch's deadline left no time for this attempt");
			stopped_by = fail;
		}
		if (stopped_by) {
			attempt->status = DRV_FAILED;
			drv_fail_set(&attempt->fail, stopped_by->reason, "not attempted: %s",
				     stopped_by->text);
		} else if (drv_attempt_run(engine, i, &session->target, session->handle, attempt,
					   &result->phases)) {
			*fail = attempt->fail;
			stopped_by = fail;
		}
	}
	if (engine->broken || (stopped_by && stopped_by->reason == DRV_STOPPED))
		return -1;
	if (engine->self)
		return 0;
	done = json_pack("{s:s}", "m", "done");
	status = done ? drv_oob_send(engine->oob, done, step_deadline(session), fail)
		      : drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	json_decref(done);
	return status;
}

static json_t *own_facts(struct session *session)
{
	drv_clock_finish(&session->engine.clock);
	drv_pin_check(&session->pin);
	return json_pack("{s:o, s:o, s:s, s:o}", "clock", drv_result_clock_json(&session->engine.clock),
			 "pinning", drv_pin_json(&session->pin), "pinning_detail", session->pin.detail,
			 "endpoint",
			 drv_result_endpoint_json(session->launch->endpoints[session->args->endpoint].host));
}

static void take_facts(struct session *session, int endpoint, const json_t *facts)
{
	struct drv_result *result = &session->result;
	const json_t *clock = json_object_get(facts, "clock");
	const json_t *pinning = json_object_get(facts, "pinning");
	const char *detail = json_string_value(json_object_get(facts, "pinning_detail"));

	result->clock[endpoint] = json_incref(json_object_get(facts, "clock"));
	result->pinning[endpoint] = json_incref(json_object_get(facts, "pinning"));
	result->endpoint[endpoint] = json_incref(json_object_get(facts, "endpoint"));
	drv_check_add(&result->checks, "clock", json_is_true(json_object_get(clock, "ok")),
		      "endpoint %d: drift of %.3f ppm", endpoint,
		      json_real_value(json_object_get(clock, "drift_ppm")));
	drv_check_add(&result->checks, "pinning", json_is_true(json_object_get(pinning, "ok")),
		      "endpoint %d: %s", endpoint, detail ? detail : "");
}

/* What concerns the launch as a whole, and therefore each of its attempts. */
static void judge_launch(struct session *session)
{
	struct drv_result *result = &session->result;

	for (int i = 0; i < 2; i++)
		if (result->path[i]) {
			const char *used = json_string_value(json_object_get(result->path[i], "used"));

			drv_check_add(&result->checks, "path",
				      json_is_true(json_object_get(result->path[i], "as_asked")),
				      "endpoint %d uses %s", i, used ? used : "nothing known");
		}
	for (size_t i = 0; i < result->attempts_count; i++)
		for (size_t j = 0; j < result->attempts[i].checks.count; j++) {
			const struct drv_check *check = &result->attempts[i].checks.list[j];

			if (!strcmp(check->name, "wait_mode"))
				drv_check_add(&result->checks, "wait_mode", check->ok, "%s", check->detail);
		}
	for (size_t i = 0; i < result->attempts_count; i++)
		for (size_t j = 0; j < result->checks.count; j++) {
			const struct drv_check *check = &result->checks.list[j];

			if (check->ok || !strcmp(check->name, "wait_mode") ||
			    result->attempts[i].status != DRV_DONE)
				continue;
			result->attempts[i].status = DRV_UNSOUND;
			drv_fail_set(&result->attempts[i].fail, DRV_CHECK,
				     "check %s of the launch failed: %s", check->name, check->detail);
		}
}

/*
 * From here on the layer's code runs in this process. Should a call into it never return, the launch still
 * ends with a result that says so.
 */
static int prepare_fallback(struct session *session, struct drv_fail *fail)
{
	struct drv_result result = session->result;

	if (!session->args->out)
		return 0;
	result.status = DRV_FAILED;
	drv_fail_set(&result.fail, DRV_DEADLINE,
		     "a call into the layer did not return before the launch's deadline");
	session->fallback = drv_result_text(&result);
	if (!session->fallback)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the result");
	drv_watchdog_keep(session->args->out, session->fallback);
	return 0;
}

/* Everything between the meeting and the end, in the same order on both ends. */
static int work(struct session *session, bool *attempted, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	json_t *theirs = NULL;
	int status;

	if (prepare_fallback(session, fail) || load(session, fail) || open_layer(session, fail) ||
	    join(session, fail) || negotiate(session, fail) || expose(session, fail))
		return -1;
	*attempted = true;
	if (session->args->endpoint == 0)
		status = make_attempts(session, fail);
	else
		status = drv_serve(engine, &session->target, session->deadline_ns, fail);
	if (status && fail->reason == DRV_PEER_LOST && !engine->broken)
		drv_engine_explain(engine, fail);
	if (!status) {
		status = agree(session, "facts", own_facts(session), NULL, &theirs, fail);
		if (!status && !engine->self)
			take_facts(session, 1 - session->args->endpoint, theirs);
		json_decref(theirs);
	}
	return status;
}

static void close_layer(struct session *session)
{
	struct drv_engine *engine = &session->engine;
	const uint64_t started_ns = drv_now_ns();

	if (session->handle)
		engine->layer->detach(engine->chan, session->handle);
	session->handle = NULL;
	drv_target_free(engine, &session->target);
	drv_engine_close(engine);
	session->result.phases.close_ns = drv_now_ns() - started_ns;
}

/* Stores the result once before the library is closed, for the case that this never ends, and once after. */
static int close_and_store(struct session *session, struct drv_fail *fail)
{
	const char *out = session->args->out;
	char *early = out ? drv_result_text(&session->result) : NULL;
	char *text;
	int status = 0;

	if (out && !early)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the result");
	drv_watchdog_keep(out, early);
	drv_watchdog_sooner(CLOSE_NS);
	close_layer(session);
	drv_watchdog_keep(NULL, NULL);
	free(early);
	if (!out)
		return 0;
	text = drv_result_text(&session->result);
	if (!text)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the result");
	status = drv_result_store(out, text, fail);
	free(text);
	return status;
}

int drv_session_run(const struct drv_session_args *args)
{
	static struct session session;
	struct drv_engine *engine = &session.engine;
	struct drv_port port;
	struct drv_fail fail = {0}, store_fail;
	bool met = false, attempted = false;
	json_t *facts;
	int status, code;

	session.args = args;
	session.launch = engine->launch = args->launch;
	drv_result_start(&session.result, args->launch);
	session.deadline_ns =
		session.result.started_ns + args->launch->deadline_ns -
		(args->launch->deadline_ns > 4 * STORE_NS ? STORE_NS : args->launch->deadline_ns / 4);
	engine->launch_deadline_ns = session.deadline_ns;
	engine->endpoint = args->endpoint;
	engine->block = args->launch->wait == DRV_WAIT_BLOCK;
	engine->self = args->launch->place == DRV_PLACE_SELF;
	drv_port_start(&port, engine);
	engine->sink = &port.sink;
	drv_pin_set(&session.pin, args->launch->endpoints[args->endpoint].cpu);
	drv_clock_start(&engine->clock, true);
	engine->oob_period = drv_clock_to_ticks(&engine->clock, engine->block ? 1000000 : 200000);

	status = engine->self ? 0 : meet(&session, &fail);
	met = !status;
	if (!status)
		status = work(&session, &attempted, &fail);
	if (status) {
		fprintf(stderr, "cadge-driver: endpoint %d: %s: %s\n", args->endpoint,
			drv_reason_name(fail.reason), fail.text);
		drv_oob_abort(engine->oob, fail.reason, fail.text);
		if (!attempted) {
			session.result.status = drv_reason_is_refusal(fail.reason) ? DRV_REFUSED : DRV_FAILED;
			session.result.fail = fail;
		}
	}
	facts = own_facts(&session);
	take_facts(&session, args->endpoint, facts);
	json_decref(facts);
	judge_launch(&session);
	if (close_and_store(&session, &store_fail)) {
		fprintf(stderr, "cadge-driver: %s\n", store_fail.text);
		status = -1;
		fail = store_fail;
	}
	drv_oob_close(engine->oob);
	free(session.fallback);
	drv_result_free(&session.result);
	code = status ? drv_reason_exit(fail.reason) : 0;
	/* 2 and 3 speak of the layer only once the endpoints have met; a layer that refuses a setting could
	 * not be opened */
	if (!met && code == 3)
		code = 4;
	return met && fail.reason == DRV_ARGUMENT ? 3 : code;
}
