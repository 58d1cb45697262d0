/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers say to a client goes to the slots of its bindings. PROTOCOL.md, "A call in a slot". */
#include "peer.h"
#include "slot.h"

/*
 * Whether a server that knows us no more cannot have forgotten a first copy of this call, nor will have when the last
 * cookie that it gives for it has died.
 */
static bool server_would_remember(const struct pgr_slot *slot, uint32_t memory_ms, uint64_t now_ns)
{
	const uint64_t memory_ns = memory_ms * UINT64_C(1000000);

	return memory_ns > PGR_COOKIE_LIFE_NS && now_ns - slot->claimed_ns < memory_ns - PGR_COOKIE_LIFE_NS;
}

static PGR_COLD void on_challenge(struct pgr_slot *slot, const struct pgr_packet *packet)
{
	struct pgr_peer *peer = slot->peer;
	const struct pgr_header *head = &packet->head;
	const uint64_t cookie = (uint64_t)head->packet_number << 32 | head->message_bytes;
	const uint64_t now_ns = pgr_now(peer->pgr);

	if (!head->incarnation || (slot->first_sent && head->procedure != slot->claimed))
		return; /* speaks of an earlier claim */
	if (now_ns >= slot->give_up_ns)
		return; /* this side slept: whatever the server remembered it may have forgotten since */
	if (slot->claimed && slot->claimed != head->incarnation) {
		if (peer->incarnation == slot->claimed) {
			peer->incarnation = head->incarnation;
			peer->cookie = cookie;
			peer->introduced = 0;
		}
		pgr_slot_end(slot, PGR_E_RESTARTED, NULL, 0);
		return;
	}
	if (slot->arrived || slot->carried == cookie)
		return; /* late: it has the call since, or will find the cookie with it */
	if (!slot->claimed)
		slot->claimed_ns = now_ns; /* before that, nobody could execute it */
	else if (!server_would_remember(slot, head->packet_bytes, now_ns))
		return; /* it may have executed the call, and forgotten it */
	peer->incarnation = head->incarnation;
	peer->cookie = cookie;
	peer->introduced &= ~(UINT64_C(1) << slot->number);
	if (slot->sent_ns) /* that exchange is over */
		slot->sent_ns = now_ns;
	slot->claimed = head->incarnation;
	slot->carried = cookie;
	slot->alive = false;
	slot->large_timeouts =
		slot->large_timeouts != 0; /* what was silent may have been the server, not the path */
	pgr_peer_limit_packets(peer, head->credits);
	slot->result_packet_bytes = slot->delegating ? slot->result_packet_bytes : peer->packet_bytes;
	if (!pgr_slot_restart(slot))
		return;
	pgr_slot_send(slot, false);
	pgr_slot_arm_repeat(slot);
}

static PGR_COLD void on_reject(struct pgr_slot *slot, const struct pgr_packet *packet)
{
	struct pgr *pgr = slot->peer->pgr;
	int32_t code = 0;

	switch (packet->head.procedure) {
	case PGR_REJECT_BUSY: /* tried again when the time-out says so; the call was not executed */
		if (slot->state == PGR_SLOT_TAKING)
			return; /* late: it was executed since */
		slot->peer->under_way -= slot->out.under_way;
		slot->peer->queued &= ~(UINT64_C(1) << slot->number);
		pgr_outgoing_restart(&slot->out);
		if (slot->repeats < UINT8_MAX)
			slot->repeats++;
		slot->state = PGR_SLOT_CALLING;
		slot->large_timeouts = 0; /* it has arrived */
		pgr_slot_arm_repeat(slot);
		slot->code = PGR_E_SERVER_BUSY;
		return;
	case PGR_REJECT_FAILED:
		memcpy(&code, packet->data, sizeof(code));
		code = (int32_t)pgr_le32((uint32_t)code);
		if (code > PGR_E_PROCEDURE_OWN)
			return;
		if (!pgr->reliable)
			slot->peer->unacked |= UINT64_C(1) << slot->number;
		pgr_slot_end(slot, code, NULL, 0);
		return;
	case PGR_REJECT_PROCEDURE:
		if (!pgr->reliable) /* it is kept where a procedure of another server does not exist */
			slot->peer->unacked |= UINT64_C(1) << slot->number;
		pgr_slot_end(slot, PGR_E_PROCEDURE, NULL, 0);
		return;
	case PGR_REJECT_LOST:
		if (!pgr->reliable)
			slot->peer->unacked |= UINT64_C(1) << slot->number;
		pgr_slot_end(slot, PGR_E_GIVE_UP, NULL, 0);
		return;
	case PGR_REJECT_TOO_LARGE: pgr_slot_end(slot, PGR_E_TOO_LARGE, NULL, 0); return;
	default: pgr_slot_end(slot, PGR_E_REFUSED, NULL, 0); return;
	}
}

