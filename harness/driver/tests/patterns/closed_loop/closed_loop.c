/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern closed_loop: a closed loop, one request at a time. Request and reply have a size each.
 * The shortest pattern with a loop of its own.
 */
#include "closed_loop.params.h"

#include "traffic/ask.h"

struct client {
	/* first: the functions of its role take a pointer to it */
	struct drv_requester requester;
	uint64_t number;
};

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	return drv_responder_role_prepare_asked(run, NULL, (size_t)parameters->reply_bytes, true, fail);
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	return drv_ask_start(run, NULL, 1, (size_t)parameters->request_bytes, true, fail) ||
			       !drv_record_samples(run->record, LATENCY, fail)
		       ? -1
		       : 0;
}

static int call(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct client *client = run->state;
	const uint64_t key = drv_ask_key(client->number++, (size_t)parameters->reply_bytes);
	const int status =
		drv_call(&client->requester, (size_t)parameters->request_bytes, key, span_out, fail);

	if (!status && client->requester.step == DRV_STEP_MEASURE)
		drv_sample(run->record->values[LATENCY].samples,
			   drv_clock_to_ns(&run->engine->clock, *span_out));
	return status;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(run, serial, call, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	return drv_ask_warmup(run, cap_ns, call, fail);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const int status = drv_ask_measure(run, call, fail);

	run->record->bytes = run->record->operations * (parameters->request_bytes + parameters->reply_bytes);
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
