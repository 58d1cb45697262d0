/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that takes replies where the delivery context does not, and how slots come to it and back. */
#include <string.h>

#include "threads/workers.h"
#include "traffic/requester_parts.h"

const char *const drv_reply_words[] = {"cont", "wait", "defer", NULL};

/* What goes with the number of a slot, to the other thread. */
enum {
	SLOTS = 0xffff,
	/* a reply is there; the operation was lost; else the slot is free, for a call of the other thread's own */
	REPLY = 1 << 16,
	LOST = 1 << 17,
	/* the layer has the request still: no other one can be written */
	SENDING = 1 << 18,
	/* And back: there is a call to be handed over; nothing new is to begin. */
	CALL = 1 << 19,
	ENDING = 1 << 20,
};

_Static_assert(DRV_REQUESTER_DEPTH_MAX <= SLOTS + 1u, "a slot's number leaves room for what goes with it");

/* ---- in the other thread ---- */

/* The same as the delivery context does, in the same order: reads, takes the time, looks whether it is right. */
static void take_reply(struct drv_requester *requester, struct drv_op *op)
{
	struct drv_check *check = &requester->thread.check;
	const struct drv_clock *clock = &requester->progress.port.engine->clock;
	const bool fits = op->bytes == requester->exchange.reply_bytes;
	const bool whole = !fits || drv_check_body(check, op->data, op->bytes, op->key);
	const uint64_t now = drv_clock_now(clock);

	if (!requester->complete) {
		drv_sample(requester->samples, drv_clock_to_ns(clock, now - op->start));
		requester->thread.ending |= now >= requester->end;
	} else if (!requester->complete(requester, op, now)) {
		requester->thread.ending = true;
	}
	requester->last = op->start = now;
	if (whole && fits && drv_head_holds(op->data, op->bytes, check->seed, op->key))
		check->checked++;
	else
		drv_check_wrong(check, "the reply to operation %" PRIu64 " has %zu bytes or a wrong %s",
				op->number, op->bytes, whole ? "head" : "body");
}

static void take_loss(struct drv_requester *requester, struct drv_op *op)
{
	op->start = drv_clock_now(&requester->progress.port.engine->clock);
	if (drv_requester_over(requester, op->start))
		requester->thread.ending = true;
}

/* The next call: all of its request, as the caller has it. */
static void make_call(struct drv_requester *requester, struct drv_op *op, uint32_t index)
{
	struct drv_message message = requester->message;

	op->number = requester->next_number++;
	message.at = op->payload;
	message.key = op->number;
	message.id = drv_requester_token(op->number, index);
	message.written = false;
	drv_message_write(&message);
	op->key = drv_key_of(message.bytes, message.seed, op->number);
	if (requester->next_number == requester->limit)
		requester->thread.ending = true;
}

static uint64_t take_and_call(void *arg, uint32_t worker, uint64_t given)
{
	struct drv_requester *requester = arg;
	struct drv_reply_thread *thread = &requester->thread;
	const uint32_t index = given & SLOTS;
	struct drv_op *op = &requester->ops[index];

	(void)worker;
	if (given & REPLY)
		take_reply(requester, op);
	else if (given & LOST)
		take_loss(requester, op);
	if (thread->calls && !thread->ending && !(given & SENDING)) {
		make_call(requester, op, index);
		return index | CALL;
	}
	return thread->ending ? index | ENDING : index;
}

/* ---- in the thread that owns the context ---- */

int drv_reply_thread_negotiate(const struct drv_exchange *exchange, const struct drv_ability *both,
			       struct drv_fail *fail)
{
	if (exchange->reply == DRV_REPLY_CONT)
		return 0;
	if ((both->caps & CADGE_CAP_WAIT) && !(both->caps & CADGE_CAP_EVENT_FD))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "the layer has no descriptor to wait for (EVENT_FD), so another thread "
				    "cannot end its sleep");
	return 0;
}

int drv_reply_thread_start(struct drv_requester *requester, struct drv_fail *fail)
{
	struct drv_engine *engine = requester->progress.port.engine;

	if (!requester->away)
		return 0;
	requester->thread = (struct drv_reply_thread){.calls = requester->exchange.reply == DRV_REPLY_WAIT,
						      .check = requester->progress.check};
	if (drv_workers_wanted(engine) != 1)
		return drv_fail_set(fail, DRV_ARGUMENT,
				    "replies are taken by 1 other thread, and the launch has %u",
				    drv_workers_wanted(engine));
	if (drv_workers_start(engine, take_and_call, requester, requester->exchange.depth, fail))
		return -1;
	requester->thread.on = true;
	return 0;
}

static void release(struct drv_requester *requester, struct drv_op *op)
{
	const struct drv_engine *engine = requester->progress.port.engine;

	if (op->held)
		engine->layer->release(engine->ctx, op->held);
	op->held = NULL;
	op->taken = false;
}

