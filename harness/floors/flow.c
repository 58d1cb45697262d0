/* SPDX-License-Identifier: BSD-3-Clause */
/* Form flow of floors: messages in one direction, as fast as they go. */
#include "flow.params.h"

#include "traffic/floor.h"

static int prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	return drv_form_prepare(run, parameters->bytes, (uint32_t)parameters->depth, true,
				(enum drv_touch)parameters->touch, fail);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes;
	needs_out->depth = (uint32_t)parameters->depth;
}

static bool offered(const struct drv_floor *floor)
{
	return floor->flow.client != NULL;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;

	if (parameters->bytes == 0 && offered(offer->floor))
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a flow of empty messages, which has no bandwidth");
	return drv_form_negotiate(parameters->bytes, offered(offer->floor), "a flow", offer, fail);
}

static const struct drv_pattern flow = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.prepare = prepare, .channels_most = 1, DRV_FORM_CLIENT},
			{.prepare = prepare, .channels_most = 1, DRV_FORM_SERVER},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
	.offered = offered,
};
DRV_FORM(flow);
