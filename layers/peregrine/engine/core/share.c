/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server has for all, and how much of it one host may hold (on shm: one process): PROTOCOL.md, "Memory". The
 * rule is the dynamic threshold of switches with a shared memory (Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998): nobody holds more than is still free. So one alone gets half, and there is always room for
 * another one.
 */
#include "clients.h"

#include <stdlib.h>

/* The smallest part of an address that says whose it is: wire.h. */
static uint32_t holder_of(const struct pgr_to *to)
{
	uint32_t who;

	memcpy(&who, to->bytes, sizeof(who));
	return who;
}

static struct pgr_share **place_of(struct pgr *pgr, uint32_t who)
{
	return &pgr->shares[pgr_mixed(pgr, who) & pgr->clients_mask];
}

struct pgr_share *pgr_share_get(struct pgr *pgr, const struct pgr_to *to)
{
	const uint32_t who = holder_of(to);
	struct pgr_share **place = place_of(pgr, who), *share;

	for (share = *place; share && share->who != who;)
		share = share->next;
	if (!share) {
		share = calloc(1, sizeof(*share));
		if (!share)
			return NULL;
		share->who = who;
		share->next = *place;
		*place = share;
	}
	share->users++;
	return share;
}

void pgr_share_put(struct pgr *pgr, struct pgr_share *share)
{
	struct pgr_share **at;

	if (!share || --share->users)
		return;
	for (at = place_of(pgr, share->who); *at != share;)
		at = &(*at)->next;
	*at = share->next;
	free(share);
}

/* ---- silent clients ---- */

static void queue_add(struct pgr_queue *queue, unsigned int which, struct pgr_client *client)
{
	client->before[which] = queue->last;
	client->behind[which] = NULL;
	*(queue->last ? &queue->last->behind[which] : &queue->first) = client;
	queue->last = client;
}

static void queue_remove(struct pgr_queue *queue, unsigned int which, struct pgr_client *client)
{
	struct pgr_client *before = client->before[which], *behind = client->behind[which];

	*(before ? &before->behind[which] : &queue->first) = behind;
	*(behind ? &behind->before[which] : &queue->last) = before;
}

void pgr_share_enter(struct pgr *pgr, struct pgr_share *share, struct pgr_client *client)
{
	client->share = share;
	share->clients++;
	client->queued_ns = pgr->now_ns;
	queue_add(&pgr->silent, PGR_OF_ALL, client);
	queue_add(&share->silent, PGR_OF_SHARE, client);
}

void pgr_share_leave(struct pgr *pgr, struct pgr_client *client)
{
	queue_remove(&pgr->silent, PGR_OF_ALL, client);
	queue_remove(&client->share->silent, PGR_OF_SHARE, client);
	client->share->clients--;
	pgr_share_put(pgr, client->share);
	client->share = NULL;
}

void pgr_client_requeue(struct pgr *pgr, struct pgr_client *client)
{
	queue_remove(&pgr->silent, PGR_OF_ALL, client);
	queue_remove(&client->share->silent, PGR_OF_SHARE, client);
	client->queued_ns = pgr->now_ns;
	queue_add(&pgr->silent, PGR_OF_ALL, client);
	queue_add(&client->share->silent, PGR_OF_SHARE, client);
}
