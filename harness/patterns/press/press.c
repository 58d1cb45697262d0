/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern press: what a layer is worth to an application. A cluster of web servers, which pass requests and files to each
 * other over the layer, answers a client that asks over HTTP; after PRESS (HPCA 2002). The program is in
 * harness/apps/press.
 */
#include "press.params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "press/load_generator.h"
#include "press/node.h"
#include "press/outside.h"
#include "traffic/payload.h"

#define VERIFY_REQUESTS 64u
#define KIB             UINT64_C(1024)
#define TRACE_DIGITS    12u

union server_state {
	struct press_node node;
	struct press_outside outside;
};

/* The state of the client. `browser` is first: the engine's sink is its first member. */
struct visitor {
	struct press_load_generator generator;
	struct drv_pace pace;
	struct drv_warmup warmup;
	/* of the closed loop: requests, and how long they took */
	uint64_t requests, span_ns;
};

/* What all nodes' caches have together, times the ratio. */
static uint64_t working_bytes(const struct parameters *parameters)
{
	return parameters->nodes * parameters->cache_kib * KIB * parameters->working_percent / 100;
}

/* The trace that the point replays, which has to be the one that its number stands for; NULL: none. */
static int find_trace(const struct drv_role_run *run, const struct drv_trace **trace_out,
		      struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const struct drv_trace *trace = run->engine->launch->trace.read;
	char number[TRACE_DIGITS + 1];

	*trace_out = NULL;
	if (parameters->workload != PRESS_TRACE)
		return 0;
	snprintf(number, sizeof(number), "%0*" PRIx64, (int)TRACE_DIGITS, parameters->trace);
	if (!trace || strncmp(trace->sha256, number, TRACE_DIGITS) != 0)
		return drv_fail_set(fail, DRV_PROTOCOL, "the point replays trace %s, and the launch has %s",
				    number, trace ? trace->sha256 : "none");
	if (!press_files_fit(trace))
		return drv_fail_set(
			fail, DRV_ARGUMENT,
			"the trace has more files, or longer or shorter ones, than can be served");
	*trace_out = trace;
	return 0;
}

/* Of one node. A trace's working set cannot be chosen, so that the caches are; none needs more than for all files. */
static uint64_t cache_bytes(const struct parameters *parameters, const struct drv_trace *trace)
{
	uint64_t bytes;

	if (!trace)
		return parameters->cache_kib * KIB;
	bytes = trace->total_bytes * 100 / (parameters->nodes * parameters->working_percent);
	return bytes < trace->total_bytes ? bytes : trace->total_bytes;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct visitor *visitor = run->state;
	struct press_visitors visitors = {.workload = (enum press_workload)parameters->workload,
					  .working_bytes = working_bytes(parameters),
					  .connections = parameters->connections,
					  .alpha = (double)parameters->alpha_percent / 100,
					  .seed = run->seed,
					  .draws = drv_mix(run->seed, 1)};

	visitor->pace.response = drv_record_samples(run->record, RESPONSE, fail);
	visitor->pace.service = drv_record_samples(run->record, SERVICE, fail);
	visitor->pace.lag = drv_record_samples(run->record, LAG, fail);
	/* whether it has to wait is up to the instants */
	run->sleep = DRV_SLEEP_FREE;
	if (!visitor->pace.response || !visitor->pace.service || !visitor->pace.lag ||
	    find_trace(run, &visitors.trace, fail))
		return -1;
	return press_load_generator_start(&visitor->generator, run->engine, &visitors, fail);
}

static void stop_client(struct drv_role_run *run)
{
	press_load_generator_end(&((struct visitor *)run->state)->generator);
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct press_load_generator *generator = &((struct visitor *)run->state)->generator;

	(void)serial;
	return press_load_generator_connect(generator, fail)
		       ? -1
		       : press_load_generator_ask(generator, VERIFY_REQUESTS, 0, fail);
}

/* Of a point's time the closed loop has the first fifth where it decides the rate, the open one the rest. */
static uint64_t closed_ns(const struct drv_role_run *run)
{
	return ((const struct parameters *)run->parameters)->offered_per_s ? 0 : run->duration_ns / 5;
}

/*
 * Until the caches hold what they are going to hold: as many requests as there are files, and then until the times are
 * steady; or until four times the usual cap. Then a closed loop finds out how many requests a second there can be, where
 * that decides the rate.
 */
