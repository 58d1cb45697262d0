/* SPDX-License-Identifier: BSD-3-Clause */
/* One launch at one endpoint: the steps that all endpoints take together, and the result. */
#include "session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/attempt.h"
#include "cadge/path.h"
#include "threads/threads.h"
#include "threads/workers.h"
#include "engine/engine.h"
#include "engine/mapped.h"
#include "measure/pin.h"
#include "session/role_run.h"
#include "measure/rss.h"
#include "session/result.h"
#include "session/subject.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/watchdog.h"

#define RENDEZVOUS_NS UINT64_C(10000000000) /* for the endpoints to find each other, at most */
#define STEP_NS       UINT64_C(10000000000) /* for one agreement, at most */
/* more of both for each endpoint above two: they may share few cores */
#define MORE_NS UINT64_C(250000000)
/* kept back of the launch's deadline to end in order, at most a quarter of it */
#define STORE_NS UINT64_C(1500000000)
#define CLOSE_NS UINT64_C(3000000000)

struct session {
	const struct drv_session_args *args;
	const struct drv_launch *launch;
	const struct drv_subject *subject;
	struct drv_engine engine;
	/* of use on endpoint 0 */
	struct drv_result result;
	struct drv_pin pin;
	struct drv_rss rss[DRV_MOMENTS];
	/* soft: no step may last longer */
	uint64_t deadline_ns;
	/* what the watchdog stores if the layer never comes back */
	char *fallback;
};

/* All threads of a launch: each has a context. */
static size_t contexts_of(const struct drv_launch *launch)
{
	size_t contexts = 0;

	for (size_t e = 0; e < launch->endpoints_count; e++)
		contexts += drv_endpoint_threads(&launch->endpoints[e]);
	return contexts;
}

/* How long this launch waits for what takes two contexts `base_ns` at most. */
static uint64_t patience_ns(const struct session *session, uint64_t base_ns)
{
	const size_t contexts = contexts_of(session->launch);

	return contexts > 2 ? base_ns + (contexts - 2) * MORE_NS : base_ns;
}

static uint64_t step_deadline(const struct session *session)
{
	const uint64_t until_ns = drv_now_ns() + patience_ns(session, STEP_NS);

	return until_ns < session->deadline_ns ? until_ns : session->deadline_ns;
}

/* A step failed at some endpoint: its reason, with its name. 0: at none. */
static int first_failure(const struct session *session, const json_t *all, struct drv_fail *fail)
{
	for (size_t e = 0; e < json_array_size(all); e++) {
		const json_t *report = json_array_get(all, e);
		const char *text = json_string_value(json_object_get(report, "text"));

		if (json_object_get(report, "reason"))
			return drv_fail_set(
				fail,
				drv_reason_from_name(json_string_value(json_object_get(report, "reason"))),
				"endpoint %zu (%s): %s", e, session->launch->endpoints[e].host,
				text ? text : "no reason given");
	}
	return 0;
}

/*
 * All say whether a step worked here; it worked only if it did everywhere. `mine` (taken over) may carry facts; `why`
 * is NULL when it worked. *all_out has what everybody said.
 */
static int agree(struct session *session, const char *step, json_t *mine, const struct drv_fail *why,
		 json_t **all_out, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	json_t *all = NULL;
	int status = 0;

	if (!mine || (why && (drv_json_set(mine, "reason", json_string(drv_reason_name(why->reason))) ||
			      drv_json_set(mine, "text", drv_json_text(why->text))))) {
		json_decref(mine);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	}
	if (engine->oob)
		status = drv_oob_gather(engine->oob, step, mine, drv_engine_idle(engine),
					step_deadline(session), &all, fail);
	else
		all = json_pack("[O]", mine);
	json_decref(mine);
	if (why) {
		/* our own reason counts more than what became of the message */
		json_decref(all);
		*fail = *why;
		return -1;
	}
	if (status)
		return -1;
	if (first_failure(session, all, fail)) {
		json_decref(all);
		return -1;
	}
	*all_out = all;
	return 0;
}

static int rendezvous(struct session *session, struct drv_fail *fail)
{
	const uint64_t rendezvous_ns = drv_now_ns() + patience_ns(session, RENDEZVOUS_NS);
	const uint64_t deadline_ns =
		rendezvous_ns < session->deadline_ns ? rendezvous_ns : session->deadline_ns;
	json_t *hello = json_pack("{s:s, s:i, s:s, s:s, s:s}", "version", drv_version(), "abi",
				  (int)CADGE_ABI, "schema", DRV_RESULT_SCHEMA, "revision", drv_revision(),
				  "launch", session->launch->digest);
	int status;

	if (!hello)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_open(session->args->endpoint, (int)session->launch->endpoints_count,
			      session->args->host_port, session->args->token, hello, deadline_ns,
			      &session->engine.oob, fail);
	json_decref(hello);
	return status;
}

