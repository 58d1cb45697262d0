/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server has for all, and how much of it one host may hold (on shm: one process): PROTOCOL.md, "Memory". The
 * rule is the dynamic threshold of switches with a shared memory (Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998): nobody holds more than is still free. So one alone gets half, and there is always room for
 * another one.
 */
#include "engine.h"

#include <stdlib.h>

#define LOOK_NS    UINT64_C(100000000)
#define LOOKED_MAX 64u

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

/* ---- the pool ---- */

bool pgr_charge(struct pgr *pgr, struct pgr_work *work, size_t bytes)
{
	const uint64_t left = pgr->config.pool_bytes_max - pgr->stats.pool_bytes;
	struct pgr_share *share = work->share;

	if (!share && work->client)
		share = work->client->share;
	if (PGR_UNLIKELY(bytes > left || (share && share->pool_bytes + bytes > left)))
		return false;
	if (share && !work->share) {
		share->users++;
		work->share = share;
	}
	if (share)
		share->pool_bytes += bytes;
	pgr->stats.pool_bytes += bytes;
	work->charged_bytes += bytes;
	if (pgr->stats.pool_bytes > pgr->stats.pool_bytes_peak)
		pgr->stats.pool_bytes_peak = pgr->stats.pool_bytes;
	return true;
}

void pgr_uncharge(struct pgr *pgr, struct pgr_work *work)
{
	pgr->stats.pool_bytes -= work->charged_bytes;
	if (PGR_UNLIKELY(work->share != NULL)) {
		work->share->pool_bytes -= work->charged_bytes;
		pgr_share_put(pgr, work->share);
		work->share = NULL;
	}
	work->charged_bytes = 0;
}

/* ---- the table of clients ---- */

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

bool pgr_client_has_work(const struct pgr_client *client)
{
	for (unsigned int i = 0; i < PGR_SLOTS; i++)
		if (client->slots[i].work)
			return true;
	return false;
}

/*
 * Nothing of it is open or unacknowledged, so it will repeat nothing; and each cookie that it was given is dead, so no
 * old copy of its calls is executed either.
 */
static bool may_be_forgotten(const struct pgr *pgr, const struct pgr_client *client)
{
	return !client->lost && pgr->now_ns - client->heard_ns > PGR_COOKIE_LIFE_NS &&
	       pgr->now_ns - client->challenged_ns > PGR_COOKIE_LIFE_NS && !pgr_client_has_work(client);
}

/*
 * The longest silent of those that may be forgotten: one of its own makes place for another one, else anybody's. Where many
 * may not, not for each packet of a flood.
 */
static struct pgr_client *longest_silent(struct pgr *pgr, const struct pgr_queue *queue, unsigned int which)
{
	struct pgr_client *client = queue->first;
	uint32_t looked = 0;

	while (client && pgr->now_ns - client->queued_ns > PGR_COOKIE_LIFE_NS &&
	       !may_be_forgotten(pgr, client)) {
		client = client->behind[which];
		looked++;
	}
	if (client && pgr->now_ns - client->queued_ns <= PGR_COOKIE_LIFE_NS)
		client = NULL;
	if (!client || looked > LOOKED_MAX)
		pgr->next_look_ns = pgr->now_ns + LOOK_NS;
	return client;
}

bool pgr_share_has_place(struct pgr *pgr, const struct pgr_share *share)
{
	struct pgr_client *silent;

	if (share->clients < pgr->config.clients_max - pgr->clients_count)
		return true;
	if (pgr->now_ns < pgr->next_look_ns)
		return false;
	silent = share->clients ? longest_silent(pgr, &share->silent, PGR_OF_SHARE)
				: longest_silent(pgr, &pgr->silent, PGR_OF_ALL);
	if (silent)
		pgr_client_forget(pgr, silent);
	return silent != NULL;
}
