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

#include "asker.h"
#include "burst.h"
#include "loss.h"
#include "serve_loop.h"

/* of the delays of a burst together, and of a pause: nobody looks at a deadline meanwhile */
#define DELAYS_MAX_NS UINT64_C(1000000000)
/* for so many single round trips a server does not poll; the message that it takes then arrives after one */
#define PAUSE_TRIPS 4u
/* a place that no burst is long enough for: the server is to pause once it has answered */
#define PAUSE 0xffu

enum quantity { PRTT, SINGLE, UNDELAYED, RECEIVE };

struct parameters {
	uint64_t bytes, messages, delay_percent;
	uint32_t touch;
};

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_answers answers;
	struct drv_message answer;
	struct drv_burst_count count;
	bool pause_due;
	/* ticks; 0: none */
	uint64_t pause, read_cost;
	/* a message is waited for that lies there; when it was taken, in ticks */
	bool taking;
	uint64_t taken_at;
	/* NULL: nothing is taken */
	struct drv_samples *samples;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->answer.bytes)) {
		drv_intake_mismatch(&receiver->answers.intake, "a message of %zu bytes in a burst of %zu",
				    bytes, receiver->answer.bytes);
		return CADGE_TAKEN;
	}
	key = drv_intake_take(&receiver->answers.intake, data, bytes);
	if (DRV_UNLIKELY(receiver->taking))
		receiver->taken_at = drv_clock_now(&receiver->answers.port.engine->clock);
	if (drv_burst_take(&receiver->count, key)) {
		receiver->answers.due = true;
		receiver->answer.key = key;
		receiver->answer.written = false;
		receiver->pause_due = (key & 0xff) == PAUSE;
	}
	return CADGE_TAKEN;
}

/* Computes for so long, and then takes the message that came meanwhile; gives up after as long again. */
static int take_waiting(struct receiver *receiver, struct drv_fail *fail)
{
	struct drv_engine *engine = receiver->answers.port.engine;
	const uint64_t end = drv_clock_now(&engine->clock) + receiver->pause;
	uint64_t begin, span;
	int code = 0;

	while (drv_clock_now(&engine->clock) < end)
		;
	receiver->taking = true;
	receiver->taken_at = 0;
	begin = drv_clock_now(&engine->clock);
	while (code >= 0 && !receiver->taken_at && drv_clock_now(&engine->clock) < end + receiver->pause)
		code = engine->layer->poll(engine->ctx, receiver->answers.sink);
	receiver->taking = false;
	span = receiver->taken_at - begin;
	if (receiver->taken_at && receiver->samples)
		drv_sample(receiver->samples,
			   drv_clock_to_ns(&engine->clock,
					   span > receiver->read_cost ? span - receiver->read_cost : 0));
	return code < 0 ? drv_engine_fail("poll", code, fail) : 0;
}

/* Answers, if that is due and possible, and pauses then if it was asked for. */
DRV_INLINE int receiver_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;
	struct drv_answers *answers = &receiver->answers;

	if (DRV_UNLIKELY(drv_answers_post(answers, &receiver->answer)) && DRV_UNLIKELY(receiver->pause_due) &&
	    !answers->failed) {
		receiver->pause_due = false;
		if (receiver->pause && take_waiting(receiver, fail))
			return -1;
	}
	return drv_answers_drained(answers, fail);
}

static int receiver_start(struct receiver *receiver, const struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const struct drv_clock *clock = &play->engine->clock;
	const bool touch = parameters->touch != DRV_TOUCH_NONE;

	receiver->answer =
		(struct drv_message){.bytes = (size_t)parameters->bytes, .seed = ~play->seed, .touch = touch};
	receiver->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	if (parameters->delay_percent) {
		receiver->samples = drv_record_samples(play->record, RECEIVE, fail);
		if (!receiver->samples)
			return -1;
	}
	return drv_answers_start(&receiver->answers, play, receiver_on_recv, (size_t)parameters->bytes, touch,
				 fail);
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_asker asker;
	const struct parameters *parameters;
	/* of the engine's pool: a buffer for each message of a burst */
	uint8_t *messages;
	size_t stride;
	bool lent[DRV_BURST_MAX];
	/* the latest burst */
	uint64_t burst;
	/* ticks: between the messages of a burst; the usual round trip of one message; what a reading of the clock takes */
	uint64_t delay, trip, read_cost;
};