/* Finds the subject and asks its table whether this launch can be at all. */
static int load(struct session *session, struct drv_fail *fail)
{
	struct drv_fail why;
	bool bad =
		session->subject->load(&session->engine, session->args->modules, &session->result, &why) != 0;
	json_t *all;

	if (agree(session, "loaded", json_object(), bad ? &why : NULL, &all, fail))
		return -1;
	json_decref(all);
	return 0;
}

/*
 * Opens the subject. Threads that its library starts inherit the caller's cores: they are not to share those of
 * the callers on this host.
 */
static int open_with_cores(struct session *session, struct drv_ability *here, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const struct drv_launch *launch = session->launch;
	const char *host = launch->endpoints[session->args->endpoint].host;
	const bool threads =
		engine->layer && (drv_loaded_adapter(&engine->loaded)->caps & CADGE_CAP_OWN_THREADS);
	int callers[2 * DRV_ENDPOINTS_MAX * DRV_THREADS_MAX], status;
	size_t count = 0;

	for (size_t i = 0; i < launch->endpoints_count; i++) {
		const struct drv_endpoint *endpoint = &launch->endpoints[i];

		if (strcmp(endpoint->host, host) == 0)
			for (size_t j = 0; j < endpoint->cpus_count + endpoint->worker_cpus_count; j++)
				callers[count++] = j < endpoint->cpus_count
							   ? endpoint->cpus[j]
							   : endpoint->worker_cpus[j - endpoint->cpus_count];
	}
	if (threads)
		drv_pin_lift(&session->pin, callers, count);
	status = session->subject->open(engine, &session->result, here, fail);
	if (threads)
		drv_pin_restore(&session->pin);
	return status;
}

/* Opens the subject everywhere and finds out what all can. */
static int open_subject(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const uint64_t started_ns = drv_now_ns();
	struct drv_ability here = {0}, there;
	struct drv_fail why;
	json_t *all;
	bool bad;
	int status = 0;

	engine->needs = drv_launch_needs(session->launch);
	bad = open_with_cores(session, &here, &why) != 0;
	here.clock = drv_clock_identity(&engine->clock);
	session->result.phases.open_ns = drv_now_ns() - started_ns;
	session->rss[DRV_OPENED] = drv_rss_read();
	if (agree(session, "opened", bad ? json_object() : drv_ability_json(&here), bad ? &why : NULL, &all,
		  fail))
		return -1;
	engine->offer.place = session->launch->place;
	engine->offer.both = here;
	for (size_t e = 0; !status && e < json_array_size(all); e++) {
		status = drv_ability_parse(json_array_get(all, e), &there, fail);
		if (!status)
			engine->offer.both = drv_ability_both(&engine->offer.both, &there);
	}
	json_decref(all);
	return status;
}

/* The points that can be made. All work it out, and must come to the same. */
static int negotiate(struct session *session, struct drv_fail *fail)
{
	const struct drv_launch *launch = session->launch;
	json_t *list = json_array(), *all;
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
		if (drv_negotiate_point(attempt->point, &session->engine.offer, &attempt->fail))
			attempt->status = DRV_REFUSED;
		if (json_array_append_new(list, json_string(drv_reason_name(attempt->fail.reason))))
			status = -1;
	}
	if (agree(session, "points", status ? NULL : json_pack("{s:O}", "points", list), NULL, &all, fail)) {
		json_decref(list);
		return -1;
	}
	for (size_t e = 0; e < json_array_size(all); e++)
		if (!json_equal(list, json_object_get(json_array_get(all, e), "points")))
			status = drv_fail_set(fail, DRV_PROTOCOL,
					      "endpoint %zu disagrees about what can be measured", e);
	json_decref(all);
	json_decref(list);
	return status;
}

