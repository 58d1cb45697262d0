/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: the requester, which waits for one answer at a time. It owns the
 * buffers that requests leave from, polls, checks what answers hold, and counts. The pattern decides what is asked, and
 * in which order. See dialog.h for its role.
 */
#ifndef DRV_ASKER_H
#define DRV_ASKER_H

#include "traffic/answers.h"
#include "traffic/payload.h"
#include "launch/pattern.h"
#include "traffic/serve_loop.h"
#include "measure/warmup.h"

#define DRV_ASKER_WAIT_NS   UINT64_C(10000000)
#define DRV_ASKER_WINDOW_NS UINT64_C(100000)
/* buffers at most */
#define DRV_ASKER_SLOTS 256u

/* Begins the state of the asking side. */
struct drv_asker {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	/* what polls call: its own sink, or at place self that of both sides */
	struct cadge_sink *sink;
	/* place self: the other side, in this process, and its work after each poll; else NULL */
	void *other;
	drv_drain_fn drain;
	struct cadge_chan *chan;
	uint64_t seed;
	bool touch, reliable;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* the key of the latest request; when its answer came, in ticks; 0: not yet */
	uint64_t awaited, answered_at;
	/* ticks, over an unreliable layer: an answer that takes longer is lost */
	uint64_t patience;
	/* messages that the layer has */
	uint32_t lents, idle;
	/* since the attempt began */
	uint64_t posted, key_sum, lost, late;
	uint64_t checked, full_checked, mismatches;
	struct drv_warmup warmup;
	bool failed;
	struct drv_fail fail;
	/* the first one, in words */
	char mismatch[160];
	/* of the engine's pool: `slots` buffers of `stride` bytes, and which of them the layer has */
	uint8_t *requests;
	size_t stride;
	uint32_t slots;
	bool lent[DRV_ASKER_SLOTS];
};

/*
 * `recv` takes the answers. Requests have `bytes_max` bytes at most, and leave from `slots` buffers. At place self the
 * caller sets `other` and `drain` afterwards.
 */
int drv_asker_start(struct drv_asker *asker, const struct drv_play *play, drv_recv_fn recv, uint32_t slots,
		    size_t bytes_max, bool touch, struct drv_fail *fail);

/* Counts a mismatch and keeps the words of the first. */
void drv_asker_mismatch(struct drv_asker *asker, const char *what, uint64_t number)
	__attribute__((cold, noinline));

/* An answer that nobody waits for: late after a loss, else something is wrong. */
void drv_asker_stray(struct drv_asker *asker, const char *what, uint64_t number)
	__attribute__((cold, noinline));

/* Whether the body of an answer is what its sender wrote. */
DRV_INLINE bool drv_asker_holds(struct drv_asker *asker, const void *data, size_t bytes, uint64_t key)
{
	if (asker->full) {
		asker->full_checked++;
		return drv_body_holds(data, bytes, ~asker->seed, asker->phase, key);
	}
	return !asker->touch || drv_touch_read(data, bytes, ~asker->seed, key);
}

/*
 * For a pattern's `recv`: whether a message is the answer to the latest request, of so many bytes. Counts whatever else
 * it is. The body is the caller's to check; so is answered_at to set.
 */
DRV_INLINE bool drv_asker_awaits(struct drv_asker *asker, const void *data, size_t bytes, size_t answer_bytes)
{
	if (DRV_UNLIKELY(bytes != answer_bytes || drv_load64((const uint8_t *)data + 8) != ~asker->seed)) {
		drv_asker_mismatch(asker, "a message that is no answer, of so many bytes", bytes);
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
		asker->checked++;
	else
		drv_asker_mismatch(asker, "an answer that holds other bytes", key);
	asker->answered_at = drv_clock_now(&asker->port.engine->clock);
}

/* The sink's `sent`: the layer gave a request back. */
void drv_asker_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

/*
 * Polls once; now and then looks around. In block mode it sleeps where nothing came, for `sleep_ns` at most; 0: not.
 * At place self the other side then does its work.
 */
DRV_INLINE int drv_asker_turn(struct drv_asker *asker, uint64_t sleep_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = asker->port.engine;
	const int events = engine->layer->poll(engine->ctx, asker->sink);

	if (DRV_UNLIKELY(asker->other != NULL) && asker->drain(asker->other, fail))
		return -1;
	if (DRV_UNLIKELY(asker->failed)) {
		*fail = asker->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (sleep_ns && engine->block && events == 0) {
		if (drv_engine_wait(engine, sleep_ns, fail))
			return -1;
	} else if (DRV_LIKELY(++asker->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* The same for where a call more costs nothing: while a layer is busy, or has buffers still. */
int drv_asker_poll(struct drv_asker *asker, struct drv_fail *fail) __attribute__((noinline));

/* The request of that key, as it is to lie in buffer `slot`. */
DRV_INLINE struct drv_message drv_asker_message(const struct drv_asker *asker, uint32_t slot, size_t bytes,
						uint64_t key)
{
	return (struct drv_message){.at = asker->requests + slot * asker->stride,
				    .bytes = bytes,
				    .seed = asker->seed,
				    .key = key,
				    .full = asker->full,
				    .touch = asker->touch,
				    .phase = asker->phase};
}

/* The layer took what lies in buffer `slot`: `code` is DONE or QUEUED. */
DRV_INLINE void drv_asker_lend(struct drv_asker *asker, uint32_t slot, int code)
{
	asker->lent[slot] = code == CADGE_QUEUED;
	asker->lents += code == CADGE_QUEUED;
}

/*
 * Sends a request of `bytes` bytes, at least DRV_HEAD_BYTES, which `key` identifies, from buffer `slot`, which is not
 * lent. Polls while the layer is busy. Its answer is waited for from now on: answered_at says when it came.
 */
DRV_INLINE int drv_ask(struct drv_asker *asker, uint32_t slot, size_t bytes, uint64_t key,
		       struct drv_fail *fail)
{
	struct drv_engine *engine = asker->port.engine;
	struct drv_message message = drv_asker_message(asker, slot, bytes, key);
	int code;

	asker->awaited = key;
	asker->answered_at = 0;
	while (DRV_UNLIKELY((code = drv_message_post(engine, asker->chan, &message, slot)) == CADGE_BUSY))
		if (drv_asker_poll(asker, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	drv_asker_lend(asker, slot, code);
	asker->posted++;
	asker->key_sum += key;
	return 0;
}

/* Polls until the answer is there. 1: it is lost; -1: *fail. */
DRV_INLINE int drv_asker_await(struct drv_asker *asker, struct drv_fail *fail)
{
	const struct drv_clock *clock = &asker->port.engine->clock;
	const uint64_t sent = asker->reliable ? 0 : drv_clock_now(clock);

	while (!asker->answered_at) {
		if (drv_asker_turn(asker, DRV_ASKER_WAIT_NS, fail))
			return -1;
		if (!asker->reliable && !asker->answered_at &&
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
	while (asker->lents)
		if (drv_asker_poll(asker, fail))
			return -1;
	return 0;
}

/*
 * After a failure: polls for up to half a second until the layer has given everything back, and, since a reliable
 * channel is not clean before, until the latest answer is there. False: it is not.
 */
bool drv_asker_settle(struct drv_asker *asker);

/* What a role's `phase` tells of the asking side. */
void drv_asker_counts(const struct drv_asker *asker, struct drv_counts *counts_out);

#endif
