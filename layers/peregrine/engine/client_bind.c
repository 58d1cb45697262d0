/* SPDX-License-Identifier: BSD-3-Clause */
/* Bindings: made, entered in the table where client.c looks for them, ended. */
#include "engine.h"

#include <stdlib.h>

static void hash_peers(struct pgr *pgr)
{
	memset(pgr->by_hash, 0, (pgr->peers_mask + UINT64_C(1)) * sizeof(struct pgr_peer *));
	for (struct pgr_peer *peer = pgr->peers; peer; peer = peer->next) {
		uint64_t i = peer->client & pgr->peers_mask;

		if (peer->closing)
			continue;
		while (pgr->by_hash[i])
			i = (i + 1) & pgr->peers_mask;
		pgr->by_hash[i] = peer;
	}
}

int pgr_bind(struct pgr *pgr, const void *address, size_t address_bytes, struct pgr_peer **peer_out)
{
	struct pgr_peer *peer;
	struct pgr_to to = {{0}};
	int code;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!address_bytes || address_bytes > sizeof(to.bytes))
		return PGR_E_ARGUMENT;
	if (pgr->peers_count == pgr->config.peers_max)
		return PGR_E_FULL;
	memcpy(to.bytes, address, address_bytes);
	code = pgr->wire->ops->reach ? pgr->wire->ops->reach(pgr->wire, &to) : PGR_OK;
	if (code != PGR_OK)
		return code;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return PGR_E_MEMORY;
	peer->pgr = pgr;
	peer->to = to;
	do
		peer->client = pgr_random();
	while (!peer->client);
	peer->free = UINT64_MAX;
	peer->flags = (uint8_t)(PGR_OWN_ORDER | (pgr->off & PGR_OFF_NO_CONVERSION ? PGR_FLAG_WORDS : 0u));
	peer->credits = PGR_CREDITS_FIRST;
	peer->packet_bytes = pgr->packet_bytes;
	for (unsigned int i = 0; i < PGR_SLOTS; i++) {
		struct pgr_slot *slot = &peer->slots[i];

		slot->peer = peer;
		slot->number = (uint8_t)i;
		slot->head = (struct pgr_header){
			.type = PGR_CALL,
			.flags = peer->flags,
			.version = PGR_VERSION,
			.slot = (uint16_t)i,
			.client = peer->client,
		};
	}
	peer->next = pgr->peers;
	pgr->peers = peer;
	pgr->peers_count++;
	hash_peers(pgr);
	pgr_share_out(pgr);
	*peer_out = peer;
	return PGR_OK;
}

void pgr_unbind(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;

	/* It may be one of the binding's own continuations that calls: the rest waits for the next poll. */
	pgr_let_go(pgr);
	peer->closing = true;
	if (pgr->recent_peer == peer)
		pgr->recent_peer = NULL;
	pgr->peers_count--;
	hash_peers(pgr);
	pgr_share_out(pgr);
	pgr_tick_soon(pgr);
}

void pgr_peer_end(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;
	struct pgr_peer **at;

	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1)
		pgr_slot_end(&peer->slots[__builtin_ctzll(busy)], PGR_E_CLOSED, NULL, 0);
	for (uint64_t unacked = peer->unacked; unacked; unacked &= unacked - 1) {
		struct pgr_slot *slot = &peer->slots[__builtin_ctzll(unacked)];

		slot->in.packets = 1;
		pgr_slot_ack(slot, &peer->to, false, slot->claimed);
	}
	for (at = &pgr->peers; *at != peer;)
		at = &(*at)->next;
	*at = peer->next;
	free(peer);
}
