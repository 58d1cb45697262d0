/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bindings: made, entered in the table where client.c looks for them, ended. The table is a hash with linear
 * probing (Knuth, The Art of Computer Programming 3, section 6.4); identifiers are random, so they need no hashing.
 */
#include "peer.h"
#include "slot.h"

#include <stdlib.h>

/* ---- the table ---- */

struct pgr_peer *pgr_peer_of(struct pgr *pgr, uint64_t client)
{
	for (uint64_t i = client & pgr->peers_mask;; i = (i + 1) & pgr->peers_mask) {
		struct pgr_peer *peer = pgr->by_hash[i];

		if (!peer || PGR_LIKELY(peer->client == client))
			return peer;
	}
}

static void enter(struct pgr *pgr, struct pgr_peer *peer)
{
	uint64_t i = peer->client & pgr->peers_mask;

	while (pgr->by_hash[i])
		i = (i + 1) & pgr->peers_mask;
	pgr->by_hash[i] = peer;
}

/* What lies behind it moves up, where it would not be found beyond a gap: Knuth's algorithm R. */
static void remove_from_table(struct pgr *pgr, const struct pgr_peer *peer)
{
	const uint64_t mask = pgr->peers_mask;
	uint64_t gap = peer->client & mask;

	while (pgr->by_hash[gap] != peer)
		gap = (gap + 1) & mask;
	for (uint64_t i = (gap + 1) & mask; pgr->by_hash[i]; i = (i + 1) & mask) {
		const uint64_t wanted = pgr->by_hash[i]->client & mask;

		if (((i - wanted) & mask) < ((i - gap) & mask))
			continue; /* it begins behind the gap */
		pgr->by_hash[gap] = pgr->by_hash[i];
		gap = i;
	}
	pgr->by_hash[gap] = NULL;
}

/* ---- binding ---- */

bool pgr_read_address(const struct pgr *pgr, const void *address, size_t address_bytes, struct pgr_to *to_out)
{
	*to_out = (struct pgr_to){{0}};
	if (!address_bytes || address_bytes > sizeof(to_out->bytes))
		return false;
	memcpy(to_out->bytes, address, address_bytes);
	return !pgr->wire->ops->is_address || pgr->wire->ops->is_address(pgr->wire, to_out);
}

int pgr_bind(struct pgr *pgr, const void *address, size_t address_bytes, struct pgr_peer **peer_out)
{
	struct pgr_peer *peer;
	struct pgr_to to;
	int code;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!pgr_read_address(pgr, address, address_bytes, &to))
		return PGR_E_ARGUMENT;
	if (pgr->peers_count == pgr->config.peers_max)
		return PGR_E_FULL;
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
	peer->next = pgr->peers;
	peer->back = &pgr->peers;
	if (pgr->peers)
		pgr->peers->back = &peer->next;
	pgr->peers = peer;
	pgr->peers_count++;
	enter(pgr, peer);
	*peer_out = peer;
	return PGR_OK;
}

void pgr_unbind(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;

	if (peer->closing)
		return;
	/* It may be one of the binding's own continuations that calls: the rest waits for the next poll. */
	pgr_flush_callers_data(pgr);
	peer->closing = true;
	if (pgr->recent_peer == peer)
		pgr->recent_peer = NULL;
	pgr->peers_count--;
	remove_from_table(pgr, peer);
	pgr_peer_busy(peer);
	pgr_tick_soon(pgr);
}

void pgr_peer_end(struct pgr_peer *peer)
{
	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1)
		pgr_slot_end(peer->slots[__builtin_ctzll(busy)], PGR_E_CLOSED, NULL, 0);
	for (uint64_t unacked = peer->unacked; unacked; unacked &= unacked - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(unacked)];

		slot->in.packets = 1;
		pgr_slot_ack(slot, &peer->to, false, slot->claimed);
	}
	pgr_peer_idle(peer);
	*peer->back = peer->next;
	if (peer->next)
		peer->next->back = peer->back;
	free(peer);
}
