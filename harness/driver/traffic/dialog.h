/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: the roles around a requester (asker.h) and a responder. A pattern
 * writes `prepare` of both roles, and the steps of the acting one; the rest of the role tables is here.
 *
 * The stock responder answers each request with as many bytes as its key asks for:
 *
 *	struct state {
 *		struct drv_dialog dialog;
 *		struct drv_asker asker;
 *		struct drv_responder responder;
 *	};
 *	drv_call(&state->asker, request_bytes, drv_ask_key(number, answer_bytes), &span, fail)
 *
 * harness/driver/tests/patterns/closed_loop.c is a whole pattern of that kind.
 */
#ifndef DRV_DIALOG_H
#define DRV_DIALOG_H

#include "traffic/answers.h"
#include "traffic/asker.h"
#include "launch/pattern.h"

/* Begins the state of both roles. */
struct drv_dialog {
	/* that of the role; the other one is NULL */
	struct drv_asker *asker;
	struct drv_answers *answers;
};

struct drv_responder {
	/* first: callbacks get a pointer to it */
	struct drv_answers answers;
	/* the one that is due, or was */
	struct drv_message answer;
	/* bytes; larger ones are refused */
	size_t answer_max;
	/* NULL, or called once, when the next answer has left */
	int (*after)(struct drv_responder *responder, struct drv_fail *fail);
};

/* The key of a request that asks for an answer of so many bytes. Numbers below 2^32 tell requests apart. */
static inline uint64_t drv_ask_key(uint64_t number, size_t answer_bytes)
{
	return number << 32 | (uint32_t)answer_bytes;
}

static inline size_t drv_ask_bytes(uint64_t key)
{
	return (uint32_t)key;
}

/* For a responder's `recv`: an answer with this key is due. */
DRV_INLINE void drv_responder_due(struct drv_responder *responder, uint64_t key)
{
	responder->answers.progress.port.due = true;
	responder->answer.key = key;
	responder->answer.written = false;
}

/*
 * For `prepare`, of the responder: starts it. Its answers have `answer_max` bytes at most. `recv` NULL: the stock one;
 * with one of the pattern's own, which calls drv_responder_due, all answers have `answer_max` bytes.
 */
int drv_dialog_responder(struct drv_play *play, struct drv_responder *responder, drv_recv_fn recv,
			 size_t answer_max, bool touch, struct drv_fail *fail);

/* The same for a pattern that writes its answers itself, and has a `drain` of its own. */
int drv_dialog_answers(struct drv_play *play, struct drv_answers *answers, drv_recv_fn recv,
		       size_t answer_max, bool touch, struct drv_fail *fail);

/* For `prepare`, of the requester. `recv` NULL: the stock one. Else as of asker.h. */
int drv_dialog_requester(struct drv_play *play, struct drv_asker *asker, drv_recv_fn recv, uint32_t slots,
			 size_t request_max, bool touch, struct drv_fail *fail);

/* One request and its answer; nothing is lent afterwards. 1: the answer is lost; -1: *fail. *span_out in ticks. */
int drv_call(struct drv_asker *asker, size_t bytes, uint64_t key, uint64_t *span_out, struct drv_fail *fail);

/* As in struct drv_role: `phase` is that of both roles, `serve` and `drain` those of a struct drv_responder. */
bool drv_dialog_settle(struct drv_play *play);
void drv_dialog_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out);
int drv_responder_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_responder_drain(struct drv_play *play, struct drv_fail *fail);

#endif
