/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern handler: a closed loop of calls whose server works before it answers, for as long as is drawn for each call.
 * Both ends know the draw, so that the client can say what a call took beside it.
 */
#include "handler.params.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/requester.h"
#include "traffic/responder.h"
#include "launch/pattern.h"
#include "measure/service.h"

/* Of fewer calls the p99.9 is not told. */
#define TAIL_CALLS 1000u

/* Workers that do a server's work before it answers, each as `service` does, with memory of its own. */
struct handler_workers {
	struct drv_worker_pool pool;
	uint32_t count;
	struct drv_service *services;
	/* each worker's own: whether its thread is ready to sleep exactly */
	bool is_ready[DRV_THREADS_MAX];
};

/* The state of the client. `requester` is first: the functions of its role take a pointer to it. */
struct calling {
	struct drv_requester requester;
	/* what the server does, as it is drawn */
	struct drv_service service;
	struct drv_tally tally;
	struct drv_histogram slowdown;
};

/* The state of the role that answers. The same holds of `responder`. */
struct serving {
	struct drv_responder responder;
	struct drv_service service;
	struct handler_workers workers;
};

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed),
				     .depth = (uint32_t)parameters->depth};
}

DRV_EXCHANGE_RULES(exchange_of)

static bool has_workers(const struct drv_role_run *run)
{
	return ((const struct parameters *)run->parameters)->dispatch == DISPATCH_WORKERS;
}

/* `serves`: this end does the work, and says how long it took. */
static int start_service(struct drv_role_run *run, struct drv_service *service, bool serves,
			 struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	if (drv_service_start(service, (enum drv_service_work)parameters->work,
			      (enum drv_service_spread)parameters->spread, parameters->service_ns,
			      has_workers(run) ? 0 : parameters->work_bytes, serves, run->seed,
			      &run->engine->clock, fail))
		return -1;
	if (!serves)
		return 0;
	service->samples = drv_record_samples(run->record, SERVICE, fail);
	/* whoever sleeps in its work proves nothing of how it waits */
	if (service->work == DRV_SERVICE_SLEEP && !has_workers(run))
		run->sleep = DRV_SLEEP_UNJUDGED;
	return service->samples ? 0 : -1;
}

/* In a worker. The work depends on nothing but the key of the request. */
static uint64_t do_work(void *arg, uint32_t worker, uint64_t job)
{
	struct handler_workers *workers = arg;
	struct drv_service *service = &workers->services[worker];

	if (!workers->is_ready[worker])
		drv_service_settle_in(service);
	workers->is_ready[worker] = true;
	drv_service_do(service, workers->pool.requests[job].request.key);
	return job;
}

static int start_worker(struct drv_service *service, const struct drv_service *like, uint64_t bytes,
			struct drv_fail *fail)
{
	if (drv_service_start(service, like->work, like->spread, like->mean_ns, bytes, true, like->seed,
			      like->clock, fail))
		return -1;
	service->samples = calloc(1, sizeof(*service->samples));
	if (!service->samples)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for histograms");
	drv_histogram_clear(&service->samples->histogram);
	return 0;
}

/* To be ended with stop_workers either way. */
static int start_workers(struct handler_workers *workers, struct drv_engine *engine,
			 struct drv_responder *responder, struct drv_service *service, uint64_t bytes,
			 struct drv_fail *fail)
{
	const uint32_t count = drv_workers_wanted(engine);

	workers->services = calloc(count, sizeof(*workers->services));
	if (count && !workers->services)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u workers", count);
	/* counted first: what is half started is stopped as well */
	while (workers->count < count)
		if (start_worker(&workers->services[workers->count++], service, bytes, fail))
			return -1;
	return drv_worker_pool_start(&workers->pool, responder, DRV_POLICY_FIFO, do_work, workers, NULL,
				     fail);
}

/* Legal without a start, on zeroes. */
static void stop_workers(struct handler_workers *workers)
{
	drv_worker_pool_stop(&workers->pool);
	for (uint32_t i = 0; i < workers->count; i++) {
		free(workers->services[i].samples);
		drv_service_stop(&workers->services[i]);
	}
	free(workers->services);
	memset(workers, 0, sizeof(*workers));
}

/* From now on the server works before it answers, or has others do so. */
static int serve(struct drv_role_run *run, struct drv_responder *responder, struct drv_service *service,
		 struct handler_workers *workers, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	if (!has_workers(run)) {
		responder->service = service;
		return 0;
	}
	return start_workers(workers, run->engine, responder, service, parameters->work_bytes, fail);
}

static bool is_drawn(const struct drv_service *service)
{
	return service->work != DRV_SERVICE_TOUCH;
}

