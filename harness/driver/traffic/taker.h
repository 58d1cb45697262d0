/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies: the client's other thread, a worker (see workers.h), where
 * replies are taken instead of in the delivery context. It is one of two:
 *
 *	wait	a caller: makes a call, gives it to the thread that owns the context, and is blocked until its reply
 *		comes. It writes the request and reads the reply.
 *	defer	a worker: continuations are queued to it. It reads the reply; the owner of the context makes the calls.
 *
 * Slots go to and fro between both threads, and belong to whoever has them; between two runs of the loop the owner has
 * all of them. What is lent of a reply stays lent until its slot is back.
 */
#ifndef DRV_TAKER_H
#define DRV_TAKER_H

#include "engine/engine.h"
#include "threads/workers.h"
#include "launch/negotiate.h"
#include "traffic/server.h"

struct drv_client;

struct drv_taker {
	/* replies are taken here, and calls are made here as well */
	bool on, calls;
	/* the owner's: slots that the other thread has */
	uint32_t has;
	/* the other thread's while it has a slot: nothing new is to begin, and what was wrong */
	bool ending;
	struct drv_check check;
};

/* What goes with the number of a slot, to the other thread. */
enum {
	DRV_TAKER_SLOTS = 0xffff,
	/* a reply is there; the operation was lost; else the slot is free, for a call of the other thread's own */
	DRV_TAKER_REPLY = 1 << 16,
	DRV_TAKER_LOST = 1 << 17,
	/* the layer has the request still: no other one can be written */
	DRV_TAKER_SENDING = 1 << 18,
	/* And back: there is a call to be handed over; nothing new is to begin. */
	DRV_TAKER_CALL = 1 << 19,
	DRV_TAKER_ENDING = 1 << 20,
};

/* Whether replies can be taken like that: 0, or -1 with what is lacking. */
int drv_taker_negotiate(const struct drv_exchange *exchange, const struct drv_ability *both,
			struct drv_fail *fail);

/* Starts the other thread where the exchange has one. */
int drv_taker_start(struct drv_client *client, struct drv_fail *fail);
/* Ends it, wherever it is: the owner has all slots again, and the layer what it lent. Legal without. */
void drv_taker_stop(struct drv_client *client);

/* Before a run of the loop. */
void drv_taker_begin(struct drv_client *client);
/* The owner gives a slot to the other thread. */
void drv_taker_give(struct drv_client *client, uint32_t index, uint32_t what);
/* The owner gets one back, with what goes with its number. False: there is none. */
bool drv_taker_get(struct drv_client *client, uint32_t *index_out, uint32_t *what_out);

#endif
