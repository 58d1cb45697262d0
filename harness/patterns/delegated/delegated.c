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
 *
 * Where one clock serves all three ends, each adds up the instants at which
 * messages come to it. The difference of two such sums over as many messages
 * is the time of a hop, and nothing has to travel with a message for that.
 */
#include "delegated.params.h"

#include "traffic/requester.h"
#include "delegated/forward.h"
#include "launch/pattern.h"

enum { HOPS_MAX = 4 };

/* Endpoints are numbered in the order of the roles, one each. */
enum end { CLIENT, DELEGATE, SERVER, ENDS };

/* The two sorts of instants that an end adds up: those of the client, and of both others. */
enum { BEGINS, ENDED };
enum { REQUESTS, ANSWERS };

/* Numbers of channels, as the pattern's file lists the peers of each role. */
enum { OF_CLIENT_DELEGATE, OF_CLIENT_SERVER };
enum { OF_SERVER_CLIENT, OF_SERVER_DELEGATE };

/* An end's instants, and who gets its events once these are noted. */
struct notes {
	struct drv_stamps stamps;
	struct cadge_sink inner;
};

/* The states of the roles. What is first is what their functions take a pointer to. */
struct client {
	struct drv_requester requester;
	struct drv_stamps stamps;
};

struct delegate {
	struct drv_forward forward;
	struct notes notes;
};

struct server {
	struct drv_responder responder;
	struct notes notes;
};

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
				     .touch = (enum drv_touch)parameters->touch,
				     .payload = (enum drv_payload)parameters->payload,
				     .reply = (enum drv_reply)parameters->reply};
}

DRV_EXCHANGE_RULES(exchange_of)

static enum drv_route route_in(const struct drv_role_run *run)
{
	return (enum drv_route)((const struct parameters *)run->parameters)->route;
}

static bool has_one_clock(const struct drv_role_run *run)
{
	return run->engine->offer.both.clock != 0;
}

DRV_INLINE void note(struct notes *notes, struct cadge_sink *sink, unsigned sort)
{
	drv_stamp(&notes->stamps, sort, drv_clock_now(&((struct drv_port *)sink)->engine->clock));
}

static enum cadge_keep delegate_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				     struct cadge_lend *lend)
{
	struct notes *notes = &((struct delegate *)sink)->notes;

	note(notes, sink, peer == DRV_FORWARD_CLIENT ? REQUESTS : ANSWERS);
	return notes->inner.recv(sink, peer, data, bytes, lend);
}

static void delegate_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			  const struct cadge_reply_to *reply_to)
{
	struct notes *notes = &((struct delegate *)sink)->notes;

	note(notes, sink, REQUESTS);
	notes->inner.call(sink, peer, op, args, bytes, reply_to);
}

static enum cadge_keep delegate_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
					enum cadge_placement placement, const void *data, size_t bytes,
					struct cadge_lend *lend)
{
	struct notes *notes = &((struct delegate *)sink)->notes;

	note(notes, sink, ANSWERS);
	return notes->inner.replied(sink, peer, token, code, placement, data, bytes, lend);
}

static enum cadge_keep server_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	struct notes *notes = &((struct server *)sink)->notes;

	note(notes, sink, REQUESTS);
	return notes->inner.recv(sink, peer, data, bytes, lend);
}

static void server_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to)
{
	struct notes *notes = &((struct server *)sink)->notes;

	note(notes, sink, REQUESTS);
	notes->inner.call(sink, peer, op, args, bytes, reply_to);
}

static bool complete(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	struct client *client = (struct client *)requester;

	drv_sample(requester->samples,
		   drv_clock_to_ns(&requester->progress.port.engine->clock, now - op->start));
	drv_stamp(&client->stamps, BEGINS, op->start);
	drv_stamp(&client->stamps, ENDED, now);
	return now < requester->end;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct client *client = run->state;

	if (drv_requester_role_prepare(run, exchange_in(run), fail))
		return -1;
	client->requester.measured = complete;
	drv_requester_call_on(
		&client->requester,
		run->engine
			->channels[route_in(run) == DRV_ROUTE_DIRECT ? OF_CLIENT_SERVER : OF_CLIENT_DELEGATE]
			.chan);
	return 0;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	struct server *server = run->state;
	struct cadge_sink *sink = &server->responder.port.sink;

	if (drv_responder_role_prepare(run, exchange_in(run), fail))
		return -1;
	if (has_one_clock(run)) {
		server->notes.inner = *sink;
		sink->recv = server_recv;
		sink->call = server_call;
	}
	drv_responder_answer_on(
		&server->responder,
		run->engine
			->channels[route_in(run) == DRV_ROUTE_RELAY ? OF_SERVER_DELEGATE : OF_SERVER_CLIENT]
			.chan);
	return 0;
}

