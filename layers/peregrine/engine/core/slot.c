/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of bindings: made, taken by a call, free again; and which bindings are busy. PROTOCOL.md, "A call in a slot". */
#include "peer.h"
#include "slot.h"

#include <stdlib.h>

/* ---- busy and idle ---- */

void pgr_peer_busy(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;

	if (peer->busy_back)
		return;
	peer->busy_next = pgr->busy;
	peer->busy_back = &pgr->busy;
	if (pgr->busy)
		pgr->busy->busy_back = &peer->busy_next;
	pgr->busy = peer;
	pgr->busy_count++;
	pgr_credits_divide(pgr);
}

static void release_slots(struct pgr_peer *peer)
{
	for (unsigned int i = 0; i < PGR_SLOTS; i++) {
		struct pgr_slot *slot = peer->slots[i];

		if (slot && slot->sequence > peer->sequence)
			peer->sequence = slot->sequence;
		peer->slots[i] = NULL;
		free(slot);
	}
}

void pgr_peer_idle(struct pgr_peer *peer)
{
	release_slots(peer);
	if (!peer->busy_back)
		return;
	*peer->busy_back = peer->busy_next;
	if (peer->busy_next)
		peer->busy_next->busy_back = peer->busy_back;
	peer->busy_back = NULL;
	peer->pgr->busy_count--;
	pgr_credits_divide(peer->pgr);
}

/* ---- a slot ---- */

bool pgr_slot_make(struct pgr_peer *peer, unsigned int number)
{
	struct pgr_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return false;
	slot->peer = peer;
	slot->number = (uint8_t)number;
	slot->sequence = peer->sequence;
	slot->head = (struct pgr_header){
		.type = PGR_CALL,
		.flags = peer->flags,
		.version = PGR_VERSION,
		.slot = (uint16_t)number,
		.client = peer->client,
	};
	peer->slots[number] = slot;
	pgr_peer_busy(peer);
	return true;
}

int pgr_slot_take(struct pgr_peer *peer, struct pgr_slot **slot_out)
{
	struct pgr_slot *slot;
	unsigned int number;

	if (PGR_UNLIKELY(!peer->free || peer->closing))
		return PGR_BUSY;
	number = (unsigned int)__builtin_ctzll(peer->free);
	if (PGR_UNLIKELY(!peer->slots[number]) && !pgr_slot_make(peer, number))
		return PGR_E_MEMORY;
	slot = peer->slots[number];
	peer->free &= ~(UINT64_C(1) << slot->number);
	peer->unacked &= ~(UINT64_C(1) << slot->number); /* the call acknowledges the last result */
	slot->sequence++;
	slot->repeats = slot->early_repeats = 0;
	slot->alive = slot->delegating = slot->first_sent = slot->arrived = slot->answered_since = false;
	slot->large_timeouts = 0;
	slot->result_part_bytes = slot->in.packet_bytes = 0;
	slot->result_packet_bytes = peer->packet_bytes;
	slot->carried = 0;
	slot->staging = slot->marshal = NULL;
	slot->out.order = NULL;
	slot->in.map = NULL;
	slot->sent_ns = 0;
	slot->code = PGR_E_GIVE_UP;
	*slot_out = slot;
	return PGR_OK;
}

void pgr_slot_put_back(struct pgr_slot *slot)
{
	pgr_buffer_give(slot->peer->pgr, slot->marshal);
	slot->marshal = NULL;
	slot->sequence--; /* it was never used, and so acknowledges nothing */
	if (slot->ended_ns && !slot->peer->pgr->reliable)
		slot->peer->unacked |= UINT64_C(1) << slot->number;
	slot->state = PGR_SLOT_FREE;
	slot->peer->free |= UINT64_C(1) << slot->number;
}

void pgr_slot_end(struct pgr_slot *slot, int code, const void *result, size_t result_bytes)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	uint8_t *staging = slot->staging, *marshal = slot->marshal;

	pgr_flush_callers_data(pgr);
	peer->under_way -= slot->out.under_way;
	slot->out.under_way = 0;
	peer->queued &= ~(UINT64_C(1) << slot->number);
	peer->long_calls &= ~(UINT64_C(1) << slot->number);
	pgr_outgoing_end(&slot->out);
	pgr_incoming_end(&slot->in);
	slot->state = PGR_SLOT_FREE;
	slot->staging = slot->marshal = NULL;
	if (PGR_UNLIKELY(slot->delegating)) {
		slot->head.flags = peer->flags;
		slot->delegating = false;
	}
	slot->ended_ns = pgr->now_ns;
	if (PGR_LIKELY(!slot->read_in_place))
		peer->free |= UINT64_C(1) << slot->number;
	pgr->stats.calls_failed += code != PGR_OK;
	pgr->events++;
	if (PGR_LIKELY(pgr->here))
		slot->done(slot->arg, code, result, result_bytes);
	if (PGR_UNLIKELY(staging != NULL))
		pgr_buffer_give(pgr, staging);
	if (PGR_UNLIKELY(marshal != NULL))
		pgr_buffer_give(pgr, marshal);
}
