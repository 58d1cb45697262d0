/* SPDX-License-Identifier: BSD-3-Clause */
/* Bindings and their call slots: a call goes out, its result comes in. PROTOCOL.md, "A call in a slot". */
#include "engine.h"
#include "fast.h"

#include <stdlib.h>

/* ---- slots ---- */

struct pgr_slot *pgr_slot_take(struct pgr_peer *peer)
{
	struct pgr_slot *slot;

	if (PGR_UNLIKELY(!peer->free || peer->closing))
		return NULL;
	slot = &peer->slots[__builtin_ctzll(peer->free)];
	peer->free &= ~(UINT64_C(1) << slot->number);
	peer->unacked &= ~(UINT64_C(1) << slot->number); /* the call acknowledges the last result */
	slot->sequence++;
	slot->repeats = slot->hurries = 0;
	slot->alive = slot->delegating = slot->first_sent = slot->heard = false;
	slot->carried = 0;
	slot->staging = slot->marshal = NULL;
	slot->out.order = NULL;
	slot->in.map = NULL;
	slot->sent_ns = 0;
	slot->code = PGR_E_GIVE_UP;
	return slot;
}

/* Ends a call: the slot is free again when `done` runs, so that it may call. */
void pgr_slot_end(struct pgr_slot *slot, int code, const void *result, size_t result_bytes)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	uint8_t *staging = slot->staging, *marshal = slot->marshal;

	pgr_let_go(pgr);
	peer->under_way -= slot->out.under_way;
	slot->out.under_way = 0;
	peer->queued &= ~(UINT64_C(1) << slot->number);
	pgr_outgoing_end(&slot->out);
	pgr_incoming_end(&slot->in);
	slot->state = PGR_SLOT_FREE;
	slot->staging = slot->marshal = NULL;
	if (PGR_UNLIKELY(slot->delegating)) {
		slot->head.flags = peer->flags;
		slot->delegating = false;
	}
	slot->ended_ns = pgr->now_ns;
	peer->free |= UINT64_C(1) << slot->number;
	pgr->stats.calls_failed += code != PGR_OK;
	pgr->events++;
	slot->done(slot->arg, code, result, result_bytes);
	if (PGR_UNLIKELY(staging != NULL))
		pgr_buffer_give(pgr, staging);
	if (PGR_UNLIKELY(marshal != NULL))
		pgr_buffer_give(pgr, marshal);
}

/* ---- sending ---- */

