/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern closed_loop: a closed loop of requests and answers of two sizes, one at a time, answers of as many bytes as asked.
 * The shortest pattern with a loop of its own.
 */
#include "closed_loop.params.h"

#include "traffic/ask.h"

struct client {
	/* first: the functions of its role take a pointer to it */
	struct drv_requester requester;
	uint64_t number;
};

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;

	return drv_responder_role_prepare_asked(play, NULL, (size_t)parameters->reply_bytes, true, fail);
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;

	return drv_ask_start(play, NULL, 1, (size_t)parameters->request_bytes, true, fail) ||
			       !drv_record_samples(play->record, 0, fail)
		       ? -1
		       : 0;
}

static int call(struct drv_play *play, uint64_t *span_out, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct client *client = play->state;
	const uint64_t key = drv_ask_key(client->number++, (size_t)parameters->reply_bytes);
	const int status =
		drv_call(&client->requester, (size_t)parameters->request_bytes, key, span_out, fail);

	if (!status && client->requester.step == DRV_STEP_MEASURE)
		drv_sample(play->record->values[0].samples, drv_clock_to_ns(&play->engine->clock, *span_out));
	return status;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(play, serial, call, fail);
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	return drv_ask_warmup(play, cap_ns, call, fail);
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const int status = drv_ask_measure(play, call, fail);

	play->record->bytes =
		play->record->operations * (parameters->request_bytes + parameters->reply_bytes);
	return status;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->request_bytes > parameters->reply_bytes
					   ? parameters->request_bytes
					   : parameters->reply_bytes;
}

static const struct drv_pattern closed_loop = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .channels_most = 1,
			 .state_bytes = sizeof(struct client),
			 .prepare = prepare_client,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 DRV_ASK_ROLE},
			{.name = "server",
			 .channels_most = 1,
			 .prepare = prepare_server,
			 .state_bytes = sizeof(struct drv_responder),
			 .phase = drv_responder_role_phase,
			 DRV_RESPONDER_ROLE_LATEST},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(closed_loop);