/* Regions, where a granted point needs one. */
static int expose(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	bool exposes = false, attaches = false, bad;
	struct drv_fail why;
	uint64_t bytes = 0;
	json_t *all;

	for (size_t i = 0; i < session->result.attempts_count; i++) {
		const struct drv_attempt *attempt = &session->result.attempts[i];
		const struct drv_role role = engine->self ? drv_role_self(attempt->point->pattern)
							  : *drv_role_here(engine, attempt->point);
		const uint64_t wanted = drv_point_needs(attempt->point).region_bytes;

		if (attempt->status == DRV_REFUSED || !wanted)
			continue;
		bytes = wanted > bytes ? wanted : bytes;
		exposes |= role.exposes;
		attaches |= role.attaches;
	}
	if (!bytes)
		return 0;
	bad = drv_engine_regions(engine, bytes, exposes, attaches, step_deadline(session), &why) != 0;
	if (bad && (why.reason == DRV_PEER_LOST || why.reason == DRV_STOPPED)) {
		*fail = why;
		return -1;
	}
	if (agree(session, "attached", json_object(), bad ? &why : NULL, &all, fail))
		return -1;
	json_decref(all);
	return 0;
}

/*
 * What the subject took, told by all: once its channels are up, and before the driver has more than their addresses. Paths
 * come later: on endpoint 0 those of all channels are as much as a small layer.
 */
static int weigh(struct session *session, struct drv_fail *fail)
{
	json_t *all;

	session->rss[DRV_CONNECTED] = drv_rss_read();
	if (agree(session, "resident", json_pack("{s:o}", "bytes", drv_rss_json(session->rss)), NULL, &all,
		  fail))
		return -1;
	for (size_t e = 0; e < json_array_size(all); e++)
		session->result.rss[e] = json_incref(json_object_get(json_array_get(all, e), "bytes"));
	json_decref(all);
	return 0;
}

/* Connects, reads back where the bytes go everywhere. */
static int join(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	uint64_t started_ns = drv_now_ns(), connect_ns;
	json_t *mine, *all;
	struct drv_fail why;

	if (session->subject->connect(engine, &session->result,
				      drv_engine_allow(engine, patience_ns(session, STEP_NS)), fail))
		return -1;
	connect_ns = drv_now_ns() - started_ns;
	/* all begin together again: what others took for it is not in the time either */
	if (weigh(session, fail))
		return -1;
	started_ns = drv_now_ns();
	mine = session->subject->paths(engine, &why);
	if (agree(session, "path", mine ? json_pack("{s:o}", "path", mine) : json_object(),
		  mine ? NULL : &why, &all, fail))
		return -1;
	session->result.path = json_array();
	for (size_t e = 0; e < json_array_size(all); e++)
		json_array_extend(session->result.path, json_object_get(json_array_get(all, e), "path"));
	json_decref(all);
	session->result.phases.connect_ns = connect_ns + (drv_now_ns() - started_ns);
	return 0;
}

/* The two processes that probe the machine get what they need, and share a line where they can. */
static int prepare_machine_probe(struct session *session, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	json_t *all;

	drv_machine_probe_start(&engine->probe, session->launch, engine->endpoint, &engine->clock);
	session->result.probe = json_array();
	if (engine->self)
		return 0;
	if (agree(session, "witness", drv_machine_probe_offer(&engine->probe), NULL, &all, fail))
		return -1;
	drv_machine_probe_accept(&engine->probe, json_array_get(all, 0));
	json_decref(all);
	return 0;
}

/* Endpoint 0: both ends probe the machine, before attempt number `at` or after the last one. */
static int probe_machine(struct session *session, size_t at, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	const int partner = engine->probe.other;
	struct drv_machine_probe_values values;
	json_t *order = json_pack("{s:s, s:I}", "m", "witness", "at", (json_int_t)at), *theirs = NULL;
	int status = 0;

	if (partner > 0)
		status = drv_oob_send(engine->oob, partner, order, step_deadline(session), fail);
	json_decref(order);
	if (status)
		return -1;
	values = drv_machine_probe_measure(&engine->probe, (uint32_t)at);
	if (partner > 0 && drv_oob_expect(engine->oob, partner, "witness", drv_engine_idle(engine),
					  step_deadline(session), &theirs, fail))
		return -1;
	if (json_array_append_new(session->result.probe, drv_machine_probe_json(&values, (uint32_t)at, 0)))
		status = -1;
	if (theirs) {
		json_object_del(theirs, "m");
		json_object_del(theirs, "from");
		if (json_array_append_new(session->result.probe, theirs))
			status = -1;
	}
	return status ? drv_fail_set(fail, DRV_MEMORY, "no memory for what the machine is like") : 0;
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
		if (!stopped_by && probe_machine(session, i, fail))
			stopped_by = fail;
		if (stopped_by) {
			attempt->status = DRV_FAILED;
			drv_fail_set(&attempt->fail, stopped_by->reason, "not attempted: %s",
				     stopped_by->text);
		} else if (drv_attempt_run(engine, i, attempt, &result->phases)) {
			*fail = attempt->fail;
			stopped_by = fail;
		}
	}
	if (!stopped_by && probe_machine(session, result->attempts_count, fail))
		return -1;
	if (engine->broken || (stopped_by && stopped_by->reason == DRV_STOPPED))
		return -1;
	if (engine->self)
		return 0;
	done = json_pack("{s:s}", "m", "done");
	status = done ? drv_oob_order(engine->oob, done, step_deadline(session), fail)
		      : drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	json_decref(done);
	return status;
}