/* Whether an answer to the latest burst is what its sender wrote. */
static bool is_answer(struct drv_asker *asker, const uint8_t *data, size_t bytes)
{
	return drv_load64(data + 8) == ~asker->seed && drv_asker_holds(asker, data, bytes, drv_load64(data));
}

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	struct drv_asker *asker = &sender->asker;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != sender->parameters->bytes)) {
		drv_asker_mismatch(asker, "a message of an unexpected size", bytes);
	} else if (DRV_UNLIKELY(drv_burst_of(drv_load64(data)) != sender->burst || asker->answered_at)) {
		drv_asker_stray(asker, "an answer to no burst outstanding", drv_burst_of(drv_load64(data)));
	} else {
		if (DRV_LIKELY(is_answer(asker, data, bytes)))
			asker->checked++;
		else
			drv_asker_mismatch(asker, "an answer that holds other bytes", sender->burst);
		asker->answered_at = drv_clock_now(&asker->port.engine->clock);
	}
	return CADGE_TAKEN;
}

static void sender_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct sender *sender = (struct sender *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token >= sender->parameters->messages || !sender->lent[token])) {
		drv_asker_mismatch(&sender->asker, "a completion for a token that is not outstanding", token);
		return;
	}
	sender->lent[token] = false;
	drv_asker_sent(&sender->asker, code);
}

static int turn(struct sender *sender, struct drv_fail *fail)
{
	return drv_asker_turn(&sender->asker, receiver_drain, DRV_ASKER_WAIT_NS, fail);
}