/* The server tells which packets of our arguments have come. */
static PGR_COLD void on_report(struct pgr_slot *slot, const struct pgr_packet *packet)
{
	struct pgr_peer *peer = slot->peer;
	const uint32_t before = slot->out.under_way;
	const bool nack = packet->head.type == PGR_NACK;

	if (slot->state == PGR_SLOT_TAKING)
		return; /* late: the result has said that all of them came */
	if (nack && !packet->head.packet_number && !packet->head.data_bytes) {
		pgr_outgoing_restart(&slot->out); /* it has nothing of this call */
		slot->alive = false;
		slot->first_sent = true;
	} else if (packet->head.packet_bytes != slot->out.packet_bytes) {
		return; /* late: it speaks of larger packets, before the call began anew */
	} else if (pgr_outgoing_acknowledge(&slot->out, packet->head.packet_number,
					    nack ? packet->data : NULL, nack ? packet->head.data_bytes : 0)) {
		slot->repeats = slot->large_timeouts = 0;
		slot->answered_since = false;
		peer->large_went |= slot->out.acked && slot->out.packet_bytes > peer->pgr->small_bytes;
	}
	peer->under_way -= before - slot->out.under_way;
	pgr_slot_arm_repeat(slot);
	if (PGR_UNLIKELY((peer->queued & ~peer->long_calls) != 0))
		peer->queued |=
			UINT64_C(1)
			<< slot->number; /* after the short ones, when this packet has been looked at */
	else
		pgr_slot_send(slot, false);
}

/* The whole call has arrived. */
static inline void arrived(struct pgr_slot *slot)
{
	const struct pgr *pgr = slot->peer->pgr;

	if (PGR_UNLIKELY(slot->out.bytes > pgr->small_bytes && slot->out.packet_bytes > pgr->small_bytes &&
			 !slot->peer->large_went))
		slot->peer->large_went = true;
}

/* The server has this call. */
static inline void note_packet(struct pgr_slot *slot, const struct pgr_header *head)
{
	struct pgr *pgr = slot->peer->pgr;

	/* most results end the call: they need no clock */
	if (head->type != PGR_RESULT || head->message_bytes > head->packet_bytes)
		slot->give_up_ns = pgr_now(pgr) + pgr->config.give_up_ns;
	slot->code = PGR_E_GIVE_UP;
	slot->arrived = true;
	slot->peer->introduced |= UINT64_C(1) << slot->number;
}

static inline void on_result(struct pgr_slot *slot, const struct pgr_packet *packet,
			     const struct pgr_to *from)
{
	const struct pgr_header *head = &packet->head;

	if (PGR_UNLIKELY(slot->out.under_way && slot->out.packets > 1)) { /* it acknowledges the call */
		slot->peer->under_way -= slot->out.under_way;
		slot->out.under_way = 0;
		slot->out.next = slot->out.acked = slot->out.packets;
	}
	if (PGR_UNLIKELY(head->message_bytes > head->packet_bytes && head->message_bytes))
		pgr_slot_take_part(slot, packet, from);
	else if (PGR_LIKELY(slot->state != PGR_SLOT_TAKING))
		pgr_slot_deliver(slot, packet, from, packet->data, head->message_bytes);
	else
		slot->peer->pgr->stats.packets_dropped++; /* of another length than what came first */
}

/* For a result that is not waited for: nobody has to keep it. */
static PGR_COLD void acknowledge(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *result)
{
	const struct pgr_header head = {
		.type = PGR_ACK,
		.flags = (result->flags & PGR_FLAG_DELEGATED) | PGR_FLAG_OF_RESULT,
		.version = PGR_VERSION,
		.slot = result->slot,
		.client = result->client,
		.sequence = result->sequence,
		.incarnation = result->incarnation,
		.packet_number = pgr_packets_of(result->message_bytes, result->packet_bytes),
		.packet_bytes = result->packet_bytes,
	};

	pgr_send(pgr, from, &head, 0, NULL, 0, false);
}

