/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients that a server knows: first contact and cookies (PROTOCOL.md, "First contact"), and who is forgotten for whom. */
#include "clients.h"
#include "work.h"

#include <stdlib.h>

#define CHECK_NS   UINT64_C(100000000)
#define LOOKED_MAX 64u

/* ---- answers of one packet ---- */

void pgr_server_answer(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to, uint8_t type,
		       uint32_t procedure, uint32_t packet_bytes, uint16_t credits)
{
	const struct pgr_header head = {
		.type = type,
		.version = PGR_VERSION,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.credits = credits,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = pgr->incarnation,
		.procedure = procedure,
		.packet_bytes = packet_bytes,
	};

	pgr_send(pgr, from, &head, 0, NULL, 0, false);
}

void pgr_server_reject(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
		       uint32_t reason)
{
	pgr->stats.rejects_sent++;
	pgr_server_answer(pgr, from, to, PGR_REJECT, reason, 0, 0);
}

/*
 * In the asker's own version, of which only the header is known to be as ours. Who has not our key gets no right check:
 * else anybody could have a refusal made for others. He gets one that is wrong, or none, as his own packet was, so that
 * a packet which was only damaged ends no call.
 */
void pgr_server_refuse(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
		       enum pgr_fault why)
{
	struct pgr_header head = {
		.type = PGR_REJECT,
		.version = to->version,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = to->incarnation,
		.procedure = why == PGR_FAULT_VERSION ? PGR_REJECT_VERSION : PGR_REJECT_NOT_AUTHORISED,
	};

	pgr->stats.rejects_sent++;
	if (why == PGR_FAULT_VERSION) {
		pgr_send(pgr, from, &head, 0, NULL, 0, false);
	} else {
		const uint8_t no_check[PGR_CHECK_BYTES] = {0};
		const struct pgr_piece pieces[] = {{&head, sizeof(head)}, {no_check, sizeof(no_check)}};

		head.flags = to->flags & PGR_FLAG_KEYED;
		pgr_le_header(&head, &head);
		pgr->stats.packets_sent++;
		pgr->wire->ops->send(pgr->wire, from, pieces, head.flags ? 2 : 1, false);
	}
}

/* ---- who is known ---- */

/* Clients choose their identifiers: mixed, so that nobody makes them all lie in one list. */
static struct pgr_client **bucket_of(struct pgr *pgr, uint64_t id)
{
	return &pgr->buckets[pgr_keyed_hash(pgr, id) & pgr->clients_mask];
}

struct pgr_client *pgr_client_of(struct pgr *pgr, uint64_t id)
{
	struct pgr_client *client = pgr->recent;

	if (PGR_LIKELY(client && client->id == id))
		return client;
	for (client = *bucket_of(pgr, id); client && client->id != id;)
		client = client->next;
	if (client)
		pgr->recent = client;
	return client;
}

void pgr_client_abandon(struct pgr *pgr, struct pgr_client_slot *slot)
{
	struct pgr_work *work = slot->work;

	slot->work = NULL;
	if (!work)
		return;
	if (work->state == PGR_WORK_REPLIED || work->state == PGR_WORK_REPLYING) {
		if (work->delegated) { /* its result belongs to another client, who will say so */
			work->client = NULL;
			return;
		}
		pgr_result_acked(pgr, work);
		return;
	}
	pgr_work_free(pgr, work);
}

void pgr_client_forget(struct pgr *pgr, struct pgr_client *client)
{
	struct pgr_client **at = bucket_of(pgr, client->id);

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	for (unsigned int i = 0; i < PGR_SLOTS; i++)
		pgr_client_abandon(pgr, &client->slots[i]);
	if (pgr->recent == client)
		pgr->recent = NULL;
	pgr->clients_count--;
	pgr_quota_leave(pgr, client);
	free(client);
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
	return !client->lost && pgr->now_ns - client->last_packet_ns > PGR_COOKIE_LIFE_NS &&
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
		pgr->next_check_ns = pgr->now_ns + CHECK_NS;
	return client;
}

/* Whether the table of clients has a place for one more of this share; for it, one that is silent may be forgotten. */
static bool has_place(struct pgr *pgr, const struct pgr_quota *quota)
{
	struct pgr_client *silent;

	if (quota->clients < pgr->config.clients_max - pgr->clients_count)
		return true;
	if (pgr->now_ns < pgr->next_check_ns)
		return false;
	silent = quota->clients ? longest_silent(pgr, &quota->silent, PGR_OF_QUOTA)
				: longest_silent(pgr, &pgr->silent, PGR_OF_ALL);
	if (silent)
		pgr_client_forget(pgr, silent);
	return silent != NULL;
}

