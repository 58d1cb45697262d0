/* SPDX-License-Identifier: BSD-3-Clause */
/* Serving: what a call meets in its slot, its execution, and what its client says of the result. */
#include "../base/coroutine.h"
#include "clients.h"
#include "slot.h"
#include "work.h"

#include <stdlib.h>

/* ---- execution ---- */

/* The arguments as the procedure wants them: own byte order, or one more copy where that is asked for. */
static PGR_COLD const void *reform(struct pgr *pgr, const struct pgr_procedure *procedure, uint64_t flags,
				   const void *args, size_t *bytes_inout)
{
	const char *signature = procedure->has_signature ? procedure->signature.in : NULL;
	uint64_t bytes = *bytes_inout;

	if (pgr->copied_bytes < bytes + 8) {
		uint8_t *copied = realloc(pgr->copied, bytes + 8);

		if (!copied)
			return NULL;
		pgr->copied = copied;
		pgr->copied_bytes = bytes + 8;
	}
	bytes = pgr_reform(signature, flags, args, bytes, pgr->copied);
	if (bytes == PGR_WORDS_BAD)
		return NULL;
	pgr->stats.copies++;
	*bytes_inout = (size_t)bytes;
	return pgr->copied;
}

static void execute(struct pgr *pgr, struct pgr_work *work, const void *args, size_t bytes)
{
	const struct pgr_procedure *procedure = pgr_procedure_of(pgr, work->procedure);
	struct pgr_request request = {
		.pgr = pgr,
		.procedure = work->procedure,
		.token = {{work->index, work->generation, 0, 0}},
		.client = work->client->id,
		.client_data = work->client->data,
		.shared = work->args ? 0 : pgr->shared,
	};

	if (PGR_UNLIKELY(!pgr->here))
		return; /* who was asked about the contact has forked */
	work->state = PGR_WORK_EXECUTING;
	if (PGR_UNLIKELY(pgr_needs_reform(pgr, work->data_order))) {
		args = reform(pgr, procedure, work->data_order, args, &bytes);
		if (!args) {
			pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
			return;
		}
		request.shared = 0;
	}
	request.args = args;
	request.args_bytes = bytes;
	pgr->stats.executed++;
	pgr->events++;
	if (PGR_UNLIKELY(pgr->off & PGR_OFF_NO_THREAD_STATE))
		pgr_run_on_own_stack(procedure->handler, procedure->arg, &request);
	else
		procedure->handler(procedure->arg, &request);
}

/* Behind the token of a call that was passed on. */
static PGR_COLD void execute_delegated(struct pgr *pgr, struct pgr_work *work, const uint8_t *args,
				       size_t bytes)
{
	if (pgr_delegated_in(pgr, work, args, bytes))
		execute(pgr, work, args + PGR_TOKEN_BYTES, bytes - PGR_TOKEN_BYTES);
	else
		pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
}

/* ---- a call meets its slot ---- */

/* Which packets of the arguments have come. */
static void report(struct pgr *pgr, struct pgr_work *work)
{
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
	struct pgr_header head = {
		.version = PGR_VERSION,
		.retransmissions = work->retransmissions,
		.slot = work->slot,
		.credits = pgr_grant_to_client(pgr, work->client),
		.client = work->client->id,
		.sequence = work->sequence,
		.incarnation = pgr->incarnation,
		.procedure = work->procedure,
	};
	const size_t bytes = pgr_incoming_report(&work->in, &head, bitmap);
	const struct pgr_piece piece = {bitmap, bytes};

	head.data_bytes = (uint32_t)bytes;
	pgr_send(pgr, &work->client->to, &head, 0, &piece, bytes ? 1 : 0, false);
}

