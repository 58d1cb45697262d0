/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns whose requester asks one thing at a time (ask.h): the role that answers. Its state begins with a
 * struct drv_responder. It answers each request with as many bytes as its key asks for, or as a `recv` of the pattern's
 * own has it.
 */
#ifndef DRV_STOCK_RESPONDER_H
#define DRV_STOCK_RESPONDER_H

#include "traffic/answers.h"

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

/* For a responder's `recv`: an answer with this key is due. */
DRV_INLINE void drv_responder_due(struct drv_responder *responder, uint64_t key)
{
	responder->answers.progress.port.due = true;
	responder->answer.key = key;
	responder->answer.written = false;
}

/*
 * For `prepare`: starts it. Its answers have `answer_max` bytes at most. `recv` NULL: the stock one; with one of the
 * pattern's own, which calls drv_responder_due, all answers have `answer_max` bytes.
 */
int drv_responder_start(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			struct drv_fail *fail);

/* The same for a pattern that writes its answers itself, and has a `drain` of its own: its state begins with a struct drv_answers. */
int drv_responder_answers(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			  struct drv_fail *fail);

/* As in struct drv_role; `phase` for both kinds of states. */
int drv_responder_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_responder_drain(struct drv_play *play, struct drv_fail *fail);
void drv_responder_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out);

#endif