static int send_packet(struct pgr_slot *slot, uint32_t number, bool ask, bool more)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr_piece pieces[PGR_IOV_MAX];
	const uint64_t at = (uint64_t)number * slot->out.packet_bytes;
	const uint64_t left = slot->out.bytes - at;
	struct pgr_line line;
	int full;

	/* What went out under 0 was executed by nobody, so a later claim is free. */
	if (!slot->first_sent || PGR_UNLIKELY(!slot->claimed))
		slot->claimed = peer->incarnation;
	line = pgr_line_of((struct pgr_header){
		.type = PGR_CALL,
		.flags = (uint8_t)(slot->head.flags | (ask ? PGR_FLAG_ASK : 0)),
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
	if (PGR_UNLIKELY(!(peer->introduced >> slot->number & 1)))
		slot->carried = peer->cookie;
	full = pgr_send_line(peer->pgr, &peer->to, &line, slot->carried, pieces,
			     pgr_outgoing_pieces(&slot->out, number, pieces), more);
	if (!full)
		slot->first_sent = true;
	return full;
}

/* How many packets of all its calls the binding may have under way now. */
static uint32_t credits_of(const struct pgr_slot *slot)
{
	const struct pgr_peer *peer = slot->peer;
	const uint32_t others = peer->under_way - slot->out.under_way;

	if (peer->pgr->reliable)
		return PGR_PACKETS_MAX;
	/* An unknown server answers each packet with a challenge: one is enough. */
	if (PGR_UNLIKELY(!peer->incarnation && slot->out.packets > 1))
		return slot->out.under_way ? 0 : 1;
	return peer->credits > others ? peer->credits - others : 0;
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

		pgr_outgoing_sent(out, number);
		slot->order = ++peer->sendings;
		following = PGR_LIKELY(out->packets == 1) ? PGR_PACKETS_MAX : pgr_outgoing_next(out, credits);
		full = send_packet(slot, number,
				   following == PGR_PACKETS_MAX && (out->packets > 1 || slot->repeats),
				   more || following != PGR_PACKETS_MAX);
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

/* Room or credits have come: the slots that wait go on, each time from another one. */
void pgr_peer_send_queued(struct pgr_peer *peer)
{
	const unsigned int turn = peer->turn++ % PGR_SLOTS;
	uint64_t queued = turn ? peer->queued >> turn | peer->queued << (PGR_SLOTS - turn) : peer->queued;

	for (; queued; queued &= queued - 1) {
		struct pgr_slot *slot =
			&peer->slots[((unsigned int)__builtin_ctzll(queued) + turn) % PGR_SLOTS];

		if (slot->state != PGR_SLOT_QUEUED && slot->state != PGR_SLOT_CALLING) {
			peer->queued &= ~(UINT64_C(1) << slot->number);
			continue;
		}
		if (!credits_of(slot))
			return;
		if (slot->state == PGR_SLOT_QUEUED) {
			slot->due_ns = peer->pgr->now_ns + pgr_slot_timeout(slot);
			slot->sent_ns = 0; /* waiting here is no round trip */
		}
		pgr_slot_send(slot, true);
	}
}

/* A packet without data that speaks of the slot's call. */
static void send_bare(struct pgr_slot *slot, const struct pgr_to *to, uint8_t type, uint8_t flags,
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
	};

	pgr_send(pgr, to, &head, 0, &piece, bitmap_bytes ? 1 : 0, false);
}

/* The result has arrived whole. */
void pgr_slot_ack(struct pgr_slot *slot, const struct pgr_to *to, bool delegated, uint32_t incarnation)
{
	send_bare(slot, to, PGR_ACK, delegated ? PGR_FLAG_DELEGATED : 0, incarnation, NULL, 0,
		  slot->in.map ? slot->in.packets : 1);
}

/* ---- calling ---- */

/* The arguments in one piece, as words where conversion is asked for. */
static PGR_COLD int marshal(struct pgr_slot *slot, const struct pgr_iov *in, uint32_t in_count,
			    uint64_t bytes)
{
	struct pgr *pgr = slot->peer->pgr;
	const char *signature = slot->signature ? slot->signature->in : NULL;
	const bool words = (pgr->off & PGR_OFF_NO_CONVERSION) != 0;
	const uint64_t made = words ? pgr_words_bytes(signature, bytes) : bytes;
	uint8_t *plain = pgr_buffer_take(pgr, bytes + 1);
	uint8_t *converted = words ? pgr_buffer_take(pgr, made + 8) : NULL;

	if (!plain || (words && !converted)) {
		pgr_buffer_give(pgr, plain);
		pgr_buffer_give(pgr, converted);
		return PGR_E_MEMORY;
	}
	pgr_gather(in, in_count, plain);
	if (words) {
		pgr_words_make(signature, plain, bytes, converted);
		pgr_buffer_give(pgr, plain);
		plain = converted;
	}
	slot->marshal = plain;
	slot->out.iov[0] = (struct pgr_iov){plain, (size_t)made};
	slot->out.count = 1;
	slot->out.bytes = (uint32_t)made;
	return PGR_OK;
}

int pgr_slot_start(struct pgr_slot *slot, uint32_t procedure, pgr_done *done, void *arg, bool more)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	const int code = pgr_outgoing_start(&slot->out, pgr_split(pgr, slot->out.bytes));

	if (PGR_UNLIKELY(code != PGR_OK))
		return code;
	/* what does not change from call to call is in the template since the binding */
	slot->head.sequence = slot->sequence;
	slot->head.procedure = procedure;
	slot->head.message_bytes = slot->out.bytes;
	slot->done = done;
	slot->arg = arg;
	if (!pgr->reliable && (pgr->sample++ & 7) == 0)
		slot->sent_ns = pgr_now(pgr);
	slot->due_ns = pgr->now_ns + pgr_slot_timeout(slot);
	slot->give_up_ns = pgr->now_ns + pgr->config.give_up_ns;
	pgr->stats.calls++;
	if (PGR_UNLIKELY(peer->queued != 0)) { /* not before those that wait already */
		slot->out.next = 0;
		slot->state = PGR_SLOT_QUEUED;
		peer->queued |= UINT64_C(1) << slot->number;
	} else {
		pgr_slot_send(slot, more);
	}
	return PGR_OK;
}