static PGR_COLD void take_part(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	const unsigned int came =
		pgr_incoming_take(&work->in, packet, pgr_grant_to_client(pgr, work->client));

	if (came & PGR_CAME_NEW)
		work->since_ns = pgr->now_ns;
	else
		pgr->stats.duplicates++;
	if (came & PGR_CAME_WHOLE) {
		uint8_t *args = work->args, *whole = NULL;
		size_t bytes = work->in.bytes;

		if (pgr->off &
		    PGR_OFF_EARLY_COPY) { /* the copying that could have been done while packets came */
			whole = pgr_buffer_take(pgr, bytes);
			if (whole) {
				memcpy(whole, args, bytes);
				pgr_buffer_give(pgr, work->args);
				work->args = args = whole;
			}
		}
		if (work->data_order & PGR_FLAG_DELEGATED)
			execute_delegated(pgr, work, args, bytes);
		else
			execute(pgr, work, args, bytes);
		return;
	}
	if ((came & PGR_CAME_REPORT) && !pgr->reliable)
		report(pgr, work);
}

/* The arguments lie in memory of the client's. */
static PGR_COLD void execute_referred(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	uint64_t bytes;
	const uint8_t *args = pgr_referred(pgr, &work->client->to, packet, &bytes);

	if (args && bytes > pgr->config.message_bytes_max) {
		struct pgr_client *client = work->client;

		client->slots[work->slot].work = NULL;
		pgr_work_free(pgr, work);
		pgr_server_reject(pgr, &client->to, &packet->head, PGR_REJECT_TOO_LARGE);
	} else if (args) {
		execute(pgr, work, args, (size_t)bytes);
	} else {
		pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
	}
}

/* What a call holds that may be executed; NULL: no room. */
static struct pgr_work *work_for(struct pgr *pgr, struct pgr_client *client, const struct pgr_header *head)
{
	struct pgr_work *work = pgr_work_take(pgr);

	if (PGR_UNLIKELY(!work))
		return NULL;
	work->client = client;
	work->state = PGR_WORK_TAKING;
	work->slot = (uint8_t)head->slot;
	work->sequence = head->sequence;
	work->procedure = head->procedure;
	work->retransmissions = head->retransmissions;
	work->credits = head->credits;
	work->packet_bytes = pgr_result_size(pgr, head->packet_bytes);
	work->data_order = head->flags &
			   (PGR_FLAG_BIG_ENDIAN | PGR_FLAG_WORDS | PGR_FLAG_DELEGATED | PGR_FLAG_REFERENCE);
	work->since_ns = pgr->now_ns;
	return work;
}

/* A place for arguments of several packets; false: there is none. */
static PGR_COLD bool make_place(struct pgr *pgr, struct pgr_work *work, const struct pgr_header *head)
{
	/* it may begin anew, in smaller packets */
	const uint32_t least_bytes =
		head->packet_bytes < PGR_SMALL_BYTES ? head->packet_bytes : PGR_SMALL_BYTES;
	const size_t map_bytes = pgr_packets_of(head->message_bytes, least_bytes) / 64 * 8 + 8;

	if (pgr_charge(pgr, work, head->message_bytes + map_bytes))
		work->args = pgr_buffer_take(pgr, head->message_bytes);
	return work->args && pgr_incoming_start(&work->in, head, work->args, NULL, 0) == PGR_OK;
}

/* Why a call may not be executed: enum pgr_reject; 0: it may. What its slot still holds is given up. */
static uint32_t refusal(struct pgr *pgr, const struct pgr_client *client, struct pgr_client_slot *slot,
			const struct pgr_header *head)
{
	const bool delegated = (head->flags & PGR_FLAG_DELEGATED) != 0;

	if (PGR_UNLIKELY(pgr->draining))
		return PGR_REJECT_BUSY;
	if (PGR_UNLIKELY(delegated && !pgr_may_delegate(pgr, &client->to)))
		return PGR_REJECT_NOT_AUTHORISED;
	if (PGR_UNLIKELY(slot->work != NULL))
		pgr_client_abandon(pgr, slot);
	if (PGR_UNLIKELY(!pgr_procedure_of(pgr, head->procedure)))
		return PGR_REJECT_PROCEDURE;
	if (PGR_UNLIKELY(head->message_bytes >
			 pgr->config.message_bytes_max + (delegated ? PGR_TOKEN_BYTES : 0)))
		return PGR_REJECT_TOO_LARGE;
	return 0;
}

