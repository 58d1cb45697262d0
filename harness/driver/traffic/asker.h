/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: the requester, which waits for one answer at a time. It owns the
 * buffers that requests leave from, polls, checks what answers hold, and counts. The pattern decides what is asked, and
 * in which order. See dialog.h for its role.
 */
#ifndef DRV_ASKER_H
#define DRV_ASKER_H

#include "traffic/answers.h"
#include "traffic/progress.h"
#include "launch/pattern.h"
#include "measure/warmup.h"

#define DRV_ASKER_WINDOW_NS UINT64_C(100000)
/* buffers at most */
#define DRV_ASKER_SLOTS 256u

/* Begins the state of the asking side. */
struct drv_asker {
	/* first: callbacks get a pointer to it; it checks answers */
	struct drv_progress progress;
	struct cadge_chan *chan;
	uint64_t seed;
	/* the key of the latest request; when its answer came, in ticks; 0: not yet */
	uint64_t awaited, answered_at;
	/* ticks, over an unreliable layer: an answer that takes longer is lost */
	uint64_t patience;
	/* since the attempt began */
	uint64_t posted, key_sum, lost, late;
	struct drv_warmup warmup;
	/* of the engine's pool: buffers of `stride` bytes */
	uint8_t *requests;
	size_t stride;
	bool lent[DRV_ASKER_SLOTS];
};

/*
 * `recv` takes the answers. Requests have `bytes_max` bytes at most, and leave from `slots` buffers. It is the engine's
 * sink from now on.
 */
int drv_asker_start(struct drv_asker *asker, const struct drv_play *play, drv_recv_fn recv, uint32_t slots,
		    size_t bytes_max, bool touch, struct drv_fail *fail);

/* An answer that nobody waits for: late after a loss, else something is wrong. */
void drv_asker_stray(struct drv_asker *asker, const char *what, uint64_t number)
	__attribute__((cold, noinline));

/* Whether the body of an answer is what its sender wrote. */
DRV_INLINE bool drv_asker_holds(struct drv_asker *asker, const void *data, size_t bytes, uint64_t key)
{
	struct drv_check *check = &asker->progress.check;

	return DRV_LIKELY(!check->reads) || drv_check_read(check, data, bytes, key);
}

/*
 * For a pattern's `recv`: whether a message is the answer to the latest request, of so many bytes. Counts whatever else
 * it is. The body is the caller's to check; so is answered_at to set.
 */
DRV_INLINE bool drv_asker_awaits(struct drv_asker *asker, const void *data, size_t bytes, size_t answer_bytes)
{
	if (DRV_UNLIKELY(bytes != answer_bytes || drv_load64((const uint8_t *)data + 8) != ~asker->seed)) {
		drv_check_wrong(&asker->progress.check, "a message of %zu bytes that is no answer", bytes);
		return false;
	}
	if (DRV_UNLIKELY(drv_load64(data) != asker->awaited || asker->answered_at)) {
		drv_asker_stray(asker, "an answer to no request outstanding", drv_load64(data));
		return false;
	}
	return true;
}

/* The answer to the latest request is here, with this key: checks what else it holds, and takes the time. */
DRV_INLINE void drv_asker_take(struct drv_asker *asker, const void *data, size_t bytes, uint64_t key)
{
	if (DRV_LIKELY(drv_load64((const uint8_t *)data + 8) == ~asker->seed &&
		       drv_asker_holds(asker, data, bytes, key)))
		asker->progress.check.checked++;
	else
		drv_check_wrong(&asker->progress.check, "an answer that holds other bytes (%" PRIu64 ")",
				key);
	asker->answered_at = drv_clock_now(&asker->progress.port.engine->clock);
}

/* The request of that key, as it is to lie in buffer `slot`. */
DRV_INLINE struct drv_message drv_asker_message(const struct drv_asker *asker, uint32_t slot, size_t bytes,
						uint64_t key)
{
	return (struct drv_message){.at = asker->requests + slot * asker->stride,
				    .bytes = bytes,
				    .seed = asker->seed,
				    .key = key,
				    .full = asker->progress.check.full,
				    .touch = asker->progress.check.touch,
				    .phase = asker->progress.check.phase,
				    .lossy = !asker->progress.check.reliable};
}

/*
 * Sends a request of `bytes` bytes, at least DRV_HEAD_BYTES, which `key` identifies, from buffer `slot`, which is not
 * lent. Polls while the layer is busy. Its answer is waited for from now on: answered_at says when it came.
 */
DRV_INLINE int drv_ask(struct drv_asker *asker, uint32_t slot, size_t bytes, uint64_t key,
		       struct drv_fail *fail)
{
	struct drv_engine *engine = asker->progress.port.engine;
	struct drv_message message = drv_asker_message(asker, slot, bytes, key);
	int code;

	asker->awaited = key;
	asker->answered_at = 0;
	while (DRV_UNLIKELY((code = drv_message_post(engine, asker->chan, &message, slot)) == CADGE_BUSY))
		if (drv_progress_poll(&asker->progress, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	drv_progress_lend(&asker->progress, slot, code);
	asker->posted++;
	asker->key_sum += key;
	return 0;
}

/* Polls until the answer is there. 1: it is lost; -1: *fail. */
DRV_INLINE int drv_asker_await(struct drv_asker *asker, struct drv_fail *fail)
{
	const struct drv_clock *clock = &asker->progress.port.engine->clock;
	const uint64_t sent = asker->progress.check.reliable ? 0 : drv_clock_now(clock);

	while (!asker->answered_at) {
		if (drv_progress_turn(&asker->progress, DRV_PROGRESS_WAIT_NS, fail))
			return -1;
		if (!asker->progress.check.reliable && !asker->answered_at &&
		    drv_clock_now(clock) - sent > asker->patience) {
			asker->lost++;
			return 1;
		}
	}
	return 0;
}

/* Polls until no request is lent: the next ones are written to the same buffers. */
DRV_INLINE int drv_asker_reclaim(struct drv_asker *asker, struct drv_fail *fail)
{
	while (asker->progress.lents)
		if (drv_progress_poll(&asker->progress, fail))
			return -1;
	return 0;
}

/* Whole payloads are compared from now on, in that phase, or no more. Nothing is outstanding. */
DRV_INLINE void drv_asker_phase(struct drv_asker *asker, bool full, uint64_t serial)
{
	drv_check_phase(&asker->progress.check, full, serial);
}

/*
 * After a failure: polls for up to half a second until the layer has given everything back, and, since a reliable
 * channel is not clean before, until the latest answer is there. False: it is not.
 */
bool drv_asker_settle(struct drv_asker *asker);

/* What a role's `phase` tells of the asking side. */
void drv_asker_counts(const struct drv_asker *asker, struct drv_counts *counts_out);

#endif