static json_t *own_facts(struct session *session)
{
	drv_clock_finish(&session->engine.clock);
	drv_pin_check(&session->pin);
	if (session->pin.ok &&
	    !drv_threads_pinned(&session->engine, session->pin.detail, sizeof(session->pin.detail)))
		session->pin.ok = false;
	return json_pack("{s:o, s:o, s:s, s:{s:i, s:o}, s:o, s:o}", "clock",
			 drv_result_clock_json(&session->engine.clock), "pinning",
			 drv_pin_json(&session->pin), "pinning_detail", session->pin.detail, "threads",
			 "endpoint", session->args->endpoint, "cpus", drv_pin_threads_json(), "endpoint",
			 drv_result_endpoint_json(&session->launch->endpoints[session->args->endpoint],
						  &session->engine.events),
			 "objects", drv_mapped_json());
}

static void take_facts(struct session *session, int endpoint, const json_t *facts)
{
	struct drv_result *result = &session->result;
	const json_t *clock = json_object_get(facts, "clock");
	const json_t *pinning = json_object_get(facts, "pinning");
	const char *detail = json_string_value(json_object_get(facts, "pinning_detail"));

	result->clock[endpoint] = json_incref(json_object_get(facts, "clock"));
	result->pinning[endpoint] = json_incref(json_object_get(facts, "pinning"));
	result->threads[endpoint] = json_incref(json_object_get(facts, "threads"));
	result->endpoint[endpoint] = json_incref(json_object_get(facts, "endpoint"));
	if (!result->objects)
		result->objects = json_array();
	json_object_set_new(result->endpoint[endpoint], "objects",
			    drv_mapped_places(result->objects, json_object_get(facts, "objects")));
	drv_check_add(&result->checks, "clock", json_is_true(json_object_get(clock, "ok")),
		      "endpoint %d: drift of %.3f ppm", endpoint,
		      json_real_value(json_object_get(clock, "drift_ppm")));
	drv_check_add(&result->checks, "pinning", json_is_true(json_object_get(pinning, "ok")),
		      "endpoint %d: %s", endpoint, detail ? detail : "");
}