/* A call that is newer than what the slot has seen. */
static void begin(struct pgr *pgr, struct pgr_client *client, struct pgr_client_slot *slot,
		  const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	const bool single = !head->message_bytes || head->message_bytes <= head->packet_bytes;
	struct pgr_work *work = NULL;
	uint32_t reason;

	/*
	 * The client may be known by another slot's call only, made known again after it had been forgotten.
	 * What this slot executed before is forgotten too: an old copy must not pass, so a slot shows a
	 * cookie of its own.
	 */
	if (PGR_UNLIKELY(!slot->sequence) && !pgr_cookie_shown(pgr, client, &client->to, packet))
		return;
	reason = refusal(pgr, client, slot, head);
	if (PGR_LIKELY(!reason) && PGR_UNLIKELY(!(work = work_for(pgr, client, head))))
		reason = PGR_REJECT_BUSY;
	if (PGR_UNLIKELY(!single) && work && !make_place(pgr, work, head)) {
		pgr_work_free(pgr, work);
		reason = PGR_REJECT_BUSY;
	}
	if (PGR_UNLIKELY(reason)) {
		pgr_server_reject(pgr, &client->to, head, reason);
		return;
	}
	slot->sequence = head->sequence;
	slot->work = work;
	client->lost &= ~(UINT64_C(1) << work->slot);
	if (PGR_UNLIKELY(!single))
		take_part(pgr, work, packet);
	else if (PGR_UNLIKELY(head->flags & PGR_FLAG_DELEGATED))
		execute_delegated(pgr, work, packet->data, head->data_bytes);
	else if (PGR_UNLIKELY(head->flags & PGR_FLAG_REFERENCE))
		execute_referred(pgr, work, packet);
	else
		execute(pgr, work, packet->data, head->data_bytes);
}

/* The same call again, or a question about it. */
static PGR_COLD void repeated(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	const bool asked = head->type == PGR_PROBE || (head->flags & PGR_FLAG_ASK);

	work->retransmissions = head->retransmissions;
	if (head->type == PGR_CALL && head->credits &&
	    !work->delegated) /* else they are not from who gets it */
		work->credits = head->credits;
	/* the call that passes another one on says nothing of who gets its result; a question about it does */
	if ((head->type == PGR_PROBE || !(work->data_order & PGR_FLAG_DELEGATED)) &&
	    PGR_UNLIKELY(pgr_result_shrink(pgr, work, head->packet_bytes)))
		return;
	switch (work->state) {
	case PGR_WORK_TAKING:
		if (head->type == PGR_CALL)
			take_part(pgr, work, packet);
		else
			report(pgr, work);
		return;
	case PGR_WORK_REPLYING:
	case PGR_WORK_REPLIED:
		pgr->stats.duplicates++;
		if (!work->delegated) {
			const uint32_t large_bytes = pgr_result_large(pgr, work);

			pgr_result_resend(pgr, work, head->retransmissions);
			if (PGR_UNLIKELY(large_bytes && asked)) /* where it does not arrive, this does */
				pgr_server_answer(pgr, &work->client->to, head, PGR_ALIVE, work->procedure,
						  large_bytes, pgr_grant_to_client(pgr, work->client));
			return;
		}
		/* the result goes elsewhere: who is there may miss it; who passed the call on hears that we are at it */
		pgr_result_resend(pgr, work, work->retransmissions);
		__attribute__((fallthrough));
	case PGR_WORK_EXECUTING:
	case PGR_WORK_PASSED:
	default:
		if (work->onward && work->onward->state == PGR_SLOT_CALLING &&
		    asked) /* the next server hears who is asking, and may say it again */
			pgr_slot_probe(work->onward);
		if (asked)
			pgr_server_answer(pgr, &work->client->to, head, PGR_ALIVE, work->procedure,
					  pgr_result_large(pgr, work),
					  pgr_grant_to_client(pgr, work->client));
		return;
	}
}

