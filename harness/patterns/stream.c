/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern stream: messages leave as fast as the layer takes them, with at most `depth` of them lent to the layer at a
 * time. A run ends with an end message that carries the count; it is over when the receiver has confirmed, through the
 * layer, how many messages it has: over a reliable layer that is all of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "in_place.h"
#include "pattern.h"
#include "serve_loop.h"

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
/* unreliable: the end message again */
#define REPEAT_NS UINT64_C(500000)
/* tokens of the receiving side, where one process plays both */
#define TOKEN_RECEIVER (UINT64_C(1) << 63)

/* The control message: magic, kind and run, count; 24 bytes, or 32 where the stream's messages have 24. */
#define MAGIC         UINT64_C(0x6d61657274534443)
#define KIND_END      1u
#define KIND_CONFIRM  2u
#define CONTROL_BYTES 32u
#define BUFFERS       2u

static const char *const buffers_words[] = {"rotated", "same", NULL};

struct parameters {
	uint64_t bytes, depth;
	uint32_t touch;
	/* SAME: all messages of a run leave from one buffer, and so they all hold the same */
	enum { ROTATED, SAME } buffers;
};

static size_t control_bytes(uint64_t message_bytes)
{
	return message_bytes == 24 ? 32 : 24;
}

/* ---- the receiving side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	uint64_t bytes;
	struct drv_intake intake;
	/* of the engine's pool: BUFFERS of `stride` bytes */
	uint8_t *controls;
	size_t stride;
	bool lent[BUFFERS];
	/* serial of the run in progress */
	uint32_t run;
	/* messages of this run */
	uint64_t run_executions;
	/* told by the end message; UINT64_MAX before */
	uint64_t run_expected;
	bool confirm_due, failed;
	uint64_t confirm_count;
	struct drv_fail fail;
};

/* Confirms, if that is due and possible. 0, or -1 with receiver->fail. */
static int receiver_drain(struct receiver *receiver)
{
	const struct drv_engine *engine = receiver->port.engine;
	struct cadge_iov iov = {.bytes = control_bytes(receiver->bytes)};
	uint32_t index = 0;
	int code;

	if (DRV_LIKELY(!receiver->confirm_due))
		return receiver->failed ? -1 : 0;
	while (index < BUFFERS && receiver->lent[index])
		index++;
	if (index == BUFFERS)
		return 0;
	iov.base = receiver->controls + index * receiver->stride;
	drv_store64(iov.base, MAGIC);
	drv_store64((uint8_t *)iov.base + 8, (uint64_t)receiver->run << 8 | KIND_CONFIRM);
	drv_store64((uint8_t *)iov.base + 16, receiver->confirm_count);
	code = engine->layer->post(receiver->chan, &iov, 1, 0, TOKEN_RECEIVER | index);
	if (code == CADGE_BUSY)
		return 0;
	receiver->confirm_due = false;
	receiver->lent[index] = code == CADGE_QUEUED;
	if (code < 0 && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
	return receiver->failed ? -1 : 0;
}

/* A message of the stream, or the word that it ends. */
static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	const uint8_t *at = data;

	(void)peer, (void)lend;
	if (DRV_LIKELY(bytes == receiver->bytes)) {
		drv_intake_take(&receiver->intake, data, bytes);
		receiver->run_executions++;
	} else if (bytes == control_bytes(receiver->bytes) && drv_load64(at) == MAGIC &&
		   (drv_load64(at + 8) & 0xff) == KIND_END) {
		if (drv_load64(at + 8) >> 8 != receiver->run)
			return CADGE_TAKEN; /* repeated over an unreliable layer, and late */
		receiver->run_expected = drv_load64(at + 16);
	} else {
		drv_intake_mismatch(&receiver->intake, "a message of %zu bytes in a stream of %" PRIu64,
				    bytes, receiver->bytes);
		return CADGE_TAKEN;
	}
	if (DRV_UNLIKELY(receiver->run_expected != UINT64_MAX) &&
	    (!receiver->intake.reliable || receiver->run_executions == receiver->run_expected)) {
		receiver->confirm_count = receiver->run_executions;
		receiver->confirm_due = true;
		if (!receiver->intake.reliable)
			receiver->run_expected = UINT64_MAX; /* once for each end message */
	}
	return CADGE_TAKEN;
}

