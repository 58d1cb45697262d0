/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for threads that share one connection: one context, one channel, and a lock of the driver's, since adapters
 * have none. The contract gives a context to one thread; what is below may allow several, one at a time, and where it does
 * not, the layer's file has a limit that says so.
 *
 * Each thread has a slot: a table of ours with a context and a channel of its own, on which a requester runs as on
 * any layer. Its post and call take the lock, and so does its poll; whoever polls finds replies of others too, and hands
 * each to whose it is: a note, with a copy of what is not placed in its memory already. Whose it is says the token.
 *
 * Who polls: each thread for itself (direct), or one more thread for all, which dispatches (dispatched).
 *
 * Who sleeps, in block mode: one of them, the leader, on the layer's descriptor (EVENT_FD), without the lock; all others,
 * the followers, each on a word of its own. Whoever hands a thread a note wakes it, and whoever comes to sleep where
 * nobody leads is the leader. As long as one of them is awake it comes to that; the last one to leave wakes another. What
 * a thread did to the context while the leader slept may have undone what the leader had armed, so that it arms again
 * before it sleeps, under the lock, and takes the lead where work is due earlier than the leader gets up.
 */
#ifndef DRV_SHARED_CONNECTION_H
#define DRV_SHARED_CONNECTION_H

#include "engine/engine.h"

/* Numbers of operations begin here at each slot, so that a token says whose it is. */
#define DRV_SHARED_NUMBER_BITS 40

struct drv_shared_connection;

/*
 * Slots on channel 0 of an engine, whose thread makes and ends it. Each has up to `depth` operations outstanding, whose
 * replies have up to `message_bytes`. The engine's sink, between steps too, is to be that of drv_shared_connection_sink.
 */
int drv_shared_connection_make(struct drv_engine *engine, uint32_t slots, uint32_t depth,
			       size_t message_bytes, bool dispatched,
			       struct drv_shared_connection **shared_out, struct drv_fail *fail);
/* Legal with NULL. */
void drv_shared_connection_free(struct drv_shared_connection *shared);
struct cadge_sink *drv_shared_connection_sink(struct drv_shared_connection *shared);

/* Puts the table, the context and the channel of a slot in the place of the layer's in `engine`, a copy of its own. */
void drv_shared_connection_take(struct drv_shared_connection *shared, uint32_t slot,
				struct drv_engine *engine);
/* The first number of a slot's operations. */
static inline uint64_t drv_shared_connection_first_number(uint32_t slot)
{
	return (uint64_t)slot << DRV_SHARED_NUMBER_BITS;
}
/* A slot's thread does nothing more in this step. Somebody else sleeps on the descriptor from now on. */
void drv_shared_connection_leave(struct drv_shared_connection *shared, uint32_t slot);

/*
 * For who dispatches: polls, and where that found nothing, in block mode, sleeps until there is something or timeout_ns
 * passed. Events found, or a negative code.
 */
int drv_shared_connection_dispatch(struct drv_shared_connection *shared, uint64_t timeout_ns);
/* Ends its sleep. Nothing is asked of the context. */
void drv_shared_connection_wake(struct drv_shared_connection *shared);

/* Replies that were nobody's, or more than anybody had asked for. */
uint64_t drv_shared_connection_stale(const struct drv_shared_connection *shared);

#endif
