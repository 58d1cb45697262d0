/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size of packets. There are two: the smaller of both ends' limits, and 1,200 bytes, where a path lets no larger ones
 * through; PROTOCOL.md, "Size of packets". It is the client who sees to it, for both ways: it alone waits.
 */
#include "peer.h"
#include "slot.h"

uint32_t pgr_result_size(const struct pgr *pgr, uint32_t taken)
{
	const uint32_t bytes = taken & ~UINT32_C(7);

	if (pgr->reliable || !taken || bytes >= pgr->packet_bytes)
		return pgr->packet_bytes;
	return bytes < PGR_DATA_BYTES_MIN ? PGR_DATA_BYTES_MIN : bytes;
}

void pgr_peer_limit_packets(struct pgr_peer *peer, uint32_t data_bytes)
{
	if (data_bytes >= PGR_DATA_BYTES_MIN && data_bytes < peer->packet_bytes && !peer->pgr->reliable)
		peer->packet_bytes = data_bytes & ~UINT32_C(7);
}

bool pgr_slot_restart(struct pgr_slot *slot)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr_outgoing *out = &slot->out;
	const uint32_t packet_bytes = pgr_split(peer->pgr, peer->packet_bytes, out->bytes);
	int code;

	peer->under_way -= out->under_way;
	out->under_way = 0;
	if (packet_bytes == out->packet_bytes) {
		pgr_outgoing_restart(out);
		return true;
	}
	pgr_outgoing_end(out);
	code = pgr_outgoing_start(out, packet_bytes);
	if (code != PGR_OK)
		pgr_slot_end(slot, code, NULL, 0);
	return code == PGR_OK;
}

/* Whether the server lacks part of the call, by what it said. */
static bool is_wanted(const struct pgr_slot *slot)
{
	return (slot->state == PGR_SLOT_CALLING || slot->state == PGR_SLOT_QUEUED) && !slot->alive &&
	       !slot->result_part_bytes &&
	       !(slot->out.next && pgr_outgoing_unacked(&slot->out) == PGR_PACKETS_MAX);
}

/* All calls that have not arrived begin anew. */
static void shrink(struct pgr_peer *peer)
{
	const uint32_t small_bytes = peer->pgr->small_bytes;

	peer->packet_bytes = small_bytes;
	peer->pgr->stats.bindings_shrunk++;
	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(busy)];

		if (!slot->delegating)
			slot->result_packet_bytes = small_bytes;
		if (slot->out.packet_bytes > small_bytes && slot->out.bytes > small_bytes &&
		    is_wanted(slot) && pgr_slot_restart(slot))
			peer->queued |= UINT64_C(1) << slot->number;
	}
	pgr_peer_send_queued(peer);
}

bool pgr_slot_large_open(const struct pgr_slot *slot)
{
	const struct pgr_outgoing *out = &slot->out;
	const uint32_t small_bytes = slot->peer->pgr->small_bytes;
	const uint32_t open = pgr_outgoing_unacked(out);

	if (slot->peer->pgr->reliable || out->packet_bytes <= small_bytes || !is_wanted(slot) ||
	    open == PGR_PACKETS_MAX)
		return false;
	return open + 1 < out->packets || out->bytes - open * out->packet_bytes > small_bytes;
}

bool pgr_slot_shrink(struct pgr_slot *slot)
{
	struct pgr_peer *peer = slot->peer;
	const bool of_result = slot->result_part_bytes && !slot->delegating;
	const bool before = of_result ? peer->large_came : peer->large_went;

	if ((!of_result && !pgr_slot_large_open(slot)) || peer->packet_bytes <= peer->pgr->small_bytes)
		return false;
	if (slot->large_timeouts < UINT8_MAX)
		slot->large_timeouts++;
	if (slot->large_timeouts < (before ? PGR_SILENT_LATER : PGR_SILENT_FIRST) ||
	    (!of_result && !slot->answered_since))
		return false;
	slot->large_timeouts = 0;
	shrink(peer);
	if (of_result)
		pgr_slot_probe(slot);
	return true;
}
