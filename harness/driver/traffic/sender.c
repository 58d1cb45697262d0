/* SPDX-License-Identifier: BSD-3-Clause */
/* Pushing messages, and waiting for the receiver's word. */
#include "traffic/sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/client.h"
#include "traffic/loss.h"
#include "launch/pattern.h"

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
/* unreliable: a word to the receiver again */
#define REPEAT_NS UINT64_C(500000)

enum stop { STOP_COUNT, STOP_WARM, STOP_TIME };

static void __attribute__((cold, noinline)) note_failure(struct drv_sender *sender, int code)
{
	if (!sender->failed)
		drv_engine_fail("post", code, &sender->fail);
	sender->failed = true;
}

static void __attribute__((cold, noinline)) note_mismatch(struct drv_sender *sender, const char *what,
							  uint64_t number)
{
	if (!sender->mismatches++)
		snprintf(sender->mismatch, sizeof(sender->mismatch), "%s (%" PRIu64 ")", what, number);
}

/* The receiver's word on a window. Over an unreliable layer one may come late, and ends the next window early. */
static void take_acknowledgement(struct drv_sender *sender, const struct drv_control *word)
{
	if (word->kind == DRV_CONTROL_ANSWER && word->number != sender->run_posted)
		return; /* of an earlier window: asked twice */
	if (sender->reliable && word->number != sender->run_posted)
		note_mismatch(sender, "a window was acknowledged that was not sent, up to message",
			      word->number);
	sender->acknowledged = true;
	sender->acknowledged_at = drv_clock_now(&sender->port.engine->clock);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_sender *sender = (struct drv_sender *)sink;
	struct drv_control word;

	(void)peer, (void)lend;
	if (!drv_control_read(data, bytes, sender->push.bytes, &word) || word.kind < DRV_CONTROL_TO_SENDER) {
		note_mismatch(sender, "an unexpected message of so many bytes", bytes);
	} else if (word.run != sender->run || sender->confirmed) {
		return CADGE_TAKEN; /* repeated over an unreliable layer, and late */
	} else if (word.kind != DRV_CONTROL_CONFIRM) {
		take_acknowledgement(sender, &word);
	} else {
		sender->confirmed = true;
		sender->confirmed_count = word.number;
		sender->confirmed_at = drv_clock_now(&sender->port.engine->clock);
	}
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_sender *sender = (struct drv_sender *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token > sender->slots || !sender->lent[token])) {
		note_mismatch(sender, "a completion for a token that is not outstanding", token);
		return;
	}
	sender->lent[token] = false;
	sender->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(sender, code);
}