static int warm_up(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct visitor *visitor = run->state;
	struct press_load_generator *generator = &visitor->generator;
	const uint64_t begun = drv_clock_now(clock), cap = drv_clock_to_ticks(clock, 4 * cap_ns);
	uint64_t closed;

	drv_warmup_start(&visitor->warmup, begun, drv_clock_to_ticks(clock, cap_ns / 8), cap);
	generator->warmup = &visitor->warmup;
	generator->warm = false;
	for (uint64_t asked = 0;
	     (asked < generator->files.count || !generator->warm) && drv_clock_now(clock) - begun < cap;
	     asked += generator->answered)
		if (press_load_generator_ask(generator, generator->visits_count, UINT64_MAX, fail))
			return -1;
	generator->warmup = NULL;
	drv_record_warmup(run->record, &visitor->warmup);
	if (!closed_ns(run))
		return 0;
	closed = drv_clock_now(clock);
	if (press_load_generator_ask(generator, drv_engine_operations(run->engine),
				     drv_engine_end(run->engine, closed, closed_ns(run)), fail))
		return -1;
	visitor->requests = generator->answered;
	visitor->span_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - closed);
	drv_record_rate(run->record, CLOSED_LOOP, visitor->requests, visitor->span_ns);
	return 0;
}

/* nginx counts requests at both of its doors: beside those of the client, those that one passed on to another. */
static void record_outside(struct drv_record *record, const uint64_t before[PRESS_COUNTS],
			   const uint64_t after[PRESS_COUNTS])
{
	const double requests = (double)(after[PRESS_REQUESTS] - before[PRESS_REQUESTS]);

	drv_record_fit(record, FORWARDED, 100 * (requests / (double)record->operations - 1));
}

static void record_each(struct drv_record *record, enum quantity quantity, uint64_t amount)
{
	drv_record_fit(record, quantity, (double)amount / (double)record->operations);
}

/* What the nodes counted in the meantime, by request. */
static void record_counts(struct drv_record *record, const uint64_t before[PRESS_COUNTS],
			  const uint64_t after[PRESS_COUNTS])
{
	static const enum quantity messages[PRESS_TYPES] = {
		[PRESS_FORWARD] = FORWARD_MESSAGES, [PRESS_FILE] = FILE_MESSAGES,
		[PRESS_CACHING] = CACHING_MESSAGES, [PRESS_LOAD] = LOAD_MESSAGES,
		[PRESS_CREDIT] = CREDIT_MESSAGES,   [PRESS_NOTIFY] = NOTIFY_MESSAGES};
	uint64_t since[PRESS_COUNTS], bytes = 0;

	for (uint32_t i = 0; i < PRESS_COUNTS; i++)
		since[i] = after[i] - before[i];
	drv_record_fit(record, HIT, 100 * (1 - (double)since[PRESS_MISSES] / (double)record->operations));
	drv_record_fit(record, FORWARDED, 100 * (double)since[PRESS_FORWARDED] / (double)record->operations);
	for (uint32_t type = PRESS_FORWARD; type < PRESS_TYPES; type++) {
		record_each(record, messages[type], since[PRESS_SENT + type]);
		bytes += since[PRESS_SENT_BYTES + type];
	}
	record_each(record, POSTS, since[PRESS_POSTS]);
	record_each(record, PUTS, since[PRESS_PUTS]);
	record_each(record, MESSAGE_BYTES, bytes);
	record_each(record, COPIED_BYTES, since[PRESS_COPIED]);
	record_each(record, WAKEUPS, since[PRESS_WAKEUPS]);
	if (since[PRESS_DISK_READS])
		drv_record_fit(record, DISK_READ,
			       (double)since[PRESS_DISK_NS] / (double)since[PRESS_DISK_READS]);
	drv_record_count(record, DISK_BUFFERED, since[PRESS_DISK_BUFFERED] > 0);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const struct drv_clock *clock = &run->engine->clock;
	struct visitor *visitor = run->state;
	struct press_load_generator *generator = &visitor->generator;
	struct drv_record *record = run->record;
	const uint64_t span_ns = run->duration_ns - closed_ns(run);
	uint64_t before[PRESS_COUNTS], after[PRESS_COUNTS], begun;

	if (!visitor->requests && !parameters->offered_per_s)
		return drv_fail_set(fail, DRV_DEADLINE, "a closed loop completed no request");
	if (press_load_generator_counts(generator, before, fail))
		return -1;
	drv_pace_start(&visitor->pace, clock, (enum drv_arrival_process)parameters->arrivals, run->seed,
		       parameters->offered_per_s
			       ? (struct drv_rate){parameters->offered_per_s, UINT64_C(1000000000)}
			       : (struct drv_rate){visitor->requests * parameters->load_percent,
						   visitor->span_ns * 100});
	begun = drv_clock_now(clock);
	if (press_load_generator_pace(generator, &visitor->pace, span_ns, fail))
		return -1;
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begun);
	record->operations = generator->answered;
	record->bytes = generator->answered_bytes;
	if (press_load_generator_counts(generator, after, fail))
		return -1;
	drv_record_rate(record, OFFERED, visitor->pace.offered, span_ns);
	drv_record_rate(record, ACHIEVED, record->operations, record->elapsed_ns);
	drv_record_count(record, GENERATOR_BOUND, drv_pace_generator_bound(&visitor->pace, record, span_ns));
	drv_record_count(record, PARTIAL_REPLAY,
			 generator->trace && generator->posted < generator->trace->requests);
	if (record->operations)
		(parameters->server == SERVER_NGINX ? record_outside : record_counts)(record, before, after);
	return 0;
}