/* Who gets the result tells how far it has come. Returns false: all of it has, and the work is over. */
static bool learn_report(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet,
			 bool *progress_out)
{
	const struct pgr_header *head = &packet->head;
	const bool nack = head->type == PGR_NACK;

	work->since_ns = pgr->now_ns;
	*progress_out = false;
	/* all of it, in packets of whatever size it came */
	if (head->type == PGR_ACK &&
	    head->packet_number ==
		    pgr_packets_of(work->out.bytes, head->packet_bytes ? head->packet_bytes : UINT32_MAX)) {
		pgr_result_acked(pgr, work);
		return false;
	}
	if (head->credits)
		work->credits = head->credits;
	if (head->packet_bytes != work->out.packet_bytes)
		return true; /* late: it speaks of larger packets, before the result began anew */
	*progress_out = pgr_outgoing_acknowledge(&work->out, head->packet_number, nack ? packet->data : NULL,
						 nack ? head->data_bytes : 0);
	return true;
}

/* A client acknowledges a delegated result: it is a stranger to our own slots. */
static PGR_COLD void delegated_report(struct pgr *pgr, const struct pgr_to *from,
				      const struct pgr_packet *packet)
{
	struct pgr_work *work = pgr_work_delegated(pgr, from, &packet->head);
	bool progress;

	if (!work) {
		pgr->stats.duplicates++;
		return;
	}
	work->acknowledged = true;
	if (learn_report(pgr, work, packet, &progress)) {
		if (progress)
			work->repeats = 0;
		pgr_result_send(pgr, work, false);
	}
}

/* The client tells which packets of a result have come. */
static PGR_COLD void result_report(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	bool progress;

	if (!work || work->delegated || (work->state != PGR_WORK_REPLIED && work->state != PGR_WORK_REPLYING))
		return;
	if (!learn_report(pgr, work, packet, &progress))
		return;
	/* it has waited in vain: the tail is lost, which no later packet can show */
	if (head->retransmissions)
		pgr_result_resend(pgr, work, head->retransmissions);
	else
		pgr_result_send(pgr, work, false);
}

uint32_t pgr_drain(struct pgr *pgr)
{
	pgr->draining = true;
	pgr->fast = false; /* it would take them */
	return pgr->here ? pgr->works_used : 0;
}

void pgr_server_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_client *client;
	struct pgr_client_slot *slot;

	if (PGR_UNLIKELY((head->flags & PGR_FLAG_DELEGATED) && head->type != PGR_CALL)) {
		if (head->type != PGR_PROBE)
			delegated_report(pgr, from, packet);
		return;
	}
	client = pgr_client_of(pgr, head->client);
	if (PGR_UNLIKELY(!client || head->incarnation != pgr->incarnation ||
			 memcmp(&client->to, from, sizeof(*from)) != 0)) {
		client = pgr_client_first_contact(pgr, client, from, packet);
		if (!client)
			return;
	}
	pgr_client_note_packet(pgr, client);
	slot = &client->slots[head->slot];
	if (PGR_LIKELY(head->type == PGR_CALL && head->sequence > slot->sequence)) {
		begin(pgr, client, slot, packet);
		return;
	}
	if (head->sequence < slot->sequence) {
		pgr->stats.duplicates++;
		return;
	}
	switch (head->type) {
	case PGR_CALL:
	case PGR_PROBE:
		if (head->sequence > slot->sequence)
			pgr_server_answer(pgr, from, head, PGR_NACK, head->procedure, 0,
					  pgr_grant_to_client(pgr, client));
		else if (slot->work)
			repeated(pgr, slot->work, packet);
		else if (client->lost >> head->slot & 1)
			pgr_server_reject(pgr, from, head, PGR_REJECT_LOST);
		else
			pgr->stats.duplicates++;
		return;
	case PGR_ACK:
	case PGR_NACK:
		if (head->sequence == slot->sequence)
			result_report(pgr, slot->work, packet);
		return;
	default: pgr->stats.packets_dropped++; return;
	}
}
