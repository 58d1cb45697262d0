/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/answers.h"

#include <inttypes.h>

void drv_answers_failure(struct drv_answers *answers, int code)
{
	if (!answers->failed)
		drv_engine_fail("post", code, &answers->fail);
	answers->failed = true;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_answers *answers = (struct drv_answers *)sink;
	const uint64_t index = token & ~DRV_TOKEN_ANSWER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & DRV_TOKEN_ANSWER) || index >= DRV_ANSWERS || !answers->lent[index])) {
		drv_check_wrong(&answers->check,
				"a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	answers->lent[index] = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_answers_failure(answers, code);
}

int drv_answers_start(struct drv_answers *answers, const struct drv_play *play, drv_recv_fn recv,
		      size_t bytes, bool touch, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;

	drv_port_start(&answers->port, engine);
	answers->port.sink.recv = recv;
	answers->port.sink.sent = on_sent;
	answers->sink = &answers->port.sink;
	answers->chan = engine->channels[0].chan;
	answers->check.seed = play->seed;
	answers->check.reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	answers->check.touch = touch;
	answers->stride = drv_memory_stride(bytes);
	answers->at = drv_pool_take(engine, DRV_POOL_SERVER, DRV_ANSWERS * answers->stride, fail);
	drv_check_phase(&answers->check, true, 1);
	return answers->at ? 0 : -1;
}

void drv_answers_phase(struct drv_answers *answers, const struct drv_phase *phase,
		       struct drv_counts *counts_out)
{
	drv_check_executed(&answers->check, counts_out);
	drv_check_phase(&answers->check, phase->full, phase->serial);
}
