/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/asker.h"

#include "traffic/loss.h"

int drv_asker_start(struct drv_asker *asker, const struct drv_play *play, drv_recv_fn recv, uint32_t slots,
		    size_t bytes_max, bool touch, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;

	drv_progress_start(&asker->progress, engine, recv, asker->lent, slots);
	asker->progress.check.seed = ~play->seed;
	asker->progress.check.touch = touch;
	drv_check_phase(&asker->progress.check, false, 0);
	/* answers have the seed inverted in their heads */
	asker->progress.port.claim = DRV_CLAIM_WORD;
	asker->progress.port.claim_at = 8;
	asker->progress.port.claim_bytes = DRV_HEAD_BYTES;
	asker->progress.port.claim_word = ~play->seed;
	engine->sink = &asker->progress.port.sink;
	asker->chan = engine->channels[0].chan;
	asker->seed = play->seed;
	asker->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	asker->stride = drv_memory_stride(bytes_max);
	asker->requests = drv_pool_take(engine, DRV_POOL_CLIENT, slots * asker->stride, fail);
	return asker->requests ? 0 : -1;
}

void drv_asker_stray(struct drv_asker *asker, const char *what, uint64_t number)
{
	if (asker->progress.check.reliable || asker->late >= asker->lost)
		drv_check_wrong(&asker->progress.check, "%s (%" PRIu64 ")", what, number);
	else
		asker->late++;
}

static bool waits(void *arg)
{
	const struct drv_asker *asker = arg;

	return asker->progress.lents > 0 ||
	       (asker->progress.check.reliable && asker->posted > 0 && !asker->answered_at);
}

bool drv_asker_settle(struct drv_asker *asker)
{
	return drv_progress_settle(&asker->progress, waits, asker);
}

void drv_asker_counts(const struct drv_asker *asker, struct drv_counts *counts_out)
{
	counts_out->posts = true;
	counts_out->posted = asker->posted;
	counts_out->posted_keys = asker->key_sum;
	drv_check_counts(&asker->progress.check, counts_out);
}
