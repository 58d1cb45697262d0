/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern loggp: round trips PRTT(n, d, s) of bursts. n messages of s bytes leave with a delay d between them, in which
 * the client computes and does not poll; when all are there the server sends one message of s bytes. In turn with them
 * the round trip of a single message, PRTT(1, 0, s): the analysis fits LogGP's parameters to both.
 *
 * Where there is a delay, how long it takes to take a message that is there is measured as well: the server is told to
 * stop polling for some round trips, in which it is sent a message.
 */
#include "loggp.params.h"

#include <inttypes.h>

#include "loggp/burst.h"
#include "traffic/ask.h"

/* of the delays of a burst together, and of a pause: nobody looks at a deadline meanwhile */
#define DELAYS_MAX_NS UINT64_C(1000000000)
/* for so many single round trips a server does not poll; the message that it takes then arrives after one */
#define PAUSE_TRIPS 4u
/* a place that no burst is long enough for: the server is to pause once it has answered */
#define PAUSE 0xffu

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_responder responder;
	struct drv_burst_count count;
	/* ticks; 0: none */
	uint64_t pause, read_cost;
	/* once the answer that is due has left */
	bool pauses;
	/* a message is waited for that lies there; when it was taken, in ticks */
	bool taking;
	uint64_t taken_at;
	/* NULL: nothing is taken */
	struct drv_samples *samples;
};

/*
 * Computes for so long, and then takes the message that came meanwhile; gives up after as long again. Its polls are what is
 * timed, so that they are no turns of progress.h.
 */
static int take_waiting(struct receiver *receiver, struct drv_fail *fail)
{
	struct drv_engine *engine = receiver->responder.port.engine;
	const uint64_t end = drv_clock_now(&engine->clock) + receiver->pause;
	uint64_t begin, span;
	int code = 0;

	while (drv_clock_now(&engine->clock) < end)
		;
	receiver->taking = true;
	receiver->taken_at = 0;
	begin = drv_clock_now(&engine->clock);
	while (code >= 0 && !receiver->taken_at && drv_clock_now(&engine->clock) < end + receiver->pause)
		code = engine->layer->poll(engine->ctx, &receiver->responder.port.sink);
	receiver->taking = false;
	span = receiver->taken_at - begin;
	if (receiver->taken_at && receiver->samples)
		drv_sample(receiver->samples,
			   drv_clock_to_ns(&engine->clock,
					   span > receiver->read_cost ? span - receiver->read_cost : 0));
	return code < 0 ? drv_engine_fail("poll", code, fail) : 0;
}

/* It pauses once it has answered a message that asked for it. */
DRV_INLINE int receiver_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;

	if (drv_responder_drain_latest(&receiver->responder, fail))
		return -1;
	if (DRV_LIKELY(!receiver->pauses) || receiver->responder.port.due)
		return 0;
	receiver->pauses = false;
	return receiver->pause ? take_waiting(receiver, fail) : 0;
}

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	struct drv_responder *responder = &receiver->responder;
	struct drv_check *check = &responder->lines->check;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != responder->answer_bytes)) {
		drv_check_wrong(check, "a message of %zu bytes in a burst of %zu", bytes,
				responder->answer_bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(check, data, bytes);
	if (DRV_UNLIKELY(receiver->taking))
		receiver->taken_at = drv_clock_now(&responder->port.engine->clock);
	if (drv_burst_take(&receiver->count, key)) {
		drv_responder_due_latest(responder, key);
		receiver->pauses = (key & 0xff) == PAUSE;
	}
	return CADGE_TAKEN;
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_requester requester;
	const struct parameters *parameters;
	/* place self: that of this process; else NULL */
	struct receiver *receiver;
	/* the latest burst; warm-up: none was sent yet */
	uint64_t burst;
	bool is_first;
	/* ticks: between the messages of a burst; the usual round trip of one message; what a reading of the clock takes */
	uint64_t delay, trip, read_cost;
};

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	struct drv_requester *requester = &sender->requester;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != sender->parameters->bytes)) {
		drv_check_wrong(&requester->progress.check, "a message of %zu bytes that is no answer",
				bytes);
	} else if (DRV_UNLIKELY(drv_burst_of(drv_load64(data)) != sender->burst || requester->answered_at)) {
		drv_requester_stale(requester, "an unexpected answer", drv_burst_of(drv_load64(data)));
	} else {
		drv_ask_take(requester, data, bytes, drv_load64(data));
	}
	return CADGE_TAKEN;
}