/* Polls once; now and then looks around. Where nothing can go on without an event it may sleep, in block mode. */
DRV_INLINE int turn(struct drv_sender *sender, const bool may_sleep, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const int events = engine->layer->poll(engine->ctx, sender->sink);

	if (DRV_UNLIKELY(sender->receiver != NULL) && drv_receiver_drain(sender->receiver)) {
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
		if (drv_engine_wait(engine, sender->reliable ? WAIT_NS : REPEAT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++sender->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Hands over a message whose body is written. */
static int __attribute__((noinline)) post_written(struct drv_sender *sender, uint8_t *at)
{
	sender->message.at = at;
	sender->message.key = sender->next_number;
	return drv_message_post(sender->port.engine, sender->chan, &sender->message, sender->slot);
}

/* Sends the next message, waiting for its slot and for the layer. `writes`: its body as well as its head. */
DRV_INLINE int send_one(struct drv_sender *sender, const bool same, const bool writes, struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const size_t bytes = (size_t)sender->push.bytes;
	const uint32_t slot = sender->slot;
	uint8_t *at = sender->messages + slot * sender->stride;
	const struct cadge_iov iov = {.base = at, .bytes = bytes};
	uint64_t key;

	while (DRV_UNLIKELY(sender->lent[slot] || sender->lents >= sender->push.depth))
		if (turn(sender, true, fail))
			return -1;
	if (same)
		key = sender->same_key;
	else if (DRV_UNLIKELY(writes))
		key = drv_key_of(bytes, sender->push.seed, sender->next_number);
	else
		key = drv_head_write(at, bytes, sender->push.seed, sender->next_number);
	sender->message.written = false;
	for (;;) {
		const int code = !same && DRV_UNLIKELY(writes)
					 ? post_written(sender, at)
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
	sender->slot = DRV_UNLIKELY(slot + 1 == sender->slots) ? 0 : slot + 1;
	return 0;
}

/* Tells the receiver something until *heard; over an unreliable layer again and again. */
static int tell(struct drv_sender *sender, enum drv_control_kind kind, const bool *heard,
		struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const uint64_t repeat = drv_clock_to_ticks(&engine->clock, REPEAT_NS);
	const uint32_t slot = sender->slots;
	const struct cadge_iov iov = {.base = sender->control,
				      .bytes = drv_control_bytes(sender->push.bytes)};
	uint64_t sent_at = 0;
	bool sent = false;

	while (sender->lent[slot])
		if (turn(sender, true, fail))
			return -1;
	drv_control_write(sender->control, (struct drv_control){kind, sender->run, sender->run_posted});
	while (!*heard) {
		const uint64_t now = drv_clock_now(&engine->clock);

		if (!sender->lent[slot] && (!sent || (!sender->reliable && now - sent_at >= repeat))) {
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

/* Says how many there were and waits until the receiver confirms, and until nothing of it is outstanding. */
static int finish(struct drv_sender *sender, struct drv_fail *fail)
{
	if (tell(sender, DRV_CONTROL_END, &sender->confirmed, fail))
		return -1;
	while (sender->lents > 0)
		if (turn(sender, true, fail))
			return -1;
	return 0;
}

/* What all messages of a run hold that leave from one buffer: nobody has it now. */
static void write_same(struct drv_sender *sender)
{
	sender->message.at = sender->messages;
	sender->message.key = sender->next_number;
	sender->message.written = false;
	drv_message_write(&sender->message);
	sender->same_key = drv_head_key(sender->messages, sender->message.bytes);
}

static void begin_run(struct drv_sender *sender)
{
	sender->run++;
	sender->run_posted = 0;
	sender->confirmed = sender->acknowledged = false;
}

DRV_INLINE int run_from(struct drv_sender *sender, const bool same, enum stop stop, uint64_t bound,
			struct drv_fail *fail)
{
	struct drv_engine *engine = sender->port.engine;
	const bool writes = stop == STOP_COUNT || sender->push.touch;
	/* the clock is read every 32 small messages: reading it costs a part of one */
	const uint64_t stride_mask = sender->push.bytes >= 4096 ? 0 : 31;
	const uint64_t operations = drv_engine_operations(engine);
	uint64_t last = drv_clock_now(&engine->clock);

	if (same)
		write_same(sender);
	for (;;) {
		uint64_t now;

		if (send_one(sender, same, writes, fail))
			return -1;
		if (stop == STOP_COUNT) {
			if (sender->run_posted >= bound)
				break;
			continue;
		}
		if (DRV_LIKELY(sender->run_posted & stride_mask))
			continue;
		now = drv_clock_now(&engine->clock);
		if (stop == STOP_WARM ? drv_warmup_add(&sender->warmup, now, now - last)
				      : now >= bound || sender->run_posted >= operations)
			break;
		last = now;
		/* an adapter that takes everything is never asked for events otherwise */
		if (turn(sender, false, fail))
			return -1;
	}
	return finish(sender, fail);
}

/* Until the receiver has acknowledged the window, or has said what it has of it. */
static int await_acknowledgement(struct drv_sender *sender, uint64_t began, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;

	while (!sender->acknowledged) {
		if (turn(sender, true, fail))
			return -1;
		if (!sender->reliable && !sender->acknowledged &&
		    drv_clock_now(clock) - began >= sender->ask_after)
			return tell(sender, DRV_CONTROL_ASK, &sender->acknowledged, fail);
	}
	return 0;
}

/* In windows, of which the last is whole as well. The one before ends when the next one begins: one time stamp for both. */
static int run_windows(struct drv_sender *sender, enum stop stop, uint64_t bound, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const bool writes = stop == STOP_COUNT || sender->push.touch;
	const uint64_t operations = drv_engine_operations(sender->port.engine);
	uint64_t began = drv_clock_now(clock);

	for (bool over = false; !over;) {
		uint64_t now;

		for (uint32_t i = 0; i < sender->push.window; i++)
			if (send_one(sender, false, writes, fail))
				return -1;
		if (await_acknowledgement(sender, began, fail))
			return -1;
		sender->acknowledged = false;
		now = sender->acknowledged_at;
		/* an acknowledgement that came late was here before this window had left */
		if (DRV_UNLIKELY(now < began))
			now = began;
		over = stop == STOP_COUNT  ? sender->run_posted >= bound
		       : stop == STOP_WARM ? drv_warmup_add(&sender->warmup, now, now - began)
					   : now >= bound || sender->run_posted >= operations;
		if (stop == STOP_TIME && sender->windows)
			drv_sample(sender->windows, drv_clock_to_ns(clock, now - began));
		began = now;
	}
	sender->windows_ended_at = began;
	return finish(sender, fail);
}

static int run(struct drv_sender *sender, enum stop stop, uint64_t bound, uint64_t phase,
	       struct drv_fail *fail)
{
	begin_run(sender);
	sender->message.full = stop == STOP_COUNT;
	sender->message.phase = phase;
	if (sender->push.window)
		return run_windows(sender, stop, bound, fail);
	return sender->push.same ? run_from(sender, true, stop, bound, fail)
				 : run_from(sender, false, stop, bound, fail);
}

int drv_sender_verify(struct drv_sender *sender, uint64_t phase, struct drv_fail *fail)
{
	return run(sender, STOP_COUNT, drv_full_messages(sender->push.bytes, sender->push.depth), phase,
		   fail);
}

int drv_sender_warmup(struct drv_sender *sender, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	int status;

	drv_warmup_start(&sender->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, 100000),
			 drv_clock_to_ticks(clock, cap_ns));
	status = run(sender, STOP_WARM, 0, 0, fail);
	sender->ask_after = drv_clock_to_ticks(
		clock,
		drv_loss_deadline_ns(sender->warmup.operations ? drv_clock_to_ns(clock, sender->warmup.median)
							       : 0));
	return status;
}

int drv_sender_measure(struct drv_sender *sender, uint64_t duration_ns, struct drv_record *record,
		       struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->port.engine->clock;
	const uint64_t started = drv_clock_now(clock);

	if (run(sender, STOP_TIME, drv_engine_end(sender->port.engine, started, duration_ns), 0, fail))
		return -1;
	/* with windows the receiver has said that all are there before it is asked how many */
	record->elapsed_ns = drv_clock_to_ns(
		clock, (sender->push.window ? sender->windows_ended_at : sender->confirmed_at) - started);
	record->operations = sender->confirmed_count;
	record->bytes = sender->confirmed_count * sender->push.bytes;
	record->lost = sender->run_posted - sender->confirmed_count;
	return 0;
}

bool drv_sender_settle(struct drv_sender *sender)
{
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	struct drv_engine *engine = sender->port.engine;

	while (sender->lents > 0 && !engine->down_code && drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, sender->sink) < 0)
			return false;
		if (sender->receiver && drv_receiver_drain(sender->receiver))
			return false;
	}
	/* messages of an unfinished run may still be under way: a reliable channel is not clean then */
	return sender->lents == 0 && (sender->confirmed || !sender->reliable);
}

int drv_sender_start(struct drv_sender *sender, struct drv_engine *engine, struct drv_push push,
		     struct drv_samples *windows, struct drv_receiver *receiver, struct drv_fail *fail)
{
	const size_t stride = drv_memory_stride(push.bytes);
	size_t messages_bytes;
	uint8_t *memory;

	memset(sender, 0, sizeof(*sender));
	drv_port_start(&sender->port, engine);
	sender->port.sink.recv = on_recv;
	sender->port.sink.sent = on_sent;
	sender->sink = &sender->port.sink;
	sender->chan = engine->channels[0].chan;
	sender->push = push;
	sender->message =
		(struct drv_message){.bytes = (size_t)push.bytes, .seed = push.seed, .touch = push.touch};
	sender->windows = windows;
	sender->receiver = receiver;
	sender->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	sender->ask_after = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	sender->stride = push.same ? 0 : stride;
	sender->slots = push.depth;
	if (push.spread / stride > push.depth)
		sender->slots = (uint32_t)(push.spread / stride);
	sender->lent = calloc(sender->slots + 1u, sizeof(*sender->lent));
	if (!sender->lent)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the sender's slots");
	messages_bytes = (push.same ? 1 : sender->slots) * stride;
	memory = drv_pool_take(engine, DRV_POOL_CLIENT, messages_bytes + drv_memory_stride(DRV_CONTROL_BYTES),
			       fail);
	if (!memory)
		return -1;
	sender->messages = memory;
	sender->control = memory + messages_bytes;
	return 0;
}

void drv_sender_stop(struct drv_sender *sender)
{
	free(sender->lent);
	sender->lent = NULL;
}

void drv_sender_counts(const struct drv_sender *sender, struct drv_counts *counts)
{
	const bool too_many = sender->confirmed && sender->confirmed_count > sender->run_posted;

	counts->posts = true;
	counts->posted = sender->posted;
	counts->posted_keys = sender->key_sum;
	counts->mismatches = sender->mismatches + too_many;
	if (counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%.158s",
			 sender->mismatches ? sender->mismatch : "more messages confirmed than were sent");
}
