/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way, or both ways at once, on channel 0: the functions of their role
 * tables. A pattern writes `prepare` and `measure` itself, which say what is pushed, who sends, and what is recorded.
 *
 * Sending: messages leave as fast as the layer takes them, with at most `depth` of them lent to it at a time; or in
 * windows, of which none begins before the receiver has acknowledged the one before. A run ends with a control message
 * that carries the count. It is over when the receiver has confirmed, through the layer, how many messages it has: over a
 * reliable layer that is all of them.
 */
#ifndef DRV_PUSHER_H
#define DRV_PUSHER_H

#include "traffic/pushed.h"

/* What a push asks of a layer. */
void drv_push_need(uint64_t bytes, uint64_t depth, struct drv_needs *needs_out);
/* Whether its messages, and the control messages between them, can be sent. */
int drv_push_negotiate(uint64_t bytes, const struct drv_offer *offer, struct drv_fail *fail);

/* Who does what in this attempt. `windows`: where the time of each window goes; NULL: nowhere. */
int drv_pusher_prepare(struct drv_play *play, struct drv_push push, bool sends, bool receives,
		       struct drv_samples *windows, struct drv_fail *fail);
/* One run. Fills the totals of the record, and the histogram of windows where there is one. */
int drv_pusher_measure(struct drv_play *play, struct drv_fail *fail);

/* As in struct drv_role. */
void drv_pusher_stop(struct drv_play *play);
int drv_pusher_verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail);
int drv_pusher_warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail);
bool drv_pusher_settle(struct drv_play *play);
void drv_pusher_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out);

/* All members of a role table but name, prepare, measure and the bounds of its channels. */
#define DRV_PUSHER_ROLE                                                                                      \
	.acts = true, .state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop,                     \
	.verify = drv_pusher_verify, .warmup = drv_pusher_warmup, .settle = drv_pusher_settle,               \
	.serve = drv_pusher_serve, .drain = drv_pusher_drain, .phase = drv_pusher_phase
/* The same of one that only receives. */
#define DRV_PUSHED_ROLE                                                                                      \
	.state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop, .serve = drv_pusher_serve,        \
	.drain = drv_pusher_drain, .phase = drv_pusher_phase

#endif
