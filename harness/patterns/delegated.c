/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern delegated: a call that a second server answers. The client asks the
 * delegate, which has the server do it; the answer comes straight from there,
 * or back through the delegate, and beside both stands the call to the server
 * itself. As in GMS, where a directory passes requests on to the node that has
 * the page.
 *
 * The layer's own calls are used where it can delegate, for all three routes;
 * else they are made of messages with a trailer of 16 bytes, for all three, so
 * that routes of one layer differ in nothing else.
 */
#include "caller.h"
#include "forward.h"
#include "pattern.h"

struct parameters {
	uint64_t request_bytes, reply_bytes, depth;
	uint32_t touch, route;
};

/* Numbers of channels, as the pattern's file lists the peers of each role. */
enum { OF_CLIENT_DELEGATE, OF_CLIENT_SERVER };
enum { OF_SERVER_CLIENT, OF_SERVER_DELEGATE };

static const char *const route_words[] = {"delegated", "relay", "direct", NULL};

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	const uint64_t wanted = CADGE_CAP_RPC | CADGE_CAP_DELEGATE;

	return (struct drv_exchange){.form = (both->caps & wanted) == wanted ? DRV_FORM_NATIVE
									     : DRV_FORM_EMULATED,
				     .request_bytes = parameters->request_bytes,
				     .reply_bytes = parameters->reply_bytes,
				     .depth = (uint32_t)parameters->depth,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch};
}

static struct drv_exchange exchange_in(const struct drv_play *play)
{
	return exchange_of(play->parameters, &play->engine->offer.both, play->seed);
}

static enum drv_route route_in(const struct drv_play *play)
{
	return (enum drv_route)((const struct parameters *)play->parameters)->route;
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_caller *caller = play->state;

	if (drv_caller_prepare(play, exchange_in(play), fail))
		return -1;
	caller->client.chan =
		play->engine
			->channels[route_in(play) == DRV_ROUTE_DIRECT ? OF_CLIENT_SERVER : OF_CLIENT_DELEGATE]
			.chan;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_answerer *answerer = play->state;

	if (drv_answerer_prepare(play, exchange_in(play), fail))
		return -1;
	answerer->server.chan =
		play->engine
			->channels[route_in(play) == DRV_ROUTE_RELAY ? OF_SERVER_DELEGATE : OF_SERVER_CLIENT]
			.chan;
	return 0;
}

static int prepare_delegate(struct drv_play *play, struct drv_fail *fail)
{
	struct drv_forward *forward = play->state;
	const struct drv_exchange exchange = exchange_in(play);

	if (drv_forward_start(forward, play->engine, exchange, route_in(play), fail))
		return -1;
	play->engine->sink = &forward->port.sink;
	/* it has nothing to do where the client asks the server */
	play->sleep =
		exchange.depth == 1 && route_in(play) != DRV_ROUTE_DIRECT ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return 0;
}

static void stop_delegate(struct drv_play *play)
{
	drv_forward_stop(play->state);
}

static int serve_delegate(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	return drv_forward_run(play->state, message_out, fail);
}

static void phase_delegate(struct drv_play *play, const struct drv_phase *phase,
			   struct drv_counts *counts_out)
{
	if (phase->last)
		drv_forward_settle(play->state);
	drv_forward_counts(play->state, counts_out);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	drv_calls_need(parameters->request_bytes, parameters->reply_bytes, parameters->depth, needs_out);
}

static int negotiate(const void *parameters, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct drv_exchange exchange = exchange_of(parameters, &offer->both, 0);

	return drv_exchange_negotiate(&exchange, "request", "reply", offer, fail);
}

static const struct drv_pattern delegated = {
	.name = "delegated",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"request_bytes", DRV_INTEGER, offsetof(struct parameters, request_bytes), NULL},
			{"reply_bytes", DRV_INTEGER, offsetof(struct parameters, reply_bytes), NULL},
			{"depth", DRV_INTEGER, offsetof(struct parameters, depth), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{"route", DRV_CHOICE, offsetof(struct parameters, route), route_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){{"latency", DRV_HISTOGRAM}, {.name = NULL}},
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 2, DRV_CALLER_ROLE},
			{.name = "delegate",
			 .prepare = prepare_delegate,
			 .channels_most = 2,
			 .state_bytes = sizeof(struct drv_forward),
			 .stop = stop_delegate,
			 .serve = serve_delegate,
			 .phase = phase_delegate},
			{.name = "server", .prepare = prepare_server, .channels_most = 2, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(delegated);
