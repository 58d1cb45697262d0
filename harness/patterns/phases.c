/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern phases: where the time of one message goes. Handing it over, its way, and taking it, on a host whose ends have
 * one clock: the receiver's answer says when it began the poll that delivered the message, and when it had it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "intake.h"
#include "loss.h"
#include "message.h"
#include "pattern.h"
#include "serve_loop.h"

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
#define WINDOW_NS UINT64_C(100000)
/* an answer: head, and two readings of the clock, in ticks */
#define ANSWER_BYTES (DRV_HEAD_BYTES + 16u)
#define ANSWERS      2u
/* tokens of the answering side, where one process plays both */
#define TOKEN_ANSWER (UINT64_C(1) << 63)

enum quantity { ONE_WAY, POST, TRANSFER, PROGRESS };

struct parameters {
	uint64_t bytes;
	uint32_t touch;
};

/* ---- the receiving side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	size_t bytes;
	struct drv_intake intake;
	/* when the poll in progress began, and when the latest message was here and read, in ticks */
	uint64_t polled_at, taken_at;
	/* that poll's beginning */
	uint64_t taken_from;
	/* of the engine's pool: ANSWERS of `stride` bytes */
	uint8_t *answers;
	size_t stride;
	bool lent[ANSWERS];
	bool answer_due, failed;
	uint64_t answer_key;
	struct drv_fail fail;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->bytes)) {
		drv_intake_mismatch(&receiver->intake, "a message of %zu bytes instead of %zu", bytes,
				    receiver->bytes);
		return CADGE_TAKEN;
	}
	receiver->answer_key = drv_intake_take(&receiver->intake, data, bytes);
	receiver->taken_at = drv_clock_now(&receiver->port.engine->clock);
	receiver->taken_from = receiver->polled_at;
	receiver->answer_due = true;
	return CADGE_TAKEN;
}

