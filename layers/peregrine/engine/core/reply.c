/* SPDX-License-Identifier: BSD-3-Clause */
/* Results: sent, repeated, kept until the client has them. */
#include "clients.h"
#include "fast.h"
#include "slot.h"
#include "work.h"

#include <stdlib.h>

static const struct pgr_to *destination(const struct pgr_work *work)
{
	return work->delegated ? &work->to : &work->client->to;
}

static PGR_COLD int send_rejection(struct pgr *pgr, struct pgr_work *work)
{
	const int32_t code = (int32_t)pgr_le32((uint32_t)work->rejected);
	const bool own = work->rejected <= PGR_E_PROCEDURE_OWN;
	const struct pgr_piece piece = {&code, sizeof(code)};
	struct pgr_header head = work->head;

	head.type = PGR_REJECT;
	head.procedure = own                                 ? PGR_REJECT_FAILED
			 : work->rejected == PGR_E_PROCEDURE ? PGR_REJECT_PROCEDURE
							     : PGR_REJECT_LOST;
	head.retransmissions = work->retransmissions;
	head.data_bytes = own ? sizeof(code) : 0;
	return pgr_send(pgr, destination(work), &head, 0, &piece, own ? 1 : 0, false);
}

static int send_packet(struct pgr *pgr, struct pgr_work *work, uint32_t number, bool ask, bool more)
{
	struct pgr_piece pieces[PGR_IOV_MAX];
	const uint64_t at = (uint64_t)number * work->out.packet_bytes;
	const uint64_t left = work->out.bytes - at;
	struct pgr_line line;

	if (PGR_UNLIKELY(work->rejected))
		return send_rejection(pgr, work);
	line = pgr_line_of((struct pgr_header){
		.type = PGR_RESULT,
		.flags = (uint8_t)(work->head.flags | (ask ? PGR_FLAG_ASK : 0)),
		.version = PGR_VERSION,
		.retransmissions = work->retransmissions,
		.slot = work->head.slot,
		.credits = PGR_LIKELY(work->client != NULL) ? pgr_grant_to_client(pgr, work->client)
							    : (uint16_t)0,
		.client = work->head.client,
		.sequence = work->head.sequence,
		.incarnation = work->head.incarnation,
		.procedure = work->procedure,
		.message_bytes = work->out.bytes,
		.packet_number = number,
		.data_bytes = (uint32_t)(left < work->out.packet_bytes ? left : work->out.packet_bytes),
		.packet_bytes = work->out.packet_bytes,
	});
	return pgr_send_line(pgr, destination(work), &line, 0, pieces,
			     pgr_outgoing_pieces(&work->out, number, pieces), more);
}

void pgr_result_send(struct pgr *pgr, struct pgr_work *work, bool more)
{
	struct pgr_outgoing *out = &work->out;
	const uint32_t credits = pgr->reliable ? PGR_PACKETS_MAX : work->credits ? work->credits : 1;
	uint32_t number = pgr_outgoing_next(out, credits);

	while (number != PGR_PACKETS_MAX) {
		uint32_t following;
		int full;

		pgr_outgoing_sent(out, number);
		following = out->packets == 1 ? PGR_PACKETS_MAX : pgr_outgoing_next(out, credits);
		full = send_packet(pgr, work, number,
				   following == PGR_PACKETS_MAX &&
					   (out->packets > 1 || work->delegated || pgr_result_in_place(work)),
				   more || following != PGR_PACKETS_MAX);
		if (PGR_UNLIKELY(full)) {
			pgr_outgoing_lost(out, number);
			pgr->stalled = true;
			work->due_ns = pgr->now_ns;
			pgr_timed_add(pgr, work);
			return;
		}
		number = following;
	}
	if (PGR_UNLIKELY(pgr->reliable && pgr_result_in_place(work)) && out->next == out->packets) {
		work->due_ns = pgr->now_ns + PGR_LIFE_NS; /* until its client has read it, or has ended */
		pgr_timed_add(pgr, work);
	} else if (PGR_UNLIKELY(pgr->reliable && !work->delegated && out->next == out->packets && !out->lost))
		pgr_result_acked(pgr, work); /* what this wire has taken arrives */
	else if (PGR_UNLIKELY(pgr->reliable && !work->delegated)) {
		work->due_ns = pgr->now_ns;
		pgr_timed_add(pgr, work);
	} else if (PGR_UNLIKELY(work->back && !work->delegated)) {
		pgr_timed_remove(pgr, work); /* there is room again; from here on the client asks */
	}
}

