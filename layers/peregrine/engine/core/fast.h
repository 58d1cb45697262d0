/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The usual case, short: a call of one packet, answered at once, on a wire that loses nothing, between
 * machines alike, with all optimisations on. What does not fit is left to call.c, serve.c and reply.c,
 * which know every case; nothing here decides anything that they would decide otherwise.
 *
 * The server keeps no state for a call that is answered inside its handler: the token names the work that
 * would be taken next, which is filled in only where the handler returns without an answer, or does anything
 * but reply.
 */
#ifndef PGR_FAST_H
#define PGR_FAST_H

#include "../base/coroutine.h"
#include "clients.h"
#include "peer.h"
#include "slot.h"
#include "work.h"

/* Whether this endpoint may take the short way at all. */
static inline bool pgr_fast_can(const struct pgr *pgr)
{
	return pgr->reliable && !pgr->has_key && !(pgr->off & PGR_OFF_NO_CONVERSION);
}

/*
 * Sends a packet of one piece of header and `count` of data. The switches that concern it cost a branch, so
 * that what each is worth can be measured on this path.
 */
static inline int pgr_fast_send(struct pgr *pgr, const struct pgr_to *to, const struct pgr_line *line,
				struct pgr_piece *pieces, unsigned int count, size_t bytes)
{
	if (PGR_UNLIKELY((pgr->off & PGR_OFF_GATHER) && count)) {
		size_t used = 0;

		for (unsigned int i = 1; i <= count; i++) {
			if (pieces[i].bytes)
				memcpy(pgr->scratch + used, pieces[i].base, pieces[i].bytes);
			used += pieces[i].bytes;
		}
		pieces[1] = (struct pgr_piece){pgr->scratch, bytes};
		count = 1;
	}
	if (PGR_UNLIKELY(pgr->off & PGR_OFF_TEMPLATES))
		return pgr_send_line(pgr, to, line, 0, pieces + 1, count, false);
	pieces[0] = (struct pgr_piece){line, sizeof(*line)};
	pgr->stats.packets_sent++;
	return pgr->wire->ops->send(pgr->wire, to, pieces, 1 + count, false);
}

/* The data once more, as a system does that cannot hand them over where they lie. NULL: no memory. */
static PGR_COLD const uint8_t *pgr_fast_copy(struct pgr *pgr, const uint8_t *data, size_t bytes)
{
	if (!bytes || bytes > pgr->wire->packet_bytes_max)
		return data;
	memcpy(pgr->copy, data, bytes);
	return pgr->copy;
}

/* ---- client ---- */

/* What the long way has to know of the call that has left. */
static inline void pgr_fast_record(const struct pgr *pgr, struct pgr_peer *peer, struct pgr_slot *slot,
				   uint32_t procedure, uint32_t bytes, uint32_t count)
{
	peer->free &= ~(UINT64_C(1) << slot->number);
	slot->sequence++;
	slot->state = PGR_SLOT_CALLING;
	slot->repeats = 0;
	slot->alive = slot->arrived = false;
	slot->first_sent = true;
	slot->carried = 0;
	slot->claimed = peer->incarnation;
	slot->code = PGR_E_GIVE_UP;
	slot->head.procedure = procedure;
	slot->signature = NULL;
	slot->out.bytes = bytes;
	slot->out.packets = slot->out.next = 1; /* on its way, and this wire keeps its word */
	slot->out.acked = 0;
	slot->out.count = count;
	slot->out.packet_bytes = pgr->packet_bytes;
}

