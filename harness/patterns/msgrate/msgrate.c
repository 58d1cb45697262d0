/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern msgrate: how many messages a second one end can push at the other, which acknowledges `depth` of them at a time.
 * Several pairs do so at the same time, each on a channel of its own, and know nothing of each other.
 */
#include "msgrate.params.h"

#include "traffic/push.h"

static struct drv_push push_in(const struct drv_role_run *run)
{
	const struct parameters *parameters = run->parameters;

	return (struct drv_push){.bytes = parameters->bytes,
				 .depth = (uint32_t)parameters->depth,
				 .window = (uint32_t)parameters->depth,
				 .seed = run->seed,
				 .touch = parameters->touch != DRV_TOUCH_NONE};
}

/* How `run` waits: each end for the other once a window. */
static enum drv_sleep sleep_in(const struct drv_role_run *run, enum drv_sleep where_each)
{
	return push_in(run).depth == 1 ? where_each : DRV_SLEEP_FREE;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_samples *windows = drv_record_samples(run->record, WINDOW, fail);

	if (!windows || drv_pusher_prepare(run, push_in(run), true, false, windows, fail))
		return -1;
	run->sleep = sleep_in(run, DRV_SLEEP_EACH);
	return 0;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	run->sleep = sleep_in(run, DRV_SLEEP_EACH);
	return drv_pusher_prepare(run, push_in(run), false, true, NULL, fail);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	if (drv_pusher_measure(run, fail))
		return -1;
	drv_record_rate(run->record, RATE, run->record->operations, run->record->elapsed_ns);
	return 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	drv_push_need(parameters->bytes, parameters->depth, needs_out);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_push_negotiate(((const struct parameters *)at)->bytes, offer, fail);
}

static const struct drv_pattern msgrate = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 .measure = measure,
			 .channels_most = 1,
			 DRV_PUSHER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_PUSHED_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(msgrate);