void pgr_result_resend(struct pgr *pgr, struct pgr_work *work, uint8_t retransmissions)
{
	uint32_t open;

	work->retransmissions = retransmissions;
	if (pgr->reliable && !work->delegated) { /* only where there was no room */
		pgr_result_send(pgr, work, false);
		return;
	}
	open = pgr_outgoing_unacked(&work->out);
	if (!work->out.next || open == PGR_PACKETS_MAX) {
		const uint32_t before = work->out.next;

		pgr_result_send(pgr, work, false);
		if (work->out.next != before)
			return;
		open = PGR_PACKETS_MAX;
	}
	if (open == PGR_PACKETS_MAX ||
	    work->out.packets == 1) { /* one is enough for him to say what he has */
		send_packet(pgr, work, 0, work->out.packets > 1 || work->delegated, false);
		return;
	}
	pgr_outgoing_sent(&work->out, open);
	if (send_packet(pgr, work, open, true, false))
		pgr_outgoing_lost(&work->out, open);
}

void pgr_result_dropped(struct pgr *pgr, struct pgr_work *work)
{
	if (work->client && !work->delegated && !pgr->reliable)
		work->client->lost |= UINT64_C(1) << work->slot;
	pgr_result_acked(pgr, work);
}

/* A delegated result that its client has not acknowledged for too long: who passed the call on is told so. */
void pgr_result_lost(struct pgr *pgr, struct pgr_work *work)
{
	pgr_sent *sent = work->sent;
	void *arg = work->sent_arg;

	work->sent = NULL;
	pgr_timed_remove(pgr, work);
	pgr_outgoing_end(&work->out);
	pgr_work_reject(pgr, work, PGR_E_GIVE_UP);
	if (sent && pgr->here) {
		pgr->events++;
		sent(arg, PGR_E_GIVE_UP);
	}
}

/* The result is no longer needed. A delegated one is followed by the answer to the server that passed the
 * call on. */
void pgr_result_acked(struct pgr *pgr, struct pgr_work *work)
{
	pgr_sent *sent = work->sent;
	void *arg = work->sent_arg;

	work->sent = NULL;
	if (work->delegated && work->client) {
		pgr_timed_remove(pgr, work);
		work->delegated = false;
		pgr_outgoing_end(&work->out);
		pgr_buffer_give(pgr, work->saved);
		work->saved = NULL;
		work->head.client = work->client->id;
		work->head.slot = work->slot;
		work->head.sequence = work->sequence;
		work->head.incarnation = pgr->incarnation;
		work->head.flags = PGR_OWN_ORDER;
		work->head.message_bytes = work->head.packet_bytes = 0;
		work->out.count = work->out.bytes = 0;
		work->state = PGR_WORK_REPLIED;
		work->since_ns = pgr->now_ns;
		pgr_outgoing_start(&work->out, pgr_split(pgr, work->packet_bytes, work->out.bytes));
		pgr_result_send(pgr, work, false);
	} else {
		if (work->client) {
			struct pgr_client_slot *slot = &work->client->slots[work->slot];

			if (slot->work == work)
				slot->work = NULL;
		}
		pgr_work_free(pgr, work);
	}
	if (sent && pgr->here) {
		pgr->events++;
		sent(arg, PGR_OK);
	}
}

bool pgr_result_shrink(struct pgr *pgr, struct pgr_work *work, uint32_t taken)
{
	const uint32_t packet_bytes = pgr_result_size(pgr, taken);

	/* to the smaller of two sizes, so once */
	if (PGR_LIKELY(work->packet_bytes <= PGR_SMALL_BYTES || packet_bytes > PGR_SMALL_BYTES))
		return false;
	work->packet_bytes = packet_bytes;
	if (work->onward)
		work->onward->result_packet_bytes = packet_bytes;
	if ((work->state != PGR_WORK_REPLIED && work->state != PGR_WORK_REPLYING) ||
	    work->out.bytes <= packet_bytes || work->out.packet_bytes <= packet_bytes)
		return false;
	pgr_outgoing_end(&work->out);
	if (pgr_outgoing_start(&work->out, packet_bytes) != PGR_OK) {
		pgr_result_lost(pgr, work);
		return true;
	}
	if (work->delegated && !work->acknowledged)
		work->credits = 1; /* nobody has spoken there: what goes to him has gone already */
	pgr_result_send(pgr, work, false);
	return true;
}

