/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the client know of each other. Private to client*.c and batch.c; what is inlined in the path is here
 * and in client_issue.h.
 */
#ifndef DRV_CLIENT_PARTS_H
#define DRV_CLIENT_PARTS_H

#include "traffic/client.h"

#define DRV_CLIENT_SLOT_MASK ((UINT64_C(1) << DRV_CLIENT_SLOT_BITS) - 1)

DRV_INLINE void drv_client_make_ready(struct drv_client *client, uint32_t index)
{
	client->ready[client->ready_tail++ & client->ready_mask] = index;
}

static inline uint64_t drv_client_outstanding(const struct drv_client *client)
{
	return client->posted - client->completed - client->lost;
}

/* ---- client.c ---- */

/* The layer failed: nothing new is started. */
void __attribute__((cold)) drv_client_failure(struct drv_client *client, const char *what, int code);

/* ---- client_replies.c ---- */

/* Sets the callbacks for the client's exchange. */
void drv_client_listen(struct drv_client *client);

/* ---- client_loop.c ---- */

/* All slots may start at this moment. */
void drv_client_start_slots(struct drv_client *client);
/* Starts all slots and runs, as the mode says. */
int drv_client_run(struct drv_client *client, struct drv_fail *fail);

/* ---- client_phases.c ---- */

/* Where a measurement began; `started` in ticks. */
struct drv_client_begun {
	uint64_t started, completed, lost, late;
};

struct drv_client_begun drv_client_begin(const struct drv_client *client);
/* Fills the totals of all since then. It has not ended before `end` (ticks); 0: it ended with its last operation. */
void drv_client_total(const struct drv_client *client, const struct drv_client_begun *begun, uint64_t end,
		      struct drv_record *record);

/* ---- client_loss.c ---- */

/* A reply that nobody waits for: late after a loss, else something is wrong. */
void __attribute__((cold)) drv_client_stray(struct drv_client *client, const char *what, size_t bytes);

/* ---- client_away.c ---- */

/*
 * The reply of a slot is here, and goes to the client's other thread. Where that one looks at it where the layer has it,
 * it stays lent; what is not lent, and what is wanted elsewhere, is copied here, in the delivery context.
 */
enum cadge_keep drv_client_pass_on(struct drv_client *client, uint32_t index, const void *data, size_t bytes,
				   struct cadge_lend *lend);
/* A slot is free, with nothing of it on the way: whoever makes the calls has it, or will get it. */
void drv_client_free_again(struct drv_client *client, uint32_t index);
/* What the other thread has given back: calls of its own, and slots that are free. */
void drv_client_take_back(struct drv_client *client);
/*
 * Hands over all calls that the other thread has made, also when nothing new is to begin. 0: the layer is busy, or it
 * failed; 1: else.
 */
int drv_client_issue_made(struct drv_client *client);

#endif
