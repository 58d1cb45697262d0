/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/dialog.h"

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

static enum cadge_keep requester_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					 size_t bytes, struct cadge_lend *lend)
{
	struct drv_asker *asker = (struct drv_asker *)sink;
	/* of what comes late as well, whose size is another one */
	const size_t expected = bytes < DRV_HEAD_BYTES ? SIZE_MAX : drv_ask_bytes(drv_load64(data));

	(void)peer, (void)lend;
	if (DRV_LIKELY(drv_asker_awaits(asker, data, bytes, expected)))
		drv_asker_take(asker, data, bytes, asker->awaited);
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

int drv_dialog_answers(struct drv_play *play, struct drv_answers *answers, drv_recv_fn recv,
		       size_t answer_max, bool touch, struct drv_fail *fail)
{
	struct drv_dialog *dialog = play->state;

	dialog->answers = answers;
	play->engine->sink = &answers->progress.port.sink;
	play->sleep = DRV_SLEEP_EACH;
	return drv_answers_start(answers, play, recv, answer_max, touch, fail);
}

int drv_dialog_responder(struct drv_play *play, struct drv_responder *responder, drv_recv_fn recv,
			 size_t answer_max, bool touch, struct drv_fail *fail)
{
	responder->answer = (struct drv_message){.bytes = answer_max, .seed = ~play->seed, .touch = touch};
	responder->answer_max = answer_max;
	return drv_dialog_answers(play, &responder->answers, recv ? recv : responder_on_recv, answer_max,
				  touch, fail);
}

int drv_dialog_requester(struct drv_play *play, struct drv_asker *asker, drv_recv_fn recv, uint32_t slots,
			 size_t request_max, bool touch, struct drv_fail *fail)
{
	((struct drv_dialog *)play->state)->asker = asker;
	play->sleep = DRV_SLEEP_EACH;
	return drv_asker_start(asker, play, recv ? recv : requester_on_recv, slots, request_max, touch, fail);
}

int drv_call(struct drv_asker *asker, size_t bytes, uint64_t key, uint64_t *span_out, struct drv_fail *fail)
{
	const uint64_t begin = drv_clock_now(&asker->progress.port.engine->clock);
	int status;

	if (drv_ask(asker, 0, bytes, key, fail))
		return -1;
	status = drv_asker_await(asker, fail);
	*span_out = asker->answered_at - begin;
	return status < 0 || drv_asker_reclaim(asker, fail) ? -1 : status;
}

bool drv_dialog_settle(struct drv_play *play)
{
	return drv_asker_settle(((struct drv_dialog *)play->state)->asker);
}

void drv_dialog_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct drv_dialog *dialog = play->state;

	if (dialog->asker)
		drv_asker_counts(dialog->asker, counts_out);
	if (dialog->answers)
		drv_answers_phase(dialog->answers, phase, counts_out);
}

int drv_responder_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_answers *answers = ((struct drv_dialog *)play->state)->answers;

	return drv_serve_loop(play->engine, &answers->progress.port.sink, answers, drv_answers_due,
			      responder_drain, message_out, fail);
}

int drv_responder_drain(struct drv_play *play, struct drv_fail *fail)
{
	return responder_drain(((struct drv_dialog *)play->state)->answers, fail);
}