/* ---- first contact ---- */

static uint64_t cookie_of(const struct pgr *pgr, const struct pgr_to *from, uint64_t id, uint64_t epoch)
{
	uint8_t room[sizeof(*from) + 2 * sizeof(uint64_t)];
	uint64_t cookie;

	memcpy(room, from, sizeof(*from));
	memcpy(room + sizeof(*from), &id, sizeof(id));
	memcpy(room + sizeof(*from) + sizeof(id), &epoch, sizeof(epoch));
	cookie = pgr_hash(pgr->secret, room, sizeof(room));
	return cookie ? cookie : 1;
}

static uint64_t epoch_of(const struct pgr *pgr)
{
	return pgr->now_ns / (PGR_COOKIE_EPOCH_S * UINT64_C(1000000000));
}

static bool cookie_is_right(const struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet)
{
	const uint64_t epoch = epoch_of(pgr);

	return packet->cookie && packet->head.incarnation == pgr->incarnation &&
	       (packet->cookie == cookie_of(pgr, from, packet->head.client, epoch) ||
		packet->cookie == cookie_of(pgr, from, packet->head.client, epoch - 1));
}

static PGR_COLD void challenge(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to)
{
	const uint64_t cookie = cookie_of(pgr, from, to->client, epoch_of(pgr));
	const uint64_t memory_ms = pgr->config.memory_ns / 1000000;
	const struct pgr_header head = {
		.type = PGR_CHALLENGE,
		.version = PGR_VERSION,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = pgr->incarnation,
		/* where the wire has parts of many sizes, it is no limit */
		.credits = (uint16_t)(pgr->reliable                    ? 0
				      : pgr->packet_bytes < UINT16_MAX ? pgr->packet_bytes
								       : UINT16_MAX),
		.procedure = to->incarnation,
		.message_bytes = (uint32_t)cookie,
		.packet_number = (uint32_t)(cookie >> 32),
		.packet_bytes = memory_ms < UINT32_MAX ? (uint32_t)memory_ms : UINT32_MAX,
	};

	pgr->stats.challenges_sent++;
	pgr_send(pgr, from, &head, 0, NULL, 0, false);
}

bool pgr_cookie_shown(struct pgr *pgr, struct pgr_client *client, const struct pgr_to *from,
		      const struct pgr_packet *packet)
{
	pgr_now(pgr); /* cookies age */
	if (packet->head.type == PGR_CALL && cookie_is_right(pgr, from, packet))
		return true;
	if (client)
		client->challenged_ns = pgr->now_ns;
	challenge(pgr, from, &packet->head);
	return false;
}

void pgr_on_contact(struct pgr *pgr, pgr_contact *contact, void *arg)
{
	pgr->contact = contact;
	pgr->contact_arg = arg;
}

struct pgr_client *pgr_client_first_contact(struct pgr *pgr, struct pgr_client *client,
					    const struct pgr_to *from, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_quota *quota;
	void *data = client ? client->data : NULL;

	if (head->type != PGR_CALL && head->type != PGR_PROBE)
		return NULL;
	if (!pgr_cookie_shown(pgr, client, from, packet))
		return NULL;
	if (pgr->contact && pgr->contact(pgr->contact_arg, head->client, from->bytes, &data) != 0) {
		pgr_server_reject(pgr, from, head, PGR_REJECT_NOT_AUTHORISED);
		return NULL;
	}
	quota = pgr_quota_get(pgr, from);
	if (client && quota) { /* the same binding at a new address */
		pgr_quota_leave(pgr, client);
		pgr_quota_enter(pgr, quota, client);
		client->to = *from;
		client->data = data;
		return client;
	}
	client = quota && has_place(pgr, quota) ? calloc(1, sizeof(*client)) : NULL;
	if (!client) {
		pgr_quota_put(pgr, quota);
		pgr_server_reject(pgr, from, head, PGR_REJECT_BUSY);
		return NULL;
	}
	client->data = data;
	pgr_quota_enter(pgr, quota, client);
	client->id = head->client;
	client->active = pgr->period - 1;
	client->to = *from;
	client->next = *bucket_of(pgr, client->id);
	*bucket_of(pgr, client->id) = client;
	pgr->clients_count++;
	if (pgr->clients_active < pgr->clients_count)
		pgr->clients_active++;
	pgr_credits_divide(pgr);
	pgr->recent = client;
	return client;
}
