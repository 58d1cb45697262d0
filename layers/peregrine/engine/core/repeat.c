/* SPDX-License-Identifier: BSD-3-Clause */
/* A call is repeated, or asked for: after its time-out, or before it, as later calls are answered. */
#include "peer.h"
#include "slot.h"

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