void drv_reply_thread_stop(struct drv_requester *requester)
{
	if (!requester->thread.on)
		return;
	drv_workers_end(requester->progress.port.engine);
	requester->thread.on = false;
	requester->thread.has = 0;
	for (uint32_t index = 0; index < requester->exchange.depth; index++)
		release(requester, &requester->ops[index]);
}

/* The owner gives a slot to the other thread. */
static void give(struct drv_requester *requester, uint32_t index, uint32_t what)
{
	if (what && requester->progress.in_flight[index])
		what |= SENDING;
	requester->ops[index].taken = true;
	requester->thread.has++;
	/* there is room for all slots */
	drv_workers_give(requester->progress.port.engine, 0, index | what);
}

void drv_reply_thread_begin(struct drv_requester *requester)
{
	struct drv_reply_thread *thread = &requester->thread;
	const struct drv_check *check = &requester->progress.check;

	thread->ending = false;
	thread->has = 0;
	if (thread->on)
		drv_check_phase(&thread->check, check->full, check->phase);
}

bool drv_reply_thread_starts(struct drv_requester *requester, uint32_t index)
{
	if (requester->thread.on && requester->thread.calls)
		give(requester, index, 0);
	return requester->thread.on && requester->thread.calls;
}

void drv_reply_thread_lose(struct drv_requester *requester, uint32_t index)
{
	give(requester, index, LOST);
}

/* A layer that lends may not do so on all of its paths; on which, nothing says beforehand. */
static void __attribute__((cold, noinline)) note_not_in_place(struct drv_requester *requester, size_t bytes)
{
	if (!requester->progress.failed)
		drv_fail_set(
			&requester->progress.fail, DRV_NO_CAP,
			"the layer did not lend a reply of %zu bytes, so another thread cannot look at it "
			"where the layer has it",
			bytes);
	requester->progress.failed = true;
	requester->ending = true;
}

enum cadge_keep drv_reply_thread_pass_on(struct drv_requester *requester, uint32_t index, const void *data,
					 size_t bytes, struct cadge_lend *lend)
{
	struct drv_op *op = &requester->ops[index];
	const bool in_place = bytes && data != op->result && !requester->copies;

	op->waiting = false;
	requester->completed++;
	if (DRV_UNLIKELY(!requester->thread.on)) /* it was ended, after a failure */
		return CADGE_TAKEN;
	if (DRV_UNLIKELY(in_place && !lend && requester->exchange.payload == DRV_PAYLOAD_UNSOLICITED)) {
		note_not_in_place(requester, bytes);
		return CADGE_TAKEN;
	}
	op->data = in_place && lend ? data : op->result;
	op->bytes = bytes;
	op->held = in_place ? lend : NULL;
	if (bytes <= requester->exchange.reply_bytes && bytes && !op->held && data != op->result)
		memcpy(op->result, data, bytes);
	give(requester, index, REPLY);
	return op->held ? CADGE_KEEP : CADGE_TAKEN;
}

void drv_reply_thread_free_again(struct drv_requester *requester, uint32_t index)
{
	if (requester->ops[index].taken || requester->progress.in_flight[index] || requester->ending ||
	    !requester->thread.on)
		return;
	if (!drv_reply_thread_starts(requester, index))
		drv_requester_make_ready(requester, index);
}

/* Slots that the other thread has given back: they are free, or hold a call of its own. */
static void take_back(struct drv_requester *requester)
{
	uint64_t number;
	uint32_t worker;

	while (drv_workers_take(requester->progress.port.engine, &worker, &number)) {
		const uint32_t index = number & SLOTS;

		requester->thread.has--;
		release(requester, &requester->ops[index]);
		if (number & ENDING)
			requester->ending = true;
		if (number & CALL) {
			drv_requester_make_ready(requester, index);
			continue;
		}
		/* a worker has no calls to make: the next one begins here */
		if (!requester->thread.calls)
			requester->ops[index].start = drv_clock_now(&requester->progress.port.engine->clock);
		drv_reply_thread_free_again(requester, index);
	}
}

int drv_reply_thread_collect(struct drv_requester *requester)
{
	const enum drv_form form = requester->exchange.form;

	take_back(requester);
	/* calls that were made are handed over also when nothing new is to begin */
	while (requester->thread.calls && requester->ready_head != requester->ready_tail &&
	       DRV_LIKELY(!requester->progress.failed)) {
		const uint32_t index = drv_requester_next(requester);
		const struct drv_op *op = &requester->ops[index];
		const uint64_t token = drv_requester_token(op->number, index);

		if (drv_requester_handed(requester, form, index,
					 drv_requester_hand(requester, op, form, 0, token)) <= 0)
			return 0;
		requester->ready_head++;
	}
	return 1;
}
