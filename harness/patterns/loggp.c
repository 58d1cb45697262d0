/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern loggp: round trips PRTT(n, d, s) of bursts. n messages of s bytes leave with a delay d between them, in which
 * the client computes and does not poll; when all are there the server sends one message of s bytes. In turn with them
 * the round trip of a single message, PRTT(1, 0, s): the analysis fits LogGP's parameters to both.
 *
 * Where there is a delay, how long it takes to take a message that is there is measured as well: the server is told to
 * stop polling for some round trips, in which it is sent a message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "burst.h"
#include "intake.h"
#include "loss.h"
#include "message.h"
#include "halves.h"
#include "pattern.h"
#include "serve_loop.h"

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
#define WINDOW_NS UINT64_C(100000)
/* of the delays of a burst together, and of a pause: nobody looks at a deadline meanwhile */
#define DELAYS_MAX_NS UINT64_C(1000000000)
/* for so many single round trips a server does not poll; the message that it takes then arrives after one */
#define PAUSE_TRIPS 4u
/* a place that no burst is long enough for: the server is to pause once it has answered */
#define PAUSE   0xffu
#define ANSWERS 2u

enum quantity { PRTT, SINGLE, UNDELAYED, RECEIVE };

struct parameters {
	uint64_t bytes, messages, delay_percent;
	uint32_t touch;
};

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	struct drv_intake intake;
	struct drv_burst_count count;
	/* of the engine's pool: ANSWERS of `stride` bytes */
	uint8_t *answers;
	size_t stride;
	bool lent[ANSWERS];
	bool answer_due, pause_due, failed;
	uint64_t answer_key;
	struct drv_message answer;
	/* ticks; 0: none */
	uint64_t pause, read_cost;
	/* a message is waited for that lies there; when it was taken, in ticks */
	bool taking;
	uint64_t taken_at;
	/* NULL: nothing is taken */
	struct drv_samples *samples;
	struct drv_fail fail;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->answer.bytes)) {
		drv_intake_mismatch(&receiver->intake, "a message of %zu bytes in a burst of %zu", bytes,
				    receiver->answer.bytes);
		return CADGE_TAKEN;
	}
	key = drv_intake_take(&receiver->intake, data, bytes);
	if (DRV_UNLIKELY(receiver->taking))
		receiver->taken_at = drv_clock_now(&receiver->port.engine->clock);
	if (drv_burst_take(&receiver->count, key)) {
		receiver->answer_due = true;
		receiver->answer_key = key;
		receiver->answer.written = false;
		receiver->pause_due = (key & 0xff) == PAUSE;
	}
	return CADGE_TAKEN;
}