static int prepare_delegate(struct drv_role_run *run, struct drv_fail *fail)
{
	struct delegate *delegate = run->state;
	struct cadge_sink *sink = &delegate->forward.progress.port.sink;
	const struct drv_exchange exchange = exchange_in(run);

	if (drv_forward_start(&delegate->forward, run->engine, exchange, route_in(run), fail))
		return -1;
	if (has_one_clock(run)) {
		delegate->notes.inner = *sink;
		sink->recv = delegate_recv;
		sink->call = delegate_call;
		sink->replied = delegate_replied;
	}
	run->engine->sink = sink;
	/* it has nothing to do where the client asks the server */
	run->sleep =
		exchange.depth == 1 && route_in(run) != DRV_ROUTE_DIRECT ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return 0;
}

static void stop_delegate(struct drv_role_run *run)
{
	drv_forward_stop(run->state);
}

static int serve_delegate(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	return drv_forward_run(run->state, message_out, fail);
}

static void phase_delegate(struct drv_role_run *run, const struct drv_phase *phase,
			   struct drv_counts *counts_out)
{
	if (phase->last)
		drv_forward_settle(run->state);
	drv_forward_counts(run->state, counts_out);
	counts_out->stamps = ((struct delegate *)run->state)->notes.stamps;
}

static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	drv_responder_role_phase(run, phase, counts_out);
	counts_out->stamps = ((struct server *)run->state)->notes.stamps;
}

static void phase_client(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	drv_requester_role_phase(run, phase, counts_out);
	counts_out->stamps = ((struct client *)run->state)->stamps;
}

/* Where a call is noted on its way, from the client and back. */
struct stop {
	enum end end;
	unsigned sort;
};

static const struct stop stops[][HOPS_MAX + 1] = {
	[DRV_ROUTE_DELEGATED] = {{CLIENT, BEGINS}, {DELEGATE, REQUESTS}, {SERVER, REQUESTS}, {CLIENT, ENDED}},
	[DRV_ROUTE_RELAY] = {{CLIENT, BEGINS},
			     {DELEGATE, REQUESTS},
			     {SERVER, REQUESTS},
			     {DELEGATE, ANSWERS},
			     {CLIENT, ENDED}},
	[DRV_ROUTE_DIRECT] = {{CLIENT, BEGINS}, {SERVER, REQUESTS}, {CLIENT, ENDED}},
};
static const unsigned hops[] = {[DRV_ROUTE_DELEGATED] = 3, [DRV_ROUTE_RELAY] = 4, [DRV_ROUTE_DIRECT] = 2};

/*
 * Hop by hop, unless the ends have clocks of their own, or a call was not seen at each stop once: then there is nothing
 * to be distinguished. Time does not run backwards either: such a sum would be of two clocks.
 */
static void conclude(struct drv_role_run *run, const struct drv_stamps *stamps, size_t endpoints)
{
	const struct stop *stop = stops[route_in(run)];
	const uint64_t calls = stamps[CLIENT].count[BEGINS];
	double hop_ns[HOPS_MAX];

	if (endpoints != ENDS || !has_one_clock(run) || !calls)
		return;
	for (unsigned i = 0; i < hops[route_in(run)]; i++) {
		const struct stop *next = &stop[i + 1];
		const uint64_t ticks =
			stamps[next->end].sum[next->sort] - stamps[stop[i].end].sum[stop[i].sort];

		if (stamps[next->end].count[next->sort] != calls || ticks > INT64_MAX)
			return;
		hop_ns[i] = (double)drv_clock_to_ns(&run->engine->clock, ticks) / (double)calls;
	}
	for (unsigned i = 0; i < hops[route_in(run)]; i++)
		drv_record_fit(run->record, HOP_1 + i, hop_ns[i]);
}

static const struct drv_pattern delegated = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .measures = true,
			 .workers = true,
			 .channels_most = 2,
			 .state_bytes = sizeof(struct client),
			 .prepare = prepare_client,
			 .stop = drv_requester_role_stop,
			 .verify = drv_requester_role_verify,
			 .warmup = drv_requester_role_warmup,
			 .measure = drv_requester_role_measure,
			 .settle = drv_requester_role_settle,
			 .phase = phase_client,
			 .conclude = conclude},
			{.name = "delegate",
			 .prepare = prepare_delegate,
			 .channels_most = 2,
			 .state_bytes = sizeof(struct delegate),
			 .stop = stop_delegate,
			 .serve = serve_delegate,
			 .phase = phase_delegate},
			{.name = "server",
			 .channels_most = 2,
			 .state_bytes = sizeof(struct server),
			 .prepare = prepare_server,
			 .stop = drv_responder_role_stop,
			 .serve = drv_responder_role_serve,
			 .phase = phase_server},
			{.name = NULL},
		},
	.needs = exchange_needs,
	.negotiate = exchange_negotiate,
};
DRV_PATTERN(delegated);
