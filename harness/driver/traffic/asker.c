/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/asker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traffic/loss.h"

#define SETTLE_NS UINT64_C(500000000)

void drv_asker_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_asker *asker = (struct drv_asker *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token >= asker->slots || !asker->lent[token])) {
		drv_asker_mismatch(asker, "a completion for a token that is not outstanding", token);
		return;
	}
	asker->lent[token] = false;
	asker->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !asker->failed) {
		asker->failed = true;
		drv_engine_fail("post", code, &asker->fail);
	}
}

int drv_asker_start(struct drv_asker *asker, const struct drv_play *play, drv_recv_fn recv, uint32_t slots,
		    size_t bytes_max, bool touch, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;

	drv_port_start(&asker->port, engine);
	asker->port.sink.recv = recv;
	asker->port.sink.sent = drv_asker_on_sent;
	asker->sink = &asker->port.sink;
	asker->chan = engine->channels[0].chan;
	asker->seed = play->seed;
	asker->touch = touch;
	asker->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	asker->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	asker->slots = slots;
	asker->stride = drv_memory_stride(bytes_max);
	asker->requests = drv_pool_take(engine, DRV_POOL_CLIENT, slots * asker->stride, fail);
	return asker->requests ? 0 : -1;
}

void drv_asker_mismatch(struct drv_asker *asker, const char *what, uint64_t number)
{
	if (!asker->mismatches++)
		snprintf(asker->mismatch, sizeof(asker->mismatch), "%s (%" PRIu64 ")", what, number);
}

void drv_asker_stray(struct drv_asker *asker, const char *what, uint64_t number)
{
	if (asker->reliable || asker->late >= asker->lost)
		drv_asker_mismatch(asker, what, number);
	else
		asker->late++;
}

int drv_asker_poll(struct drv_asker *asker, struct drv_fail *fail)
{
	return drv_asker_turn(asker, DRV_ASKER_WAIT_NS, fail);
}

bool drv_asker_settle(struct drv_asker *asker)
{
	struct drv_engine *engine = asker->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	const bool waits = asker->reliable && asker->posted > 0;
	struct drv_fail ignored;

	while ((asker->lents > 0 || (waits && !asker->answered_at)) && !engine->down_code &&
	       drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, asker->sink) < 0 ||
		    (asker->other && asker->drain(asker->other, &ignored)))
			return false;
	return asker->lents == 0 && (asker->answered_at || !waits);
}

void drv_asker_counts(const struct drv_asker *asker, struct drv_counts *counts_out)
{
	counts_out->posts = true;
	counts_out->posted = asker->posted;
	counts_out->posted_keys = asker->key_sum;
	counts_out->checked = asker->checked;
	counts_out->full_checked = asker->full_checked;
	counts_out->mismatches = asker->mismatches;
	memcpy(counts_out->mismatch, asker->mismatch, sizeof(counts_out->mismatch));
}
