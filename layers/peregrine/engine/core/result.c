/* SPDX-License-Identifier: BSD-3-Clause */
/* A result reaches the client: in one packet or in several, to where the caller wants it. */
#include "peer.h"
#include "slot.h"

/* The whole result is here, in `data` or in its place. */
static void finish(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		   const void *data, uint32_t bytes)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	const bool delegated = (packet->head.flags & PGR_FLAG_DELEGATED) != 0;

	if (PGR_UNLIKELY(packet->head.data_bytes > pgr->small_bytes))
		peer->large_came = true;
	if (PGR_UNLIKELY(slot->sent_ns && packet->head.retransmissions == slot->repeats && !slot->repeats))
		pgr_round_trip(peer, pgr_now(pgr) - slot->sent_ns);
	else if (PGR_UNLIKELY(slot->alive && !pgr->reliable))
		pgr_service_time(peer, pgr_now(pgr) - slot->claimed_ns);
	if (PGR_UNLIKELY(delegated))
		pgr_slot_ack(slot, from, true, packet->head.incarnation);
	else if (!pgr->reliable) {
		if ((int32_t)(slot->order - peer->newest) > 0)
			peer->newest = slot->order;
		if (PGR_UNLIKELY(peer->newest - peer->newest_searched >= PGR_REORDER_CALLS / 2))
			pgr_peer_find_lost(peer);
		if (slot->in.map && slot->in.packets > 1)
			pgr_slot_ack(slot, from, false, slot->claimed);
		else
			peer->unacked |= UINT64_C(1) << slot->number;
	}
	pgr_slot_end(slot, PGR_OK, data, bytes);
}

/* Turns what came into what the caller gets: other byte order, words, one more copy. Owned by the slot
 * afterwards. */
static PGR_COLD const uint8_t *reform(struct pgr_slot *slot, const uint8_t *data, uint8_t flags,
				      uint64_t *bytes_inout)
{
	struct pgr *pgr = slot->peer->pgr;
	const char *signature = slot->signature ? slot->signature->out : NULL;
	const uint64_t bytes = *bytes_inout;
	uint8_t *made = pgr_buffer_take(pgr, bytes + 8);

	if (!made)
		return NULL;
	*bytes_inout = pgr_reform(signature, flags, data, bytes, made);
	if (*bytes_inout == PGR_WORDS_BAD) {
		pgr_buffer_give(pgr, made);
		return NULL;
	}
	pgr_buffer_give(pgr, slot->staging);
	slot->staging = made;
	return made;
}

/* A result that is of no use here: its server need not keep it. */
static PGR_COLD void refuse_result(struct pgr_slot *slot, const struct pgr_packet *packet,
				   const struct pgr_to *from, int code)
{
	const bool delegated = (packet->head.flags & PGR_FLAG_DELEGATED) != 0;

	slot->in.packet_bytes = packet->head.packet_bytes;
	if (delegated || !slot->peer->pgr->reliable || (packet->head.flags & PGR_FLAG_REFERENCE))
		pgr_slot_send_control(slot, from, PGR_ACK, delegated ? PGR_FLAG_DELEGATED : 0,
				      packet->head.incarnation, NULL, 0,
				      pgr_packets_of(packet->head.message_bytes, packet->head.packet_bytes));
	pgr_slot_end(slot, code, NULL, 0);
}

/*
 * A result in the server's memory is read by `done`. Only then the server hears that it is taken, and only then the slot has a
 * next call, which would say so too.
 */
static PGR_COLD void finish_in_place(struct pgr_slot *slot, const uint8_t *data, uint32_t bytes)
{
	struct pgr_peer *peer = slot->peer;

	slot->read_in_place = true;
	pgr_slot_end(slot, PGR_OK, data, bytes);
	slot->read_in_place = false;
	pgr_slot_ack(slot, &peer->to, false, slot->claimed);
	peer->free |= UINT64_C(1) << slot->number;
}