uint32_t pgr_result_large(const struct pgr *pgr, const struct pgr_work *work)
{
	if (work->onward)
		return work->onward->result_part_bytes;
	if (pgr->reliable || (work->state != PGR_WORK_REPLIED && work->state != PGR_WORK_REPLYING) ||
	    work->out.packet_bytes <= PGR_SMALL_BYTES || work->out.bytes <= PGR_SMALL_BYTES)
		return 0;
	return work->out.packet_bytes;
}

static void head_of(struct pgr *pgr, struct pgr_work *work)
{
	if (!work->delegated) {
		work->head.client = work->client->id;
		work->head.slot = work->slot;
		work->head.sequence = work->sequence;
		work->head.incarnation = pgr->incarnation;
	}
	work->head.type = PGR_RESULT;
	work->head.version = PGR_VERSION;
	work->head.flags =
		(uint8_t)(PGR_OWN_ORDER | (pgr->off & PGR_OFF_NO_CONVERSION ? PGR_FLAG_WORDS : 0u) |
			  (work->delegated ? PGR_FLAG_DELEGATED : 0u) |
			  (pgr_is_reference(&work->out, work->reference) ? PGR_FLAG_REFERENCE : 0u));
	work->head.procedure = work->procedure;
}

/* Marshalled into one piece, which is then kept. */
static PGR_COLD int marshal(struct pgr *pgr, struct pgr_work *work, const struct pgr_iov *iov, uint32_t count,
			    uint64_t bytes)
{
	const struct pgr_procedure *procedure = pgr_procedure_of(pgr, work->procedure);
	const char *signature = procedure->has_signature ? procedure->signature.out : NULL;

	if (!pgr_charge(pgr, work, (size_t)pgr_marshalled_bytes(pgr, signature, bytes)))
		return PGR_BUSY;
	work->saved = pgr_marshal(pgr, signature, iov, count, bytes, &work->out);
	return work->saved ? PGR_OK : PGR_E_MEMORY;
}

/* A copy is kept. */
static int save(struct pgr *pgr, struct pgr_work *work, const struct pgr_iov *iov, uint32_t count,
		uint64_t bytes)
{
	uint8_t *saved = pgr_buffer_take(pgr, bytes);

	if (!saved)
		return PGR_E_MEMORY;
	pgr_gather(iov, count, saved);
	work->saved = saved;
	work->out.iov[0] = (struct pgr_iov){saved, (size_t)bytes};
	work->out.count = 1;
	work->out.bytes = (uint32_t)bytes;
	return PGR_OK;
}

/* Where the result lies while it may have to be said again: a short one is copied, a long one stays the
 * caller's. */
static int keep(struct pgr *pgr, struct pgr_work *work, const struct pgr_iov *iov, uint32_t count,
		uint64_t bytes)
{
	if (PGR_UNLIKELY(pgr->off & (PGR_OFF_GATHER | PGR_OFF_NO_CONVERSION)))
		return marshal(pgr, work, iov, count, bytes);
	if (!pgr->reliable && bytes && bytes <= work->packet_bytes)
		return pgr_charge(pgr, work, (size_t)bytes) ? save(pgr, work, iov, count, bytes) : PGR_BUSY;
	if (PGR_UNLIKELY(pgr->regions && !work->delegated) &&
	    pgr_refer(pgr, iov, count, bytes, work->reference, &work->out))
		return PGR_OK;
	pgr_outgoing_set(&work->out, iov, count, bytes);
	return PGR_OK;
}

/* Memory ran out: nothing of the answer stays, and it may be given again. */
static PGR_COLD int unkeep(struct pgr *pgr, struct pgr_work *work, size_t charged_bytes, int code)
{
	pgr_buffer_give(pgr, work->saved);
	work->saved = NULL;
	pgr_uncharge_to(pgr, work, charged_bytes);
	return code;
}

