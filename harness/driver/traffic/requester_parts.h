/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the requester: how an operation is handed over, and the loop, inlined wherever that is timed. For the files
 * of the requester, and for patterns whose operations start in a way of their own: DRV_REQUESTER_LOOP compiles the loop
 * around a function that starts what may start.
 */
#ifndef DRV_REQUESTER_PARTS_H
#define DRV_REQUESTER_PARTS_H

#include "traffic/requester.h"

#define DRV_REQUESTER_SLOT_MASK ((UINT64_C(1) << DRV_REQUESTER_SLOT_BITS) - 1)

static inline uint64_t drv_requester_token(uint64_t number, uint32_t slot)
{
	return number << DRV_REQUESTER_SLOT_BITS | slot;
}

DRV_INLINE void drv_requester_make_ready(struct drv_requester *requester, uint32_t index)
{
	requester->ready[requester->ready_tail++ & requester->ready_mask] = index;
}

/* The slot that starts next, and how many may start. */
DRV_INLINE uint32_t drv_requester_next(const struct drv_requester *requester)
{
	return requester->ready[requester->ready_head & requester->ready_mask];
}

DRV_INLINE uint32_t drv_requester_free(const struct drv_requester *requester)
{
	return requester->ready_tail - requester->ready_head;
}

static inline uint64_t drv_requester_outstanding(const struct drv_requester *requester)
{
	return requester->posted - requester->completed - requester->lost;
}

/* Whether this phase is over at that instant, of which no completion tells. */
static inline bool drv_requester_over(struct drv_requester *requester, uint64_t now)
{
	if (requester->step == DRV_STEP_WARMUP)
		return drv_warmup_expired(&requester->warmup, now);
	return now >= requester->end;
}

/* The layer failed: nothing new is started. */
static inline void drv_requester_fail(struct drv_requester *requester, const char *what, int code)
{
	drv_progress_fail(&requester->progress, what, code);
	requester->ending = true;
}

/* ---- handing over ---- */

/* Writes a request with its body, for a full comparison or since the exchange touches its messages, and hands it over. */
int drv_requester_hand_written(struct drv_requester *requester, struct drv_op *op, uint32_t flags,
			       uint64_t token);

/* Hands over the request that lies in the slot. Codes as of post and call. */
DRV_INLINE int drv_requester_hand(const struct drv_requester *requester, const struct drv_op *op,
				  const enum drv_form form, uint32_t flags, uint64_t token)
{
	const struct cadge_layer *layer = requester->progress.port.engine->layer;
	const struct cadge_iov iov = {op->payload,
				      (size_t)drv_form_bytes(form, requester->exchange.request_bytes)};
	const struct cadge_iov result = {op->result, (size_t)requester->exchange.reply_bytes};

	return form == DRV_FORM_NATIVE
		       ? layer->call(op->chan, 1, &iov, 1, &result, requester->places, flags, token)
		       : layer->post(op->chan, &iov, 1, flags, token);
}

/* After the layer took an operation, or said why not. 1: done; 0: it is busy; -1: failed. */
DRV_INLINE int drv_requester_handed(struct drv_requester *requester, const enum drv_form form, uint32_t index,
				    int code)
{
	struct drv_op *op = &requester->ops[index];

	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	if (DRV_UNLIKELY(code != CADGE_DONE && code != CADGE_QUEUED)) {
		drv_requester_fail(requester, form == DRV_FORM_NATIVE ? "call" : "post", code);
		return -1;
	}
	if (form != DRV_FORM_NATIVE && code == CADGE_QUEUED)
		drv_progress_set(&requester->progress, index, code);
	op->waiting = true;
	op->filled = false;
	requester->key_sum += op->key;
	if (DRV_UNLIKELY(++requester->posted == requester->limit))
		requester->ending = true;
	return 1;
}

/* Hands over the operation that starts next. 1: done; 0: the layer is busy; -1: failed. */
DRV_INLINE int drv_requester_issue(struct drv_requester *requester, const enum drv_form form,
				   const uint32_t flags)
{
	const uint32_t index = drv_requester_next(requester);
	struct drv_op *op = &requester->ops[index];
	const size_t bytes = (size_t)requester->exchange.request_bytes;
	const uint64_t number = requester->next_number;
	const uint64_t token = drv_requester_token(number, index);
	int code, status;

	op->number = number;
	if (DRV_UNLIKELY(requester->progress.check.reads)) {
		op->key = drv_key_of(bytes, requester->exchange.seed, number);
		code = drv_requester_hand_written(requester, op, flags, token);
	} else {
		op->key = drv_head_write(op->payload, bytes, requester->exchange.seed, number);
		if (form == DRV_FORM_EMULATED)
			drv_trailer_write(op->payload, bytes, token, DRV_RPC_REQUEST);
		code = drv_requester_hand(requester, op, form, flags, token);
	}
	status = drv_requester_handed(requester, form, index, code);
	requester->next_number += status > 0;
	requester->ready_head += status > 0;
	return status;
}

