/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder as a role: of patterns that exchange requests and replies, and of those that ask one thing at a time. */
#include "traffic/ask.h"

DRV_INLINE bool due_by_others(void *arg)
{
	return drv_server_due(arg);
}

int drv_answerer_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail)
{
	play->sleep = exchange.depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return drv_server_start(play->state, play->engine, exchange, fail);
}

/* A request that one at a time is asked with: its key says how large its answer is. */
static enum cadge_keep on_asked(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	struct drv_server *server = (struct drv_server *)sink;
	struct drv_check *check = &server->lines->check;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes < DRV_HEAD_BYTES)) {
		drv_check_wrong(check, "a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(check, data, bytes);
	if (DRV_UNLIKELY(drv_ask_bytes(key) < DRV_HEAD_BYTES || drv_ask_bytes(key) > server->answer_bytes))
		drv_check_wrong(check, "a request for an answer of %zu bytes, where there are %u to %zu",
				drv_ask_bytes(key), DRV_HEAD_BYTES, server->answer_bytes);
	else
		drv_server_due_latest(server, key);
	return CADGE_TAKEN;
}

int drv_answerer_prepare_asked(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			       struct drv_fail *fail)
{
	const struct drv_exchange exchange = {.form = DRV_FORM_BARE,
					      .reply_bytes = answer_max,
					      .depth = 1,
					      .seed = play->seed,
					      .touch = touch ? DRV_TOUCH_WRITE_READ : DRV_TOUCH_NONE};
	struct drv_server *server = play->state;

	if (drv_answerer_prepare(play, exchange, fail))
		return -1;
	server->port.sink.recv = recv ? recv : on_asked;
	server->sized = !recv;
	/* two buffers in turn, of whatever size: the requester has read the one before */
	server->hot = false;
	server->lines->check.by_number = false;
	return 0;
}

void drv_answerer_stop(struct drv_play *play)
{
	drv_server_stop(play->state);
}

/* Compiled with and without workers, so that it is not asked each turn. */
int drv_answerer_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_server *server = play->state;

	return server->jobs ? drv_serve_loop(play->engine, &server->port.sink, server, due_by_others,
					     drv_server_loop_drain, message_out, fail)
			    : drv_serve_loop(play->engine, &server->port.sink, server, drv_server_loop_due,
					     drv_server_loop_drain, message_out, fail);
}

int drv_answerer_drain(struct drv_play *play, struct drv_fail *fail)
{
	return drv_server_drain(play->state, fail);
}

int drv_answerer_serve_latest(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_server *server = play->state;

	return drv_serve_loop(play->engine, &server->port.sink, server, drv_server_loop_due,
			      drv_server_loop_drain_latest, message_out, fail);
}

int drv_answerer_drain_latest(struct drv_play *play, struct drv_fail *fail)
{
	return drv_server_drain_latest(play->state, fail);
}

void drv_answerer_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	drv_server_phase(play->state, phase, counts_out);
}