/* A wire that loses nothing had no room: a copy waits. */
static PGR_COLD int wait_as_copy(struct pgr *pgr, struct pgr_work *work)
{
	const int code = save(pgr, work, work->out.iov, work->out.count, work->out.bytes);

	if (code != PGR_OK) { /* nothing of it has been sent */
		pgr_timed_remove(pgr, work);
		work->state = PGR_WORK_EXECUTING;
	}
	return code;
}

int pgr_reply(struct pgr *pgr, const struct pgr_token *token, const struct pgr_iov *iov, uint32_t count,
	      uint32_t flags, pgr_sent *sent, void *arg)
{
	size_t charged_bytes;
	struct pgr_work *work;
	uint32_t generation;
	uint64_t bytes;
	bool borrowed;
	int code;

	if (PGR_LIKELY(pgr->current != NULL) && PGR_LIKELY(pgr_fast_reply(pgr, token, iov, count) == PGR_OK))
		return PGR_OK;
	if (PGR_UNLIKELY(!pgr->here))
		return PGR_E_CLOSED;
	work = pgr_work_of(pgr, token);
	bytes = pgr_iov_bytes(iov, count);
	if (PGR_UNLIKELY(!work))
		return PGR_OK;
	if (PGR_UNLIKELY(work->state != PGR_WORK_EXECUTING || count > PGR_IOV_MAX))
		return PGR_E_ARGUMENT;
	if (PGR_UNLIKELY(bytes > pgr->config.message_bytes_max))
		return PGR_E_TOO_LARGE;
	charged_bytes = work->charged_bytes;
	code = keep(pgr, work, iov, count, bytes);
	if (PGR_LIKELY(code == PGR_OK))
		code = pgr_outgoing_start(&work->out, pgr_split(pgr, work->packet_bytes, work->out.bytes));
	if (PGR_UNLIKELY(code != PGR_OK))
		return unkeep(pgr, work, charged_bytes, code);
	borrowed = !work->saved && bytes &&
		   (work->out.packets > 1 || pgr_is_reference(&work->out, work->reference));
	work->state = borrowed ? PGR_WORK_REPLYING : PGR_WORK_REPLIED;
	work->sent = NULL;
	work->since_ns = pgr->now_ns;
	head_of(pgr, work);
	if (PGR_UNLIKELY(work->delegated)) {
		if (!work->saved && bytes) { /* lent until the client says so */
			work->state = PGR_WORK_REPLYING;
			borrowed = true;
		}
		work->due_ns = pgr->now_ns + 5 * pgr->config.rto_min_ns;
		pgr_timed_add(pgr, work);
	}
	generation = work->generation;
	pgr_result_send(pgr, work, (flags & PGR_MORE) != 0);
	if (PGR_UNLIKELY(work->generation != generation))
		return PGR_OK; /* it has gone already */
	if (PGR_UNLIKELY(!borrowed && bytes && !work->saved) && wait_as_copy(pgr, work) != PGR_OK)
		return PGR_E_MEMORY;
	if (PGR_UNLIKELY(work->args != NULL)) {
		pgr_buffer_give(pgr, work->args);
		work->args = NULL;
	}
	if (PGR_UNLIKELY(borrowed)) {
		work->sent = sent;
		work->sent_arg = arg;
		return PGR_QUEUED;
	}
	return PGR_OK;
}

void pgr_work_reject(struct pgr *pgr, struct pgr_work *work, int code)
{
	if (!work->client) {
		pgr_work_free(pgr, work);
		return;
	}
	work->delegated = false; /* the server that passed it on tells its client */
	work->rejected = code;
	work->out.count = work->out.bytes = 0;
	work->state = PGR_WORK_REPLIED;
	work->since_ns = pgr->now_ns;
	pgr_outgoing_start(&work->out, pgr_split(pgr, work->packet_bytes, work->out.bytes));
	head_of(pgr, work);
	pgr->stats.rejects_sent++;
	pgr_result_send(pgr, work, false);
}

int pgr_fail(struct pgr *pgr, const struct pgr_token *token, int code)
{
	struct pgr_work *work = pgr_work_of(pgr, token);

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (code > PGR_E_PROCEDURE_OWN)
		return PGR_E_ARGUMENT;
	if (!work)
		return PGR_OK;
	if (work->state != PGR_WORK_EXECUTING)
		return PGR_E_ARGUMENT;
	pgr_work_reject(pgr, work, code);
	return PGR_OK;
}