static void receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct receiver *receiver = (struct receiver *)sink;
	const uint64_t index = token & ~TOKEN_RECEIVER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & TOKEN_RECEIVER) || index >= BUFFERS || !receiver->lent[index])) {
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

static void receiver_phase(struct receiver *receiver, bool full, uint64_t serial)
{
	drv_intake_phase(&receiver->intake, full, serial);
	receiver->run++;
	receiver->run_executions = 0;
	receiver->run_expected = UINT64_MAX;
	receiver->confirm_due = false;
}

static int receiver_start(struct receiver *receiver, const struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;
	const uint64_t caps = engine->offer.both.caps;

	drv_port_start(&receiver->port, engine);
	receiver->port.sink.recv = receiver_on_recv;
	receiver->port.sink.sent = receiver_on_sent;
	receiver->chan = engine->channels[0].chan;
	receiver->bytes = parameters->bytes;
	receiver->intake.seed = play->seed;
	receiver->intake.reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	receiver->intake.by_number = (caps & CADGE_CAP_ORDERED) && parameters->buffers == ROTATED;
	receiver->intake.touch = parameters->touch != DRV_TOUCH_NONE;
	receiver->stride = drv_memory_stride(CONTROL_BYTES);
	receiver->controls = drv_pool_take(engine, DRV_POOL_SERVER, BUFFERS * receiver->stride, fail);
	if (!receiver->controls)
		return -1;
	receiver_phase(receiver, true, 1);
	return 0;
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	uint64_t bytes;
	uint32_t depth;
	uint64_t seed;
	bool reliable, touch, same;
	/* of the engine's pool: first slot's payload, and the end message */
	uint8_t *messages, *control;
	size_t stride;
	/* by slot; the last entry is the control message */
	bool *lent;
	/* next to use */
	uint32_t slot;
	uint32_t lents, idle;
	uint64_t next_number;
	/* of all messages of a run that leave from one buffer */
	uint64_t same_key;
	/* since the attempt began */
	uint64_t posted, key_sum;
	uint64_t run_posted;
	uint32_t run;
	bool confirmed, failed;
	/* messages that the receiver had when it confirmed, and when, in ticks */
	uint64_t confirmed_count, confirmed_at;
	uint64_t mismatches, waits;
	struct drv_warmup warmup;
	/* place self */
	struct receiver *receiver;
	struct cadge_sink *sink;
	struct drv_fail fail;
	char mismatch[160];
};

enum stop { STOP_COUNT, STOP_WARM, STOP_TIME };

static void __attribute__((cold, noinline)) note_failure(struct sender *sender, int code)
{
	if (!sender->failed)
		drv_engine_fail("post", code, &sender->fail);
	sender->failed = true;
}

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	const uint8_t *at = data;

	(void)peer, (void)lend;
	if (bytes != control_bytes(sender->bytes) || drv_load64(at) != MAGIC ||
	    (drv_load64(at + 8) & 0xff) != KIND_CONFIRM) {
		if (!sender->mismatches++)
			snprintf(sender->mismatch, sizeof(sender->mismatch),
				 "an unexpected message of %zu bytes", bytes);
	} else if (drv_load64(at + 8) >> 8 == sender->run && !sender->confirmed) {
		sender->confirmed = true;
		sender->confirmed_count = drv_load64(at + 16);
		sender->confirmed_at = drv_clock_now(&sender->port.engine->clock);
	}
	return CADGE_TAKEN;
}

static void sender_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct sender *sender = (struct sender *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token > sender->depth || !sender->lent[token])) {
		if (!sender->mismatches++)
			snprintf(sender->mismatch, sizeof(sender->mismatch),
				 "a completion for token %" PRIu64 " that is not outstanding", token);
		return;
	}
	sender->lent[token] = false;
	sender->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(sender, code);
}

/* Polls once; now and then looks around. Where nothing can go on without an event it may sleep, in block
 * mode. */