/* How much of what the hosts' networks carried was said out of band, and is nobody's payload. */
static json_t *control_bytes(const struct session *session)
{
	json_t *list = json_array();

	for (int e = 0; list && e < (int)session->launch->endpoints_count; e++)
		if (json_array_append_new(list, drv_json_count(drv_oob_carried(session->engine.oob, e)))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* Between hosts the network is asked for; two endpoints on one host have none between them. */
static bool no_network_between(const struct drv_launch *launch, const json_t *path)
{
	const json_int_t from = json_integer_value(json_object_get(path, "endpoint"));
	const json_int_t to = json_integer_value(json_object_get(path, "peer"));
	const json_int_t count = (json_int_t)launch->endpoints_count;

	return launch->place == DRV_PLACE_BETWEEN && from >= 0 && from < count && to >= 0 && to < count &&
	       from != to && !strcmp(launch->endpoints[from].host, launch->endpoints[to].host);
}

/*
 * What concerns the launch as a whole, and therefore each of its attempts. A path that cannot be read back is judged by the
 * interfaces' counters, which the controller has.
 */
static void judge_launch(struct session *session)
{
	struct drv_result *result = &session->result;

	for (size_t i = 0; i < json_array_size(result->path); i++) {
		const json_t *path = json_array_get(result->path, i);
		const char *used = json_string_value(json_object_get(path, "used"));

		drv_check_add(&result->checks, "path",
			      json_is_true(json_object_get(path, "as_asked")) ||
				      (used && !cadge_path_is_read_back(used)) ||
				      no_network_between(session->engine.launch, path),
			      "endpoint %d uses %s",
			      (int)json_integer_value(json_object_get(path, "endpoint")),
			      used ? used : "nothing known");
	}
	for (size_t i = 0; i < result->attempts_count; i++)
		for (size_t j = 0; j < result->attempts[i].checks.count; j++) {
			const struct drv_sound_check *check = &result->attempts[i].checks.list[j];

			if (!strcmp(check->name, "wait_mode"))
				drv_check_add(&result->checks, "wait_mode", check->ok, "%s", check->detail);
		}
	for (size_t i = 0; i < result->attempts_count; i++)
		for (size_t j = 0; j < result->checks.count; j++) {
			const struct drv_sound_check *check = &result->checks.list[j];

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
	drv_watchdog_set_report(session->args->out, session->fallback);
	return 0;
}

/* Everything between rendezvous and end, in the same order everywhere. */
static int work(struct session *session, bool *attempted, struct drv_fail *fail)
{
	struct drv_engine *engine = &session->engine;
	json_t *all = NULL;
	int status;

	if (prepare_fallback(session, fail))
		return -1;
	session->rss[DRV_BEFORE] = drv_rss_read();
	if (load(session, fail) || open_subject(session, fail) || join(session, fail) ||
	    negotiate(session, fail) || expose(session, fail) || prepare_machine_probe(session, fail))
		return -1;
	*attempted = true;
	if (session->args->endpoint == 0)
		status = make_attempts(session, fail);
	else
		status = drv_serve(engine, session->deadline_ns, fail);
	if (status && fail->reason == DRV_PEER_LOST && !engine->broken)
		drv_engine_explain(engine, fail);
	if (!status) {
		status = agree(session, "facts", own_facts(session), NULL, &all, fail);
		for (int e = 0; !status && e < (int)json_array_size(all); e++)
			if (e != session->args->endpoint)
				take_facts(session, e, json_array_get(all, (size_t)e));
		json_decref(all);
	}
	return status;
}

static void close_subject(struct session *session)
{
	const uint64_t started_ns = drv_now_ns();

	session->subject->close(&session->engine);
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
	drv_watchdog_set_report(out, early);
	drv_watchdog_shorten(patience_ns(session, CLOSE_NS));
	close_subject(session);
	drv_watchdog_set_report(NULL, NULL);
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

/* Half of all contexts, where they are more than a few. */
static uint64_t idle_sleep_scale(const struct drv_launch *launch)
{
	const size_t contexts = contexts_of(launch);

	return contexts < 4 ? 1 : contexts / 2;
}

int drv_session_run(const struct drv_session_args *args)
{
	static struct session session;
	struct drv_engine *engine = &session.engine;
	struct drv_fail fail = {0}, store_fail;
	bool joined = false, attempted = false;
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
	engine->idle_sleep_scale = idle_sleep_scale(args->launch);
	engine->oob_check_mask = args->launch->endpoints_count < 3 ? 0xfffff : 15;
	session.subject = args->launch->kind == DRV_KIND_FLOOR ? &drv_subject_floor : &drv_subject_layer;
	drv_port_start(&engine->port, engine);
	engine->sink = &engine->port.sink;
	drv_pin_set(&session.pin, drv_endpoint_cpu(&args->launch->endpoints[args->endpoint]));
	drv_clock_start(&engine->clock, true);
	drv_events_start(&engine->events, args->launch->system_calls, !engine->block);
	engine->oob_period = drv_clock_to_ticks(&engine->clock, engine->block ? 1000000 : 200000);

	status = engine->self ? 0 : rendezvous(&session, &fail);
	joined = !status;
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
	if (engine->oob && args->endpoint == 0)
		session.result.control_bytes = control_bytes(&session);
	if (close_and_store(&session, &store_fail)) {
		fprintf(stderr, "cadge-driver: %s\n", store_fail.text);
		status = -1;
		fail = store_fail;
	}
	drv_oob_close(engine->oob);
	drv_machine_probe_end(&engine->probe);
	free(session.fallback);
	drv_result_free(&session.result);
	drv_pin_free(&session.pin);
	code = status ? drv_reason_exit(fail.reason) : 0;
	/* 2 and 3 speak of the layer only once the endpoints have met; a layer that refuses a setting could
	 * not be opened */
	if (!joined && code == 3)
		code = 4;
	return joined && fail.reason == DRV_ARGUMENT ? 3 : code;
}
