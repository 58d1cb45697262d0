/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending what is pushed, and the roles that send or receive. */
#include "traffic/push.h"

#include <stdlib.h>

/* unreliable: a control message to the receiver again */
#define REPEAT_NS UINT64_C(500000)

enum stop { STOP_COUNT, STOP_WARM, STOP_TIME };

/* Where nothing can go on without an event it may sleep, in block mode. */
DRV_INLINE int turn(struct drv_pusher *pusher, const bool may_sleep, struct drv_fail *fail)
{
	const uint64_t sleep_ns = pusher->progress.check.reliable ? DRV_PROGRESS_WAIT_NS : REPEAT_NS;

	return drv_progress_turn(&pusher->progress, may_sleep ? sleep_ns : 0, fail);
}

/* Hands over a message with its body, from its slot. */
static int __attribute__((noinline)) post_written(struct drv_pusher *pusher)
{
	const struct cadge_iov iov = {pusher->message.at, pusher->message.bytes};

	drv_message_write(&pusher->message);
	return pusher->progress.port.engine->layer->post(pusher->chan, &iov, 1, 0, pusher->slot);
}

/* Sends the next message, waiting for its slot and for the layer. `writes`: its body as well as its head. */
DRV_INLINE int send_one(struct drv_pusher *pusher, const bool same, const bool writes, struct drv_fail *fail)
{
	struct drv_engine *engine = pusher->progress.port.engine;
	const size_t bytes = (size_t)pusher->push.bytes;
	const uint32_t slot = pusher->slot;
	uint8_t *at = pusher->messages + slot * pusher->stride;
	const struct cadge_iov iov = {.base = at, .bytes = bytes};
	uint64_t key;

	while (DRV_UNLIKELY(pusher->progress.in_flight[slot] ||
			    pusher->progress.in_flight_count >= pusher->push.depth))
		if (turn(pusher, true, fail))
			return -1;
	if (same) {
		key = pusher->same_key;
	} else if (DRV_UNLIKELY(writes)) {
		key = drv_key_of(bytes, pusher->push.seed, pusher->next_number);
		pusher->message.at = at;
		pusher->message.key = pusher->next_number;
		pusher->message.written = false;
	} else {
		key = drv_head_write(at, bytes, pusher->push.seed, pusher->next_number);
	}
	for (;;) {
		const int code =
			same || !DRV_UNLIKELY(writes) ? engine->layer->post(pusher->chan, &iov, 1, 0, slot)
			: pusher->message.in_place
				? drv_message_post_in_place(engine, pusher->chan, &pusher->message, slot)
				: post_written(pusher);

		if (DRV_LIKELY(code == CADGE_DONE || code == CADGE_QUEUED)) {
			drv_progress_set(&pusher->progress, slot, code);
			break;
		}
		if (DRV_UNLIKELY(code != CADGE_BUSY))
			return drv_engine_fail("post", code, fail);
		if (turn(pusher, true, fail))
			return -1;
	}
	pusher->next_number++;
	pusher->posted++;
	pusher->run_posted++;
	pusher->key_sum += key;
	pusher->slot = DRV_UNLIKELY(slot + 1 == pusher->slots) ? 0 : slot + 1;
	return 0;
}

/* Sends a control message until *answered; over an unreliable layer again and again. */
static int send_control(struct drv_pusher *pusher, enum drv_control_kind kind, const bool *answered,
			struct drv_fail *fail)
{
	struct drv_engine *engine = pusher->progress.port.engine;
	const uint64_t repeat = drv_clock_to_ticks(&engine->clock, REPEAT_NS);
	const uint32_t slot = pusher->slots;
	const struct cadge_iov iov = {.base = pusher->control,
				      .bytes = drv_control_bytes(pusher->push.bytes)};
	uint64_t sent_at = 0;
	bool sent = false;

	while (pusher->progress.in_flight[slot])
		if (turn(pusher, true, fail))
			return -1;
	drv_control_write(pusher->control, (struct drv_control){kind, pusher->run, pusher->run_posted});
	while (!*answered) {
		const uint64_t now = drv_clock_now(&engine->clock);

		if (!pusher->progress.in_flight[slot] &&
		    (!sent || (!pusher->progress.check.reliable && now - sent_at >= repeat))) {
			const int code = engine->layer->post(pusher->chan, &iov, 1, 0, slot);

			if (code < 0)
				return drv_engine_fail("post", code, fail);
			if (code != CADGE_BUSY) {
				sent = true;
				sent_at = now;
				drv_progress_set(&pusher->progress, slot, code);
			}
		}
		if (turn(pusher, true, fail))
			return -1;
	}
	return 0;
}

/* Says how many there were and waits until the receiver confirms, and until nothing of it is outstanding. */
static int finish(struct drv_pusher *pusher, struct drv_fail *fail)
{
	if (send_control(pusher, DRV_CONTROL_END, &pusher->confirmed, fail))
		return -1;
	while (pusher->progress.in_flight_count > 0)
		if (turn(pusher, true, fail))
			return -1;
	return 0;
}