static void receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct receiver *receiver = (struct receiver *)sink;
	const uint64_t index = token & ~DRV_TOKEN_ANSWER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & DRV_TOKEN_ANSWER) || index >= ANSWERS || !receiver->lent[index])) {
		drv_intake_mismatch(&receiver->intake,
				    "a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	receiver->lent[index] = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
}

/* Computes for so long, and then takes the message that came meanwhile; gives up after as long again. */
static int take_waiting(struct receiver *receiver, struct cadge_sink *sink)
{
	struct drv_engine *engine = receiver->port.engine;
	const uint64_t end = drv_clock_now(&engine->clock) + receiver->pause;
	uint64_t begin, span;
	int code = 0;

	while (drv_clock_now(&engine->clock) < end)
		;
	receiver->taking = true;
	receiver->taken_at = 0;
	begin = drv_clock_now(&engine->clock);
	while (code >= 0 && !receiver->taken_at && drv_clock_now(&engine->clock) < end + receiver->pause)
		code = engine->layer->poll(engine->ctx, sink);
	receiver->taking = false;
	span = receiver->taken_at - begin;
	if (receiver->taken_at && receiver->samples)
		drv_sample(receiver->samples,
			   drv_clock_to_ns(&engine->clock,
					   span > receiver->read_cost ? span - receiver->read_cost : 0));
	return code < 0 ? drv_engine_fail("poll", code, &receiver->fail) : 0;
}

/* Answers, if that is due and possible, and pauses then if it was asked for. 0, or -1 with receiver->fail. */
static int receiver_drain(struct receiver *receiver, struct cadge_sink *sink)
{
	uint32_t index = 0;
	int code;

	if (DRV_LIKELY(!receiver->answer_due))
		return receiver->failed ? -1 : 0;
	while (index < ANSWERS && receiver->lent[index])
		index++;
	if (index == ANSWERS)
		return 0;
	receiver->answer.at = receiver->answers + index * receiver->stride;
	receiver->answer.key = receiver->answer_key;
	receiver->answer.full = receiver->intake.full;
	receiver->answer.phase = receiver->intake.phase;
	code = drv_message_post(receiver->port.engine, receiver->chan, &receiver->answer,
				DRV_TOKEN_ANSWER | index);
	if (code == CADGE_BUSY)
		return 0;
	receiver->answer_due = false;
	receiver->lent[index] = code == CADGE_QUEUED;
	if (code < 0 && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
	if (DRV_UNLIKELY(receiver->pause_due) && !receiver->failed) {
		receiver->pause_due = false;
		if (receiver->pause && take_waiting(receiver, sink))
			return -1;
	}
	return receiver->failed ? -1 : 0;
}

static int receiver_start(struct receiver *receiver, const struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;

	drv_port_start(&receiver->port, engine);
	receiver->port.sink.recv = receiver_on_recv;
	receiver->port.sink.sent = receiver_on_sent;
	receiver->chan = engine->channels[0].chan;
	receiver->intake.seed = play->seed;
	receiver->intake.reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	receiver->intake.touch = parameters->touch != DRV_TOUCH_NONE;
	receiver->answer = (struct drv_message){
		.bytes = (size_t)parameters->bytes, .seed = ~play->seed, .touch = receiver->intake.touch};
	receiver->read_cost = drv_clock_to_ticks(&engine->clock, engine->clock.read_cost_ns);
	receiver->stride = drv_memory_stride(parameters->bytes);
	receiver->answers = drv_pool_take(engine, DRV_POOL_SERVER, ANSWERS * receiver->stride, fail);
	if (!receiver->answers)
		return -1;
	if (parameters->delay_percent) {
		receiver->samples = drv_record_samples(play->record, RECEIVE, fail);
		if (!receiver->samples)
			return -1;
	}
	drv_intake_phase(&receiver->intake, true, 1);
	return 0;
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	const struct parameters *parameters;
	uint64_t seed;
	bool reliable, touch;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* of the engine's pool: a buffer for each message of a burst */
	uint8_t *messages;
	size_t stride;
	bool lent[DRV_BURST_MAX];
	uint32_t lents, idle;
	/* the latest burst, and when its answer came, in ticks; 0: not yet */
	uint64_t burst, answered_at;
	uint64_t posted, key_sum, waits;
	uint64_t checked, full_checked, mismatches, lost, late;
	/* ticks: between the messages of a burst; the usual round trip of one message; what a reading of the clock takes */
	uint64_t delay, trip, read_cost;
	/* unreliable: an answer that has not come after so many ticks is lost */
	uint64_t patience;
	struct drv_warmup warmup;
	/* place self */
	struct receiver *receiver;
	struct cadge_sink *sink;
	bool failed;
	struct drv_fail fail;
	char mismatch[160];
};

static void __attribute__((cold, noinline)) note_mismatch(struct sender *sender, const char *what,
							  uint64_t number)
{
	if (!sender->mismatches++)
		snprintf(sender->mismatch, sizeof(sender->mismatch), "%s (%" PRIu64 ")", what, number);
}

/* Whether an answer to the latest burst is what its sender wrote. */
static bool is_answer(struct sender *sender, const uint8_t *data, size_t bytes)
{
	const uint64_t key = drv_load64(data);

	if (drv_load64(data + 8) != ~sender->seed)
		return false;
	if (sender->full) {
		sender->full_checked++;
		return drv_body_holds(data, bytes, ~sender->seed, sender->phase, key);
	}
	return !sender->touch || drv_touch_read(data, bytes, ~sender->seed, key);
}

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != sender->parameters->bytes)) {
		note_mismatch(sender, "a message of an unexpected size", bytes);
	} else if (DRV_UNLIKELY(drv_burst_of(drv_load64(data)) != sender->burst || sender->answered_at)) {
		if (sender->reliable || sender->late >= sender->lost)
			note_mismatch(sender, "an answer to no burst outstanding",
				      drv_burst_of(drv_load64(data)));
		else
			sender->late++;
	} else if (DRV_LIKELY(is_answer(sender, data, bytes))) {
		sender->checked++;
		sender->answered_at = drv_clock_now(&sender->port.engine->clock);
	} else {
		note_mismatch(sender, "an answer that holds other bytes", sender->burst);
		sender->answered_at = drv_clock_now(&sender->port.engine->clock);
	}
	return CADGE_TAKEN;
}

