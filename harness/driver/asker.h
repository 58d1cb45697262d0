/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: the side that asks, and waits for one answer at a time. It polls
 * by turns, checks what answers hold, and counts; what is asked, and in which order, is the pattern's.
 */
#ifndef DRV_ASKER_H
#define DRV_ASKER_H

#include "answers.h"
#include "pattern.h"
#include "serve_loop.h"
#include "touch.h"
#include "verify.h"
#include "warmup.h"

#define DRV_ASKER_WAIT_NS   UINT64_C(10000000)
#define DRV_ASKER_WINDOW_NS UINT64_C(100000)

/* Begins the state of the asking side. */
struct drv_asker {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	/* what polls call: its own sink, or at place self that of both sides */
	struct cadge_sink *sink;
	/* place self: the other side, in this process, as its drain takes it; else NULL */
	void *other;
	struct cadge_chan *chan;
	uint64_t seed;
	bool touch, reliable;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* when the answer to the latest request came, in ticks; 0: not yet */
	uint64_t answered_at;
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
};

/* Before the pattern's own part. `other` only where one process plays both sides. */
void drv_asker_start(struct drv_asker *asker, const struct drv_play *play, void *other, drv_recv_fn recv,
		     drv_sent_fn sent, bool touch);

/* Place self: puts the sink of both sides before them, which have been started and stay the caller's. */
void drv_asker_join(struct drv_asker *asker, struct drv_answers *answers, struct drv_halves *halves);

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

/* The layer gave a message back. */
DRV_INLINE void drv_asker_sent(struct drv_asker *asker, int code)
{
	asker->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !asker->failed) {
		asker->failed = true;
		drv_engine_fail("post", code, &asker->fail);
	}
}

/*
 * Polls once; now and then looks around. In block mode it sleeps where nothing came, for `sleep_ns` at most; 0: not.
 * `drain` does what the other side has to do, where that is in this process. It is a constant where this is called, so
 * that nothing is called inside.
 */
DRV_INLINE int drv_asker_turn(struct drv_asker *asker, const drv_drain_fn drain, uint64_t sleep_ns,
			      struct drv_fail *fail)
{
	struct drv_engine *engine = asker->port.engine;
	const int events = engine->layer->poll(engine->ctx, asker->sink);

	if (DRV_UNLIKELY(asker->other != NULL) && drain(asker->other, fail))
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

/*
 * After a failure: polls for up to half a second until the layer has given everything back, and, since a reliable
 * channel is not clean before, until the latest answer is there. False: it is not.
 */
bool drv_asker_settle(struct drv_asker *asker, drv_drain_fn drain);

/* What a role's `phase` tells of the asking side. */
void drv_asker_counts(const struct drv_asker *asker, struct drv_counts *counts_out);

#endif
