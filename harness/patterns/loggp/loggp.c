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
#include "traffic/dialog.h"
#include "traffic/loss.h"

/* of the delays of a burst together, and of a pause: nobody looks at a deadline meanwhile */
#define DELAYS_MAX_NS UINT64_C(1000000000)
/* for so many single round trips a server does not poll; the message that it takes then arrives after one */
#define PAUSE_TRIPS 4u
/* a place that no burst is long enough for: the server is to pause once it has answered */
#define PAUSE 0xffu

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_responder stock;
	struct drv_burst_count count;
	/* ticks; 0: none */
	uint64_t pause, read_cost;
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
	struct drv_engine *engine = receiver->stock.answers.progress.port.engine;
	const uint64_t end = drv_clock_now(&engine->clock) + receiver->pause;
	uint64_t begin, span;
	int code = 0;

	while (drv_clock_now(&engine->clock) < end)
		;
	receiver->taking = true;
	receiver->taken_at = 0;
	begin = drv_clock_now(&engine->clock);
	while (code >= 0 && !receiver->taken_at && drv_clock_now(&engine->clock) < end + receiver->pause)
		code = engine->layer->poll(engine->ctx, receiver->stock.answers.progress.sink);
	receiver->taking = false;
	span = receiver->taken_at - begin;
	if (receiver->taken_at && receiver->samples)
		drv_sample(receiver->samples,
			   drv_clock_to_ns(&engine->clock,
					   span > receiver->read_cost ? span - receiver->read_cost : 0));
	return code < 0 ? drv_engine_fail("poll", code, fail) : 0;
}

/* Once it has answered a message that asked for it. */
static int pause_after(struct drv_responder *responder, struct drv_fail *fail)
{
	struct receiver *receiver = (struct receiver *)responder;

	return receiver->pause ? take_waiting(receiver, fail) : 0;
}

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	struct drv_answers *answers = &receiver->stock.answers;
	const size_t expected = receiver->stock.answer_max;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != expected)) {
		drv_check_wrong(&answers->progress.check, "a message of %zu bytes in a burst of %zu", bytes,
				expected);
		return CADGE_TAKEN;
	}
	key = drv_check_take(&answers->progress.check, data, bytes);
	if (DRV_UNLIKELY(receiver->taking))
		receiver->taken_at = drv_clock_now(&answers->progress.port.engine->clock);
	if (drv_burst_take(&receiver->count, key)) {
		drv_responder_due(&receiver->stock, key);
		receiver->stock.after = (key & 0xff) == PAUSE ? pause_after : NULL;
	}
	return CADGE_TAKEN;
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_asker asker;
	const struct parameters *parameters;
	/* place self: that of this process; else NULL */
	struct receiver *beside;
	/* the latest burst */
	uint64_t burst;
	/* ticks: between the messages of a burst; the usual round trip of one message; what a reading of the clock takes */
	uint64_t delay, trip, read_cost;
};

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	struct drv_asker *asker = &sender->asker;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != sender->parameters->bytes)) {
		drv_check_wrong(&asker->progress.check, "a message of %zu bytes that is no answer", bytes);
	} else if (DRV_UNLIKELY(drv_burst_of(drv_load64(data)) != sender->burst || asker->answered_at)) {
		drv_asker_stray(asker, "an answer to no burst outstanding", drv_burst_of(drv_load64(data)));
	} else {
		drv_asker_take(asker, data, bytes, drv_load64(data));
	}
	return CADGE_TAKEN;
}

/* Hands over message `index` of the burst, waiting for the layer where it is busy. */
static int send_one(struct sender *sender, uint32_t length, uint32_t index, struct drv_fail *fail)
{
	const uint32_t last = (uint32_t)sender->parameters->messages - 1;

	return drv_ask(&sender->asker, index < last ? index : last, (size_t)sender->parameters->bytes,
		       drv_burst_key(sender->burst, length, index), fail);
}

