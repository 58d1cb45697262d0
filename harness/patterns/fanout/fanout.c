/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern fanout: one client calls several servers, one after the other and without waiting in between, and waits until
 * all have answered; over the layer's own calls where it has them, else over messages with a trailer of 16 bytes.
 */
#include "fanout.params.h"

#include "launch/pattern.h"
#include "traffic/requester_parts.h"
#include "traffic/requester.h"

/* Calls to all servers, of which a round is complete when the last has answered. */
struct fanout {
	/* first: what takes a requester takes this */
	struct drv_requester requester;
	/* from a round's begin to its first and its last reply, and from each call's turn to its own reply */
	struct drv_samples *first, *last, *each;
	/* of this round: when it began, in ticks; calls that have not been handed over; replies that are here */
	uint64_t began;
	uint32_t left, replies;
	/* operations lost before it */
	uint64_t lost;
};

/* As a server sees it; a client has as many calls outstanding as there are servers. */
static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed), .depth = 1,
				     .servers = (uint32_t)parameters->servers};
}

DRV_EXCHANGE_RULES(exchange_of)

/*
 * Hands over what is left of this round, or begins the next if all slots are free again. A round begins where the one before
 * ended, or, after a loss, now; the turn of each call is when the one before it was handed over.
 */
DRV_INLINE int start(struct drv_requester *requester, enum drv_form form)
{
	const struct drv_clock *clock = &requester->progress.port.engine->clock;
	struct fanout *fanout = (struct fanout *)requester;

	if (!fanout->left) {
		if (drv_requester_free(requester) < requester->exchange.depth)
			return 1;
		fanout->began = fanout->lost == requester->lost ? requester->last : drv_clock_now(clock);
		fanout->lost = requester->lost;
		fanout->replies = 0;
		fanout->left = requester->exchange.depth;
		requester->ops[drv_requester_next(requester)].start = fanout->began;
	}
	while (fanout->left && DRV_LIKELY(!requester->ending)) {
		if (DRV_UNLIKELY(drv_requester_issue(requester, form, 0) <= 0))
			return 0;
		if (--fanout->left)
			requester->ops[drv_requester_next(requester)].start = drv_clock_now(clock);
	}
	return 1;
}

DRV_REQUESTER_LOOP(rounds, start, NULL)

static int loop(struct drv_requester *requester, struct drv_fail *fail)
{
	const uint64_t servers = requester->exchange.depth, wanted = requester->limit - requester->posted;

	((struct fanout *)requester)->left = 0;
	((struct fanout *)requester)->lost = UINT64_MAX; /* the first round begins now */
	/* rounds are whole */
	if (requester->limit != UINT64_MAX)
		requester->limit = requester->posted + (wanted + servers - 1) / servers * servers;
	return rounds(requester, fail);
}

/* Measuring ends with the last reply of a round, however long ago the time was over. */
static bool complete(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	const struct drv_clock *clock = &requester->progress.port.engine->clock;
	struct fanout *fanout = (struct fanout *)requester;

	drv_sample(fanout->each, drv_clock_to_ns(clock, now - op->start));
	if (++fanout->replies == 1)
		drv_sample(fanout->first, drv_clock_to_ns(clock, now - fanout->began));
	if (fanout->replies < requester->exchange.depth)
		return true;
	drv_sample(fanout->last, drv_clock_to_ns(clock, now - fanout->began));
	return now < requester->end;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct fanout *fanout = run->state;
	struct drv_exchange exchange = exchange_in(run);

	exchange.depth = exchange.servers;
	if (drv_requester_role_prepare(run, exchange, fail))
		return -1;
	for (uint32_t index = 0; index < exchange.depth; index++)
		fanout->requester.ops[index].chan = run->engine->channels[index].chan;
	fanout->requester.loop = loop;
	fanout->requester.measured = complete;
	fanout->last = fanout->requester.samples;
	fanout->first = drv_record_samples(run->record, FIRST, fail);
	fanout->each = drv_record_samples(run->record, EACH, fail);
	return fanout->first && fanout->each ? 0 : -1;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_responder_role_prepare(run, exchange_in(run), fail);
}

static const struct drv_pattern fanout = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .prepare = prepare_client,
			 DRV_REQUESTER_ROLE_OF(struct fanout, drv_requester_role_measure)},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_RESPONDER_ROLE},
			{.name = NULL},
		},
	.needs = exchange_needs,
	.negotiate = exchange_negotiate,
};
DRV_PATTERN(fanout);