DRV_INLINE int turn(struct sender *sender, const bool may_sleep, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const int events = engine->layer->poll(engine->ctx, sender->sink);

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
	if (may_sleep && engine->block && events == 0) {
		sender->waits++;
		if (drv_engine_wait(engine, sender->reliable ? WAIT_NS : REPEAT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++sender->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/*
 * Hands over a message whose body is written: for a full comparison, or since the stream touches its messages. One that
 * is touched is written where it leaves from; elsewhere than in memory of the library that is once (*written), however
 * often the layer is busy.
 */
static int __attribute__((noinline)) hand_over_written(struct sender *sender, uint8_t *payload, bool *written,
						       const bool full, uint64_t phase)
{
	const struct cadge_layer *layer = sender->port.engine->layer;
	const bool reserves = sender->touch && drv_in_place_grants(layer);
	struct cadge_iov iov = {payload, (size_t)sender->bytes};

	if (reserves) {
		const int code = drv_in_place_begin(layer, sender->chan, &iov);

		if (code != CADGE_DONE)
			return code;
		*written = false;
		drv_head_write(iov.base, iov.bytes, sender->seed, sender->next_number);
	}
	if (!*written && full)
		drv_body_fill(iov.base, iov.bytes, sender->seed, phase, sender->next_number);
	else if (!*written)
		drv_touch_write(iov.base, iov.bytes, sender->seed, sender->next_number);
	*written = true;
	return reserves ? drv_in_place_end(layer, sender->chan, &iov, sender->slot)
			: layer->post(sender->chan, &iov, 1, 0, sender->slot);
}

/* Sends the next message, waiting for its slot and for the layer. `writes`: its body as well as its head. */
DRV_INLINE int send_one(struct sender *sender, const bool same, const bool writes, const bool full,
			uint64_t phase, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const size_t bytes = (size_t)sender->bytes;
	const uint32_t slot = sender->slot;
	uint8_t *payload = sender->messages + slot * sender->stride;
	struct cadge_iov iov = {.base = payload, .bytes = bytes};
	bool written = false;
	uint64_t key;

	while (DRV_UNLIKELY(sender->lent[slot]))
		if (turn(sender, true, fail))
			return -1;
	key = same ? sender->same_key : drv_head_write(payload, bytes, sender->seed, sender->next_number);
	for (;;) {
		const int code = !same && DRV_UNLIKELY(writes)
					 ? hand_over_written(sender, payload, &written, full, phase)
					 : engine->layer->post(sender->chan, &iov, 1, 0, slot);

		if (DRV_LIKELY(code == CADGE_DONE || code == CADGE_QUEUED)) {
			sender->lent[slot] = code == CADGE_QUEUED;
			sender->lents += code == CADGE_QUEUED;
			break;
		}
		if (DRV_UNLIKELY(code != CADGE_BUSY))
			return drv_engine_fail("post", code, fail);
		if (turn(sender, true, fail))
			return -1;
	}
	sender->next_number++;
	sender->posted++;
	sender->run_posted++;
	sender->key_sum += key;
	sender->slot = DRV_UNLIKELY(slot + 1 == sender->depth) ? 0 : slot + 1;
	return 0;
}

/* Says how many there were and waits until the receiver confirms. */
static int finish(struct sender *sender, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const uint64_t repeat = drv_clock_to_ticks(&engine->clock, REPEAT_NS);
	const uint32_t slot = sender->depth;
	struct cadge_iov iov = {.base = sender->control, .bytes = control_bytes(sender->bytes)};
	uint64_t sent_at = 0;
	bool sent = false;

	drv_store64(sender->control, MAGIC);
	drv_store64(sender->control + 8, (uint64_t)sender->run << 8 | KIND_END);
	drv_store64(sender->control + 16, sender->run_posted);
	while (!sender->confirmed || sender->lents > 0) {
		const uint64_t now = drv_clock_now(&engine->clock);

		if (!sender->confirmed && !sender->lent[slot] &&
		    (!sent || (!sender->reliable && now - sent_at >= repeat))) {
			const int code = engine->layer->post(sender->chan, &iov, 1, 0, slot);

			if (code < 0)
				return drv_engine_fail("post", code, fail);
			if (code != CADGE_BUSY) {
				sent = true;
				sent_at = now;
				sender->lent[slot] = code == CADGE_QUEUED;
				sender->lents += code == CADGE_QUEUED;
			}
		}
		if (turn(sender, true, fail))
			return -1;
	}
	return 0;
}

/* What all messages of a run hold that leave from one buffer: nobody has it now. */
static void write_same(struct sender *sender, const bool full, uint64_t phase)
{
	const size_t bytes = (size_t)sender->bytes;

	sender->same_key = drv_head_write(sender->messages, bytes, sender->seed, sender->next_number);
	if (full)
		drv_body_fill(sender->messages, bytes, sender->seed, phase, sender->same_key);
}

DRV_INLINE int run_from(struct sender *sender, const bool same, enum stop stop, uint64_t bound,
			uint64_t phase, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const bool full = stop == STOP_COUNT, writes = full || sender->touch;
	/* the clock is read every 32 small messages: reading it costs a part of one */
	const uint64_t stride_mask = sender->bytes >= 4096 ? 0 : 31;
	uint64_t last = drv_clock_now(&engine->clock);

	sender->run++;
	sender->run_posted = 0;
	sender->confirmed = false;
	if (same)
		write_same(sender, full, phase);
	for (;;) {
		uint64_t now;

		if (send_one(sender, same, writes, full, phase, fail))
			return -1;
		if (stop == STOP_COUNT) {
			if (sender->run_posted >= bound)
				break;
			continue;
		}
		if (DRV_LIKELY(sender->run_posted & stride_mask))
			continue;
		now = drv_clock_now(&engine->clock);
		if (stop == STOP_WARM ? drv_warmup_add(&sender->warmup, now, now - last) : now >= bound)
			break;
		last = now;
		/* an adapter that takes everything is never asked for events otherwise */
		if (turn(sender, false, fail))
			return -1;
	}
	return finish(sender, fail);
}

static int run(struct sender *sender, enum stop stop, uint64_t bound, uint64_t phase, struct drv_fail *fail)
{
	return sender->same ? run_from(sender, true, stop, bound, phase, fail)
			    : run_from(sender, false, stop, bound, phase, fail);
}

static int sender_verify(struct sender *sender, uint64_t phase, struct drv_fail *fail)
{
	return run(sender, STOP_COUNT, drv_full_messages(sender->bytes, sender->depth), phase, fail);
}

static int sender_warmup(struct sender *sender, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;

	drv_warmup_start(&sender->warmup, drv_clock_now(&engine->clock),
			 drv_clock_to_ticks(&engine->clock, 100000),
			 drv_clock_to_ticks(&engine->clock, cap_ns));
	return run(sender, STOP_WARM, 0, 0, fail);
}

static int sender_measure(struct sender *sender, uint64_t duration_ns, struct drv_record *record,
			  struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const uint64_t started = drv_clock_now(&engine->clock);
	const uint64_t end = started + drv_clock_to_ticks(&engine->clock, duration_ns);

	if (run(sender, STOP_TIME, end, 0, fail))
		return -1;
	record->elapsed_ns = drv_clock_to_ns(&engine->clock, sender->confirmed_at - started);
	record->operations = sender->confirmed_count;
	record->bytes = sender->confirmed_count * sender->bytes;
	record->lost = sender->run_posted - sender->confirmed_count;
	drv_record_rate(record, 0, record->bytes, record->elapsed_ns);
	return 0;
}

static bool sender_settle(struct sender *sender)
{
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	struct drv_engine *engine = sender->port.engine;

	while (sender->lents > 0 && !engine->down_code && drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, sender->sink) < 0)
			return false;
		if (sender->receiver && receiver_drain(sender->receiver))
			return false;
	}
	/* messages of an unfinished run may still be under way: a reliable channel is not clean then */
	return sender->lents == 0 && (sender->confirmed || !sender->reliable);
}

static int sender_start(struct sender *sender, const struct drv_play *play, struct receiver *receiver,
			struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;
	size_t messages_bytes;
	uint8_t *memory;

	drv_port_start(&sender->port, engine);
	sender->port.sink.recv = sender_on_recv;
	sender->port.sink.sent = sender_on_sent;
	sender->sink = &sender->port.sink;
	sender->chan = engine->channels[0].chan;
	sender->bytes = parameters->bytes;
	sender->depth = (uint32_t)parameters->depth;
	sender->seed = play->seed;
	sender->touch = parameters->touch != DRV_TOUCH_NONE;
	sender->same = parameters->buffers == SAME;
	sender->receiver = receiver;
	sender->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	sender->stride = sender->same ? 0 : drv_memory_stride(sender->bytes);
	sender->lent = calloc(sender->depth + 1u, sizeof(*sender->lent));
	if (!sender->lent)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the stream's slots");
	messages_bytes = (sender->same ? 1 : sender->depth) * drv_memory_stride(sender->bytes);
	memory = drv_pool_take(engine, DRV_POOL_CLIENT, messages_bytes + drv_memory_stride(CONTROL_BYTES),
			       fail);
	if (!memory)
		return -1;
	sender->messages = memory;
	sender->control = memory + messages_bytes;
	return 0;
}

static void sender_counts(const struct sender *sender, struct drv_counts *counts)
{
	const bool too_many = sender->confirmed && sender->confirmed_count > sender->run_posted;

	counts->posts = true;
	counts->posted = sender->posted;
	counts->posted_keys = sender->key_sum;
	counts->waits = sender->waits;
	counts->mismatches = sender->mismatches + too_many;
	if (counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%.158s",
			 sender->mismatches ? sender->mismatch : "more messages confirmed than were sent");
}

/* ---- the roles ---- */

/* Place self: both sides on one context, and a sink that tells each event whose it is. */
struct both {
	struct drv_port port;
	struct sender sender;
	struct receiver receiver;
};

static enum cadge_keep both_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				    struct cadge_lend *lend)
{
	struct both *both = (struct both *)sink;
	const uint8_t *at = data;
	const bool confirms = bytes == control_bytes(both->sender.bytes) && drv_load64(at) == MAGIC &&
			      (drv_load64(at + 8) & 0xff) == KIND_CONFIRM;

	return confirms ? sender_on_recv(&both->sender.port.sink, peer, data, bytes, lend)
			: receiver_on_recv(&both->receiver.port.sink, peer, data, bytes, lend);
}

static void both_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct both *both = (struct both *)sink;

	if (token & TOKEN_RECEIVER)
		receiver_on_sent(&both->receiver.port.sink, peer, token, code);
	else
		sender_on_sent(&both->sender.port.sink, peer, token, code);
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (sender_start(&both->sender, play, NULL, fail))
		return -1;
	play->engine->sink = both->sender.sink;
	return 0;
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail) ||
	    sender_start(&both->sender, play, &both->receiver, fail))
		return -1;
	drv_port_start(&both->port, play->engine);
	both->port.sink.recv = both_on_recv;
	both->port.sink.sent = both_on_sent;
	both->sender.sink = &both->port.sink;
	play->engine->sink = &both->port.sink;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct receiver *receiver = play->state;

	if (receiver_start(receiver, play, fail))
		return -1;
	play->engine->sink = &receiver->port.sink;
	return 0;
}

