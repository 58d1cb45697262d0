/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern servers: many clients call one server, each over a connection and a context of its own or all over one, and the
 * server's threads share the connections in one of several ways.
 */
#include "servers.params.h"

#include <inttypes.h>

#include "servers/batch.h"
#include "traffic/requester.h"
#include "traffic/responder.h"
#include "launch/pattern.h"
#include "measure/service.h"
#include "servers/client_threads.h"

/* Requests may be worked for by another thread than the one that owns the context. */
static bool passes_on(const struct parameters *parameters)
{
	return parameters->step == STEP_DISPATCHER || parameters->step == STEP_STEALING;
}

/* The state of the role that calls; `shared`: NULL where each client has a connection of its own. */
struct calling {
	struct drv_requester requester;
	struct drv_client_threads *client_threads;
};

/* How many calls one connection may have outstanding. */
static uint64_t outstanding(const struct parameters *parameters)
{
	return parameters->connection == CONNECTION_SHARED ? parameters->clients * parameters->depth
							   : parameters->depth;
}

/* The state of the role that answers. */
struct serving {
	/* first: the functions of its role take a pointer to it */
	struct drv_responder responder;
	/* where the pattern's step has workers, or thieves */
	struct drv_worker_pool pool;
	struct drv_service service;
};

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed),
				     .depth = (uint32_t)parameters->depth,
				     .reply = (enum drv_reply)parameters->reply};
}

DRV_EXCHANGE_RULES(exchange_of)

/* As the server has it, which hears the threads of a shared connection on one channel. */
static struct drv_exchange exchange_served(const struct drv_role_run *run)
{
	const struct parameters *parameters = run->parameters;
	struct drv_exchange exchange = exchange_in(run);

	exchange.by_channel = true;
	exchange.clients = parameters->connection == CONNECTION_SHARED ? (uint32_t)parameters->clients : 1;
	return exchange;
}

/*
 * Whether each operation puts a thread of either role to sleep can be told only of one client that has one call at a time:
 * among many a reply is often there before its client has a processor again.
 */
static enum drv_sleep sleep_of(const struct parameters *parameters)
{
	return parameters->clients == 1 && parameters->depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct calling *calling = run->state;
	const struct drv_exchange exchange = exchange_in(run);

	if (parameters->connection == CONNECTION_SHARED
		    ? drv_client_threads_start(&calling->client_threads, run, exchange,
					       (uint32_t)parameters->clients,
					       exchange.reply == DRV_REPLY_WAIT, fail)
		    : drv_requester_role_prepare(run, exchange, fail))
		return -1;
	run->sleep = sleep_of(parameters);
	return 0;
}

static void stop_client(struct drv_role_run *run)
{
	struct calling *calling = run->state;

	drv_client_threads_stop(calling->client_threads);
	drv_requester_role_stop(run);
}

/* Steps of one client: where connections are shared each thread does them, on a role run of its own. */
static int measure_one(struct drv_role_run *run, uint64_t unused, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct drv_requester *requester = run->state;

	(void)unused;
	/* while it is verified and warms up, calls go one by one */
	if (parameters->batch > 1)
		drv_batch_calls(requester, (uint32_t)parameters->batch);
	if (drv_requester_role_measure(run, fail))
		return -1;
	drv_record_rate(run->record, RATE, run->record->operations, run->record->elapsed_ns);
	return 0;
}

static int settle_one(struct drv_role_run *run, uint64_t unused, struct drv_fail *fail)
{
	(void)unused;
	return drv_requester_role_settle(run) ? 0 : drv_fail_set(fail, DRV_DEADLINE, "calls are outstanding");
}

/* A step of the client, in all of its threads where they share a connection. */
static int step(struct drv_role_run *run, drv_client_threads_fn one, uint64_t number, struct drv_fail *fail)
{
	struct calling *calling = run->state;

	return calling->client_threads ? drv_client_threads_run(calling->client_threads, one, number, fail)
				       : one(run, number, fail);
}

static void record(struct drv_role_run *run, bool warmup_only)
{
	struct calling *calling = run->state;

	if (calling->client_threads)
		drv_client_threads_record(calling->client_threads, warmup_only);
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return step(run, drv_requester_role_verify, serial, fail);
}