/* Hands over message `index` of the burst, waiting for the layer where it is busy. */
static int send_one(struct sender *sender, uint32_t length, uint32_t index, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->asker.port.engine;
	const uint32_t last = (uint32_t)sender->parameters->messages - 1;
	const uint32_t slot = index < last ? index : last;
	struct drv_message message = {.at = sender->messages + slot * sender->stride,
				      .bytes = (size_t)sender->parameters->bytes,
				      .seed = sender->asker.seed,
				      .key = drv_burst_key(sender->burst, length, index),
				      .full = sender->asker.full,
				      .touch = sender->asker.touch,
				      .phase = sender->asker.phase};
	int code;

	while (DRV_UNLIKELY((code = drv_message_post(engine, sender->asker.chan, &message, slot)) ==
			    CADGE_BUSY))
		if (turn(sender, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	sender->lent[slot] = code == CADGE_QUEUED;
	sender->asker.lents += code == CADGE_QUEUED;
	sender->asker.posted++;
	sender->asker.key_sum += message.key;
	return 0;
}

/* Computes for a delay. Returns how long that was, with the readings of the clock at both ends. */
static uint64_t delay(const struct sender *sender)
{
	const struct drv_clock *clock = &sender->asker.port.engine->clock;
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
	sender->asker.answered_at = 0;
}

/* Polls until the answer is there. 1: it is lost; -1: *fail. */
static int await(struct sender *sender, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->asker.port.engine->clock;
	const uint64_t sent = sender->asker.reliable ? 0 : drv_clock_now(clock);

	while (!sender->asker.answered_at) {
		if (turn(sender, fail))
			return -1;
		if (!sender->asker.reliable && !sender->asker.answered_at &&
		    drv_clock_now(clock) - sent > sender->asker.patience) {
			sender->asker.lost++;
			return 1;
		}
	}
	return 0;
}

/* Polls until nothing is lent: the next burst writes there. */
static int come_back(struct sender *sender, struct drv_fail *fail)
{
	while (sender->asker.lents)
		if (turn(sender, fail))
			return -1;
	return 0;
}

/* One burst and its answer. 1: that is lost; -1: *fail. */
static int exchange(struct sender *sender, uint32_t length, bool delayed, struct span *span_out,
		    struct drv_fail *fail)
{
	const uint64_t begin = drv_clock_now(&sender->asker.port.engine->clock);
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
	*span_out = (struct span){sender->asker.answered_at - begin, delays};
	return status < 0 || come_back(sender, fail) ? -1 : status;
}

/* Has the server take a message that lies there. As of exchange. */
static int lay_down(struct sender *sender, struct drv_fail *fail)
{
	struct receiver *receiver = sender->asker.other;
	int status = 0;

	/* where one thread plays both, what it sent lies there for as long as it does not poll */
	if (!receiver) {
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
	if (receiver && take_waiting(receiver, fail))
		return -1;
	status = await(sender, fail);
	return status < 0 || come_back(sender, fail) ? -1 : status;
}

static int sender_start(struct sender *sender, const struct drv_play *play, struct receiver *receiver,
			struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const struct drv_clock *clock = &play->engine->clock;

	drv_asker_start(&sender->asker, play, receiver ? &receiver->answers : NULL, sender_on_recv,
			sender_on_sent, parameters->touch != DRV_TOUCH_NONE);
	sender->parameters = parameters;
	sender->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	sender->stride = drv_memory_stride(parameters->bytes);
	sender->messages = drv_pool_take(play->engine, DRV_POOL_CLIENT,
					 (size_t)parameters->messages * sender->stride, fail);
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
	play->engine->sink = both->sender.asker.sink;
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
	drv_asker_join(&both->sender.asker, &both->receiver.answers, &both->halves);
	play->sleep = DRV_SLEEP_IF_WAITED;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail))
		return -1;
	play->engine->sink = &both->receiver.answers.port.sink;
	/* the messages of a burst follow each other: it may find the next one there */
	play->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	struct span ignored;
	int status;

	sender->asker.full = true;
	sender->asker.phase = serial;
	status = exchange(sender, 1, false, &ignored, fail);
	if (status >= 0)
		status = exchange(sender, (uint32_t)sender->parameters->messages, false, &ignored, fail);
	sender->asker.full = false;
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
	struct drv_warmup *warmup = &sender->asker.warmup;
	struct span span = {0};
	uint64_t trip_ns;
	bool over = false;
	int status = 0;

	drv_warmup_start(warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, DRV_ASKER_WINDOW_NS),
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
	sender->asker.patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(trip_ns));
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
	const struct drv_clock *clock = &sender->asker.port.engine->clock;
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
	const uint64_t lost = sender->asker.lost, late = sender->asker.late;
	struct drv_record *record = play->record;

	do
		if (measure_once(sender, record, fail))
			return -1;
	while (drv_clock_now(clock) - begin < span);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (sender->parameters->messages + 1) * sender->parameters->bytes;
	record->lost = sender->asker.lost - lost;
	record->late = sender->asker.late - late;
	return 0;
}

static bool settle(struct drv_play *play)
{
	return drv_asker_settle(&((struct both *)play->state)->sender.asker, receiver_drain);
}

/* For how long the server is to pause, in ns: known once the client is warm. */
static uint64_t tell(const struct drv_play *play)
{
	const struct sender *sender = &((const struct both *)play->state)->sender;

	return sender->delay ? drv_clock_to_ns(&play->engine->clock, sender->trip * PAUSE_TRIPS) : 0;
}

static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_answers *answers = &((struct both *)play->state)->receiver.answers;

	return drv_serve_loop(play->engine, &answers->port.sink, answers, drv_answers_due, receiver_drain,
			      message_out, fail);
}

static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	drv_answers_phase(&receiver->answers, phase, counts_out);
	receiver->pause = drv_clock_to_ticks(&play->engine->clock, phase->told);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct drv_asker *asker = &((const struct both *)play->state)->sender.asker;

	drv_asker_counts(asker, counts_out);
	if (asker->other)
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
