/* SPDX-License-Identifier: BSD-3-Clause */
/* A call leaves the client: its packets, and what else is said of it. PROTOCOL.md, "A call in a slot". */
#include "fast.h"
#include "peer.h"
#include "slot.h"

/* ---- sending ---- */

static int send_packet(struct pgr_slot *slot, uint32_t number, bool ask, bool more)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr_piece pieces[PGR_IOV_MAX];
	const uint64_t at = (uint64_t)number * slot->out.packet_bytes;
	const uint64_t left = slot->out.bytes - at;
	struct pgr_line line;
	int full;

	/*
	 * What went out under 0 was executed by nobody: a later claim is free, and so is the cookie that another slot was
	 * given. Any other call goes on with what it went out with: its server may have executed and forgotten it.
	 */
	if (!slot->first_sent || PGR_UNLIKELY(!slot->claimed)) {
		slot->claimed = peer->incarnation;
		if (PGR_UNLIKELY(!(peer->introduced >> slot->number & 1)))
			slot->carried = peer->cookie;
	}
	line = pgr_line_of((struct pgr_header){
		.type = PGR_CALL,
		.flags = (uint8_t)(slot->head.flags | (ask ? PGR_FLAG_ASK : 0) |
				   (PGR_UNLIKELY(pgr_is_reference(&slot->out, slot->reference))
					    ? PGR_FLAG_REFERENCE
					    : 0)),
		.version = PGR_VERSION,
		.retransmissions = slot->repeats,
		.slot = slot->number,
		.credits = pgr_grant_to_server(peer->pgr),
		.client = peer->client,
		.sequence = slot->sequence,
		.incarnation = slot->claimed,
		.procedure = slot->head.procedure,
		.message_bytes = slot->out.bytes,
		.packet_number = number,
		.data_bytes = (uint32_t)(left < slot->out.packet_bytes ? left : slot->out.packet_bytes),
		.packet_bytes = slot->out.packet_bytes,
	});
	full = pgr_send_line(peer->pgr, &peer->to, &line, slot->carried, pieces,
			     pgr_outgoing_pieces(&slot->out, number, pieces), more);
	if (!full)
		slot->first_sent = true;
	return full;
}

/*
 * How many packets of this call may be under way while short ones are made beside it, which wait for all that went before
 * them. At least two, so that one is on its way while the other is read.
 */
static uint32_t yield_window(const struct pgr_slot *slot)
{
	const uint32_t packets = PGR_YIELD_BYTES / (slot->out.packet_bytes + PGR_HEADER_BYTES);

	return packets < 2 ? 2 : packets;
}

static bool yields(const struct pgr_slot *slot)
{
	return PGR_UNLIKELY(slot->peer->yield_packets != 0) && slot->out.packets > 1;
}

/* How many packets of this call may be under way now, beside those of the binding's other calls. */
static uint32_t credits_of(const struct pgr_slot *slot)
{
	const struct pgr_peer *peer = slot->peer;
	const uint32_t others = peer->under_way - slot->out.under_way;
	uint32_t credits;

	if (peer->pgr->reliable)
		return PGR_PACKETS_MAX;
	/* An unknown server answers each packet with a challenge: one is enough. */
	if (PGR_UNLIKELY(!peer->incarnation && slot->out.packets > 1))
		return slot->out.under_way ? 0 : 1;
	credits = peer->credits > others ? peer->credits - others : 0;
	if (!yields(slot))
		return credits;
	/* and one, however many short ones there are */
	return credits > yield_window(slot) ? yield_window(slot) : credits < 1 ? 1 : credits;
}

/* On a wire that nobody acknowledges: whether the next packet of this call waits until the last but one has been read. */
static bool waits_for_reader(const struct pgr_slot *slot)
{
	struct pgr_wire *wire = slot->peer->pgr->wire;

	return yields(slot) && wire->ops->behind && wire->ops->behind(wire, &slot->peer->to);
}

