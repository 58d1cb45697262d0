/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of requests and replies, and what is rare in them: losses, late replies, and how a phase ends. */
#include "traffic/requester_parts.h"

int drv_requester_hand_written(struct drv_requester *requester, struct drv_op *op, uint32_t flags,
			       uint64_t token)
{
	struct drv_message *message = &requester->message;

	message->key = op->number;
	message->id = token;
	if (message->in_place)
		return drv_message_post_in_place(requester->progress.port.engine, op->chan, message, token);
	/* once, however often the layer is busy */
	if (DRV_LIKELY(!op->filled))
		drv_message_write_to(message, op->payload);
	op->filled = true;
	return drv_requester_hand(requester, op, requester->exchange.form, flags, token);
}

/* ---- over an unreliable layer ---- */

/* After a loss of messages without identity: nothing more is sent until what is on its way has come in. */
static int wait_quiet(struct drv_requester *requester, struct drv_fail *fail)
{
	struct drv_engine *engine = requester->progress.port.engine;
	const uint64_t latest_ns = drv_now_ns() + DRV_QUIET_MAX_NS;
	uint64_t until_ns = drv_now_ns() + DRV_QUIET_NS;

	while (drv_now_ns() < until_ns && drv_now_ns() < latest_ns) {
		const uint64_t late = requester->late;
		const int events = engine->layer->poll(engine->ctx, requester->progress.sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (requester->late != late)
			until_ns = drv_now_ns() + DRV_QUIET_NS;
		if (events == 0 && engine->block && drv_engine_wait(engine, DRV_QUIET_NS, fail))
			return -1;
	}
	return 0;
}

/* Operations past their deadline are lost, their slots start again. */
static int expire(struct drv_requester *requester, uint64_t now, struct drv_fail *fail)
{
	const struct drv_engine *engine = requester->progress.port.engine;

	for (uint32_t index = 0; index < requester->exchange.depth; index++) {
		struct drv_op *op = &requester->ops[index];

		if (!op->waiting || now - op->start < requester->patience)
			continue;
		op->waiting = false;
		requester->lost++;
		if (requester->thread.on) {
			drv_reply_thread_lose(requester, index);
			continue;
		}
		if (requester->exchange.form == DRV_FORM_BARE && wait_quiet(requester, fail))
			return -1;
		op->start = drv_clock_now(&engine->clock);
		if (!requester->progress.in_flight[index])
			drv_requester_make_ready(requester, index);
	}
	/* else who takes replies looks at the time */
	if (!requester->thread.on && drv_requester_over(requester, now))
		requester->ending = true;
	return 0;
}

int drv_requester_poll_oob(struct drv_requester *requester, struct drv_fail *fail)
{
	struct drv_engine *engine = requester->progress.port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);

	if (!requester->progress.check.reliable && expire(requester, now, fail))
		return -1;
	return drv_engine_poll_oob(engine, now, NULL, fail);
}

int drv_requester_close(struct drv_requester *requester, struct drv_fail *fail)
{
	return requester->lost > requester->late ? wait_quiet(requester, fail) : 0;
}

/* ---- loops ---- */

bool drv_requester_is_idle(const struct drv_requester *requester)
{
	const struct drv_reply_thread *thread = &requester->thread;

	return drv_requester_outstanding(requester) == 0 && requester->progress.in_flight_count == 0 &&
	       (!thread->on ||
		(thread->has == 0 && (!thread->calls || requester->ready_head == requester->ready_tail)));
}

DRV_INLINE int start_free(struct drv_requester *requester, enum drv_form form)
{
	return drv_requester_issue_all(requester, form);
}

/* The same where another thread takes replies. */
DRV_INLINE int start_returned(struct drv_requester *requester, enum drv_form form)
{
	const int status = drv_reply_thread_collect(requester);

	return requester->thread.calls ? status : drv_requester_issue_all(requester, form);
}

/* Messages without identity are no calls: there is one outstanding at a time, and no other thread to take them. */
static int __attribute__((noinline)) closed_bare(struct drv_requester *requester, struct drv_fail *fail)
{
	return drv_requester_loop(requester, DRV_FORM_BARE, start_free, NULL, fail);
}

DRV_REQUESTER_LOOP(closed, start_free, NULL)
DRV_REQUESTER_LOOP(away, start_returned, NULL)

static void start_slots(struct drv_requester *requester)
{
	const uint64_t now = drv_clock_now(&requester->progress.port.engine->clock);

	requester->ready_head = requester->ready_tail = 0;
	requester->ending = false;
	requester->message.full = requester->progress.check.full;
	requester->message.phase = requester->progress.check.phase;
	requester->last = now;
	drv_reply_thread_begin(requester);
	for (uint32_t index = 0; index < requester->exchange.depth; index++) {
		requester->ops[index].start = now;
		requester->ops[index].filled = false; /* what an earlier phase did not get rid of */
		if (!drv_reply_thread_starts(requester, index))
			drv_requester_make_ready(requester, index);
	}
}

/* Whole payloads are compared slot by slot. */
static drv_requester_fn loop_of(const struct drv_requester *requester)
{
	if (requester->loop && requester->step != DRV_STEP_VERIFY)
		return requester->loop;
	if (requester->thread.on)
		return away;
	return requester->exchange.form == DRV_FORM_BARE ? closed_bare : closed;
}

int drv_requester_run(struct drv_requester *requester, struct drv_fail *fail)
{
	start_slots(requester);
	if (loop_of(requester)(requester, fail)) {
		/* what it has of the requester is read from now on */
		drv_reply_thread_stop(requester);
		return -1;
	}
	return drv_requester_close(requester, fail);
}

void drv_requester_open(struct drv_requester *requester, uint64_t end, uint64_t operations)
{
	requester->step = DRV_STEP_MEASURE;
	requester->complete = requester->measured;
	drv_check_phase(&requester->progress.check, false, 0);
	requester->limit = operations == UINT64_MAX ? UINT64_MAX : requester->posted + operations;
	requester->end = end;
	start_slots(requester);
}

bool drv_requester_push(struct drv_requester *requester)
{
	if (requester->ready_head == requester->ready_tail || requester->ending)
		return false;
	return (requester->exchange.form == DRV_FORM_NATIVE
			? drv_requester_issue(requester, DRV_FORM_NATIVE, 0)
			: drv_requester_issue(requester, DRV_FORM_EMULATED, 0)) > 0;
}