/* Hands over all that may start. 0: the layer is busy, or it failed; 1: else. */
DRV_INLINE int drv_requester_issue_all(struct drv_requester *requester, const enum drv_form form)
{
	while (requester->ready_head != requester->ready_tail && DRV_LIKELY(!requester->ending))
		if (DRV_UNLIKELY(drv_requester_issue(requester, form, 0) <= 0))
			return 0;
	return 1;
}

/* ---- the loop ---- */

/* Starts what may start. 0: the layer is busy, or it failed; 1: else. */
typedef int (*drv_start_fn)(struct drv_requester *requester, enum drv_form form);
/* How long a loop in which nothing happens may sleep, at most `most_ns`. */
typedef uint64_t (*drv_until_fn)(const struct drv_requester *requester, uint64_t most_ns);

DRV_INLINE int drv_requester_loop(struct drv_requester *requester, const enum drv_form form,
				  const drv_start_fn start, const drv_until_fn until, struct drv_fail *fail)
{
	struct drv_engine *engine = requester->progress.port.engine;
	const struct cadge_layer *layer = engine->layer;
	uint64_t wait_ns = engine->sleep_ns ? engine->sleep_ns : DRV_PROGRESS_WAIT_NS;

	if (!requester->progress.check.reliable)
		wait_ns = drv_clock_to_ns(&engine->clock, requester->patience) / 2;
	if (!engine->block)
		wait_ns = 0;
	for (;;) {
		const int taken = start(requester, form);
		uint64_t before, sleep_ns = wait_ns;
		int events, status;

		if (DRV_UNLIKELY(requester->ending)) {
			if (requester->progress.failed) {
				*fail = requester->progress.fail;
				return -1;
			}
			if (drv_requester_is_idle(requester))
				return 0;
		}
		before = requester->completed;
		events = layer->poll(engine->ctx, requester->progress.sink);
		if (DRV_LIKELY(requester->completed != before))
			continue;
		/* a busy layer is waited for like a reply: it ends the wait when it takes more */
		if (until && taken && sleep_ns && events == 0)
			sleep_ns = until(requester, wait_ns);
		status = drv_progress_idle(engine, events, sleep_ns, &requester->progress.idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0 || drv_requester_poll_oob(requester, fail))
			return -1;
	}
}

/* A loop of calls, compiled for each of their forms, so that it is asked nowhere inside. */
#define DRV_REQUESTER_LOOP(name, start, until)                                                               \
	static int __attribute__((noinline)) name##_emulated(struct drv_requester *requester,                \
							     struct drv_fail *fail)                          \
	{                                                                                                    \
		return drv_requester_loop(requester, DRV_FORM_EMULATED, start, until, fail);                 \
	}                                                                                                    \
	static int __attribute__((noinline)) name##_native(struct drv_requester *requester,                  \
							   struct drv_fail *fail)                            \
	{                                                                                                    \
		return drv_requester_loop(requester, DRV_FORM_NATIVE, start, until, fail);                   \
	}                                                                                                    \
	static int name(struct drv_requester *requester, struct drv_fail *fail)                              \
	{                                                                                                    \
		return requester->exchange.form == DRV_FORM_NATIVE ? name##_native(requester, fail)          \
								   : name##_emulated(requester, fail);       \
	}

/* ---- requester_replies.c ---- */

/* Sets the callbacks for the requester's exchange. */
void drv_requester_listen(struct drv_requester *requester);

/* ---- requester_loop.c ---- */

/* Starts all slots and runs the loop of this phase. */
int drv_requester_run(struct drv_requester *requester, struct drv_fail *fail);

/* ---- reply_thread.c ---- */

/* Starts the other thread where the exchange has one. */
int drv_reply_thread_start(struct drv_requester *requester, struct drv_fail *fail);
/* Ends it, wherever it is: the owner has all slots again, and the layer what it lent. Legal without. */
void drv_reply_thread_stop(struct drv_requester *requester);
/* Before a run of the loop. */
void drv_reply_thread_begin(struct drv_requester *requester);
/* A slot may start: whether the other thread makes calls, and has it now. */
bool drv_reply_thread_starts(struct drv_requester *requester, uint32_t index);
/*
 * The reply of a slot is here, and goes to the other thread. Where that one looks at it where the layer has it, it stays lent;
 * what is not lent, and what is wanted elsewhere, is copied here, in the delivery context.
 */
enum cadge_keep drv_reply_thread_pass_on(struct drv_requester *requester, uint32_t index, const void *data,
					 size_t bytes, struct cadge_lend *lend);
/* The operation of a slot was lost. */
void drv_reply_thread_lose(struct drv_requester *requester, uint32_t index);
/* A slot is free, with nothing of it on the way: whoever makes the calls has it, or will get it. */
void drv_reply_thread_free_again(struct drv_requester *requester, uint32_t index);
/* Takes what the other thread has given back: slots that are free, and calls of its own, which are handed over. As of start. */
int drv_reply_thread_collect(struct drv_requester *requester);

#endif