/* Whether the server shall say at once what has come: its answer lets the next packets go. */
static bool asks_for_ack(const struct pgr_slot *slot, uint32_t number, uint32_t following)
{
	if (slot->out.packets > 1 && PGR_UNLIKELY(slot->peer->yield_packets != 0) &&
	    number % ((yield_window(slot) + 3) / 4) == 0)
		return true;
	return following == PGR_PACKETS_MAX && (slot->out.packets > 1 || slot->repeats);
}

void pgr_slot_send(struct pgr_slot *slot, bool more)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr_outgoing *out = &slot->out;
	const uint32_t credits = credits_of(slot);
	uint32_t number = pgr_outgoing_next(out, credits);
	bool waits = false;

	while (number != PGR_PACKETS_MAX) {
		const uint32_t before = out->under_way;
		uint32_t following;
		int full;

		if (PGR_UNLIKELY(waits_for_reader(slot))) {
			waits = peer->pgr->stalled = true;
			break;
		}
		pgr_outgoing_sent(out, number);
		slot->order = ++peer->sendings;
		following = PGR_LIKELY(out->packets == 1) ? PGR_PACKETS_MAX : pgr_outgoing_next(out, credits);
		full = send_packet(slot, number, asks_for_ack(slot, number, following),
				   more || following != PGR_PACKETS_MAX);
		if (yields(slot))
			peer->yield_packets--;
		if (PGR_UNLIKELY(full))
			pgr_outgoing_lost(out, number);
		peer->under_way += out->under_way - before;
		if (PGR_UNLIKELY(full)) {
			waits = peer->pgr->stalled = true;
			break;
		}
		number = following;
	}
	if (PGR_UNLIKELY(waits || out->next < out->packets || out->lost))
		peer->queued |= UINT64_C(1) << slot->number;
	else
		peer->queued &= ~(UINT64_C(1) << slot->number);
	slot->state = out->next ? PGR_SLOT_CALLING : PGR_SLOT_QUEUED;
}

/* Each time from another one on. */
static void send_these(struct pgr_peer *peer, uint64_t these, unsigned int turn)
{
	these = turn ? these >> turn | these << (PGR_SLOTS - turn) : these;
	for (; these; these &= these - 1) {
		struct pgr_slot *slot =
			peer->slots[((unsigned int)__builtin_ctzll(these) + turn) % PGR_SLOTS];

		if (slot->state != PGR_SLOT_QUEUED && slot->state != PGR_SLOT_CALLING) {
			peer->queued &= ~(UINT64_C(1) << slot->number);
			continue;
		}
		if (!credits_of(slot))
			return;
		if (slot->state == PGR_SLOT_QUEUED) {
			if (slot->first_sent)
				pgr_slot_arm(slot);
			else
				pgr_slot_arm_first(slot);
			slot->sent_ns = 0; /* waiting here is no round trip */
		}
		pgr_slot_send(slot, true);
	}
}

/* Short ones first: they keep long ones waiting for one packet each. */
void pgr_peer_send_queued(struct pgr_peer *peer)
{
	const unsigned int turn = peer->turn++ % PGR_SLOTS;

	send_these(peer, peer->queued & ~peer->long_calls, turn);
	send_these(peer, peer->queued & peer->long_calls, turn);
}

void pgr_slot_send_control(struct pgr_slot *slot, const struct pgr_to *to, uint8_t type, uint8_t flags,
			   uint32_t incarnation, const uint8_t *bitmap, size_t bitmap_bytes, uint32_t number)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	const struct pgr_piece piece = {bitmap, bitmap_bytes};
	const struct pgr_header head = {
		.type = type,
		.flags = (uint8_t)(flags | (type == PGR_PROBE ? 0 : PGR_FLAG_OF_RESULT)),
		.version = PGR_VERSION,
		.retransmissions = slot->repeats,
		.slot = slot->number,
		.credits = pgr_grant_to_server(pgr),
		.client = peer->client,
		.sequence = slot->sequence,
		.incarnation = incarnation,
		.procedure = slot->head.procedure,
		.packet_number = number,
		.data_bytes = (uint32_t)bitmap_bytes,
		.packet_bytes = type == PGR_PROBE ? slot->result_packet_bytes : slot->in.packet_bytes,
	};

	pgr_send(pgr, to, &head, 0, &piece, bitmap_bytes ? 1 : 0, false);
}

