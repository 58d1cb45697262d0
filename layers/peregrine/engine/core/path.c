/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call is repeated, or asked for: after its time-out, or before it, as later calls are answered. And the size of packets:
 * there are two, the smaller of both ends' limits, and 1,200 bytes, where a path lets no larger ones through; PROTOCOL.md, "Size
 * of packets". It is the client who sees to it, for both ways: it alone waits.
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

/* ---- repetition ---- */

void pgr_slot_timed_out(struct pgr_slot *slot)
{
	struct pgr_peer *peer = slot->peer;
	bool large;
	uint32_t open;

	if (slot->repeats < UINT8_MAX)
		slot->repeats++;
	peer->yield_packets = 0;    /* a reader of another make may not tell what is waited for */
	slot->sent_ns = 0;          /* Karn's rule */
	slot->code = PGR_E_GIVE_UP; /* nobody knows what becomes of this one, unless it is refused too */
	peer->pgr->stats.retransmissions++;
	if (pgr_slot_shrink(slot))
		return;
	if (slot->state == PGR_SLOT_TAKING) {
		const bool delegated = (slot->result_flags & PGR_FLAG_DELEGATED) != 0;

		/* a server that restarted meanwhile does not know what is spoken of, but answers a question */
		if (slot->repeats % 2 || delegated)
			pgr_slot_report(slot);
		if (slot->repeats % 2 == 0)
			pgr_slot_probe(slot);
		return;
	}
	open = pgr_outgoing_unacked(&slot->out);
	large = pgr_slot_large_open(slot);
	if (slot->alive || slot->result_part_bytes || peer->pgr->reliable ||
	    (slot->out.next && open == PGR_PACKETS_MAX)) {
		pgr_slot_probe(slot);
	} else if (slot->out.packets == 1 || !slot->out.next) {
		peer->under_way -= slot->out.under_way;
		pgr_outgoing_restart(&slot->out);
		pgr_slot_send(slot, true); /* this poll's end flushes */
	} else {
		pgr_slot_resend_packet(slot, open);
	}
	if (large) /* where it does not arrive, this does */
		pgr_slot_probe(slot);
}

/*
 * Calls of which nothing was heard while many that were sent later are answered: they are repeated before
 * their time-out, as blasts do it with packets. A procedure that takes its time costs a packet and a word
 * that it is alive.
 */
void pgr_peer_find_lost(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;

	peer->newest_searched = peer->newest;
	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(busy)];
		uint64_t timeout_ns;

		if (slot->state != PGR_SLOT_CALLING || slot->out.packets != 1 || slot->alive ||
		    slot->repeats != slot->early_repeats || slot->early_repeats == PGR_EARLY_REPEATS_MAX ||
		    (int32_t)(peer->newest - slot->order) < PGR_REORDER_CALLS)
			continue;
		timeout_ns = pgr_slot_timeout(slot);
		pgr_slot_timed_out(slot);
		slot->early_repeats++;
		slot->due_ns = pgr_now(pgr) + timeout_ns;
	}
}