/* Hands over message `index` of the burst, waiting for the layer where it is busy. */
static int send_one(struct sender *sender, uint32_t length, uint32_t index, struct drv_fail *fail)
{
	const uint32_t last = (uint32_t)sender->parameters->messages - 1;

	return drv_ask(&sender->requester, index < last ? index : last, (size_t)sender->parameters->bytes,
		       drv_burst_key(sender->burst, length, index), fail);
}

struct span {
	/* ticks: until the answer; of that in delays, with the readings of the clock at both ends of each */
	uint64_t whole, delays;
};

/* One burst and its answer. 1: that is lost; -1: *fail. */
static int exchange(struct sender *sender, uint32_t length, bool delayed, struct span *span_out,
		    struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->requester.progress.port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t delays = 0;
	int status;

	sender->burst++;
	for (uint32_t i = 0; i < length; i++) {
		if (delayed && i)
			delays += drv_clock_compute(clock, sender->delay) + sender->read_cost;
		if (send_one(sender, length, i, fail))
			return -1;
	}
	status = drv_ask_finish(&sender->requester, fail);
	*span_out = (struct span){sender->requester.answered_at - begin, delays};
	return status;
}

/* Has the server take a message that lies there. As of exchange. */
static int take_preloaded(struct sender *sender, struct drv_fail *fail)
{
	struct receiver *receiver = sender->receiver;
	int status = 0;

	/* where one thread has both roles, what it sent lies there for as long as it does not poll */
	if (!receiver) {
		sender->burst++;
		if (send_one(sender, 1, PAUSE, fail))
			return -1;
		status = drv_ask_finish(&sender->requester, fail);
	}
	if (status)
		return status;
	/* from another buffer: of a server that pauses the library may not have given back the first one */
	sender->burst++;
	if (send_one(sender, 1, 0, fail))
		return -1;
	if (receiver && take_waiting(receiver, fail))
		return -1;
	return drv_ask_finish(&sender->requester, fail);
}

