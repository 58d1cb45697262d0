/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern incast: several clients call one server at the same time, each in a closed loop of its own, over the layer's
 * own calls where it has them, else over messages with a trailer of 16 bytes. The server answers in the order in which
 * calls come.
 */
#include "incast.params.h"

#include "traffic/requester.h"
#include "launch/pattern.h"

/* Calls of clients are distinguished by their numbers: so far apart are the first ones, and so many a client may make. */
#define CALLS_BITS 40

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed),
				     .depth = (uint32_t)parameters->depth,
				     .clients = (uint32_t)parameters->clients};
}

DRV_EXCHANGE_RULES(exchange_of)

/* The number of an endpoint's first call. */
static uint64_t first_call(int endpoint)
{
	return (uint64_t)endpoint << CALLS_BITS;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_requester *requester = run->state;

	if (drv_requester_role_prepare(run, exchange_in(run), fail))
		return -1;
	/* so that a reply that went to the wrong client is found out */
	requester->next_number = first_call(run->engine->endpoint);
	return 0;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_exchange exchange = exchange_in(run);
	struct drv_responder *server = run->state;

	if (drv_responder_role_prepare(run, exchange, fail))
		return -1;
	/* of one client the order is looked at */
	server->lines[0].check.next_number = first_call(run->engine->channels[0].endpoint);
	/* the next client's call may be there before this one's answer has left */
	if (exchange.clients > 1)
		run->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	if (drv_requester_role_measure(run, fail))
		return -1;
	drv_record_rate(run->record, SERVED, run->record->operations, run->record->elapsed_ns);
	return 0;
}

static const struct drv_pattern incast = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "server", .prepare = prepare_server, DRV_RESPONDER_ROLE},
			{.name = "client",
			 .channels_most = 1,
			 .prepare = prepare_client,
			 DRV_REQUESTER_ROLE_OF(struct drv_requester, measure)},
			{.name = NULL},
		},
	.needs = exchange_needs,
	.negotiate = exchange_negotiate,
};
DRV_PATTERN(incast);