static int warm_up(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const int status = step(run, drv_requester_role_warmup, cap_ns, fail);

	record(run, true);
	return status;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const int status = step(run, measure_one, 0, fail);

	record(run, false);
	return status;
}

static bool settle(struct drv_role_run *run)
{
	struct drv_fail ignored;

	return !step(run, settle_one, 0, &ignored);
}

static void phase_client(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	struct calling *calling = run->state;

	if (calling->client_threads)
		drv_client_threads_counts(calling->client_threads, counts_out);
	else
		drv_requester_role_phase(run, phase, counts_out);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct serving *serving = run->state;
	struct drv_responder *responder = &serving->responder;
	const bool steals = parameters->step == STEP_STEALING;
	struct drv_service *service = &serving->service;

	if (drv_responder_start(responder, run->engine, exchange_served(run), fail))
		return -1;
	run->sleep = sleep_of(parameters);
	if (parameters->service_ns) {
		/* in every phase: it is the same each time, so that calls become steady with it */
		if (drv_service_start(service, DRV_SERVICE_SPIN, DRV_SERVICE_FIXED, parameters->service_ns, 0,
				      true, run->seed, &run->engine->clock, fail))
			return -1;
		drv_service_switch(service, true);
		responder->service = service;
	}
	return passes_on(parameters)
		       ? drv_worker_pool_start(&serving->pool, responder,
					       steals ? DRV_POLICY_SHARED : DRV_POLICY_LEAST_LOADED, NULL,
					       NULL, steals ? run->shared : NULL, fail)
		       : 0;
}

static void stop_server(struct drv_role_run *run)
{
	struct serving *serving = run->state;

	drv_worker_pool_stop(&serving->pool);
	drv_responder_stop(&serving->responder);
	drv_service_stop(&serving->service);
}

static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	const struct parameters *parameters = run->parameters;
	struct serving *serving = run->state;

	drv_responder_phase(&serving->responder, phase, counts_out);
	if (phase->ended == DRV_STEP_MEASURE && !phase->last && passes_on(parameters)) {
		drv_record_count(run->record, REORDERED, serving->pool.reordered);
		if (parameters->step == STEP_STEALING)
			drv_record_count(run->record, STOLEN, serving->pool.jobs.helped);
	}
	serving->pool.reordered = serving->pool.jobs.helped = 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	exchange_needs(at, needs_out);
	needs_out->depth = (uint32_t)outstanding(at);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;
	const struct drv_exchange exchange = exchange_of(parameters, &offer->both, 0);

	if (parameters->connection == CONNECTION_SHARED && drv_client_threads_negotiate(&offer->both, fail))
		return -1;
	if (exchange.form == DRV_FORM_NATIVE && !(offer->both.caps & CADGE_CAP_REPLY_LATER) &&
	    passes_on(parameters))
		return drv_fail_set(
			fail, DRV_NO_CAP,
			"wanted calls that another thread works for, the layer's own are answered "
			"before their handler ends (no REPLY_LATER)");
	if (parameters->batch > parameters->depth)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted batches of %" PRIu64 " calls where %" PRIu64
				    " may be outstanding",
				    parameters->batch, parameters->depth);
	if (parameters->batch > 1 && !(offer->both.caps & CADGE_CAP_BATCH))
		return drv_fail_set(fail, DRV_NO_CAP, "wanted batches of calls, the layer has none (BATCH)");
	return exchange_negotiate(at, offer, fail);
}

static const struct drv_pattern servers = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			/* a server with more threads than there are clients gives each of them further channels, for nothing */
			{.name = "client",
			 .threads = true,
			 .workers = true,
			 .prepare = prepare_client,
			 .measures = true,
			 .state_bytes = sizeof(struct calling),
			 .stop = stop_client,
			 .verify = verify,
			 .warmup = warm_up,
			 .measure = measure,
			 .settle = settle,
			 .phase = phase_client},
			{.name = "server",
			 .threads = true,
			 .workers = true,
			 .prepare = prepare_server,
			 .state_bytes = sizeof(struct serving),
			 .shared_bytes = DRV_JOBS_SHARED_BYTES,
			 .stop = stop_server,
			 .serve = drv_responder_role_serve,
			 .phase = phase_server},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(servers);