static void receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct receiver *receiver = (struct receiver *)sink;
	const uint64_t index = token & ~TOKEN_ANSWER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & TOKEN_ANSWER) || index >= ANSWERS || !receiver->lent[index])) {
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

/* Answers, if that is due and possible. 0, or -1 with receiver->fail. */
static int receiver_drain(struct receiver *receiver)
{
	const struct drv_engine *engine = receiver->port.engine;
	struct cadge_iov iov = {.bytes = ANSWER_BYTES};
	uint32_t index = 0;
	int code;

	if (DRV_LIKELY(!receiver->answer_due))
		return receiver->failed ? -1 : 0;
	while (index < ANSWERS && receiver->lent[index])
		index++;
	if (index == ANSWERS)
		return 0;
	iov.base = receiver->answers + index * receiver->stride;
	drv_head_write(iov.base, ANSWER_BYTES, ~receiver->intake.seed, receiver->answer_key);
	drv_store64((uint8_t *)iov.base + DRV_HEAD_BYTES, receiver->taken_from);
	drv_store64((uint8_t *)iov.base + DRV_HEAD_BYTES + 8, receiver->taken_at);
	code = engine->layer->post(receiver->chan, &iov, 1, 0, TOKEN_ANSWER | index);
	if (code == CADGE_BUSY)
		return 0;
	receiver->answer_due = false;
	receiver->lent[index] = code == CADGE_QUEUED;
	if (code < 0 && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
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
	receiver->bytes = (size_t)parameters->bytes;
	receiver->intake.seed = play->seed;
	receiver->intake.by_number = true; /* one at a time */
	receiver->intake.reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	receiver->intake.touch = parameters->touch != DRV_TOUCH_NONE;
	receiver->stride = drv_memory_stride(ANSWER_BYTES);
	receiver->answers = drv_pool_take(engine, DRV_POOL_SERVER, ANSWERS * receiver->stride, fail);
	drv_intake_phase(&receiver->intake, true, 1);
	return receiver->answers ? 0 : -1;
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it; at place self it is the sink of both sides */
	struct drv_port port;
	struct cadge_chan *chan;
	size_t bytes;
	uint64_t seed;
	/* of the engine's pool: one message */
	uint8_t *message;
	bool touch, reliable, lent, failed;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* of the next message, from 0 on; and when the answer to the latest came, in ticks; 0: not yet */
	uint64_t number, answered_at;
	/* what that answer says: when the poll began that delivered the message, and when it was taken */
	uint64_t taken_from, taken_at;
	/* ticks: when an answer is lost, over an unreliable layer */
	uint64_t patience;
	uint32_t idle;
	uint64_t posted, key_sum, waits, lost, late;
	uint64_t checked, mismatches;
	struct drv_warmup warmup;
	struct drv_fail fail;
	char mismatch[160];
	/* place self; else NULL */
	struct receiver *receiver;
};

static void __attribute__((cold, noinline)) note_mismatch(struct sender *sender, const char *what,
							  uint64_t number)
{
	if (!sender->mismatches++)
		snprintf(sender->mismatch, sizeof(sender->mismatch), "%s (%" PRIu64 ")", what, number);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	const uint8_t *at = data;
	uint64_t key;

	if (sender->receiver && bytes >= DRV_HEAD_BYTES && drv_load64(at + 8) == sender->seed)
		return receiver_on_recv(&sender->receiver->port.sink, peer, data, bytes, lend);
	if (DRV_UNLIKELY(bytes != ANSWER_BYTES || drv_load64(at + 8) != ~sender->seed)) {
		note_mismatch(sender, "a message that is no answer, of so many bytes", bytes);
		return CADGE_TAKEN;
	}
	key = drv_load64(at);
	if (DRV_UNLIKELY(key + 1 != sender->number || sender->answered_at)) {
		if (sender->reliable || sender->late >= sender->lost)
			note_mismatch(sender, "an answer to no message outstanding", key);
		else
			sender->late++;
		return CADGE_TAKEN;
	}
	sender->checked++;
	sender->taken_from = drv_load64(at + DRV_HEAD_BYTES);
	sender->taken_at = drv_load64(at + DRV_HEAD_BYTES + 8);
	sender->answered_at = drv_clock_now(&sender->port.engine->clock);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct sender *sender = (struct sender *)sink;

	if (token & TOKEN_ANSWER && sender->receiver) {
		receiver_on_sent(&sender->receiver->port.sink, peer, token, code);
		return;
	}
	if (DRV_UNLIKELY(token || !sender->lent)) {
		note_mismatch(sender, "a completion for a token that is not outstanding", token);
		return;
	}
	sender->lent = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !sender->failed) {
		sender->failed = true;
		drv_engine_fail("post", code, &sender->fail);
	}
}

/* Polls once; now and then looks around. In block mode it sleeps where nothing came. */
static int turn(struct sender *sender, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	int events;

	if (sender->receiver)
		sender->receiver->polled_at = drv_clock_now(&engine->clock);
	events = engine->layer->poll(engine->ctx, &sender->port.sink);
	if (DRV_UNLIKELY(sender->receiver != NULL) && receiver_drain(sender->receiver)) {
		*fail = sender->receiver->fail;
		return -1;
	}
	if (DRV_UNLIKELY(sender->failed)) {
		*fail = sender->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (engine->block && events == 0) {
		sender->waits++;
		if (drv_engine_wait(engine, WAIT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++sender->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Writes the message and hands it over. */
static int hand_over(struct sender *sender, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	struct drv_message message = {.at = sender->message,
				      .bytes = sender->bytes,
				      .seed = sender->seed,
				      .key = sender->number,
				      .full = sender->full,
				      .touch = sender->touch,
				      .phase = sender->phase};
	int code;

	sender->answered_at = 0;
	sender->number++;
	while (DRV_UNLIKELY((code = drv_message_post(engine, sender->chan, &message, 0)) == CADGE_BUSY))
		if (turn(sender, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	sender->lent = code == CADGE_QUEUED;
	sender->posted++;
	sender->key_sum += message.key;
	return 0;
}

/* In ticks; they add up to `one_way`. */
struct spans {
	uint64_t one_way, post, transfer, progress;
};

/*
 * Splits the way of a message that began at `begin` and was handed over at `posted`. It may be taken while its sender is
 * still in post, and the poll that delivers it may have begun before: what happens at the same time counts once, to
 * what came first.
 */
static void split(struct sender *sender, uint64_t begin, uint64_t posted, struct spans *spans_out)
{
	const uint64_t taken = sender->taken_at;
	const uint64_t handed = posted < taken ? posted : taken;
	const uint64_t from = sender->taken_from > handed ? sender->taken_from : handed;

	if (DRV_UNLIKELY(taken < begin || taken > sender->answered_at || sender->taken_from > taken)) {
		note_mismatch(sender,
			      "the two ends have no clock in common: a message was taken before it was sent, "
			      "or after its answer came",
			      sender->number - 1);
		*spans_out = (struct spans){0};
		return;
	}
	*spans_out = (struct spans){taken - begin, handed - begin, from - handed, taken - from};
}

/* One message and its answer. 1: the answer is lost; -1: *fail. Nothing is lent afterwards. */
static int send_one(struct sender *sender, struct spans *spans_out, uint64_t *trip_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t posted;
	int lost = 0;

	if (hand_over(sender, fail))
		return -1;
	posted = drv_clock_now(clock);
	while (!sender->answered_at && !lost) {
		if (turn(sender, fail))
			return -1;
		lost = !sender->reliable && !sender->answered_at &&
		       drv_clock_now(clock) - posted > sender->patience;
	}
	sender->lost += (uint64_t)lost;
	if (!lost) {
		*trip_out = sender->answered_at - begin;
		split(sender, begin, posted, spans_out);
	}
	while (sender->lent)
		if (turn(sender, fail))
			return -1;
	return lost;
}

static int sender_start(struct sender *sender, struct receiver *receiver, struct drv_play *play,
			struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;

	drv_port_start(&sender->port, engine);
	sender->port.sink.recv = on_recv;
	sender->port.sink.sent = on_sent;
	sender->chan = engine->channels[0].chan;
	sender->bytes = (size_t)parameters->bytes;
	sender->seed = play->seed;
	sender->touch = parameters->touch != DRV_TOUCH_NONE;
	sender->receiver = receiver;
	sender->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	sender->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	sender->message = drv_pool_take(engine, DRV_POOL_CLIENT, drv_memory_stride(sender->bytes), fail);
	engine->sink = &sender->port.sink;
	if (!sender->message)
		return -1;
	for (unsigned quantity = ONE_WAY; quantity <= PROGRESS; quantity++)
		if (!drv_record_samples(play->record, quantity, fail))
			return -1;
	return 0;
}

/* ---- the roles ---- */

struct both {
	struct sender sender;
	struct receiver receiver;
};

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	play->sleep = DRV_SLEEP_EACH;
	return sender_start(&((struct both *)play->state)->sender, NULL, play, fail);
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	play->sleep = DRV_SLEEP_IF_WAITED;
	return receiver_start(&both->receiver, play, fail) ||
			       sender_start(&both->sender, &both->receiver, play, fail)
		       ? -1
		       : 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	play->engine->sink = &receiver->port.sink;
	play->sleep = DRV_SLEEP_EACH;
	return receiver_start(receiver, play, fail);
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	struct spans ignored;
	uint64_t trip;
	int status;

	sender->full = true;
	sender->phase = serial;
	status = send_one(sender, &ignored, &trip, fail);
	sender->full = false;
	return status < 0 ? -1 : 0;
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	const struct drv_clock *clock = &play->engine->clock;
	struct spans ignored;
	uint64_t trip = 0;
	bool over = false;
	int status = 0;

	drv_warmup_start(&sender->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	while (status >= 0 && !over) {
		status = send_one(sender, &ignored, &trip, fail);
		over = status ? drv_warmup_expired(&sender->warmup, drv_clock_now(clock))
			      : drv_warmup_add(&sender->warmup, drv_clock_now(clock), trip);
	}
	drv_record_warmup(play->record, &sender->warmup);
	sender->patience = drv_clock_to_ticks(
		clock, drv_loss_deadline_ns(drv_clock_to_ns(clock, sender->warmup.median)));
	return status < 0 ? -1 : 0;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock), span = drv_clock_to_ticks(clock, play->duration_ns);
	const uint64_t lost = sender->lost, late = sender->late;
	struct drv_record *record = play->record;
	struct drv_value *values = record->values;

	do {
		struct spans spans;
		uint64_t trip;
		const int status = send_one(sender, &spans, &trip, fail);

		if (status < 0)
			return -1;
		if (status)
			continue;
		record->operations++;
		drv_sample(values[ONE_WAY].samples, drv_clock_to_ns(clock, spans.one_way));
		drv_sample(values[POST].samples, drv_clock_to_ns(clock, spans.post));
		drv_sample(values[TRANSFER].samples, drv_clock_to_ns(clock, spans.transfer));
		drv_sample(values[PROGRESS].samples, drv_clock_to_ns(clock, spans.progress));
	} while (drv_clock_now(clock) - begin < span);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (sender->bytes + ANSWER_BYTES);
	record->lost = sender->lost - lost;
	record->late = sender->late - late;
	return 0;
}

static bool settle(struct drv_play *play)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	struct drv_engine *engine = play->engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	/* an answer may still be under way: a reliable channel is not clean then */
	const bool waits = sender->reliable && sender->posted > 0;

	while ((sender->lent || (waits && !sender->answered_at)) && !engine->down_code &&
	       drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, &sender->port.sink) < 0 ||
		    (sender->receiver && receiver_drain(sender->receiver)))
			return false;
	return !sender->lent && (sender->answered_at || !waits);
}

/* As drv_serve_loop, but that it reads the clock before each poll. */
static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;
	struct drv_engine *engine = play->engine;
	uint32_t idle = 0;

	for (;;) {
		uint64_t now;
		int events, status;

		receiver->polled_at = drv_clock_now(&engine->clock);
		events = engine->layer->poll(engine->ctx, &receiver->port.sink);
		if (DRV_UNLIKELY(receiver_drain(receiver))) {
			*fail = receiver->fail;
			return -1;
		}
		if (DRV_UNLIKELY(events < 0))
			return drv_engine_fail("poll", events, fail);
		if (events > 0) {
			idle = 0;
			continue;
		}
		if (engine->block) {
			if (drv_engine_wait(engine, DRV_SERVE_WAIT_NS * engine->nap_factor, fail))
				return -1;
			if (++idle < 2)
				continue;
		} else if (++idle & 63) {
			continue;
		}
		now = drv_clock_now(&engine->clock);
		/* the first look of an idle while only starts its time */
		if (idle == 64 && !engine->block)
			engine->oob_next = now + engine->oob_period;
		status = drv_engine_look(engine, now, message_out, fail);
		if (status)
			return status < 0 ? -1 : 0;
	}
}

static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	drv_intake_counts(&receiver->intake, counts_out);
	drv_intake_phase(&receiver->intake, phase->full, phase->serial);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct sender *sender = &((const struct both *)play->state)->sender;

	counts_out->posts = true;
	counts_out->posted = sender->posted;
	counts_out->posted_keys = sender->key_sum;
	counts_out->waits = sender->waits;
	counts_out->checked = sender->checked;
	counts_out->mismatches = sender->mismatches;
	memcpy(counts_out->mismatch, sender->mismatch, sizeof(counts_out->mismatch));
	if (sender->receiver)
		phase_server(play, phase, counts_out);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes < ANSWER_BYTES ? ANSWER_BYTES : parameters->bytes;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail) ||
			       drv_negotiate_message(ANSWER_BYTES, "answer", &offer->both, fail)
		       ? -1
		       : 0;
}

#define SENDER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct both), .verify = verify, .warmup = warmup,                \
	.measure = measure, .settle = settle, .phase = phase_client

static const struct drv_role self = {.name = "both", .prepare = prepare_self, SENDER_ROLE};

static const struct drv_pattern phases = {
	.name = "phases",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){[ONE_WAY] = {"one_way", DRV_HISTOGRAM},
						    [POST] = {"post", DRV_HISTOGRAM},
						    [TRANSFER] = {"transfer", DRV_HISTOGRAM},
						    [PROGRESS] = {"progress", DRV_HISTOGRAM},
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
DRV_PATTERN(phases);