/* ---- the roles ---- */

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const struct drv_clock *clock = &run->engine->clock;
	struct receiver *receiver = run->state;

	if (drv_responder_role_prepare_asked(run, receiver_on_recv, (size_t)parameters->bytes,
					     parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	receiver->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	if (parameters->delay_percent) {
		receiver->samples = drv_record_samples(run->record, RECEIVE, fail);
		if (!receiver->samples)
			return -1;
	}
	/* the messages of a burst follow each other: it may find the next one there */
	run->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const struct drv_clock *clock = &run->engine->clock;
	struct sender *sender = run->state;

	if (drv_ask_start(run, sender_on_recv, (uint32_t)parameters->messages, (size_t)parameters->bytes,
			  parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	sender->parameters = parameters;
	sender->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	sender->receiver = run->responder ? run->responder->state : NULL;
	/* an answer may be there as soon as the burst has left */
	run->sleep = DRV_SLEEP_IF_WAITED;
	return drv_record_samples(run->record, PRTT, fail) && drv_record_samples(run->record, SINGLE, fail) &&
			       (!parameters->delay_percent ||
				drv_record_samples(run->record, UNDELAYED, fail))
		       ? 0
		       : -1;
}

/* A single message, and a burst. */
static int ask_both(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	struct sender *sender = run->state;
	struct span ignored;

	*span_out = 0;
	if (exchange(sender, 1, false, &ignored, fail) < 0)
		return -1;
	return exchange(sender, (uint32_t)sender->parameters->messages, false, &ignored, fail);
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(run, serial, ask_both, fail);
}

/* Before all but the first a burst, so that bursts and single messages go in turn. */
static int ask_single(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	struct sender *sender = run->state;
	struct span span = {0};
	int status = 0;

	if (!sender->is_first)
		status = exchange(sender, (uint32_t)sender->parameters->messages, false, &span, fail);
	sender->is_first = false;
	if (status >= 0)
		status = exchange(sender, 1, false, &span, fail);
	*span_out = span.whole;
	if (!status)
		drv_sample(run->record->values[SINGLE].samples,
			   drv_clock_to_ns(&run->engine->clock, span.whole));
	return status;
}

/* For how many single round trips a burst is delayed, or a server pauses: whichever is longer; rounded up. */
static uint64_t delays_of(const struct parameters *parameters)
{
	const uint64_t delays = (parameters->messages * parameters->delay_percent + 99) / 100;

	if (!parameters->delay_percent)
		return 0;
	return delays > PAUSE_TRIPS ? delays : PAUSE_TRIPS;
}

/* It is warm when the single messages are. Finds the usual round trip. */
static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct sender *sender = run->state;
	const struct drv_clock *clock = &run->engine->clock;
	uint64_t trip_ns;

	sender->is_first = true;
	if (drv_ask_warmup(run, cap_ns, ask_single, fail))
		return -1;
	trip_ns = drv_histogram_quantile(&run->record->values[SINGLE].samples->histogram, 500000);
	sender->trip = drv_clock_to_ticks(clock, trip_ns);
	sender->delay = sender->trip * sender->parameters->delay_percent / 100;
	sender->requester.patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(trip_ns));
	if (trip_ns * delays_of(sender->parameters) > DELAYS_MAX_NS)
		return drv_fail_set(
			fail, DRV_DEADLINE,
			"a single message usually takes %" PRIu64
			" us there and back here, so that a burst with its delays would take more "
			"than a second",
			trip_ns / 1000);
	/* its samples are of no use: the histogram becomes empty */
	return drv_record_samples(run->record, SINGLE, fail) ? 0 : -1;
}

/* One single message, one burst, which is the operation, and where there are delays one message that lies there. */
static int ask(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_value *values = run->record->values;
	struct sender *sender = run->state;
	const bool delayed = sender->delay > 0;
	struct span span;
	int status = exchange(sender, 1, false, &span, fail);

	if (status < 0)
		return -1;
	if (!status)
		drv_sample(values[SINGLE].samples, drv_clock_to_ns(clock, span.whole));
	status = exchange(sender, (uint32_t)sender->parameters->messages, delayed, &span, fail);
	*span_out = span.whole;
	if (!status)
		drv_sample(values[PRTT].samples, drv_clock_to_ns(clock, span.whole));
	if (!status && delayed)
		drv_sample(values[UNDELAYED].samples,
			   drv_clock_to_ns(clock, span.whole > span.delays ? span.whole - span.delays : 0));
	return status < 0 || (delayed && take_preloaded(sender, fail) < 0) ? -1 : status;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const int status = drv_ask_measure(run, ask, fail);

	run->record->bytes = run->record->operations * (parameters->messages + 1) * parameters->bytes;
	return status;
}

/* For how long the server is to pause, in ns: known once the client is warm. */
static uint64_t control(const struct drv_role_run *run)
{
	const struct sender *sender = run->state;

	return sender->delay ? drv_clock_to_ns(&run->engine->clock, sender->trip * PAUSE_TRIPS) : 0;
}

static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	drv_responder_role_phase(run, phase, counts_out);
	((struct receiver *)run->state)->pause = drv_clock_to_ticks(&run->engine->clock, phase->control);
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = run->state;

	return drv_poll_until_message(run->engine, &receiver->responder.port.sink, receiver,
				      drv_responder_loop_due, receiver_drain, message_out, fail);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes;
	needs_out->depth = (uint32_t)parameters->messages;
}

static const struct drv_pattern loggp = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .channels_most = 1,
			 .state_bytes = sizeof(struct sender),
			 .prepare = prepare_client,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 .control = control,
			 DRV_ASK_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct receiver),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .stop = drv_responder_role_stop,
			 .serve = serve,
			 .drain = receiver_drain,
			 .phase = phase_server},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(loggp);
