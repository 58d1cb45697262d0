/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/answers.h"

int drv_answers_start(struct drv_answers *answers, const struct drv_play *play, drv_recv_fn recv,
		      size_t bytes, bool touch, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;

	drv_progress_start(&answers->progress, engine, recv, answers->lent, DRV_ANSWERS);
	answers->progress.mark = DRV_TOKEN_SERVER;
	answers->progress.port.due = false;
	answers->progress.check.seed = play->seed;
	answers->progress.check.touch = touch;
	answers->chan = engine->channels[0].chan;
	answers->stride = drv_memory_stride(bytes);
	answers->at = drv_pool_take(engine, DRV_POOL_SERVER, DRV_ANSWERS * answers->stride, fail);
	drv_check_phase(&answers->progress.check, true, 1);
	return answers->at ? 0 : -1;
}

void drv_answers_phase(struct drv_answers *answers, const struct drv_phase *phase,
		       struct drv_counts *counts_out)
{
	drv_check_executed(&answers->progress.check, counts_out);
	drv_check_phase(&answers->progress.check, phase->full, phase->serial);
}
