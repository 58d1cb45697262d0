/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: a requester (requester.h) that asks one thing at a time, in an order
 * that the pattern decides. It owns the buffers that requests leave from, polls, checks what answers hold, and counts. The
 * state of the role begins with it. The pattern writes `prepare`, and one function that asks once; the steps are here:
 *
 *	drv_ask_start(run, NULL, 1, request_bytes, touch, fail)
 *	drv_call(requester, request_bytes, drv_ask_key(number, answer_bytes), &span, fail)
 *
 * harness/driver/tests/patterns/closed_loop is a whole pattern of that kind.
 */
#ifndef DRV_ASK_H
#define DRV_ASK_H

#include "traffic/requester.h"

/*
 * For `prepare`. `recv` takes the answers; NULL: they have as many bytes as asked. Requests have `bytes_max` bytes at most,
 * and leave from `slots` buffers. It is the engine's sink from now on.
 */
int drv_ask_start(struct drv_role_run *run, drv_recv_fn recv, uint32_t slots, size_t bytes_max, bool touch,
		  struct drv_fail *fail);

/*
 * For a pattern's `recv`: whether a message is the answer to the latest request, of so many bytes. Counts whatever else
 * it is. The body is the caller's to check; so is answered_at to set.
 */
DRV_INLINE bool drv_ask_awaits(struct drv_requester *requester, const void *data, size_t bytes,
			       size_t answer_bytes)
{
	struct drv_check *check = &requester->progress.check;

	if (DRV_UNLIKELY(bytes != answer_bytes || drv_load64((const uint8_t *)data + 8) != check->seed)) {
		drv_check_wrong(check, "a message of %zu bytes that is no answer", bytes);
		return false;
	}
	if (DRV_UNLIKELY(drv_load64(data) != requester->awaited || requester->answered_at)) {
		drv_requester_stale(requester, "an unexpected answer", drv_load64(data));
		return false;
	}
	return true;
}

/* The answer to the latest request is here, with this key: checks what else it holds, and takes the time. */
DRV_INLINE void drv_ask_take(struct drv_requester *requester, const void *data, size_t bytes, uint64_t key)
{
	struct drv_check *check = &requester->progress.check;

	if (DRV_LIKELY(drv_load64((const uint8_t *)data + 8) == check->seed &&
		       drv_check_body(check, data, bytes, key)))
		check->checked++;
	else
		drv_check_wrong(check, "an answer that holds other bytes (%" PRIu64 ")", key);
	requester->answered_at = drv_clock_now(&requester->progress.port.engine->clock);
}

/* Makes a request of that key, as it is to lie in buffer `slot`, the next one to be posted. */
DRV_INLINE struct drv_message *drv_ask_message(struct drv_requester *requester, uint32_t slot, size_t bytes,
					       uint64_t key)
{
	struct drv_message *message = &requester->message;

	message->at = requester->ops[slot].payload;
	message->bytes = bytes;
	message->key = key;
	message->written = false;
	return message;
}

/*
 * Sends a request of `bytes` bytes, at least DRV_HEAD_BYTES, which `key` identifies, from buffer `slot`, which is not
 * lent. Polls while the layer is busy. Its answer is waited for from now on: answered_at says when it came.
 */
DRV_INLINE int drv_ask(struct drv_requester *requester, uint32_t slot, size_t bytes, uint64_t key,
		       struct drv_fail *fail)
{
	struct drv_engine *engine = requester->progress.port.engine;
	struct drv_message *message = drv_ask_message(requester, slot, bytes, key);
	int code;

	requester->awaited = key;
	requester->answered_at = 0;
	while (DRV_UNLIKELY((code = drv_message_post(engine, requester->ops[slot].chan, message, slot)) ==
			    CADGE_BUSY))
		if (drv_progress_poll(&requester->progress, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	drv_progress_set(&requester->progress, slot, code);
	requester->posted++;
	requester->key_sum += key;
	return 0;
}

/* Whether the answer, which is waited for since `sent`, is lost: counts it. */
DRV_INLINE int drv_ask_lost(struct drv_requester *requester, uint64_t sent)
{
	if (DRV_LIKELY(requester->progress.check.reliable) || requester->answered_at ||
	    drv_clock_now(&requester->progress.port.engine->clock) - sent <= requester->patience)
		return 0;
	requester->lost++;
	return 1;
}

/* Polls until the answer is there. 1: it is lost; -1: *fail. */
DRV_INLINE int drv_ask_await(struct drv_requester *requester, struct drv_fail *fail)
{
	const uint64_t sent = requester->progress.check.reliable
				      ? 0
				      : drv_clock_now(&requester->progress.port.engine->clock);

	while (!requester->answered_at) {
		if (drv_progress_turn(&requester->progress, DRV_PROGRESS_WAIT_NS, fail))
			return -1;
		if (drv_ask_lost(requester, sent))
			return 1;
	}
	return 0;
}

/* Polls until no request is lent: the next ones are written to the same buffers. */
DRV_INLINE int drv_ask_reclaim(struct drv_requester *requester, struct drv_fail *fail)
{
	while (requester->progress.in_flight_count)
		if (drv_progress_poll(&requester->progress, fail))
			return -1;
	return 0;
}

/* Polls until the answer is there and nothing is lent. As of drv_ask_await. */
DRV_INLINE int drv_ask_finish(struct drv_requester *requester, struct drv_fail *fail)
{
	const int status = drv_ask_await(requester, fail);

	return status < 0 || drv_ask_reclaim(requester, fail) ? -1 : status;
}

/* One request and its answer; nothing is lent afterwards. 1: the answer is lost; -1: *fail. *span_out in ticks. */
int drv_call(struct drv_requester *requester, size_t bytes, uint64_t key, uint64_t *span_out,
	     struct drv_fail *fail);

/*
 * Asks once, in a pattern's own way, and records it in the measurement. 0; 1: the answer is lost; -1: *fail. *span_out:
 * what makes a warm-up steady, in ticks.
 */
typedef int (*drv_ask_fn)(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail);

/*
 * The steps of the role; which of them it is says requester->step. Verify calls `ask` exactly once: one call has to include all that
 * differs between operations.
 */
int drv_ask_verify(struct drv_role_run *run, uint64_t serial, drv_ask_fn ask, struct drv_fail *fail);
int drv_ask_warmup(struct drv_role_run *run, uint64_t cap_ns, drv_ask_fn ask, struct drv_fail *fail);

/* Inlined, as `ask` is. Leaves record->bytes to the pattern. */
DRV_INLINE int drv_ask_measure(struct drv_role_run *run, const drv_ask_fn ask, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	const uint64_t begin = drv_clock_now(clock), operations = drv_engine_operations(run->engine),
		       end = drv_engine_end(run->engine, begin, run->duration_ns);
	struct drv_requester *requester = run->state;
	const uint64_t lost = requester->lost, late = requester->late;
	struct drv_record *record = run->record;
	uint64_t ignored;

	requester->step = DRV_STEP_MEASURE;
	do {
		const int status = ask(run, &ignored, fail);

		if (status < 0)
			return -1;
		record->operations += status == 0;
	} while (drv_clock_now(clock) < end && record->operations < operations);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->lost = requester->lost - lost;
	record->late = requester->late - late;
	return 0;
}

/* Of the role's table, all that is the same in each pattern. */
#define DRV_ASK_ROLE                                                                                         \
	.measures = true, .stop = drv_requester_role_stop, .settle = drv_requester_role_settle,              \
	.phase = drv_requester_role_phase

#endif
