/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies between two roles: the functions of their role tables.
 * A pattern writes `prepare` itself, which says what is exchanged and where the samples go, and takes the rest from
 * here. The state of the acting role begins with a struct drv_requester; the other role is in server.h.
 */
#ifndef DRV_ROLES_H
#define DRV_ROLES_H

#include "launch/pattern.h"
#include "traffic/requester.h"
#include "traffic/server.h"

/* The form of a call between ends that can `both`: the layer's own, or made of messages. */
enum drv_form drv_call_form(const struct drv_ability *both);

/* What calls of these sizes ask of a layer: as messages, since what it grants is not known before it is opened. */
void drv_calls_need(uint64_t request_bytes, uint64_t reply_bytes, uint64_t depth,
		    struct drv_needs *needs_out);

/*
 * Whether messages of these sizes, and so many requests at a time, can be exchanged: 0, or -1 with what was wanted.
 * The words are for people: "message", "request", "reply".
 */
int drv_exchange_negotiate(const struct drv_exchange *exchange, const char *request, const char *reply,
			   const struct drv_offer *offer, struct drv_fail *fail);

/* The samples go to the pattern's first quantity. */
int drv_requester_role_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail);

/* As in struct drv_role. */
void drv_requester_role_stop(struct drv_play *play);
int drv_requester_role_verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail);
int drv_requester_role_warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail);
int drv_requester_role_measure(struct drv_play *play, struct drv_fail *fail);
bool drv_requester_role_settle(struct drv_play *play);
void drv_requester_role_phase(struct drv_play *play, const struct drv_phase *phase,
			      struct drv_counts *counts_out);

/* All members of a role table but name, prepare and the bounds of its channels. */
#define DRV_REQUESTER_ROLE                                                                                   \
	.acts = true, .state_bytes = sizeof(struct drv_requester), .stop = drv_requester_role_stop,          \
	.verify = drv_requester_role_verify, .warmup = drv_requester_role_warmup,                            \
	.measure = drv_requester_role_measure, .settle = drv_requester_role_settle,                          \
	.phase = drv_requester_role_phase

#endif