static void phase_client(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	const struct press_load_generator *generator = &((struct visitor *)run->state)->generator;

	(void)phase;
	counts_out->posts = true;
	counts_out->posted = generator->posted;
	counts_out->posted_keys = generator->posted_keys;
	/* every byte of every answer */
	counts_out->checked = counts_out->full_checked = generator->checked;
	counts_out->mismatches = generator->mismatches;
	memcpy(counts_out->mismatch, generator->mismatch, sizeof(counts_out->mismatch));
}

static bool is_outside(const struct drv_role_run *run)
{
	return ((const struct parameters *)run->parameters)->server == SERVER_NGINX;
}

static int prepare_node(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	union server_state *state = run->state;
	struct press_setting setting = {.workload = (enum press_workload)parameters->workload,
					.version = (enum press_version)parameters->version,
					.working_bytes = working_bytes(parameters),
					.service_ns = parameters->service_ns,
					.real_disk = parameters->disk == DISK_REAL,
					.seed = run->seed};
	struct press_outside_setting outside = {.workload = setting.workload,
						.working_bytes = setting.working_bytes,
						.connections = parameters->connections,
						.seed = run->seed};

	/* it sleeps when nobody asks it anything, and not else */
	run->sleep = DRV_SLEEP_FREE;
	if (find_trace(run, &setting.trace, fail))
		return -1;
	setting.cache_bytes = cache_bytes(parameters, setting.trace);
	outside.trace = setting.trace;
	return is_outside(run) ? press_outside_start(&state->outside, run->engine, &outside, fail)
			       : press_node_start(&state->node, run->engine, &setting, fail);
}

static void stop_node(struct drv_role_run *run)
{
	union server_state *state = run->state;

	if (is_outside(run))
		press_outside_end(&state->outside);
	else
		press_node_end(&state->node);
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	union server_state *state = run->state;

	return is_outside(run) ? press_outside_serve(&state->outside, message_out, fail)
			       : press_node_serve(&state->node, message_out, fail);
}

static void phase_node(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const union server_state *state = run->state;

	(void)phase;
	/* what nginx carried out is known by number alone; the client compares every byte */
	if (is_outside(run))
		return;
	counts_out->executes = counts_out->exact = true;
	counts_out->executed = state->node.executed;
	counts_out->executed_keys = state->node.executed_keys;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	press_links_need((enum press_version)parameters->version, needs_out);
}

static const struct drv_pattern press = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .measures = true,
			 .state_bytes = sizeof(struct visitor),
			 .prepare = prepare_client,
			 .stop = stop_client,
			 .verify = verify,
			 .warmup = warm_up,
			 .measure = measure,
			 .phase = phase_client},
			{.name = "node",
			 .exposes = true,
			 .attaches = true,
			 .state_bytes = sizeof(union server_state),
			 .prepare = prepare_node,
			 .stop = stop_node,
			 .serve = serve,
			 .phase = phase_node},
			{.name = NULL},
		},
	.needs = needs,
};
DRV_PATTERN(press);
