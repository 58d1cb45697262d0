/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern stream: messages leave as fast as the layer takes them, with at most `depth` of them lent to the layer at a
 * time, until the receiver has confirmed all of them.
 */
#include "push.h"
#include "touch.h"

static const char *const buffers_words[] = {"rotated", "same", NULL};

struct parameters {
	uint64_t bytes, depth;
	uint32_t touch;
	enum { ROTATED, SAME } buffers;
};

static struct drv_push push_in(const struct drv_play *play)
{
	const struct parameters *parameters = play->parameters;

	return (struct drv_push){.bytes = parameters->bytes,
				 .depth = (uint32_t)parameters->depth,
				 .seed = play->seed,
				 .touch = parameters->touch != DRV_TOUCH_NONE,
				 .same = parameters->buffers == SAME};
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	return drv_pusher_prepare(play, push_in(play), true, false, NULL, fail);
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_pusher_prepare(play, push_in(play), false, true, NULL, fail);
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	return drv_pusher_prepare(play, push_in(play), true, true, NULL, fail);
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_sender *sender = &((struct drv_pusher *)play->state)->sender;

	if (drv_sender_measure(sender, play->duration_ns, play->record, fail))
		return -1;
	drv_record_rate(play->record, 0, play->record->bytes, play->record->elapsed_ns);
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

	if (parameters->buffers == SAME && parameters->touch != DRV_TOUCH_NONE)
		return drv_fail_set(
			fail, DRV_NO_CAP,
			"wanted each message written anew, in a buffer that earlier ones still leave from");
	return drv_push_negotiate(parameters->bytes, offer, fail);
}

static const struct drv_role self = {
	.name = "both", .prepare = prepare_self, .measure = measure, DRV_PUSHER_ROLE};

static const struct drv_pattern stream = {
	.name = "stream",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"depth", DRV_INTEGER, offsetof(struct parameters, depth), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{"buffers", DRV_CHOICE, offsetof(struct parameters, buffers), buffers_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){{"throughput", DRV_RATE}, {.name = NULL}},
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
	.self = &self,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(stream);