void pgr_slot_put_back(struct pgr_slot *slot)
{
	pgr_buffer_give(slot->peer->pgr, slot->marshal);
	slot->marshal = NULL;
	slot->sequence--; /* it was never used, and so acknowledges nothing */
	if (slot->sequence && !slot->peer->pgr->reliable)
		slot->peer->unacked |= UINT64_C(1) << slot->number;
	slot->state = PGR_SLOT_FREE;
	slot->peer->free |= UINT64_C(1) << slot->number;
}

/* Where the arguments are sent from. */
static int prepare(struct pgr_slot *slot, const struct pgr_iov *in, uint32_t in_count)
{
	const struct pgr *pgr = slot->peer->pgr;
	const uint64_t bytes = pgr_iov_bytes(in, in_count);

	if (PGR_UNLIKELY(bytes > pgr->config.message_bytes_max))
		return PGR_E_TOO_LARGE;
	if (PGR_UNLIKELY(pgr->off & (PGR_OFF_GATHER | PGR_OFF_NO_CONVERSION)))
		return marshal(slot, in, in_count, bytes);
	for (uint32_t i = 0; i < in_count; i++)
		slot->out.iov[i] = in[i];
	slot->out.count = in_count;
	slot->out.bytes = (uint32_t)bytes;
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
	slot = pgr_slot_take(peer);
	if (PGR_UNLIKELY(!slot))
		return PGR_BUSY;
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

/* ---- results ---- */

/*
 * Calls of which nothing was heard while many that were sent later are answered: they are repeated before
 * their time-out, as blasts do it with packets. A procedure that takes its time costs a packet and a word
 * that it is alive.
 */
static PGR_COLD void look_for_lost(struct pgr_peer *peer)
{
	struct pgr *pgr = peer->pgr;

	peer->looked = peer->newest;
	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1) {
		struct pgr_slot *slot = &peer->slots[__builtin_ctzll(busy)];
		const uint64_t timeout_ns = pgr_slot_timeout(slot);

		if (slot->state != PGR_SLOT_CALLING || slot->out.packets != 1 || slot->alive ||
		    slot->repeats != slot->hurries || slot->hurries == PGR_HURRIES_MAX ||
		    (int32_t)(peer->newest - slot->order) < PGR_REORDER_CALLS)
			continue;
		pgr_slot_late(slot);
		slot->hurries++;
		slot->due_ns = pgr->now_ns + timeout_ns;
	}
}

