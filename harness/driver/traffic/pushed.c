/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving what is pushed, and the control messages of both sides. */
#include "traffic/push.h"

#include "traffic/demux.h"

static void set_answer(struct drv_pusher *pusher, enum drv_control_kind kind, uint64_t number)
{
	pusher->answer = (struct drv_control){.kind = kind, .run = pusher->received_run, .number = number};
	pusher->answer_due = pusher->progress.port.due = true;
}

/* Sends what is due, if the layer has room. */
static void answer(struct drv_pusher *pusher)
{
	const struct drv_engine *engine = pusher->progress.port.engine;
	struct cadge_iov iov = {.bytes = drv_control_bytes(pusher->push.bytes)};
	uint32_t index = 0;
	int code;

	while (index < DRV_PUSHER_ANSWERS && pusher->answer_in_flight[index])
		index++;
	if (index == DRV_PUSHER_ANSWERS)
		return;
	iov.base = pusher->answers + index * drv_memory_stride(DRV_CONTROL_BYTES);
	drv_control_write(iov.base, pusher->answer);
	code = engine->layer->post(pusher->chan, &iov, 1, 0, DRV_TOKEN_RESPONDER | index);
	if (code == CADGE_BUSY)
		return;
	pusher->answer_due = false;
	pusher->answer_in_flight[index] = code == CADGE_QUEUED;
	if (code < 0)
		drv_progress_fail(&pusher->progress, "post", code);
}

DRV_INLINE bool due(void *arg)
{
	const struct drv_pusher *pusher = arg;

	return pusher->answer_due || pusher->progress.failed;
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	struct drv_pusher *pusher = arg;

	if (DRV_UNLIKELY(pusher->answer_due))
		answer(pusher);
	pusher->progress.port.due = pusher->answer_due || pusher->progress.failed;
	if (DRV_LIKELY(!pusher->progress.failed))
		return 0;
	*fail = pusher->progress.fail;
	return -1;
}

/* Tells the sender how many messages are here, once it has said how many there are. */
DRV_INLINE void confirm(struct drv_pusher *pusher)
{
	const bool reliable = pusher->progress.check.reliable;

	if (DRV_LIKELY(pusher->run_expected == UINT64_MAX) ||
	    (reliable && pusher->run_executions < pusher->run_expected))
		return;
	set_answer(pusher, DRV_CONTROL_CONFIRM, pusher->run_executions);
	if (!reliable)
		pusher->run_expected = UINT64_MAX; /* once for each end message */
}

static enum cadge_keep __attribute__((noinline)) take_message(struct drv_pusher *pusher, const void *data,
							      size_t bytes)
{
	drv_check_take(&pusher->progress.check, data, bytes);
	if (DRV_UNLIKELY(++pusher->run_executions == pusher->window_at)) {
		pusher->window_at += pusher->push.window;
		set_answer(pusher, DRV_CONTROL_ACKNOWLEDGE, pusher->run_executions);
	}
	confirm(pusher);
	return CADGE_TAKEN;
}

/* A control message of the sender's. */
static void take_request(struct drv_pusher *pusher, const struct drv_control *control)
{
	if (control->run != pusher->received_run)
		return; /* repeated over an unreliable layer, and late */
	if (control->kind == DRV_CONTROL_END) {
		pusher->run_expected = control->number;
		confirm(pusher);
		return;
	}
	/* what did not come by now is lost, or counts for the next window */
	pusher->window_at = pusher->run_executions + pusher->push.window;
	set_answer(pusher, DRV_CONTROL_ANSWER, control->number);
}

void drv_pusher_receive_run(struct drv_pusher *pusher, bool full, uint64_t phase)
{
	drv_check_phase(&pusher->progress.check, full, phase);
	pusher->received_run++;
	pusher->run_executions = 0;
	pusher->window_at = pusher->push.window ? pusher->push.window : UINT64_MAX;
	pusher->run_expected = UINT64_MAX;
	pusher->answer_due = false;
}

/* ---- what arrives ---- */