/* What all messages of a run hold that leave from one buffer: nobody has it now. */
static void write_same(struct drv_pusher *pusher)
{
	pusher->message.at = pusher->messages;
	pusher->message.key = pusher->next_number;
	pusher->message.written = false;
	drv_message_write(&pusher->message);
	pusher->same_key = drv_head_key(pusher->messages, pusher->message.bytes);
}

static void begin_run(struct drv_pusher *pusher)
{
	pusher->run++;
	pusher->run_posted = 0;
	pusher->confirmed = pusher->acknowledged = false;
}

DRV_INLINE int run_from(struct drv_pusher *pusher, const bool same, enum stop stop, uint64_t bound,
			struct drv_fail *fail)
{
	struct drv_engine *engine = pusher->progress.port.engine;
	const bool writes = stop == STOP_COUNT || pusher->push.touch;
	/* the clock is read every 32 small messages: reading it costs a part of one */
	const uint64_t stride_mask = pusher->push.bytes >= 4096 ? 0 : 31;
	const uint64_t operations = drv_engine_operations(engine);
	uint64_t last = drv_clock_now(&engine->clock);

	if (same)
		write_same(pusher);
	for (;;) {
		uint64_t now;

		if (send_one(pusher, same, writes, fail))
			return -1;
		if (stop == STOP_COUNT) {
			if (pusher->run_posted >= bound)
				break;
			continue;
		}
		if (DRV_LIKELY(pusher->run_posted & stride_mask))
			continue;
		now = drv_clock_now(&engine->clock);
		if (stop == STOP_WARM ? drv_warmup_add(&pusher->warmup, now, now - last)
				      : now >= bound || pusher->run_posted >= operations)
			break;
		last = now;
		/* an adapter that takes everything is never asked for events otherwise */
		if (turn(pusher, false, fail))
			return -1;
	}
	return finish(pusher, fail);
}

/* Until the receiver has acknowledged the window, or has said what it has of it. */
static int await_acknowledgement(struct drv_pusher *pusher, uint64_t began, struct drv_fail *fail)
{
	const struct drv_clock *clock = &pusher->progress.port.engine->clock;

	while (!pusher->acknowledged) {
		if (turn(pusher, true, fail))
			return -1;
		if (!pusher->progress.check.reliable && !pusher->acknowledged &&
		    drv_clock_now(clock) - began >= pusher->ask_after)
			return send_control(pusher, DRV_CONTROL_ASK, &pusher->acknowledged, fail);
	}
	return 0;
}

/* In windows, of which the last is whole as well. The one before ends when the next one begins: one time stamp for both. */
static int run_windows(struct drv_pusher *pusher, enum stop stop, uint64_t bound, struct drv_fail *fail)
{
	const struct drv_clock *clock = &pusher->progress.port.engine->clock;
	const bool writes = stop == STOP_COUNT || pusher->push.touch;
	const uint64_t operations = drv_engine_operations(pusher->progress.port.engine);
	uint64_t began = drv_clock_now(clock);

	for (bool over = false; !over;) {
		uint64_t now;

		for (uint32_t i = 0; i < pusher->push.window; i++)
			if (send_one(pusher, false, writes, fail))
				return -1;
		if (await_acknowledgement(pusher, began, fail))
			return -1;
		pusher->acknowledged = false;
		now = pusher->acknowledged_at;
		/* an acknowledgement that came late was here before this window had left */
		if (DRV_UNLIKELY(now < began))
			now = began;
		over = stop == STOP_COUNT  ? pusher->run_posted >= bound
		       : stop == STOP_WARM ? drv_warmup_add(&pusher->warmup, now, now - began)
					   : now >= bound || pusher->run_posted >= operations;
		if (stop == STOP_TIME && pusher->windows)
			drv_sample(pusher->windows, drv_clock_to_ns(clock, now - began));
		began = now;
	}
	pusher->windows_ended_at = began;
	return finish(pusher, fail);
}

static int push_run(struct drv_pusher *pusher, enum stop stop, uint64_t bound, uint64_t phase,
		    struct drv_fail *fail)
{
	begin_run(pusher);
	pusher->message.full = stop == STOP_COUNT;
	pusher->message.phase = phase;
	if (pusher->push.window)
		return run_windows(pusher, stop, bound, fail);
	return pusher->push.same ? run_from(pusher, true, stop, bound, fail)
				 : run_from(pusher, false, stop, bound, fail);
}

int drv_pusher_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct drv_pusher *pusher = run->state;

	return push_run(pusher, STOP_COUNT, drv_full_messages(pusher->push.bytes, pusher->push.depth), serial,
			fail);
}

int drv_pusher_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_pusher *pusher = run->state;
	struct drv_warmup *warmup = &pusher->warmup;
	int status;

	drv_warmup_begin(warmup, clock, cap_ns);
	status = push_run(pusher, STOP_WARM, 0, 0, fail);
	pusher->ask_after = drv_warmup_patience(warmup, clock);
	drv_record_warmup(run->record, warmup);
	return status;
}