/* The whole result is here, in `data` or in its place. */
static void finish(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		   const void *data, uint32_t bytes)
{
	struct pgr_peer *peer = slot->peer;
	struct pgr *pgr = peer->pgr;
	const bool delegated = (packet->head.flags & PGR_FLAG_DELEGATED) != 0;

	if (PGR_UNLIKELY(slot->sent_ns && packet->head.retransmissions == slot->repeats && !slot->repeats))
		pgr_round_trip(peer, pgr_now(pgr) - slot->sent_ns);
	if (PGR_UNLIKELY(delegated))
		pgr_slot_ack(slot, from, true, packet->head.incarnation);
	else if (!pgr->reliable) {
		if ((int32_t)(slot->order - peer->newest) > 0)
			peer->newest = slot->order;
		if (PGR_UNLIKELY(peer->newest - peer->looked >= PGR_REORDER_CALLS / 2))
			look_for_lost(peer);
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
	if (flags & PGR_FLAG_WORDS) {
		*bytes_inout = pgr_words_take(signature, data, bytes, made);
		if (*bytes_inout == PGR_WORDS_BAD) {
			pgr_buffer_give(pgr, made);
			return NULL;
		}
	} else {
		memcpy(made, data, bytes);
		if ((flags & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER)
			pgr_swap(signature, made, bytes);
	}
	pgr_buffer_give(pgr, slot->staging);
	slot->staging = made;
	return made;
}

/* A result that is of no use here: its server need not keep it. */
static PGR_COLD void refuse(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
			    int code)
{
	const bool delegated = (packet->head.flags & PGR_FLAG_DELEGATED) != 0;

	if (delegated || !slot->peer->pgr->reliable)
		send_bare(slot, from, PGR_ACK, delegated ? PGR_FLAG_DELEGATED : 0, packet->head.incarnation,
			  NULL, 0, pgr_packets_of(packet->head.message_bytes, packet->head.packet_bytes));
	pgr_slot_end(slot, code, NULL, 0);
}

static bool needs_reform(const struct pgr *pgr, uint8_t flags)
{
	return (flags & PGR_FLAG_WORDS) || (flags & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER ||
	       (pgr->off & PGR_OFF_IN_PLACE);
}

/* A result is complete, in one piece at `data`. */
static void deliver(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		    const uint8_t *data, uint64_t bytes)
{
	struct pgr *pgr = slot->peer->pgr;

	if (PGR_UNLIKELY(needs_reform(pgr, packet->head.flags))) {
		data = reform(slot, data, packet->head.flags, &bytes);
		if (!data) {
			refuse(slot, packet, from, PGR_E_MEMORY);
			return;
		}
	}
	if (slot->to_count) {
		if (PGR_UNLIKELY(bytes > slot->to_bytes)) {
			refuse(slot, packet, from, PGR_E_TOO_LARGE);
			return;
		}
		if (bytes)
			pgr_scatter(slot->to, slot->to_count, 0, data, (size_t)bytes);
		data = NULL;
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
	const bool straight =
		slot->to_count && !needs_reform(pgr, packet->head.flags) && !(pgr->off & PGR_OFF_EARLY_COPY);

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
	return pgr_incoming_start(&slot->in, &packet->head);
}

static void say_progress(struct pgr_slot *slot)
{
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
	struct pgr_header head = {0};
	const size_t bytes = pgr_incoming_report(&slot->in, &head, bitmap);

	send_bare(slot, &slot->result_from, head.type, slot->result_flags, slot->result_incarnation, bitmap,
		  bytes, head.packet_number);
}

void pgr_slot_late(struct pgr_slot *slot)
{
	struct pgr_peer *peer = slot->peer;
	uint32_t open;

	if (slot->repeats < UINT8_MAX)
		slot->repeats++;
	slot->sent_ns = 0;          /* Karn's rule */
	slot->code = PGR_E_GIVE_UP; /* nobody knows what becomes of this one, unless it is refused too */
	peer->pgr->stats.retransmissions++;
	if (slot->state == PGR_SLOT_TAKING) {
		say_progress(slot);
		return;
	}
	open = pgr_outgoing_open(&slot->out);
	if (slot->alive || peer->pgr->reliable || (slot->out.next && open == PGR_PACKETS_MAX)) {
		send_bare(slot, &peer->to, PGR_PROBE, PGR_FLAG_ASK, slot->claimed, NULL, 0, 0);
	} else if (slot->out.packets == 1 || !slot->out.next) {
		peer->under_way -= slot->out.under_way;
		pgr_outgoing_restart(&slot->out);
		pgr_slot_send(slot, true); /* this poll's end flushes */
	} else {
		const uint32_t before = slot->out.under_way;

		if (slot->repeats > 1) /* not its answer alone was lost: what others wait for is set free */
			pgr_outgoing_all_lost(&slot->out);
		pgr_outgoing_sent(&slot->out, open);
		if (send_packet(slot, open, true, false))
			pgr_outgoing_lost(&slot->out, open);
		peer->under_way += slot->out.under_way - before;
	}
}

static PGR_COLD void take_part(struct pgr_slot *slot, const struct pgr_packet *packet,
			       const struct pgr_to *from)
{
	struct pgr *pgr = slot->peer->pgr;
	const struct pgr_header *head = &packet->head;
	int code;

	if (slot->state != PGR_SLOT_TAKING) {
		code = begin_taking(slot, packet, from);
		if (code != PGR_OK) {
			refuse(slot, packet, from, code);
			return;
		}
	}
	if (!pgr_incoming_take(&slot->in, head)) {
		pgr->stats.duplicates++;
		if (!pgr->reliable && (head->flags & PGR_FLAG_ASK))
			say_progress(slot);
		return;
	}
	if (slot->staging)
		memcpy(slot->staging + (size_t)head->packet_number * head->packet_bytes, packet->data,
		       head->data_bytes);
	else
		pgr_scatter(slot->to, slot->to_count, (uint64_t)head->packet_number * head->packet_bytes,
			    packet->data, head->data_bytes);
	if (!pgr_incoming_whole(&slot->in)) {
		slot->due_ns = pgr->now_ns + pgr_slot_timeout(slot);
		if (!pgr->reliable &&
		    ((head->flags & PGR_FLAG_ASK) || slot->in.unsaid * 4u >= pgr_grant_to_server(pgr)))
			say_progress(slot);
		return;
	}
	if (slot->staging) {
		pgr->stats.copies++;
		deliver(slot, packet, from, slot->staging, slot->in.bytes);
	} else {
		finish(slot, packet, from, NULL, slot->in.bytes);
	}
}

/* ---- what else the server may say ---- */

static PGR_COLD void on_challenge(struct pgr_slot *slot, const struct pgr_packet *packet)
{
	struct pgr_peer *peer = slot->peer;
	const struct pgr_header *head = &packet->head;

	const uint64_t cookie = (uint64_t)head->packet_number << 32 | head->message_bytes;

	if (!head->incarnation || (slot->first_sent && head->procedure != slot->claimed))
		return; /* speaks of an earlier claim */
	if (pgr_now(peer->pgr) >= slot->give_up_ns)
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
	if (slot->heard || slot->carried == cookie)
		return; /* late: it has the call since, or will find the cookie with it */
	peer->incarnation = head->incarnation;
	peer->cookie = cookie;
	peer->introduced &= ~(UINT64_C(1) << slot->number);
	if (slot->sent_ns) /* that exchange is over */
		slot->sent_ns = pgr_now(peer->pgr);
	slot->claimed = head->incarnation;
	slot->alive = false;
	peer->under_way -= slot->out.under_way;
	pgr_outgoing_restart(&slot->out);
	pgr_slot_send(slot, false);
	slot->due_ns = peer->pgr->now_ns + pgr_slot_timeout(slot);
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
		slot->due_ns = pgr->now_ns + pgr_slot_timeout(slot);
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
	} else if (pgr_outgoing_learn(&slot->out, packet->head.packet_number, nack ? packet->data : NULL,
				      nack ? packet->head.data_bytes : 0)) {
		slot->repeats = 0;
	}
	peer->under_way -= before - slot->out.under_way;
	slot->due_ns = peer->pgr->now_ns + pgr_slot_timeout(slot);
	pgr_slot_send(slot, false);
}

/* A result that we have already, and whose sender keeps it because it has not heard so. */
static PGR_COLD void late(struct pgr *pgr, struct pgr_slot *slot, const struct pgr_to *from,
			  const struct pgr_packet *packet)
{
	if (packet->head.type == PGR_RESULT && (packet->head.flags & (PGR_FLAG_DELEGATED | PGR_FLAG_ASK)) &&
	    packet->head.sequence <= slot->sequence &&
	    (packet->head.sequence < slot->sequence || slot->state == PGR_SLOT_FREE)) {
		const struct pgr_header head = {
			.type = PGR_ACK,
			.flags = (packet->head.flags & PGR_FLAG_DELEGATED) | PGR_FLAG_OF_RESULT,
			.version = PGR_VERSION,
			.slot = slot->number,
			.client = slot->peer->client,
			.sequence = packet->head.sequence,
			.incarnation = packet->head.incarnation,
			.packet_number =
				pgr_packets_of(packet->head.message_bytes, packet->head.packet_bytes),
		};

		pgr_send(pgr, from, &head, 0, NULL, 0, false);
		return;
	}
	pgr->stats.duplicates++;
}

static struct pgr_peer *peer_of(struct pgr *pgr, uint64_t client)
{
	for (uint64_t i = client & pgr->peers_mask;; i = (i + 1) & pgr->peers_mask) {
		struct pgr_peer *peer = pgr->by_hash[i];

		if (PGR_LIKELY(peer && peer->client == client)) {
			pgr->recent_peer = peer;
			return peer;
		}
		if (!peer)
			return NULL;
	}
}

void pgr_client_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_peer *peer = peer_of(pgr, head->client);
	struct pgr_slot *slot;
	const bool delegated = (head->flags & PGR_FLAG_DELEGATED) != 0;

	if (PGR_UNLIKELY(!peer || (delegated ? head->type != PGR_RESULT
					     : memcmp(from, &peer->to, sizeof(*from)) != 0))) {
		pgr->stats.packets_dropped++;
		return;
	}
	slot = &peer->slots[head->slot];
	if (PGR_UNLIKELY(head->sequence != slot->sequence || slot->state < PGR_SLOT_CALLING ||
			 slot->state > PGR_SLOT_TAKING)) {
		late(pgr, slot, from, packet);
		return;
	}
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
		peer->heard_ns = pgr->now_ns;
	}
	if (PGR_LIKELY(head->type != PGR_REJECT)) {
		slot->give_up_ns = pgr->now_ns + pgr->config.give_up_ns;
		slot->code = PGR_E_GIVE_UP;
		/* an empty nack says that it has nothing of this call */
		if (PGR_LIKELY(head->type != PGR_NACK || head->packet_number || head->data_bytes)) {
			slot->heard = true;
			peer->introduced |= UINT64_C(1) << slot->number;
		}
	}
	switch (head->type) {
	case PGR_RESULT:
		if (PGR_UNLIKELY(slot->out.under_way &&
				 slot->out.packets > 1)) { /* it acknowledges the call */
			peer->under_way -= slot->out.under_way;
			slot->out.under_way = 0;
			slot->out.next = slot->out.acked = slot->out.packets;
		}
		if (PGR_UNLIKELY(head->message_bytes > head->packet_bytes && head->message_bytes))
			take_part(slot, packet, from);
		else if (PGR_LIKELY(slot->state != PGR_SLOT_TAKING))
			deliver(slot, packet, from, packet->data, head->message_bytes);
		else
			pgr->stats.packets_dropped++; /* of another length than what came first */
		break;
	case PGR_ACK:
	case PGR_NACK: on_report(slot, packet); break;
	case PGR_ALIVE:
		slot->alive = true;
		slot->repeats = slot->repeats > 2 ? 2 : slot->repeats; /* ask on, but not in haste */
		break;
	case PGR_REJECT: on_reject(slot, packet); break;
	default: pgr->stats.packets_dropped++; break;
	}
	if (PGR_UNLIKELY(peer->queued != 0 && !peer->closing))
		pgr_peer_send_queued(peer);
}

/* ---- bindings ---- */

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

	if (!address_bytes || address_bytes > sizeof(to.bytes) || pgr->peers_count == pgr->config.peers_max)
		return PGR_E_ARGUMENT;
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
	pgr->next_tick_ns = 0;
	pgr->polls = pgr->polls_a_look;
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