/* The receiver's word on a window. Over an unreliable layer one may come late, and ends the next window early. */
static void take_acknowledgement(struct drv_pusher *pusher, const struct drv_control *control)
{
	if (control->kind == DRV_CONTROL_ANSWER && control->number != pusher->run_posted)
		return; /* of an earlier window: asked twice */
	if (pusher->progress.check.reliable && control->number != pusher->run_posted)
		drv_check_wrong(&pusher->progress.check,
				"a window was acknowledged that was not sent, up to message %" PRIu64,
				control->number);
	pusher->acknowledged = true;
	pusher->acknowledged_at = drv_clock_now(&pusher->progress.port.engine->clock);
}

/* A control message of the receiver's. */
static void take_answer(struct drv_pusher *pusher, const struct drv_control *control)
{
	if (control->run != pusher->run || pusher->confirmed)
		return; /* repeated over an unreliable layer, and late */
	if (control->kind != DRV_CONTROL_CONFIRM) {
		take_acknowledgement(pusher, control);
		return;
	}
	pusher->confirmed = true;
	pusher->confirmed_count = control->number;
	pusher->confirmed_at = drv_clock_now(&pusher->progress.port.engine->clock);
	if (control->number > pusher->run_posted)
		drv_check_wrong(&pusher->progress.check, "more messages confirmed than were sent");
}

static enum cadge_keep __attribute__((noinline)) take_control(struct drv_pusher *pusher, const void *data,
							      size_t bytes)
{
	struct drv_control control = {0};

	drv_control_read(data, bytes, pusher->push.bytes, &control);
	if (pusher->sends && control.kind >= DRV_CONTROL_TO_SENDER)
		take_answer(pusher, &control);
	else if (pusher->receives && (control.kind == DRV_CONTROL_END || control.kind == DRV_CONTROL_ASK))
		take_request(pusher, &control);
	else
		drv_check_wrong(&pusher->progress.check, "a message of %zu bytes among those of %" PRIu64,
				bytes, pusher->push.bytes);
	return CADGE_TAKEN;
}

/* Lengths distinguish control messages from those of the push, and their kinds to whom they are. */
enum cadge_keep drv_pusher_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	struct drv_pusher *pusher = (struct drv_pusher *)sink;

	(void)peer, (void)lend;
	return DRV_LIKELY(bytes == pusher->push.bytes && pusher->receives)
		       ? take_message(pusher, data, bytes)
		       : take_control(pusher, data, bytes);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_pusher *pusher = (struct drv_pusher *)sink;
	const uint64_t index = token & ~DRV_TOKEN_RESPONDER;

	if (DRV_LIKELY(!(token & DRV_TOKEN_RESPONDER) || index >= DRV_PUSHER_ANSWERS ||
		       !pusher->answer_in_flight[index])) {
		drv_progress_on_sent(sink, peer, token, code);
		return;
	}
	pusher->answer_in_flight[index] = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_progress_fail(&pusher->progress, "post", code);
}

int drv_pusher_receive(struct drv_pusher *pusher, struct drv_engine *engine, struct drv_fail *fail)
{
	struct drv_check *check = &pusher->progress.check;

	pusher->progress.port.sink.sent = on_sent;
	pusher->progress.other = pusher;
	pusher->progress.drain = drain;
	pusher->progress.port.due = false;
	check->seed = pusher->push.seed;
	check->by_number = (engine->offer.both.caps & CADGE_CAP_ORDERED) && !pusher->push.same;
	check->touch = pusher->push.touch;
	drv_pusher_receive_run(pusher, true, 1);
	pusher->answers = drv_pool_take(engine, DRV_POOL_RESPONDER,
					DRV_PUSHER_ANSWERS * drv_memory_stride(DRV_CONTROL_BYTES), fail);
	return pusher->answers ? 0 : -1;
}

int drv_pusher_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	return drv_poll_until_message(run->engine, run->engine->sink, run->state, due, drain, message_out,
				      fail);
}

int drv_pusher_drain(void *pusher, struct drv_fail *fail)
{
	return drain(pusher, fail);
}
