/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern incast: several clients call one server at the same time, each in a closed loop of its own, over the layer's
 * own calls where it has them, else over messages with a trailer of 16 bytes. The server answers in the order in which
 * calls come.
 */
#include "incast.params.h"

#include "traffic/roles.h"
#include "launch/pattern.h"

/* Calls of clients are told apart by their numbers: so far apart are the first ones, and so many a client may make. */
#define CALLS_BITS 40

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){.form = drv_call_form(both),
				     .request_bytes = parameters->request_bytes,
				     .reply_bytes = parameters->reply_bytes,
				     .depth = (uint32_t)parameters->depth,
				     .clients = (uint32_t)parameters->clients,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch};
}

static struct drv_exchange exchange_in(const struct drv_play *play)
{
	return exchange_of(play->parameters, &play->engine->offer.both, play->seed);
}

/* The number of an endpoint's first call. */
static uint64_t first_call(int endpoint)
{
	return (uint64_t)endpoint << CALLS_BITS;
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_requester *requester = play->state;

	if (drv_requester_role_prepare(play, exchange_in(play), fail))
		return -1;
	/* so that a reply that went to the wrong client is found out */
	requester->next_number = first_call(play->engine->endpoint);
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	const struct drv_exchange exchange = exchange_in(play);
	struct drv_server *server = play->state;

	if (drv_answerer_prepare(play, exchange, fail))
		return -1;
	/* of one client the order is looked at */
	server->lines[0].check.next_number = first_call(play->engine->channels[0].endpoint);
	/* the next client's call may be there before this one's answer has left */
	if (exchange.clients > 1)
		play->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	if (drv_requester_role_measure(play, fail))
		return -1;
	drv_record_rate(play->record, SERVED, play->record->operations, play->record->elapsed_ns);
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

static const struct drv_pattern incast = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "server", .prepare = prepare_server, DRV_ANSWERER_ROLE},
			{.name = "client",
			 .acts = true,
			 .channels_most = 1,
			 .state_bytes = sizeof(struct drv_requester),
			 .prepare = prepare_client,
			 .stop = drv_requester_role_stop,
			 .verify = drv_requester_role_verify,
			 .warmup = drv_requester_role_warmup,
			 .measure = measure,
			 .settle = drv_requester_role_settle,
			 .phase = drv_requester_role_phase},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(incast);
