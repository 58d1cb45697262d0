/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder as a role: of patterns that exchange requests and replies, and of those that ask one thing at a time. */
#include "traffic/responder.h"

DRV_INLINE bool due_by_others(void *arg)
{
	return drv_responder_due(arg);
}

int drv_responder_role_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail)
{
	play->sleep = exchange.depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return drv_responder_start(play->state, play->engine, exchange, fail);
}

/* A request that one at a time is asked with: its key says how large its answer is. */
static enum cadge_keep on_asked(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	struct drv_check *check = &responder->lines->check;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes < DRV_HEAD_BYTES)) {
		drv_check_wrong(check, "a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(check, data, bytes);
	if (DRV_UNLIKELY(drv_ask_bytes(key) < DRV_HEAD_BYTES ||
			 drv_ask_bytes(key) > responder->answer_bytes)) {
		drv_check_wrong(check, "a request for an answer of %zu bytes, where there are %u to %zu",
				drv_ask_bytes(key), DRV_HEAD_BYTES, responder->answer_bytes);
		return CADGE_TAKEN;
	}
	responder->message.bytes = drv_ask_bytes(key);
	drv_responder_due_latest(responder, key);
	return CADGE_TAKEN;
}

int drv_responder_role_prepare_asked(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
				     struct drv_fail *fail)
{
	const struct drv_exchange exchange = {.form = DRV_FORM_BARE,
					      .reply_bytes = answer_max,
					      .depth = 1,
					      .seed = play->seed,
					      .touch = touch ? DRV_TOUCH_WRITE_READ : DRV_TOUCH_NONE};
	struct drv_responder *responder = play->state;

	if (drv_responder_role_prepare(play, exchange, fail))
		return -1;
	responder->port.sink.recv = recv ? recv : on_asked;
	/* two buffers in turn, of whatever size: the requester has read the one before */
	responder->hot = false;
	responder->lines->check.by_number = false;
	return 0;
}

void drv_responder_role_stop(struct drv_play *play)
{
	drv_responder_stop(play->state);
}

/* Compiled with and without workers, so that it is not asked each turn. */
int drv_responder_role_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_responder *responder = play->state;

	return responder->jobs
		       ? drv_serve_loop(play->engine, &responder->port.sink, responder, due_by_others,
					drv_responder_loop_drain, message_out, fail)
		       : drv_serve_loop(play->engine, &responder->port.sink, responder,
					drv_responder_loop_due, drv_responder_loop_drain, message_out, fail);
}

int drv_responder_role_drain(struct drv_play *play, struct drv_fail *fail)
{
	return drv_responder_drain(play->state, fail);
}

int drv_responder_role_serve_latest(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_responder *responder = play->state;

	return drv_serve_loop(play->engine, &responder->port.sink, responder, drv_responder_loop_due,
			      drv_responder_loop_drain_latest, message_out, fail);
}

int drv_responder_role_drain_latest(struct drv_play *play, struct drv_fail *fail)
{
	return drv_responder_drain_latest(play->state, fail);
}

void drv_responder_role_phase(struct drv_play *play, const struct drv_phase *phase,
			      struct drv_counts *counts_out)
{
	drv_responder_phase(play->state, phase, counts_out);
}