static void stop_client(struct drv_play *play)
{
	struct sender *sender = &((struct both *)play->state)->sender;

	free(sender->lent);
	sender->lent = NULL;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	return sender_verify(&((struct both *)play->state)->sender, serial, fail);
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct sender *sender = &((struct both *)play->state)->sender;
	const int status = sender_warmup(sender, cap_ns, fail);

	drv_record_warmup(play->record, &sender->warmup);
	return status;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	return sender_measure(&((struct both *)play->state)->sender, play->duration_ns, play->record, fail);
}

static bool settle(struct drv_play *play)
{
	return sender_settle(&((struct both *)play->state)->sender);
}

DRV_INLINE bool serve_due(void *arg)
{
	const struct receiver *receiver = arg;

	return receiver->confirm_due || receiver->failed;
}

DRV_INLINE int serve_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;

	if (!receiver_drain(receiver))
		return 0;
	*fail = receiver->fail;
	return -1;
}

static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = play->state;

	return drv_serve_loop(play->engine, &receiver->port.sink, receiver, serve_due, serve_drain,
			      message_out, fail);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct both *both = play->state;

	sender_counts(&both->sender, counts_out);
	if (!both->sender.receiver)
		return;
	drv_intake_counts(&both->receiver.intake, counts_out);
	receiver_phase(&both->receiver, phase->full, phase->serial);
}

