/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern pingpong: a bare message there and one of the same size back, one at a time. Several pairs do so at the same
 * time, each on a channel of its own, and know nothing of each other: what they share is the layer.
 */
#include "pingpong.params.h"

#include "traffic/requester.h"
#include "launch/pattern.h"

static struct drv_exchange exchange_of(const struct drv_role_run *run)
{
	const struct parameters *parameters = run->parameters;

	return (struct drv_exchange){.form = DRV_FORM_BARE,
				     .request_bytes = parameters->bytes,
				     .reply_bytes = parameters->bytes,
				     .depth = 1,
				     .seed = run->seed,
				     .touch = (enum drv_touch)parameters->touch};
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_requester_role_prepare(run, exchange_of(run), fail);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_responder_role_prepare(run, exchange_of(run), fail);
}

static void needs(const void *parameters, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)parameters)->bytes;
}

static const struct drv_pattern pingpong = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, DRV_REQUESTER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_RESPONDER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(pingpong);