int drv_pusher_measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	const uint64_t started = drv_clock_now(clock);
	struct drv_pusher *pusher = run->state;
	struct drv_record *record = run->record;

	if (push_run(pusher, STOP_TIME, drv_engine_end(run->engine, started, run->duration_ns), 0, fail))
		return -1;
	/* with windows the receiver has said that all are there before it is asked how many */
	record->elapsed_ns = drv_clock_to_ns(
		clock, (pusher->push.window ? pusher->windows_ended_at : pusher->confirmed_at) - started);
	record->operations = pusher->confirmed_count;
	record->bytes = pusher->confirmed_count * pusher->push.bytes;
	record->lost = pusher->run_posted - pusher->confirmed_count;
	return 0;
}

/* ---- the roles ---- */

void drv_push_need(uint64_t bytes, uint64_t depth, struct drv_needs *needs_out)
{
	needs_out->message_bytes = bytes < DRV_CONTROL_BYTES ? DRV_CONTROL_BYTES : bytes;
	needs_out->depth = (uint32_t)depth;
}

int drv_push_negotiate(uint64_t bytes, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(bytes, "message", &offer->both, fail) ||
			       drv_negotiate_message(DRV_CONTROL_BYTES, "closing message", &offer->both, fail)
		       ? -1
		       : 0;
}

static int prepare_sending(struct drv_pusher *pusher, struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_push *push = &pusher->push;
	const size_t stride = drv_memory_stride(push->bytes);
	size_t messages_bytes;

	pusher->message = drv_message_of(engine, push->bytes, push->seed, push->touch);
	pusher->message.lossy = !pusher->progress.check.reliable;
	pusher->ask_after = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	pusher->stride = push->same ? 0 : stride;
	pusher->slots = push->depth;
	if (push->spread / stride > push->depth)
		pusher->slots = (uint32_t)(push->spread / stride);
	pusher->progress.slots = pusher->slots + 1;
	pusher->progress.in_flight = calloc(pusher->progress.slots, sizeof(*pusher->progress.in_flight));
	if (!pusher->progress.in_flight)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the sender's slots");
	messages_bytes = (push->same ? 1 : pusher->slots) * stride;
	pusher->messages = drv_pool_take(engine, DRV_POOL_REQUESTER,
					 messages_bytes + drv_memory_stride(DRV_CONTROL_BYTES), fail);
	if (!pusher->messages)
		return -1;
	pusher->control = pusher->messages + messages_bytes;
	return 0;
}

/* Place self: control messages of the receiver's are the sender's. */
static bool matches(const struct drv_port *port, const void *data, size_t bytes)
{
	struct drv_control control;

	return drv_control_read(data, bytes, ((const struct drv_pusher *)port)->push.bytes, &control) &&
	       control.kind >= DRV_CONTROL_TO_SENDER;
}

int drv_pusher_prepare(struct drv_role_run *run, struct drv_push push, bool sends, bool receives,
		       struct drv_samples *windows, struct drv_fail *fail)
{
	struct drv_pusher *pusher = run->state;

	drv_progress_start(&pusher->progress, run->engine, drv_pusher_on_recv, NULL, 0);
	pusher->progress.port.match = DRV_MATCH_SIZE;
	pusher->progress.port.match_bytes = drv_control_bytes(push.bytes);
	pusher->progress.port.matches = matches;
	pusher->chan = run->engine->channels[0].chan;
	pusher->push = push;
	pusher->sends = sends;
	pusher->receives = receives;
	pusher->windows = windows;
	run->engine->sink = pusher->progress.sink;
	return (receives && drv_pusher_receive(pusher, run->engine, fail)) ||
			       (sends && prepare_sending(pusher, run->engine, fail))
		       ? -1
		       : 0;
}

void drv_pusher_stop(struct drv_role_run *run)
{
	struct drv_pusher *pusher = run->state;

	free(pusher->progress.in_flight);
	pusher->progress.in_flight = NULL;
}

/* Messages of an unfinished run may still be under way: a reliable channel is not clean then. */
bool drv_pusher_settle(struct drv_role_run *run)
{
	struct drv_pusher *pusher = run->state;

	return !pusher->sends || (drv_progress_settle(&pusher->progress, NULL, NULL) &&
				  (pusher->confirmed || !pusher->progress.check.reliable));
}

void drv_pusher_phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct drv_pusher *pusher = run->state;

	counts_out->posts = pusher->sends;
	counts_out->posted = pusher->posted;
	counts_out->posted_keys = pusher->key_sum;
	if (pusher->receives) {
		drv_check_executed(&pusher->progress.check, counts_out);
		drv_pusher_receive_run(pusher, phase->full, phase->serial);
	} else {
		drv_check_counts(&pusher->progress.check, counts_out);
	}
}
