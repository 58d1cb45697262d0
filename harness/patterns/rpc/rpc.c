/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern rpc: a closed loop of requests and replies with several outstanding at a time, over the layer's own calls
 * where it has them, else over messages with a trailer of 16 bytes.
 */
#include "rpc.params.h"

#include "traffic/roles.h"
#include "launch/pattern.h"

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){.form = drv_call_form(both),
				     .request_bytes = parameters->request_bytes,
				     .reply_bytes = parameters->reply_bytes,
				     .depth = (uint32_t)parameters->depth,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch,
				     .payload = (enum drv_payload)parameters->payload,
				     .reply = (enum drv_reply)parameters->reply};
}

static struct drv_exchange exchange_in(const struct drv_play *play)
{
	return exchange_of(play->parameters, &play->engine->offer.both, play->seed);
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	return drv_requester_role_prepare(play, exchange_in(play), fail);
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_answerer_prepare(play, exchange_in(play), fail);
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

static const struct drv_pattern rpc = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 .channels_most = 1,
			 .hands = true,
			 DRV_REQUESTER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(rpc);