/* Of a call whose time at the server is known beforehand. */
static bool complete(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	struct calling *calling = (struct calling *)requester;

	drv_tally_done(&calling->tally, op->number, drv_clock_to_ns(calling->service.clock, now - op->start));
	return now < requester->end;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct calling *calling = run->state;

	if (drv_requester_role_prepare(run, exchange_in(run), fail) ||
	    start_service(run, &calling->service, false, fail))
		return -1;
	if (!is_drawn(&calling->service))
		return 0;
	drv_histogram_clear(&calling->slowdown);
	calling->requester.measured = complete;
	calling->tally = (struct drv_tally){.service = &calling->service,
					    .latency = calling->requester.samples,
					    .overhead = drv_record_samples(run->record, OVERHEAD, fail),
					    .slowdown = &calling->slowdown};
	return calling->tally.overhead ? 0 : -1;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	struct serving *serving = run->state;

	if (drv_responder_role_prepare(run, exchange_in(run), fail) ||
	    start_service(run, &serving->service, true, fail))
		return -1;
	return serve(run, &serving->responder, &serving->service, &serving->workers, fail);
}

static void stop_client(struct drv_role_run *run)
{
	struct calling *calling = run->state;

	drv_service_stop(&calling->service);
	drv_requester_role_stop(run);
}

static void stop_server(struct drv_role_run *run)
{
	struct serving *serving = run->state;

	stop_workers(&serving->workers);
	drv_service_stop(&serving->service);
	drv_responder_role_stop(run);
}

/* Where memory is touched nothing is drawn: only the round trip is known here. */
static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	struct calling *calling = run->state;
	const struct parameters *parameters = run->parameters;

	/* so much longer may an operation take before it is given up as lost */
	if (is_drawn(&calling->service))
		calling->requester.patience += drv_clock_to_ticks(
			&run->engine->clock,
			drv_service_most_ns(&calling->service, (uint32_t)parameters->depth));
	if (drv_requester_role_measure(run, fail))
		return -1;
	if (is_drawn(&calling->service) && parameters->service_ns && calling->slowdown.count >= TAIL_CALLS)
		drv_record_fit(run->record, SLOWDOWN,
			       (double)drv_histogram_quantile(&calling->slowdown, 999000) / 1000);
	return 0;
}

/* Calls take what is drawn while they are measured, and at no other time. Between phases nothing is outstanding. */
static void switch_work(struct drv_service *service, struct handler_workers *workers,
			const struct drv_phase *phase)
{
	const bool works = phase->ended == DRV_STEP_WARMUP && !phase->last;

	service->first = phase->control;
	drv_service_switch(service, works);
	/* a worker that is given a job sees what was written before */
	for (uint32_t i = 0; i < workers->count; i++) {
		struct drv_samples *samples = workers->services[i].samples;

		workers->services[i].first = phase->control;
		workers->services[i].on = works;
		if (phase->ended != DRV_STEP_MEASURE)
			continue;
		drv_samples_add(service->samples, samples);
		drv_histogram_clear(&samples->histogram);
		samples->first_count = 0;
	}
}

/* The number of the next call. */
static uint64_t control(const struct drv_role_run *run)
{
	return ((const struct calling *)run->state)->requester.next_number;
}

static void phase_client(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	drv_requester_role_phase(run, phase, counts_out);
	((struct calling *)run->state)->service.first = phase->control;
}

static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	struct serving *serving = run->state;

	drv_responder_role_phase(run, phase, counts_out);
	switch_work(&serving->service, &serving->workers, phase);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;

	if ((parameters->dispatch == DISPATCH_WORKERS) != (parameters->workers > 0))
		return drv_fail_set(fail, DRV_ARGUMENT,
				    "dispatch to workers takes at least one, and inline dispatch none");
	return exchange_negotiate(at, offer, fail);
}

#define CLIENT                                                                                               \
	.measures = true, .state_bytes = sizeof(struct calling), .stop = stop_client,                        \
	.verify = drv_requester_role_verify, .warmup = drv_requester_role_warmup, .measure = measure,        \
	.settle = drv_requester_role_settle, .control = control

static const struct drv_pattern handler = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 .phase = phase_client,
			 .channels_most = 1,
			 CLIENT},
			{.name = "server",
			 .workers = true,
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .state_bytes = sizeof(struct serving),
			 .stop = stop_server,
			 .serve = drv_responder_role_serve,
			 .drain = drv_responder_drain,
			 .phase = phase_server},
			{.name = NULL},
		},
	.self = true,
	.needs = exchange_needs,
	.negotiate = negotiate,
};
DRV_PATTERN(handler);