static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = play->state;

	drv_intake_counts(&receiver->intake, counts_out);
	receiver_phase(receiver, phase->full, phase->serial);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes < CONTROL_BYTES ? CONTROL_BYTES : parameters->bytes;
	needs_out->depth = (uint32_t)parameters->depth;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;

	if (parameters->buffers == SAME && parameters->touch != DRV_TOUCH_NONE)
		return drv_fail_set(
			fail, DRV_NO_CAP,
			"wanted each message written anew, in a buffer that earlier ones still leave from");
	return drv_negotiate_message(parameters->bytes, "message", &offer->both, fail) ||
			       drv_negotiate_message(CONTROL_BYTES, "closing message", &offer->both, fail)
		       ? -1
		       : 0;
}

#define SENDER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct both), .stop = stop_client, .verify = verify,             \
	.warmup = warmup, .measure = measure, .settle = settle, .phase = phase_client

static const struct drv_role self = {.name = "both", .prepare = prepare_self, SENDER_ROLE};

static const struct drv_pattern stream = {
	.name = "stream",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"depth", DRV_INTEGER, offsetof(struct parameters, depth), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{"buffers", DRV_CHOICE, offsetof(struct parameters, buffers), buffers_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){{"throughput", DRV_RATE}, {.name = NULL}},
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, SENDER_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct receiver),
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
DRV_PATTERN(stream);