/* Computes for a delay. Returns how long that was, with the readings of the clock at both ends. */
static uint64_t delay(const struct sender *sender)
{
	const struct drv_clock *clock = &sender->asker.progress.port.engine->clock;
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

/* One burst and its answer. 1: that is lost; -1: *fail. */
static int exchange(struct sender *sender, uint32_t length, bool delayed, struct span *span_out,
		    struct drv_fail *fail)
{
	const uint64_t begin = drv_clock_now(&sender->asker.progress.port.engine->clock);
	uint64_t delays = 0;
	int status;

	sender->burst++;
	for (uint32_t i = 0; i < length; i++) {
		if (delayed && i)
			delays += delay(sender);
		if (send_one(sender, length, i, fail))
			return -1;
	}
	status = drv_asker_await(&sender->asker, fail);
	*span_out = (struct span){sender->asker.answered_at - begin, delays};
	return status < 0 || drv_asker_reclaim(&sender->asker, fail) ? -1 : status;
}

/* Has the server take a message that lies there. As of exchange. */
static int lay_down(struct sender *sender, struct drv_fail *fail)
{
	struct receiver *receiver = sender->beside;
	int status = 0;

	/* where one thread plays both, what it sent lies there for as long as it does not poll */
	if (!receiver) {
		sender->burst++;
		if (send_one(sender, 1, PAUSE, fail))
			return -1;
		status = drv_asker_await(&sender->asker, fail);
	}
	if (status)
		return status < 0 || drv_asker_reclaim(&sender->asker, fail) ? -1 : status;
	/* from another buffer: of a server that pauses the library may not have given back the first one */
	sender->burst++;
	if (send_one(sender, 1, 0, fail))
		return -1;
	if (receiver && take_waiting(receiver, fail))
		return -1;
	status = drv_asker_await(&sender->asker, fail);
	return status < 0 || drv_asker_reclaim(&sender->asker, fail) ? -1 : status;
}

/* ---- the roles ---- */

struct state {
	struct drv_dialog dialog;
	struct sender sender;
	struct receiver receiver;
};

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const struct drv_clock *clock = &play->engine->clock;
	struct receiver *receiver = &((struct state *)play->state)->receiver;

	receiver->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	if (parameters->delay_percent) {
		receiver->samples = drv_record_samples(play->record, RECEIVE, fail);
		if (!receiver->samples)
			return -1;
	}
	if (drv_dialog_responder(play, &receiver->stock, receiver_on_recv, (size_t)parameters->bytes,
				 parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	/* the messages of a burst follow each other: it may find the next one there */
	play->sleep = DRV_SLEEP_FREE;
	return 0;
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const struct drv_clock *clock = &play->engine->clock;
	struct sender *sender = &((struct state *)play->state)->sender;

	sender->parameters = parameters;
	sender->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	sender->beside = play->beside ? &((struct state *)play->beside->state)->receiver : NULL;
	if (drv_dialog_requester(play, &sender->asker, sender_on_recv, (uint32_t)parameters->messages,
				 (size_t)parameters->bytes, parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	/* an answer may be there as soon as the burst has left */
	play->sleep = DRV_SLEEP_IF_WAITED;
	return drv_record_samples(play->record, PRTT, fail) &&
			       drv_record_samples(play->record, SINGLE, fail) &&
			       (!parameters->delay_percent ||
				drv_record_samples(play->record, UNDELAYED, fail))
		       ? 0
		       : -1;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct sender *sender = &((struct state *)play->state)->sender;
	struct span ignored;
	int status;

	drv_asker_phase(&sender->asker, true, serial);
	status = exchange(sender, 1, false, &ignored, fail);
	if (status >= 0)
		status = exchange(sender, (uint32_t)sender->parameters->messages, false, &ignored, fail);
	drv_asker_phase(&sender->asker, false, serial);
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
	struct sender *sender = &((struct state *)play->state)->sender;
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
	const struct drv_clock *clock = &sender->asker.progress.port.engine->clock;
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
	struct sender *sender = &((struct state *)play->state)->sender;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock),
		       end = drv_engine_end(play->engine, begin, play->duration_ns);
	const uint64_t lost = sender->asker.lost, late = sender->asker.late;
	struct drv_record *record = play->record;

	do
		if (measure_once(sender, record, fail))
			return -1;
	while (drv_clock_now(clock) < end && record->operations < drv_engine_operations(play->engine));
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (sender->parameters->messages + 1) * sender->parameters->bytes;
	record->lost = sender->asker.lost - lost;
	record->late = sender->asker.late - late;
	return 0;
}

/* For how long the server is to pause, in ns: known once the client is warm. */
static uint64_t tell(const struct drv_play *play)
{
	const struct sender *sender = &((const struct state *)play->state)->sender;

	return sender->delay ? drv_clock_to_ns(&play->engine->clock, sender->trip * PAUSE_TRIPS) : 0;
}

static void phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	drv_dialog_phase(play, phase, counts_out);
	((struct state *)play->state)->receiver.pause = drv_clock_to_ticks(&play->engine->clock, phase->told);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes;
	needs_out->depth = (uint32_t)parameters->messages;
}

#define SENDER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct state), .prepare = prepare_client, .verify = verify,      \
	.warmup = warmup, .measure = measure, .settle = drv_dialog_settle, .phase = phase, .tell = tell

static const struct drv_pattern loggp = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .channels_most = 1, SENDER_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct state),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .serve = drv_responder_serve,
			 .drain = drv_responder_drain,
			 .phase = phase},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(loggp);
