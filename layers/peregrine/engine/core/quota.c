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

static struct pgr_quota **place_of(struct pgr *pgr, uint32_t who)
{
	return &pgr->quotas[pgr_keyed_hash(pgr, who) & pgr->clients_mask];
}

struct pgr_quota *pgr_quota_get(struct pgr *pgr, const struct pgr_to *to)
{
	const uint32_t who = holder_of(to);
	struct pgr_quota **place = place_of(pgr, who), *quota;

	for (quota = *place; quota && quota->who != who;)
		quota = quota->next;
	if (!quota) {
		quota = calloc(1, sizeof(*quota));
		if (!quota)
			return NULL;
		quota->who = who;
		quota->next = *place;
		*place = quota;
	}
	quota->users++;
	return quota;
}

void pgr_quota_put(struct pgr *pgr, struct pgr_quota *quota)
{
	struct pgr_quota **at;

	if (!quota || --quota->users)
		return;
	for (at = place_of(pgr, quota->who); *at != quota;)
		at = &(*at)->next;
	*at = quota->next;
	free(quota);
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

void pgr_quota_enter(struct pgr *pgr, struct pgr_quota *quota, struct pgr_client *client)
{
	client->quota = quota;
	quota->clients++;
	client->queued_ns = pgr->now_ns;
	queue_add(&pgr->silent, PGR_OF_ALL, client);
	queue_add(&quota->silent, PGR_OF_QUOTA, client);
}

void pgr_quota_leave(struct pgr *pgr, struct pgr_client *client)
{
	queue_remove(&pgr->silent, PGR_OF_ALL, client);
	queue_remove(&client->quota->silent, PGR_OF_QUOTA, client);
	client->quota->clients--;
	pgr_quota_put(pgr, client->quota);
	client->quota = NULL;
}

void pgr_client_requeue(struct pgr *pgr, struct pgr_client *client)
{
	queue_remove(&pgr->silent, PGR_OF_ALL, client);
	queue_remove(&client->quota->silent, PGR_OF_QUOTA, client);
	client->queued_ns = pgr->now_ns;
	queue_add(&pgr->silent, PGR_OF_ALL, client);
	queue_add(&client->quota->silent, PGR_OF_QUOTA, client);
}