void pgr_slot_probe(struct pgr_slot *slot)
{
	pgr_slot_send_control(slot, &slot->peer->to, PGR_PROBE, PGR_FLAG_ASK, slot->claimed, NULL, 0, 0);
}

void pgr_slot_ack(struct pgr_slot *slot, const struct pgr_to *to, bool delegated, uint32_t incarnation)
{
	pgr_slot_send_control(slot, to, PGR_ACK, delegated ? PGR_FLAG_DELEGATED : 0, incarnation, NULL, 0,
			      slot->in.map ? slot->in.packets : 1);
}

void pgr_slot_resend_packet(struct pgr_slot *slot, uint32_t number)
{
	struct pgr_peer *peer = slot->peer;
	const uint32_t before = slot->out.under_way;

	if (slot->repeats > 1) /* not its answer alone was lost: what others wait for is set free */
		pgr_outgoing_all_lost(&slot->out);
	pgr_outgoing_sent(&slot->out, number);
	if (send_packet(slot, number, true, false))
		pgr_outgoing_lost(&slot->out, number);
	peer->under_way += slot->out.under_way - before;
}

void pgr_slot_report(struct pgr_slot *slot)
{
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
	struct pgr_header head = {0};
	const size_t bytes = pgr_incoming_report(&slot->in, &head, bitmap);

	pgr_slot_send_control(slot, &slot->result_from, head.type, slot->result_flags,
			      slot->result_incarnation, bitmap, bytes, head.packet_number);
}

/* ---- calling ---- */

int pgr_slot_start(struct pgr_slot *slot, uint32_t procedure, pgr_done *done, void *arg, bool more)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	uint32_t part = pgr_split(pgr, peer->packet_bytes, slot->out.bytes);
	int code;

	if (PGR_UNLIKELY(peer->yield_packets != 0) && pgr->reliable && slot->out.bytes > pgr->single_bytes &&
	    part > PGR_YIELD_PART)
		part = PGR_YIELD_PART;
	code = pgr_outgoing_start(&slot->out, part);
	if (PGR_UNLIKELY(code != PGR_OK))
		return code;
	/* what does not change from call to call is in the template since the binding */
	slot->head.sequence = slot->sequence;
	slot->head.procedure = procedure;
	slot->head.message_bytes = slot->out.bytes;
	slot->done = done;
	slot->arg = arg;
	/* before the packet leaves: a server may have forgotten what a client that slept meanwhile still waits for */
	if (!pgr->reliable)
		pgr_slot_arm_first(slot);
	if (!pgr->reliable && (pgr->sample++ & 7) == 0)
		slot->sent_ns = pgr->now_ns;
	pgr->stats.calls++;
	if (PGR_UNLIKELY(slot->out.packets > 1))
		peer->long_calls |= UINT64_C(1) << slot->number;
	else if (PGR_UNLIKELY(peer->long_calls != 0))
		peer->yield_packets = PGR_YIELD_PACKETS;
	/* not before those that wait already, but a short one before long ones */
	if (PGR_UNLIKELY((slot->out.packets > 1 ? peer->queued : peer->queued & ~peer->long_calls) != 0)) {
		slot->out.next = 0;
		slot->state = PGR_SLOT_QUEUED;
		peer->queued |= UINT64_C(1) << slot->number;
	} else {
		pgr_slot_send(slot, more);
	}
	if (pgr->reliable) /* after it: the server works already */
		pgr_slot_arm_first(slot);
	return PGR_OK;
}

