/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern load: an open loop of calls. They are due at instants that are fixed beforehand, at a rate that is given, or is
 * a share of what a closed loop of as many outstanding reaches in the same attempt; times are taken from those instants, so
 * that a call that had to wait before it was sent is not measured as if it had been due later (coordinated omission).
 */
#include "load.params.h"

#include "traffic/caller.h"
#include "launch/pattern.h"

/* The state of the acting roles. `caller` is first: the functions of its roles take a pointer to it. */
struct load {
	struct drv_caller caller;
	struct drv_pace pace;
	/* of the closed loop, in the warm-up */
	uint64_t calls, span_ns;
};

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){.form = drv_call_form(both),
				     .request_bytes = parameters->request_bytes,
				     .reply_bytes = parameters->reply_bytes,
				     .depth = (uint32_t)parameters->depth,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch};
}

static struct drv_exchange exchange_in(const struct drv_play *play)
{
	return exchange_of(play->parameters, &play->engine->offer.both, play->seed);
}

/* Whoever prepared the caller has made the histogram of responses. */
static int prepare_pace(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_pace *pace = &((struct load *)play->state)->pace;

	pace->response = play->record->values[RESPONSE].samples;
	pace->service = drv_record_samples(play->record, SERVICE, fail);
	pace->lag = drv_record_samples(play->record, LAG, fail);
	/* whether it has to wait is up to the instants */
	play->sleep = DRV_SLEEP_FREE;
	return pace->service && pace->lag ? 0 : -1;
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	return drv_caller_prepare(play, exchange_in(play), fail) ? -1 : prepare_pace(play, fail);
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_answerer_prepare(play, exchange_in(play), fail);
}

/* Of a point's time the closed loop has the first fifth where it decides the rate, the open one the rest. */
static uint64_t closed_ns(const struct drv_play *play)
{
	return ((const struct parameters *)play->parameters)->offered_per_s ? 0 : play->duration_ns / 5;
}

static uint64_t open_ns(const struct drv_play *play)
{
	return play->duration_ns - closed_ns(play);
}

/* Warms up, and then finds out what a closed loop reaches, where that decides the rate. */
static int warm_up(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct load *load = play->state;
	struct drv_record closed = {0};

	if (drv_caller_warmup(play, cap_ns, fail))
		return -1;
	if (!closed_ns(play))
		return 0;
	if (drv_client_measure(&load->caller.client, closed_ns(play), &closed, fail))
		return -1;
	if (!closed.operations || !closed.elapsed_ns)
		return drv_fail_set(
			fail, DRV_DEADLINE,
			"a closed loop completed no call, so there is no rate to offer a share of");
	load->calls = closed.operations;
	load->span_ns = closed.elapsed_ns;
	drv_record_rate(play->record, CLOSED_LOOP, load->calls, load->span_ns);
	/* its samples are of no use: the histogram becomes empty */
	return drv_record_samples(play->record, RESPONSE, fail) ? 0 : -1;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct load *load = play->state;
	const struct parameters *parameters = play->parameters;
	struct drv_pace *pace = &load->pace;
	struct drv_record *record = play->record;
	const uint64_t span_ns = open_ns(play);

	drv_pace_start(
		pace, &play->engine->clock, (enum drv_arrival_process)parameters->arrivals, play->seed,
		parameters->offered_per_s
			? (struct drv_rate){parameters->offered_per_s, UINT64_C(1000000000)}
			: (struct drv_rate){load->calls * parameters->load_percent, load->span_ns * 100});
	if (drv_client_pace(&load->caller.client, pace, span_ns, record, fail))
		return -1;
	drv_record_rate(record, OFFERED, pace->offered, span_ns);
	drv_record_rate(record, ACHIEVED, record->operations, record->elapsed_ns);
	if (!pace->offered)
		return 0;
	drv_record_fit(record, HELD, 100.0 * (double)pace->held / (double)pace->offered);
	drv_record_count(record, GENERATOR_BOUND, drv_pace_generator_bound(pace, record, span_ns));
	return 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	drv_calls_need(parameters->request_bytes, parameters->reply_bytes, parameters->depth, needs_out);
}

static int negotiate(const void *parameters, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct drv_exchange exchange = exchange_of(parameters, &offer->both, 0);

	return drv_exchange_negotiate(&exchange, "request", "reply", offer, fail);
}

#define ACTING                                                                                               \
	.acts = true, .state_bytes = sizeof(struct load), .stop = drv_caller_stop,                           \
	.verify = drv_caller_verify, .warmup = warm_up, .measure = measure, .settle = drv_caller_settle,     \
	.phase = drv_caller_phase

static const struct drv_pattern load = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, ACTING},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(load);
