/* SPDX-License-Identifier: BSD-3-Clause */
/* Form exchange of floors: a message there and one of the same size back, one at a time. */
#include "exchange.params.h"

#include "traffic/floor.h"

static int prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	return drv_form_prepare(run, parameters->bytes, 1, false, (enum drv_touch)parameters->touch, fail);
}

static void needs(const void *parameters, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)parameters)->bytes;
}

static bool offered(const struct drv_floor *floor)
{
	return floor->exchange.client != NULL;
}

static int negotiate(const void *parameters, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_form_negotiate(((const struct parameters *)parameters)->bytes, offered(offer->floor),
				  "an exchange", offer, fail);
}

static const struct drv_pattern exchange = {
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
DRV_FORM(exchange);
