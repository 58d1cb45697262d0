/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/stock_responder.h"

#include "traffic/ask.h"

static enum cadge_keep responder_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					 size_t bytes, struct cadge_lend *lend)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes < DRV_HEAD_BYTES)) {
		drv_check_wrong(&responder->answers.progress.check,
				"a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(&responder->answers.progress.check, data, bytes);
	if (DRV_UNLIKELY(drv_ask_bytes(key) < DRV_HEAD_BYTES || drv_ask_bytes(key) > responder->answer_max)) {
		drv_check_wrong(&responder->answers.progress.check,
				"a request for an answer of %zu bytes, where there are %u to %zu",
				drv_ask_bytes(key), DRV_HEAD_BYTES, responder->answer_max);
		return CADGE_TAKEN;
	}
	responder->answer.bytes = drv_ask_bytes(key);
	drv_responder_due(responder, key);
	return CADGE_TAKEN;
}

DRV_INLINE int responder_drain(void *arg, struct drv_fail *fail)
{
	struct drv_responder *responder = arg;

	if (DRV_UNLIKELY(drv_answers_post(&responder->answers, &responder->answer)) &&
	    DRV_UNLIKELY(responder->after != NULL) && !responder->answers.progress.failed) {
		int (*const after)(struct drv_responder *, struct drv_fail *) = responder->after;

		responder->after = NULL;
		if (after(responder, fail))
			return -1;
	}
	return drv_answers_drained(&responder->answers, fail);
}

int drv_responder_answers(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			  struct drv_fail *fail)
{
	struct drv_answers *answers = play->state;

	play->engine->sink = &answers->progress.port.sink;
	play->sleep = DRV_SLEEP_EACH;
	return drv_answers_start(answers, play, recv, answer_max, touch, fail);
}

int drv_responder_start(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			struct drv_fail *fail)
{
	struct drv_responder *responder = play->state;

	responder->answer = (struct drv_message){.bytes = answer_max, .seed = ~play->seed, .touch = touch};
	responder->answer_max = answer_max;
	return drv_responder_answers(play, recv ? recv : responder_on_recv, answer_max, touch, fail);
}

int drv_responder_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_answers *answers = play->state;

	return drv_serve_loop(play->engine, &answers->progress.port.sink, answers, drv_answers_due,
			      responder_drain, message_out, fail);
}

int drv_responder_drain(struct drv_play *play, struct drv_fail *fail)
{
	return responder_drain(play->state, fail);
}

void drv_responder_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	drv_answers_phase(play->state, phase, counts_out);
}