/* PGR_QUEUED; or PGR_OK: nothing was done, go the long way. */
static inline int pgr_fast_call(struct pgr_peer *peer, uint32_t procedure, const struct pgr_iov *in,
				uint32_t in_count, const struct pgr_iov *out, uint32_t out_count,
				pgr_done *done, void *arg)
{
	struct pgr *pgr = peer->pgr;
	struct pgr_piece pieces[1 + PGR_IOV_MAX];
	struct pgr_slot *slot;
	struct pgr_line line;
	uint64_t bytes = 0, to_bytes = 0;

	/* a slot that is free and known to the server */
	if (PGR_UNLIKELY(!(peer->free & peer->introduced) || peer->queued))
		return PGR_OK;
	slot = peer->slots[__builtin_ctzll(peer->free & peer->introduced)];
	if (PGR_UNLIKELY(!slot))
		return PGR_OK;
	for (uint32_t i = 0; i < in_count; i++) {
		pieces[1 + i] = (struct pgr_piece){in[i].base, in[i].bytes};
		slot->out.iov[i] = in[i]; /* a server that was busy or forgot us wants it once more */
		bytes += in[i].bytes;
	}
	if (PGR_UNLIKELY(bytes > pgr->single_bytes || bytes > pgr->config.message_bytes_max))
		return PGR_OK;
	for (uint32_t i = 0; i < out_count; i++) {
		slot->to[i] = out[i];
		to_bytes += out[i].bytes;
	}
	line = pgr_line_of((struct pgr_header){
		.type = PGR_CALL,
		.flags = PGR_OWN_ORDER,
		.version = PGR_VERSION,
		.slot = slot->number,
		.credits = pgr->grant_to_servers,
		.client = peer->client,
		.sequence = slot->sequence + 1,
		.incarnation = peer->incarnation,
		.procedure = procedure,
		.message_bytes = (uint32_t)bytes,
		.data_bytes = (uint32_t)bytes,
		.packet_bytes = pgr->packet_bytes,
	});
	if (PGR_UNLIKELY(pgr_fast_send(pgr, &peer->to, &line, pieces, in_count, bytes)))
		return PGR_OK;
	pgr_fast_record(pgr, peer, slot, procedure, (uint32_t)bytes, in_count);
	slot->to_count = out_count;
	slot->to_bytes = to_bytes;
	slot->done = done;
	slot->arg = arg;
	/* after the packet has left: the server works already */
	slot->due_ns = pgr_now(pgr) + pgr->probe_ns;
	slot->give_up_ns = pgr->now_ns + pgr->config.give_up_ns;
	slot->claimed_ns = pgr->now_ns;
	pgr->stats.calls++;
	return PGR_QUEUED;
}

/* Whether it was dealt with. */
static inline bool pgr_fast_result(struct pgr *pgr, const struct pgr_to *from, const uint64_t word[6],
				   const uint8_t *data, uint32_t bytes)
{
	struct pgr_peer *peer = pgr->recent_peer;
	struct pgr_slot *slot;

	if (PGR_UNLIKELY(!peer || peer->client != word[1] || peer->queued))
		return false;
	slot = peer->slots[word[0] >> 32 & 0xffff];
	if (PGR_UNLIKELY(!slot || slot->sequence != word[2] || slot->state != PGR_SLOT_CALLING ||
			 slot->claimed != (uint32_t)word[3] || slot->delegating || slot->marshal ||
			 slot->out.order || memcmp(from, &peer->to, sizeof(*from)) != 0))
		return false;
	if (PGR_UNLIKELY(pgr->off & PGR_OFF_IN_PLACE))
		data = pgr_fast_copy(pgr, data, bytes);
	if (slot->to_count) {
		if (PGR_UNLIKELY(bytes > slot->to_bytes))
			return false;
		if (bytes)
			pgr_scatter(slot->to, slot->to_count, 0, data, bytes);
		data = NULL;
	}
	slot->state = PGR_SLOT_FREE;
	peer->under_way -= slot->out.under_way;
	slot->out.under_way = 0;
	peer->free |= UINT64_C(1) << slot->number;
	peer->introduced |= UINT64_C(1) << slot->number;
	peer->last_packet_ns = pgr->now_ns;
	pgr->events++;
	slot->done(slot->arg, PGR_OK, data, bytes);
	return true;
}

/* ---- server ---- */

