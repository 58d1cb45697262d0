/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with loops of their own: the side that answers what came, with one message at a time. The
 * layer may have one answer still while the next is written. See ask.h for the other side, stock_responder.h for its role.
 */
#ifndef DRV_ANSWERS_H
#define DRV_ANSWERS_H

#include "traffic/demux.h"
#include "traffic/progress.h"
#include "launch/pattern.h"

enum { DRV_ANSWERS = 2 };

/* Begins the state of the answering side. */
struct drv_answers {
	/* first: callbacks get a pointer to it; it checks requests. Who takes one that is to be answered sets its port.due. */
	struct drv_progress progress;
	struct cadge_chan *chan;
	/* of the engine's pool: DRV_ANSWERS of `stride` bytes */
	uint8_t *at;
	size_t stride;
	bool lent[DRV_ANSWERS];
	/* 0 or 1, in turn: so an answer that was written and not taken is the next */
	uint32_t next;
};

/* `recv` takes what comes, and `bytes` is an answer's size. The first phase is one that compares whole payloads. */
int drv_answers_start(struct drv_answers *answers, const struct drv_play *play, drv_recv_fn recv,
		      size_t bytes, bool touch, struct drv_fail *fail);

/* If an answer is due and possible: where to write it, and the token to post it with. Else NULL. */
DRV_INLINE uint8_t *drv_answers_next(struct drv_answers *answers, uint64_t *token_out)
{
	*token_out = DRV_TOKEN_SERVER | answers->next;
	return DRV_LIKELY(!answers->progress.port.due) || answers->progress.failed ||
			       answers->lent[answers->next]
		       ? NULL
		       : answers->at + answers->next * answers->stride;
}

/* After the layer took it, or said why not. False: it is busy, and the answer is due still. */
DRV_INLINE bool drv_answers_posted(struct drv_answers *answers, int code)
{
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return false;
	answers->progress.port.due = answers->progress.failed;
	drv_progress_lend(&answers->progress, answers->next, code);
	answers->next ^= 1;
	if (DRV_UNLIKELY(code < 0))
		drv_progress_fail(&answers->progress, "post", code);
	return true;
}

/* Posts this message as the answer, if that is due and possible: all of it but where it lies. True: it has left. */
DRV_INLINE bool drv_answers_post(struct drv_answers *answers, struct drv_message *message)
{
	uint64_t token;
	uint8_t *at = drv_answers_next(answers, &token);

	if (DRV_LIKELY(!at))
		return false;
	message->at = at;
	message->full = answers->progress.check.full;
	message->phase = answers->progress.check.phase;
	return drv_answers_posted(
		answers, drv_message_post(answers->progress.port.engine, answers->chan, message, token));
}

/* For drv_serve_loop: whether its drain has something to do. */
DRV_INLINE bool drv_answers_due(void *arg)
{
	return ((const struct drv_answers *)arg)->progress.port.due;
}

/* Ends a drain: 0, or -1 with the reason. */
DRV_INLINE int drv_answers_drained(const struct drv_answers *answers, struct drv_fail *fail)
{
	if (DRV_LIKELY(!answers->progress.failed))
		return 0;
	*fail = answers->progress.fail;
	return -1;
}

/* The role's `phase`. */
void drv_answers_phase(struct drv_answers *answers, const struct drv_phase *phase,
		       struct drv_counts *counts_out);

#endif