static void sender_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct sender *sender = (struct sender *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token >= sender->parameters->messages || !sender->lent[token])) {
		note_mismatch(sender, "a completion for a token that is not outstanding", token);
		return;
	}
	sender->lent[token] = false;
	sender->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !sender->failed) {
		sender->failed = true;
		drv_engine_fail("post", code, &sender->fail);
	}
}

/* Polls once; now and then looks around. Where nothing can go on without an event it may sleep, in block mode. */
static int turn(struct sender *sender, bool may_sleep, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const int events = engine->layer->poll(engine->ctx, sender->sink);

	if (DRV_UNLIKELY(sender->receiver != NULL) && receiver_drain(sender->receiver, sender->sink)) {
		*fail = sender->receiver->fail;
		return -1;
	}
	if (DRV_UNLIKELY(sender->failed)) {
		*fail = sender->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (may_sleep && engine->block && events == 0) {
		sender->waits++;
		if (drv_engine_wait(engine, WAIT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++sender->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Hands over message `index` of the burst, waiting for the layer where it is busy. */
static int send_one(struct sender *sender, uint32_t length, uint32_t index, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const uint32_t last = (uint32_t)sender->parameters->messages - 1;
	const uint32_t slot = index < last ? index : last;
	struct drv_message message = {.at = sender->messages + slot * sender->stride,
				      .bytes = (size_t)sender->parameters->bytes,
				      .seed = sender->seed,
				      .key = drv_burst_key(sender->burst, length, index),
				      .full = sender->full,
				      .touch = sender->touch,
				      .phase = sender->phase};
	int code;

	while (DRV_UNLIKELY((code = drv_message_post(engine, sender->chan, &message, slot)) == CADGE_BUSY))
		if (turn(sender, true, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	sender->lent[slot] = code == CADGE_QUEUED;
	sender->lents += code == CADGE_QUEUED;
	sender->posted++;
	sender->key_sum += message.key;
	return 0;
}

/* Computes for a delay. Returns how long that was, with the readings of the clock at both ends. */
static uint64_t delay(const struct sender *sender)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t now;

	do
		now = drv_clock_now(clock);
	while (now - begin < sender->delay);
	return now - begin + sender->read_cost;
}

struct span {
	/* ticks: until the answer, and of that in delays */
	uint64_t whole, delays;
};

/* The next burst begins: nothing is answered yet. */
static void begin_burst(struct sender *sender)
{
	sender->burst++;
	sender->answered_at = 0;
}

/* Polls until the answer is there. 1: it is lost; -1: *fail. */
static int await(struct sender *sender, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const uint64_t sent = sender->reliable ? 0 : drv_clock_now(clock);

	while (!sender->answered_at) {
		if (turn(sender, true, fail))
			return -1;
		if (!sender->reliable && !sender->answered_at &&
		    drv_clock_now(clock) - sent > sender->patience) {
			sender->lost++;
			return 1;
		}
	}
	return 0;
}

/* Polls until nothing is lent: the next burst writes there. */
static int come_back(struct sender *sender, struct drv_fail *fail)
{
	while (sender->lents)
		if (turn(sender, true, fail))
			return -1;
	return 0;
}

/* One burst and its answer. 1: that is lost; -1: *fail. */
static int exchange(struct sender *sender, uint32_t length, bool delayed, struct span *span_out,
		    struct drv_fail *fail)
{
	const uint64_t begin = drv_clock_now(&sender->port.engine->clock);
	uint64_t delays = 0;
	int status;

	begin_burst(sender);
	for (uint32_t i = 0; i < length; i++) {
		if (delayed && i)
			delays += delay(sender);
		if (send_one(sender, length, i, fail))
			return -1;
	}
	status = await(sender, fail);
	*span_out = (struct span){sender->answered_at - begin, delays};
	return status < 0 || come_back(sender, fail) ? -1 : status;
}

/* Has the server take a message that lies there. As of exchange. */
static int lay_down(struct sender *sender, struct drv_fail *fail)
{
	int status = 0;

	/* where one thread plays both, what it sent lies there for as long as it does not poll */
	if (!sender->receiver) {
		begin_burst(sender);
		if (send_one(sender, 1, PAUSE, fail))
			return -1;
		status = await(sender, fail);
	}
	if (status)
		return status < 0 || come_back(sender, fail) ? -1 : status;
	/* from another buffer: of a server that pauses the library may not have given back the first one */
	begin_burst(sender);
	if (send_one(sender, 1, 0, fail))
		return -1;
	if (sender->receiver && take_waiting(sender->receiver, sender->sink)) {
		*fail = sender->receiver->fail;
		return -1;
	}
	status = await(sender, fail);
	return status < 0 || come_back(sender, fail) ? -1 : status;
}

static int sender_start(struct sender *sender, const struct drv_play *play, struct receiver *receiver,
			struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;

	drv_port_start(&sender->port, engine);
	sender->port.sink.recv = sender_on_recv;
	sender->port.sink.sent = sender_on_sent;
	sender->sink = &sender->port.sink;
	sender->chan = engine->channels[0].chan;
	sender->parameters = parameters;
	sender->seed = play->seed;
	sender->touch = parameters->touch != DRV_TOUCH_NONE;
	sender->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	sender->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	sender->read_cost = drv_clock_to_ticks(&engine->clock, engine->clock.read_cost_ns);
	sender->receiver = receiver;
	sender->stride = drv_memory_stride(parameters->bytes);
	sender->messages =
		drv_pool_take(engine, DRV_POOL_CLIENT, (size_t)parameters->messages * sender->stride, fail);
	return sender->messages && drv_record_samples(play->record, PRTT, fail) &&
			       drv_record_samples(play->record, SINGLE, fail) &&
			       (!parameters->delay_percent ||
				drv_record_samples(play->record, UNDELAYED, fail))
		       ? 0
		       : -1;
}

/* ---- the roles ---- */

/* Both sides; at place self on one context, with a sink that tells each event whose it is. */
struct both {
	struct drv_halves halves;
	struct sender sender;
	struct receiver receiver;
};

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (sender_start(&both->sender, play, NULL, fail))
		return -1;
	play->engine->sink = both->sender.sink;
	/* an answer may be there as soon as the burst has left */
	play->sleep = DRV_SLEEP_IF_WAITED;
	return 0;
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail) ||
	    sender_start(&both->sender, play, &both->receiver, fail))
		return -1;
	drv_halves_start(&both->halves, play->engine, &both->sender.port.sink, &both->receiver.port.sink,
			 play->seed);
	both->sender.sink = &both->halves.port.sink;
	play->sleep = DRV_SLEEP_IF_WAITED;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail))
		return -1;
	play->engine->sink = &both->receiver.port.sink;
	/* the messages of a burst follow each other: it may find the next one there */
	play->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	struct span ignored;
	int status;

	sender->full = true;
	sender->phase = serial;
	status = exchange(sender, 1, false, &ignored, fail);
	if (status >= 0)
		status = exchange(sender, (uint32_t)sender->parameters->messages, false, &ignored, fail);
	sender->full = false;
	return status < 0 ? -1 : 0;
}

/* For how many single round trips a burst is delayed, or a server pauses: whichever is longer; rounded up. */
static uint64_t delays_of(const struct parameters *parameters)
{
	const uint64_t delays = (parameters->messages * parameters->delay_percent + 99) / 100;

	if (!parameters->delay_percent)
		return 0;
	return delays > PAUSE_TRIPS ? delays : PAUSE_TRIPS;
}

/* Single messages and bursts in turn; it is warm when the single ones are. Finds the usual round trip. */
static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	const struct drv_clock *clock = &play->engine->clock;
	struct drv_samples *singles = play->record->values[SINGLE].samples;
	struct drv_warmup *warmup = &sender->warmup;
	struct span span = {0};
	uint64_t trip_ns;
	bool over = false;
	int status = 0;

	drv_warmup_start(warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	while (status >= 0 && !over) {
		status = exchange(sender, 1, false, &span, fail);
		over = status ? drv_warmup_expired(warmup, drv_clock_now(clock))
			      : drv_warmup_add(warmup, drv_clock_now(clock), span.whole);
		if (!status)
			drv_sample(singles, drv_clock_to_ns(clock, span.whole));
		if (status >= 0 && !over)
			status = exchange(sender, (uint32_t)sender->parameters->messages, false, &span, fail);
	}
	drv_record_warmup(play->record, warmup);
	trip_ns = drv_histogram_quantile(&singles->histogram, 500000);
	sender->trip = drv_clock_to_ticks(clock, trip_ns);
	sender->delay = sender->trip * sender->parameters->delay_percent / 100;
	sender->patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(trip_ns));
	if (status >= 0 && trip_ns * delays_of(sender->parameters) > DELAYS_MAX_NS)
		return drv_fail_set(
			fail, DRV_DEADLINE,
			"a single message usually takes %" PRIu64
			" us there and back here, so that a burst with its delays would take more "
			"than a second",
			trip_ns / 1000);
	/* its samples are of no use: the histogram becomes empty */
	return status < 0 || !drv_record_samples(play->record, SINGLE, fail) ? -1 : 0;
}

