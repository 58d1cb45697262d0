/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern mixed: small calls, one at a time, while a stream of large messages runs: on their channel, on another channel
 * between the same two processes, from another process to the same server, or not at all.
 *
 * The stream is made of calls as well: large requests, each confirmed by a small reply, `window` of them outstanding. So
 * what stands in front of a small call is bounded by the pattern, and not by how much a library or a kernel buffers.
 */
#include "mixed.params.h"

#include "traffic/requester.h"
#include "mixed/two_flows.h"
#include "launch/pattern.h"

/* Of a message of the stream: its reply says which one arrived. */
#define CONFIRM_BYTES 16u

/* Numbers of channels, as the pattern's file lists the peers of each role. */
enum { OF_CALLS, OF_STREAM, OF_SERVER_AGGRESSOR };

/* The state of client and server; the aggressor's is a requester's. */
struct mixed {
	struct drv_two_flows flows;
	struct drv_requester requesters[DRV_FLOWS];
	struct drv_responder responders[DRV_FLOWS];
};

static struct drv_exchange calls_of(const struct parameters *parameters, const struct drv_ability *both,
				    uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed), .depth = 1};
}

static struct drv_exchange stream_of(const struct parameters *parameters, const struct drv_ability *both,
				     uint64_t seed)
{
	return (struct drv_exchange){.form = drv_call_form(both),
				     .request_bytes = parameters->bulk_bytes,
				     .reply_bytes = CONFIRM_BYTES,
				     .depth = (uint32_t)parameters->window,
				     .seed = seed,
				     .touch = (enum drv_touch)parameters->touch,
				     .flow_1 = true};
}

static struct drv_exchange calls_in(const struct drv_role_run *run)
{
	return calls_of(run->parameters, &run->engine->offer.both, run->seed);
}

static struct drv_exchange stream_in(const struct drv_role_run *run)
{
	return stream_of(run->parameters, &run->engine->offer.both, run->seed);
}

static uint32_t aggressor_in(const struct drv_role_run *run)
{
	return ((const struct parameters *)run->parameters)->aggressor;
}

/* A stream keeps its ends busy, and nothing proves that they slept. */
static enum drv_sleep sleep_in(const struct drv_role_run *run)
{
	return aggressor_in(run) == AGGRESSOR_NONE ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
}

/* `requesters` gets what this end has: the calls, and the stream where it leaves from here. */
static int start_clients(struct drv_role_run *run, struct drv_requester *requesters[DRV_FLOWS],
			 struct drv_fail *fail)
{
	struct mixed *mixed = run->state;
	struct drv_engine *engine = run->engine;
	struct drv_samples *latency = drv_record_samples(run->record, LATENCY, fail), *bulk;
	const uint32_t aggressor = aggressor_in(run);

	if (!latency ||
	    drv_requester_start(&mixed->requesters[DRV_FLOW_CALLS], engine, calls_in(run), latency, fail))
		return -1;
	requesters[DRV_FLOW_CALLS] = &mixed->requesters[DRV_FLOW_CALLS];
	requesters[DRV_FLOW_BULK] = NULL;
	if (aggressor != AGGRESSOR_SAME && aggressor != AGGRESSOR_CHANNEL)
		return 0;
	bulk = drv_record_samples(run->record, BULK, fail);
	if (!bulk ||
	    drv_requester_start(&mixed->requesters[DRV_FLOW_BULK], engine, stream_in(run), bulk, fail))
		return -1;
	requesters[DRV_FLOW_BULK] = &mixed->requesters[DRV_FLOW_BULK];
	if (aggressor == AGGRESSOR_CHANNEL)
		drv_requester_call_on(requesters[DRV_FLOW_BULK], engine->channels[OF_STREAM].chan);
	return 0;
}