static inline bool pgr_fast_serve(struct pgr *pgr, const struct pgr_to *from, const uint64_t word[6],
				  const uint8_t *data, uint32_t bytes)
{
	struct pgr_client *client = pgr->recent;
	const struct pgr_procedure *procedure = pgr->recent_procedure;
	struct pgr_work *work = pgr->works_free;
	struct pgr_client_slot *slot;
	struct pgr_request request;

	if (PGR_UNLIKELY(!client || client->id != word[1] || (uint32_t)word[3] != pgr->incarnation || !work ||
			 !procedure || pgr->recent_number != (uint32_t)(word[3] >> 32) ||
			 memcmp(from, &client->to, sizeof(*from)) != 0))
		return false;
	slot = &client->slots[word[0] >> 32 & 0xffff];
	if (PGR_UNLIKELY(slot->work || !slot->sequence || slot->sequence >= word[2] ||
			 bytes > pgr->config.message_bytes_max))
		return false;
	slot->sequence = word[2];
	pgr_client_note_packet(pgr, client);
	pgr->current = work;
	pgr->current_client = client;
	pgr->current_slot = (uint8_t)(word[0] >> 32);
	pgr->current_credits = (uint16_t)(word[0] >> 48);
	request = (struct pgr_request){
		.pgr = pgr,
		.procedure = pgr->recent_number,
		.args = data,
		.args_bytes = bytes,
		.token = {{work->index, work->generation, 0, 0}},
		.client = client->id,
		.client_data = client->data,
		.shared = pgr->shared,
	};
	pgr->stats.executed++;
	pgr->events++;
	if (PGR_UNLIKELY(pgr->off & PGR_OFF_IN_PLACE))
		request.args = pgr_fast_copy(pgr, data, bytes);
	if (PGR_UNLIKELY(pgr->off & PGR_OFF_NO_THREAD_STATE))
		pgr_run_on_own_stack(procedure->handler, procedure->arg, &request);
	else
		procedure->handler(procedure->arg, &request);
	if (PGR_UNLIKELY(pgr->current != NULL))
		pgr_current_take_work(pgr); /* it will be answered later */
	return true;
}

/* PGR_OK; or PGR_BUSY: go the long way. */
static inline int pgr_fast_reply(struct pgr *pgr, const struct pgr_token *token, const struct pgr_iov *iov,
				 uint32_t count)
{
	struct pgr_work *work = pgr->current;
	struct pgr_client *client = pgr->current_client;
	struct pgr_piece pieces[1 + PGR_IOV_MAX];
	struct pgr_line line;
	uint64_t bytes = 0;

	if (token->word[0] != work->index || token->word[1] != work->generation || count > PGR_IOV_MAX)
		return PGR_BUSY;
	for (uint32_t i = 0; i < count; i++) {
		pieces[1 + i] = (struct pgr_piece){iov[i].base, iov[i].bytes};
		bytes += iov[i].bytes;
	}
	if (PGR_UNLIKELY(bytes > pgr->single_bytes || bytes > pgr->config.message_bytes_max))
		return PGR_BUSY;
	line = pgr_line_of((struct pgr_header){
		.type = PGR_RESULT,
		.flags = PGR_OWN_ORDER,
		.version = PGR_VERSION,
		.slot = pgr->current_slot,
		.credits = pgr->grant_to_clients,
		.client = client->id,
		.sequence = client->slots[pgr->current_slot].sequence,
		.incarnation = pgr->incarnation,
		.procedure = pgr->recent_number,
		.message_bytes = (uint32_t)bytes,
		.data_bytes = (uint32_t)bytes,
		.packet_bytes = pgr->packet_bytes,
	});
	if (PGR_UNLIKELY(pgr_fast_send(pgr, &client->to, &line, pieces, count, bytes)))
		return PGR_BUSY;
	pgr_client_active(pgr, client);
	pgr->current = NULL;
	work->generation++; /* the token is consumed */
	return PGR_OK;
}

/* Whether the packet was dealt with. */
static inline bool pgr_fast_input(struct pgr *pgr, const struct pgr_to *from, const void *at, size_t bytes)
{
	const uint8_t *packet = at;
	uint64_t word[6];
	uint32_t data_bytes;

	memcpy(word, packet, sizeof(word));
	for (unsigned int i = 0; i < 6; i++)
		word[i] = pgr_le64(word[i]);
	data_bytes = (uint32_t)word[5];
	/* of a machine alike, no other flag, this version, not repeated, a slot that there is, and all in this packet */
	if ((word[0] & UINT64_C(0xffc0ffffff00)) !=
		    ((uint64_t)PGR_VERSION << 16 | (uint64_t)PGR_OWN_ORDER << 8) ||
	    word[4] != data_bytes || bytes != PGR_HEADER_BYTES + (size_t)data_bytes ||
	    data_bytes > (uint32_t)(word[5] >> 32))
		return false;
	switch ((uint8_t)word[0]) {
	case PGR_CALL: return pgr_fast_serve(pgr, from, word, packet + PGR_HEADER_BYTES, data_bytes);
	case PGR_RESULT: return pgr_fast_result(pgr, from, word, packet + PGR_HEADER_BYTES, data_bytes);
	default: return false;
	}
}

#endif
