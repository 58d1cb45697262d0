/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern rpc: a closed loop of requests and replies with several outstanding at a time, over the layer's own calls
 * where it has them, else over messages with a trailer of 16 bytes.
 */
#include "rpc.params.h"

#include "traffic/requester.h"
#include "launch/pattern.h"

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){
		DRV_CALLS_OF(parameters, both, seed), .depth = (uint32_t)parameters->depth,
		.payload = (enum drv_payload)parameters->payload, .reply = (enum drv_reply)parameters->reply};
}

DRV_EXCHANGE_RULES(exchange_of)

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_requester_role_prepare(run, exchange_in(run), fail);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_responder_role_prepare(run, exchange_in(run), fail);
}

static const struct drv_pattern rpc = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 .channels_most = 1,
			 .workers = true,
			 DRV_REQUESTER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_RESPONDER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = exchange_needs,
	.negotiate = exchange_negotiate,
};
DRV_PATTERN(rpc);
