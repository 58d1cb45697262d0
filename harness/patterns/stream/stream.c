/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern stream: messages leave as fast as the layer takes them, with at most `depth` of them lent to the layer at a
 * time, until the receiver has confirmed all of them; one way, or both ways at once. Several pairs do so at the same
 * time, each on a channel of its own, and know nothing of each other.
 */
#include "stream.params.h"

#include <inttypes.h>

#include "traffic/push.h"

static struct drv_push push_in(const struct drv_role_run *run)
{
	const struct parameters *parameters = run->parameters;

	return (struct drv_push){.bytes = parameters->bytes,
				 .depth = (uint32_t)parameters->depth,
				 .spread = parameters->spread,
				 .seed = run->seed,
				 .touch = parameters->touch != DRV_TOUCH_NONE,
				 .same = parameters->buffers == BUFFERS_SAME};
}

static bool goes_both_ways(const void *parameters)
{
	return ((const struct parameters *)parameters)->ways == WAYS_BOTH;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_pusher_prepare(run, push_in(run), true, goes_both_ways(run->parameters), NULL, fail);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_pusher_prepare(run, push_in(run), goes_both_ways(run->parameters), true, NULL, fail);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	if (drv_pusher_measure(run, fail))
		return -1;
	drv_record_rate(run->record, THROUGHPUT, run->record->bytes, run->record->elapsed_ns);
	return 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	drv_push_need(parameters->bytes, parameters->depth, needs_out);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;

	if (parameters->buffers == BUFFERS_SAME && parameters->touch != DRV_TOUCH_NONE)
		return drv_fail_set(
			fail, DRV_NO_CAP,
			"wanted each message written anew, in a buffer that earlier ones still leave from");
	if (parameters->buffers == BUFFERS_SAME && parameters->spread)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted all messages from one buffer, and from buffers over %" PRIu64
				    " bytes",
				    parameters->spread);
	if (parameters->spread && parameters->touch != DRV_TOUCH_NONE &&
	    (offer->both.caps & CADGE_CAP_RESERVE))
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted messages from buffers over %" PRIu64
				    " bytes, and they are written in the library's own memory (RESERVE)",
				    parameters->spread);
	if (drv_negotiate_spread(parameters->spread, &offer->both, fail))
		return -1;
	if (parameters->ways == WAYS_BOTH && offer->place == DRV_PLACE_SELF)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted streams both ways, and one process has no other way to itself");
	return drv_push_negotiate(parameters->bytes, offer, fail);
}

static const struct drv_pattern stream = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 .measure = measure,
			 .channels_most = 1,
			 DRV_PUSHER_ROLE},
			{.name = "server",
			 .prepare = prepare_server,
			 .measure = measure,
			 .measures_in = goes_both_ways,
			 .channels_most = 1,
			 DRV_PUSHER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(stream);
