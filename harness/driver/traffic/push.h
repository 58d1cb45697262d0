/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way, or both ways at once: the functions of their role tables. A
 * pattern writes `prepare` and `measure` itself, which say what is pushed, who sends, and what is recorded.
 */
#ifndef DRV_PUSH_H
#define DRV_PUSH_H

#include "launch/pattern.h"
#include "traffic/receiver.h"
#include "traffic/sender.h"

/* The state of every role: it sends, or receives, or both on one context. */
struct drv_pusher {
	/* first: callbacks get a pointer to it; of use where it does both */
	struct drv_port port;
	struct drv_sender sender;
	struct drv_receiver receiver;
	bool sends, receives;
};

/* What a push asks of a layer. */
void drv_push_need(uint64_t bytes, uint64_t depth, struct drv_needs *needs_out);
/* Whether its messages, and the words between them, can be sent. */
int drv_push_negotiate(uint64_t bytes, const struct drv_offer *offer, struct drv_fail *fail);

/* Who does what in this attempt. `windows` as in drv_sender_start. */
int drv_pusher_prepare(struct drv_play *play, struct drv_push push, bool sends, bool receives,
		       struct drv_samples *windows, struct drv_fail *fail);

/* As in struct drv_role. */
void drv_pusher_stop(struct drv_play *play);
int drv_pusher_verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail);
int drv_pusher_warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail);
bool drv_pusher_settle(struct drv_play *play);
int drv_pusher_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
void drv_pusher_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out);

/* All members of a role table but name, prepare, measure and the bounds of its channels. */
#define DRV_PUSHER_ROLE                                                                                      \
	.acts = true, .state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop,                     \
	.verify = drv_pusher_verify, .warmup = drv_pusher_warmup, .settle = drv_pusher_settle,               \
	.serve = drv_pusher_serve, .phase = drv_pusher_phase
/* The same of one that only receives. */
#define DRV_PUSHED_ROLE                                                                                      \
	.state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop, .serve = drv_pusher_serve,        \
	.phase = drv_pusher_phase

#endif