static int start_servers(struct drv_role_run *run, struct drv_responder *responders[DRV_FLOWS],
			 struct drv_fail *fail)
{
	static const uint32_t channels[] = {[AGGRESSOR_SAME] = OF_CALLS,
					    [AGGRESSOR_CHANNEL] = OF_STREAM,
					    [AGGRESSOR_ENDPOINT] = OF_SERVER_AGGRESSOR};
	struct mixed *mixed = run->state;
	const uint32_t aggressor = aggressor_in(run);

	if (drv_responder_start(&mixed->responders[DRV_FLOW_CALLS], run->engine, calls_in(run), fail))
		return -1;
	responders[DRV_FLOW_CALLS] = &mixed->responders[DRV_FLOW_CALLS];
	responders[DRV_FLOW_BULK] = NULL;
	if (aggressor != AGGRESSOR_NONE) {
		if (drv_responder_start(&mixed->responders[DRV_FLOW_BULK], run->engine, stream_in(run), fail))
			return -1;
		responders[DRV_FLOW_BULK] = &mixed->responders[DRV_FLOW_BULK];
		drv_responder_answer_on(responders[DRV_FLOW_BULK],
					run->engine->channels[channels[aggressor]].chan);
	}
	return 0;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_requester *requesters[DRV_FLOWS];

	if (start_clients(run, requesters, fail))
		return -1;
	drv_two_flows_start(&((struct mixed *)run->state)->flows, run->engine, requesters, NULL);
	run->sleep = sleep_in(run);
	return 0;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_responder *responders[DRV_FLOWS];

	if (start_servers(run, responders, fail))
		return -1;
	drv_two_flows_start(&((struct mixed *)run->state)->flows, run->engine, NULL, responders);
	run->sleep = sleep_in(run);
	return 0;
}

static void stop(struct drv_role_run *run)
{
	struct mixed *mixed = run->state;

	for (int flow = 0; flow < DRV_FLOWS; flow++) {
		drv_requester_stop(&mixed->requesters[flow]);
		drv_responder_stop(&mixed->responders[flow]);
	}
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct drv_two_flows *flows = &((struct mixed *)run->state)->flows;

	for (int flow = 0; flow < DRV_FLOWS; flow++)
		if (flows->requesters[flow] && drv_requester_verify(flows->requesters[flow], serial, fail))
			return -1;
	return 0;
}

/* Each by itself: beside the other neither would ever be steady. */
static int warm_up(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_two_flows *flows = &((struct mixed *)run->state)->flows;

	for (int flow = DRV_FLOWS; flow-- > 0;) {
		struct drv_requester *client = flows->requesters[flow];

		if (client && drv_requester_warmup(client, cap_ns, fail))
			return -1;
	}
	drv_record_warmup(run->record, &flows->requesters[DRV_FLOW_CALLS]->warmup);
	return 0;
}

/* The stream begins so long before the calls that are timed, and ends so long after them where it runs elsewhere. */
static uint64_t lead_ns(const struct drv_role_run *run)
{
	return run->duration_ns / 5;
}

/* Forgets what the lead gave. */
static int forget(struct drv_role_run *run, struct drv_fail *fail)
{
	const bool bulk = run->record->values[BULK].there;

	return drv_record_samples(run->record, LATENCY, fail) &&
			       (!bulk || drv_record_samples(run->record, BULK, fail))
		       ? 0
		       : -1;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_two_flows *flows = &((struct mixed *)run->state)->flows;
	struct drv_requester *calls = flows->requesters[DRV_FLOW_CALLS],
			     *bulk = flows->requesters[DRV_FLOW_BULK];
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_record *record = run->record;
	uint64_t completed, lost, late, streamed, started, elapsed_ns;

	drv_two_flows_begin(flows);
	if (drv_two_flows_calls(flows, lead_ns(run), fail) || forget(run, fail))
		return -1;
	completed = calls->completed;
	lost = calls->lost;
	late = calls->late;
	streamed = bulk ? bulk->completed : 0;
	started = drv_clock_now(clock);
	if (drv_two_flows_calls(flows, run->duration_ns, fail))
		return -1;
	elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - started);
	record->elapsed_ns = elapsed_ns;
	record->operations = calls->completed - completed;
	record->bytes = record->operations * (calls->exchange.request_bytes + calls->exchange.reply_bytes);
	record->lost = calls->lost - lost;
	record->late = calls->late - late;
	if (bulk)
		drv_record_rate(record, THROUGHPUT,
				(bulk->completed - streamed) * bulk->exchange.request_bytes, elapsed_ns);
	return drv_two_flows_end(flows, fail);
}