/* A result that we have already, and whose sender keeps it because it has not heard so. */
static PGR_COLD void on_late_result(struct pgr_peer *peer, const struct pgr_slot *slot,
				    const struct pgr_to *from, const struct pgr_packet *packet)
{
	/* a slot that was released has no call */
	const uint64_t ended = !slot                          ? peer->sequence
			       : slot->state == PGR_SLOT_FREE ? slot->sequence
							      : slot->sequence - 1;

	if (packet->head.type == PGR_RESULT && (packet->head.flags & (PGR_FLAG_DELEGATED | PGR_FLAG_ASK)) &&
	    packet->head.sequence <= ended)
		acknowledge(peer->pgr, from, &packet->head);
	else
		peer->pgr->stats.duplicates++;
}

void pgr_client_refused(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *head)
{
	struct pgr_peer *peer = pgr_peer_of(pgr, head->client);
	struct pgr_slot *slot = peer ? peer->slots[head->slot] : NULL;

	if (slot && memcmp(from, &peer->to, sizeof(*from)) == 0 && slot->state == PGR_SLOT_CALLING &&
	    head->sequence == slot->sequence && head->procedure == PGR_REJECT_NOT_AUTHORISED)
		slot->code = PGR_E_REFUSED;
}

void pgr_client_unreachable(void *engine, const void *packet, size_t bytes)
{
	struct pgr *pgr = engine;
	struct pgr_header head;
	struct pgr_peer *peer;
	struct pgr_slot *slot;

	if (bytes < sizeof(head))
		return;
	memcpy(&head, packet, sizeof(head));
	pgr_le_header(&head, &head);
	if (head.version != PGR_VERSION || (head.type != PGR_CALL && head.type != PGR_PROBE) ||
	    head.slot >= PGR_SLOTS || !(peer = pgr_peer_of(pgr, head.client)))
		return;
	slot = peer->slots[head.slot];
	/* the call as it is now: an earlier claim's packet may have been refused before its server began */
	if (slot && head.sequence == slot->sequence && head.incarnation == slot->claimed &&
	    slot->state >= PGR_SLOT_CALLING && slot->state <= PGR_SLOT_TAKING)
		pgr_slot_end(slot, slot->claimed ? PGR_E_RESTARTED : PGR_E_NOBODY, NULL, 0);
}

void pgr_client_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_peer *peer = pgr_peer_of(pgr, head->client);
	struct pgr_slot *slot;
	const bool delegated = (head->flags & PGR_FLAG_DELEGATED) != 0;

	if (PGR_UNLIKELY(!peer || (delegated ? head->type != PGR_RESULT
					     : memcmp(from, &peer->to, sizeof(*from)) != 0))) {
		if (!peer &&
		    (head->flags & PGR_FLAG_REFERENCE)) /* a binding that has ended; the server waits */
			acknowledge(pgr, from, head);
		pgr->stats.packets_dropped++;
		return;
	}
	pgr->recent_peer = peer;
	slot = peer->slots[head->slot];
	if (PGR_UNLIKELY(!slot || head->sequence != slot->sequence || slot->state < PGR_SLOT_CALLING ||
			 slot->state > PGR_SLOT_TAKING)) {
		on_late_result(peer, slot, from, packet);
		return;
	}
	slot->answered_since |= slot->large_timeouts != 0;
	if (PGR_UNLIKELY(head->type == PGR_CHALLENGE)) {
		on_challenge(slot, packet);
		return;
	}
	if (PGR_UNLIKELY(head->incarnation != slot->claimed)) {
		pgr->stats.packets_dropped++;
		return;
	}
	if (PGR_LIKELY(!delegated)) { /* a word of the server itself */
		if (PGR_LIKELY(head->credits))
			peer->credits = head->credits;
		peer->last_packet_ns = pgr->now_ns;
	}
	/* an empty nack says that it has nothing of this call: no word of it */
	if (PGR_LIKELY(head->type != PGR_REJECT) &&
	    PGR_LIKELY(head->type != PGR_NACK || head->packet_number || head->data_bytes))
		note_packet(slot, head);
	switch (head->type) {
	case PGR_RESULT:
		arrived(slot);
		on_result(slot, packet, from);
		break;
	case PGR_ACK:
	case PGR_NACK: on_report(slot, packet); break;
	case PGR_ALIVE:
		arrived(slot);
		if (head->packet_bytes > pgr->small_bytes && slot->state != PGR_SLOT_QUEUED)
			slot->result_part_bytes = head->packet_bytes;
		else
			slot->alive = true;
		slot->repeats = slot->repeats > 2 ? 2 : slot->repeats; /* ask on, but not in haste */
		break;
	case PGR_REJECT: on_reject(slot, packet); break;
	default: pgr->stats.packets_dropped++; break;
	}
	if (PGR_UNLIKELY(peer->queued != 0 && !peer->closing))
		pgr_peer_send_queued(peer);
}