static unsigned int end_by(struct pgr_peer *peer, const void *arg, uint64_t deadline_ns, int code)
{
	unsigned int count = 0;

	for (uint64_t busy = peer->pgr->here ? ~peer->free : 0; busy; busy &= busy - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(busy)];
		const uint64_t bit = UINT64_C(1) << slot->number;
		const bool has = (peer->deadlines & bit) && slot->deadline_sequence == slot->sequence;

		/* a call that is passed on is its server's affair */
		if (slot->state == PGR_SLOT_FREE || slot->delegating || slot->arg != arg)
			continue;
		count++;
		if (has && slot->deadline_ns <= deadline_ns)
			continue;
		peer->deadlines |= bit;
		slot->deadline_sequence = slot->sequence;
		slot->deadline_ns = deadline_ns;
		slot->deadline_code = code;
	}
	return count;
}

unsigned int pgr_deadline(struct pgr_peer *peer, const void *arg, uint64_t within_ns)
{
	const uint64_t now_ns = pgr_now(peer->pgr);

	return end_by(peer, arg, within_ns < UINT64_MAX - now_ns ? now_ns + within_ns : UINT64_MAX,
		      PGR_E_DEADLINE);
}

unsigned int pgr_cancel(struct pgr_peer *peer, const void *arg)
{
	const unsigned int count = end_by(peer, arg, 0, PGR_E_CANCELLED);

	if (count)
		pgr_tick_soon(peer->pgr);
	return count;
}

/* Where the arguments are sent from. */
static int prepare(struct pgr_slot *slot, const struct pgr_iov *in, uint32_t in_count)
{
	struct pgr *pgr = slot->peer->pgr;
	const uint64_t bytes = pgr_iov_bytes(in, in_count);

	if (PGR_UNLIKELY(bytes > pgr->config.message_bytes_max))
		return PGR_E_TOO_LARGE;
	if (PGR_UNLIKELY(pgr->regions != NULL) &&
	    pgr_refer(pgr, in, in_count, bytes, slot->reference, &slot->out))
		return PGR_OK;
	if (PGR_UNLIKELY(pgr->off & (PGR_OFF_GATHER | PGR_OFF_NO_CONVERSION))) {
		slot->marshal = pgr_marshal(pgr, slot->signature ? slot->signature->in : NULL, in, in_count,
					    bytes, &slot->out);
		return slot->marshal ? PGR_OK : PGR_E_MEMORY;
	}
	pgr_outgoing_set(&slot->out, in, in_count, bytes);
	return PGR_OK;
}

int pgr_call(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
	     const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out, uint32_t out_count,
	     uint32_t flags, pgr_done *done, void *arg)
{
	struct pgr_slot *slot;
	uint64_t to_bytes = 0;
	int code;

	if (PGR_UNLIKELY(in_count > PGR_IOV_MAX || out_count > PGR_IOV_MAX || !done || peer->closing))
		return PGR_E_ARGUMENT;
	if (PGR_LIKELY(peer->pgr->fast)) {
		code = pgr_fast_call(peer, procedure, in, in_count, out, out_count, done, arg);
		if (PGR_LIKELY(code != PGR_OK))
			return code;
	}
	if (PGR_UNLIKELY(!peer->pgr->here))
		return PGR_E_CLOSED;
	code = pgr_slot_take(peer, &slot);
	if (PGR_UNLIKELY(code != PGR_OK))
		return code;
	for (uint32_t i = 0; i < out_count; i++) {
		slot->to[i] = out[i];
		to_bytes += out[i].bytes;
	}
	slot->to_count = out_count;
	slot->to_bytes = to_bytes;
	slot->signature = signature;
	code = prepare(slot, in, in_count);
	if (PGR_LIKELY(code == PGR_OK))
		code = pgr_slot_start(slot, procedure, done, arg, (flags & PGR_MORE) != 0);
	if (PGR_UNLIKELY(code != PGR_OK)) {
		pgr_slot_put_back(slot);
		return code;
	}
	return PGR_QUEUED;
}