/* One single message, one burst, and where there are delays one message that lies there. */
static int measure_once(struct sender *sender, struct drv_record *record, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const uint32_t messages = (uint32_t)sender->parameters->messages;
	const bool delayed = sender->delay > 0;
	struct span span;
	int status = exchange(sender, 1, false, &span, fail);

	if (status < 0)
		return -1;
	if (!status)
		drv_sample(record->values[SINGLE].samples, drv_clock_to_ns(clock, span.whole));
	status = exchange(sender, messages, delayed, &span, fail);
	if (status < 0)
		return -1;
	if (!status) {
		record->operations++;
		drv_sample(record->values[PRTT].samples, drv_clock_to_ns(clock, span.whole));
		if (delayed)
			drv_sample(record->values[UNDELAYED].samples,
				   drv_clock_to_ns(clock,
						   span.whole > span.delays ? span.whole - span.delays : 0));
	}
	return delayed && lay_down(sender, fail) < 0 ? -1 : 0;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock), span = drv_clock_to_ticks(clock, play->duration_ns);
	const uint64_t lost = sender->lost, late = sender->late;
	struct drv_record *record = play->record;

	do
		if (measure_once(sender, record, fail))
			return -1;
	while (drv_clock_now(clock) - begin < span);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (sender->parameters->messages + 1) * sender->parameters->bytes;
	record->lost = sender->lost - lost;
	record->late = sender->late - late;
	return 0;
}