static bool settle(struct drv_role_run *run)
{
	return drv_two_flows_settle(&((struct mixed *)run->state)->flows);
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	return drv_two_flows_serve(&((struct mixed *)run->state)->flows, message_out, fail);
}

static int drain(void *state, struct drv_fail *fail)
{
	return drv_two_flows_drain(&((struct mixed *)state)->flows, fail);
}

static void phase(struct drv_role_run *run, const struct drv_phase *next, struct drv_counts *counts_out)
{
	drv_two_flows_phase(&((struct mixed *)run->state)->flows, next, counts_out);
}

/* ---- the aggressor: a requester whose calls are the stream ---- */

static int prepare_aggressor(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_requester *requester = run->state;
	struct drv_samples *bulk = drv_record_samples(run->record, BULK, fail);

	if (!bulk || drv_requester_start(requester, run->engine, stream_in(run), bulk, fail))
		return -1;
	run->engine->sink = requester->progress.sink;
	/* its operations are none of the attempt's, so there is nothing to hold its sleeps against */
	run->sleep = DRV_SLEEP_UNJUDGED;
	return 0;
}

/* Longer than the client needs, however much earlier or later that began. */
static int measure_aggressor(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_requester *client = run->state;
	struct drv_record own = {0};

	if (drv_requester_measure(client, run->duration_ns + 2 * lead_ns(run), &own, fail))
		return -1;
	drv_record_rate(run->record, THROUGHPUT, own.operations * client->exchange.request_bytes,
			own.elapsed_ns);
	return 0;
}

/* ---- the table ---- */

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;
	/* on one channel: the small call is one more only where it shares the stream's */
	const uint64_t depth = parameters->aggressor == AGGRESSOR_NONE
				       ? 1
				       : parameters->window + (parameters->aggressor == AGGRESSOR_SAME);

	drv_calls_need(parameters->bulk_bytes,
		       parameters->request_bytes > parameters->reply_bytes ? parameters->request_bytes
									   : parameters->reply_bytes,
		       depth, needs_out);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;
	const struct drv_exchange calls = calls_of(parameters, &offer->both, 0);
	const struct drv_exchange stream = stream_of(parameters, &offer->both, 0);

	if (parameters->aggressor == AGGRESSOR_ENDPOINT && offer->place == DRV_PLACE_SELF)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a stream from another endpoint, place self has one endpoint");
	if (parameters->request_bytes == parameters->bulk_bytes)
		return drv_fail_set(fail, DRV_ARGUMENT,
				    "requests and messages of the stream are told apart by their size");
	return drv_exchange_negotiate(&calls, "request", "reply", offer, fail) ||
			       drv_exchange_negotiate(&stream, "message of the stream", "confirmation", offer,
						      fail)
		       ? -1
		       : 0;
}

#define CLIENT                                                                                               \
	.measures = true, .state_bytes = sizeof(struct mixed), .stop = stop, .verify = verify,               \
	.warmup = warm_up, .measure = measure, .settle = settle, .phase = phase

static const struct drv_pattern mixed = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 2, CLIENT},
			{.name = "server",
			 .prepare = prepare_server,
			 .channels_most = 3,
			 .state_bytes = sizeof(struct mixed),
			 .stop = stop,
			 .serve = serve,
			 .drain = drain,
			 .phase = phase},
			{.name = "aggressor",
			 .prepare = prepare_aggressor,
			 .channels_most = 1,
			 DRV_REQUESTER_ROLE_OF(struct drv_requester, measure_aggressor)},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(mixed);
