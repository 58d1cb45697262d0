/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern fanout: one client calls several servers, one after the other and without waiting in between, and waits until
 * all have answered; over the layer's own calls where it has them, else over messages with a trailer of 16 bytes.
 */
#include "fanout.params.h"

#include "traffic/caller.h"
#include "launch/pattern.h"

struct fanout {
	/* first: what takes a caller takes this */
	struct drv_caller caller;
	struct drv_rounds rounds;
};

/* As a server sees it; a client has as many calls outstanding as there are servers. */
static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){.form = drv_call_form(both),
				     .request_bytes = parameters->request_bytes,
				     .reply_bytes = parameters->reply_bytes,
				     .depth = 1,
				     .servers = (uint32_t)parameters->servers,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch};
}

static struct drv_exchange exchange_in(const struct drv_play *play)
{
	return exchange_of(play->parameters, &play->engine->offer.both, play->seed);
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct fanout *fanout = play->state;
	struct drv_exchange exchange = exchange_in(play);

	exchange.depth = exchange.servers;
	fanout->rounds.first = drv_record_samples(play->record, FIRST, fail);
	fanout->rounds.each = drv_record_samples(play->record, EACH, fail);
	if (!fanout->rounds.first || !fanout->rounds.each || drv_caller_prepare(play, exchange, fail))
		return -1;
	fanout->rounds.last = play->record->values[LATENCY].samples;
	drv_client_go_round(&fanout->caller.client, &fanout->rounds);
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_answerer_prepare(play, exchange_in(play), fail);
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct fanout *fanout = play->state;

	return drv_client_rounds(&fanout->caller.client, play->duration_ns, play->record, fail);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	drv_calls_need(parameters->request_bytes, parameters->reply_bytes, 1, needs_out);
}

static int negotiate(const void *parameters, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct drv_exchange exchange = exchange_of(parameters, &offer->both, 0);

	return drv_exchange_negotiate(&exchange, "request", "reply", offer, fail);
}

static const struct drv_pattern fanout = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .acts = true,
			 .state_bytes = sizeof(struct fanout),
			 .prepare = prepare_client,
			 .stop = drv_caller_stop,
			 .verify = drv_caller_verify,
			 .warmup = drv_caller_warmup,
			 .measure = measure,
			 .settle = drv_caller_settle,
			 .phase = drv_caller_phase},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(fanout);