static bool settle(struct drv_play *play)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	struct drv_engine *engine = play->engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	const bool waits = sender->reliable && sender->burst > 0;

	/* an answer may still be under way: a reliable channel is not clean then */
	while ((sender->lents > 0 || (waits && !sender->answered_at)) && !engine->down_code &&
	       drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, sender->sink) < 0 ||
		    (sender->receiver && receiver_drain(sender->receiver, sender->sink)))
			return false;
	}
	return sender->lents == 0 && (sender->answered_at || !waits);
}

/* For how long the server is to pause, in ns: known once the client is warm. */
static uint64_t tell(const struct drv_play *play)
{
	const struct sender *sender = &((const struct both *)play->state)->sender;

	return sender->delay ? drv_clock_to_ns(&play->engine->clock, sender->trip * PAUSE_TRIPS) : 0;
}

DRV_INLINE bool serve_due(void *arg)
{
	const struct receiver *receiver = arg;

	return receiver->answer_due || receiver->failed;
}

DRV_INLINE int serve_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;

	if (!receiver_drain(receiver, &receiver->port.sink))
		return 0;
	*fail = receiver->fail;
	return -1;
}

static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	return drv_serve_loop(play->engine, &receiver->port.sink, receiver, serve_due, serve_drain,
			      message_out, fail);
}

static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	drv_intake_counts(&receiver->intake, counts_out);
	drv_intake_phase(&receiver->intake, phase->full, phase->serial);
	receiver->pause = drv_clock_to_ticks(&play->engine->clock, phase->told);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct both *both = play->state;
	const struct sender *sender = &both->sender;

	counts_out->posts = true;
	counts_out->posted = sender->posted;
	counts_out->posted_keys = sender->key_sum;
	counts_out->waits = sender->waits;
	counts_out->checked = sender->checked;
	counts_out->full_checked = sender->full_checked;
	counts_out->mismatches = sender->mismatches;
	memcpy(counts_out->mismatch, sender->mismatch, sizeof(counts_out->mismatch));
	if (sender->receiver)
		phase_server(play, phase, counts_out);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes;
	needs_out->depth = (uint32_t)parameters->messages;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail);
}

#define SENDER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct both), .verify = verify, .warmup = warmup,                \
	.measure = measure, .settle = settle, .phase = phase_client, .tell = tell

static const struct drv_role self = {.name = "both", .prepare = prepare_self, SENDER_ROLE};

static const struct drv_pattern loggp = {
	.name = "loggp",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"messages", DRV_INTEGER, offsetof(struct parameters, messages), NULL},
			{"delay_percent", DRV_INTEGER, offsetof(struct parameters, delay_percent), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){[PRTT] = {"prtt", DRV_HISTOGRAM},
						    [SINGLE] = {"single", DRV_HISTOGRAM},
						    [UNDELAYED] = {"undelayed", DRV_HISTOGRAM},
						    [RECEIVE] = {"receive", DRV_HISTOGRAM},
						    {.name = NULL}},
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, SENDER_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct both),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .serve = serve,
			 .phase = phase_server},
			{.name = NULL},
		},
	.self = &self,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(loggp);