void pgr_slot_deliver(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		      const uint8_t *data, uint64_t bytes)
{
	struct pgr *pgr = slot->peer->pgr;
	const bool referred = (packet->head.flags & PGR_FLAG_REFERENCE) != 0;

	if (PGR_UNLIKELY(referred)) {
		data = pgr_referred(pgr, from, packet, &bytes);
		if (!data || bytes > pgr->config.message_bytes_max) {
			refuse_result(slot, packet, from, data ? PGR_E_TOO_LARGE : PGR_E_MEMORY);
			return;
		}
	}
	if (PGR_UNLIKELY(pgr_needs_reform(pgr, packet->head.flags))) {
		data = reform(slot, data, packet->head.flags, &bytes);
		if (!data) {
			refuse_result(slot, packet, from, PGR_E_MEMORY);
			return;
		}
	}
	if (slot->to_count) {
		if (PGR_UNLIKELY(bytes > slot->to_bytes)) {
			refuse_result(slot, packet, from, PGR_E_TOO_LARGE);
			return;
		}
		if (bytes)
			pgr_scatter(slot->to, slot->to_count, 0, data, (size_t)bytes);
		data = NULL;
	}
	if (PGR_UNLIKELY(referred)) {
		if (data && data != slot->staging) {
			finish_in_place(slot, data, (uint32_t)bytes);
			return;
		}
		pgr_slot_ack(slot, from, false, slot->claimed);
	}
	finish(slot, packet, from, data, (uint32_t)bytes);
}

/* The first packet of a longer result: find it a place. */
static PGR_COLD int begin_taking(struct pgr_slot *slot, const struct pgr_packet *packet,
				 const struct pgr_to *from)
{
	struct pgr *pgr = slot->peer->pgr;
	const uint32_t bytes = packet->head.message_bytes;
	/* straight to the caller's buffers, unless something has to be done with the whole of it */
	const bool straight = slot->to_count && !pgr_needs_reform(pgr, packet->head.flags) &&
			      !(pgr->off & PGR_OFF_EARLY_COPY);

	if (bytes > pgr->config.message_bytes_max || (slot->to_count && straight && bytes > slot->to_bytes))
		return PGR_E_TOO_LARGE;
	if (!straight) {
		slot->staging = pgr_buffer_take(pgr, bytes);
		if (!slot->staging)
			return PGR_E_MEMORY;
	}
	slot->state = PGR_SLOT_TAKING;
	slot->result_from = *from;
	slot->result_flags = packet->head.flags & PGR_FLAG_DELEGATED;
	slot->result_incarnation = packet->head.incarnation;
	return pgr_incoming_start(&slot->in, &packet->head, slot->staging, straight ? slot->to : NULL,
				  slot->to_count);
}

void pgr_slot_take_part(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from)
{
	struct pgr *pgr = slot->peer->pgr;
	unsigned int came;
	int code;

	if (slot->state != PGR_SLOT_TAKING) {
		code = begin_taking(slot, packet, from);
		if (code != PGR_OK) {
			refuse_result(slot, packet, from, code);
			return;
		}
	}
	came = pgr_incoming_take(&slot->in, packet, pgr_grant_to_server(pgr));
	if (came & PGR_CAME_WHOLE) {
		if (slot->staging) {
			pgr->stats.copies++;
			pgr_slot_deliver(slot, packet, from, slot->staging, slot->in.bytes);
		} else {
			finish(slot, packet, from, NULL, slot->in.bytes);
		}
		return;
	}
	if (came & PGR_CAME_NEW) {
		slot->repeats = slot->large_timeouts = 0;
		slot->result_part_bytes = 0;
		slot->peer->large_came |= packet->head.data_bytes > pgr->small_bytes;
		slot->due_ns = pgr->now_ns + pgr_slot_timeout(slot);
	} else {
		pgr->stats.duplicates++;
	}
	if ((came & PGR_CAME_REPORT) && !pgr->reliable)
		pgr_slot_report(slot);
}
