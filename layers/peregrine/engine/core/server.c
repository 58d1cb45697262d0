/* SPDX-License-Identifier: BSD-3-Clause */
/* Serving: who calls (PROTOCOL.md, "First contact"), and what a call meets in its slot. */
#include "engine.h"

#include <stdlib.h>

/* ---- what a call holds while it is here ---- */

/* The list of a delegated result that this client awaits; works_room is a power of two. */
static struct pgr_work **delegated_list(struct pgr *pgr, const struct pgr_header *head)
{
	const uint64_t call = pgr_mixed(pgr, head->sequence << 6 | head->slot);

	return &pgr->delegated[pgr_mixed(pgr, head->client ^ call) & (pgr->works_room - 1)];
}

static PGR_COLD void delegated_add(struct pgr *pgr, struct pgr_work *work)
{
	struct pgr_work **list = delegated_list(pgr, &work->head);

	work->next_delegated = *list;
	*list = work;
}

static PGR_COLD void delegated_remove(struct pgr *pgr, const struct pgr_work *work)
{
	struct pgr_work **at = delegated_list(pgr, &work->head);

	while (*at != work)
		at = &(*at)->next_delegated;
	*at = work->next_delegated;
}

static PGR_COLD bool works_grow(struct pgr *pgr)
{
	const uint32_t room = pgr->works_room ? 2 * pgr->works_room : 64;
	struct pgr_work **works = realloc(pgr->works, room * sizeof(struct pgr_work *)), **delegated;

	if (!works)
		return false;
	pgr->works = works;
	delegated = calloc(room, sizeof(struct pgr_work *));
	if (!delegated)
		return false;
	free(pgr->delegated);
	pgr->delegated = delegated;
	pgr->works_room = room;
	for (struct pgr_work *work = pgr->timed; work; work = work->next)
		if (work->delegated)
			delegated_add(pgr, work);
	return true;
}

static struct pgr_work *work_take(struct pgr *pgr)
{
	struct pgr_work *work = pgr->works_free;

	if (PGR_LIKELY(work != NULL)) {
		pgr->works_free = work->next;
	} else {
		if (pgr->stats.pool_bytes + sizeof(*work) > pgr->config.pool_bytes_max ||
		    (pgr->works_count == pgr->works_room && !works_grow(pgr)))
			return NULL;
		work = calloc(1, sizeof(*work));
		if (!work)
			return NULL;
		work->index = pgr->works_count;
		pgr->works[pgr->works_count++] = work;
		pgr->stats.pool_bytes += sizeof(*work); /* kept from now on */
		if (pgr->stats.pool_bytes > pgr->stats.pool_bytes_peak)
			pgr->stats.pool_bytes_peak = pgr->stats.pool_bytes;
	}
	pgr->works_used++;
	work->next = NULL;
	work->args = work->saved = NULL;
	work->out.order = NULL;
	work->in.map = NULL;
	work->charged_bytes = 0;
	work->share = NULL;
	work->onward = NULL;
	work->sent = NULL;
	work->rejected = 0;
	work->repeats = 0;
	work->delegated = false;
	return work;
}

void pgr_timed_add(struct pgr *pgr, struct pgr_work *work)
{
	if (work->back)
		return;
	work->next = pgr->timed;
	work->back = &pgr->timed;
	if (pgr->timed)
		pgr->timed->back = &work->next;
	pgr->timed = work;
	if (work->delegated)
		delegated_add(pgr, work);
}

void pgr_timed_remove(struct pgr *pgr, struct pgr_work *work)
{
	if (!work->back)
		return;
	if (work->delegated)
		delegated_remove(pgr, work);
	*work->back = work->next;
	if (work->next)
		work->next->back = work->back;
	work->back = NULL;
	work->next = NULL;
}

/* Its token is void from now on. */
void pgr_work_free(struct pgr *pgr, struct pgr_work *work)
{
	pgr_let_go(pgr);
	pgr_timed_remove(pgr, work);
	if (PGR_UNLIKELY(work->args != NULL))
		pgr_buffer_give(pgr, work->args);
	if (PGR_UNLIKELY(work->saved != NULL))
		pgr_buffer_give(pgr, work->saved);
	work->args = work->saved = NULL;
	pgr_outgoing_end(&work->out);
	pgr_incoming_end(&work->in);
	pgr_uncharge(pgr, work);
	work->generation++;
	work->client = NULL;
	work->next = pgr->works_free;
	pgr->works_free = work;
	pgr->works_used--;
}

void pgr_current_keep(struct pgr *pgr)
{
	struct pgr_client_slot *slot = &pgr->current_client->slots[pgr->current_slot];
	struct pgr_work *work = work_take(pgr); /* the same, and with the generation that the token names */

	pgr->current = NULL;
	work->client = pgr->current_client;
	work->state = PGR_WORK_EXECUTING;
	work->slot = pgr->current_slot;
	work->sequence = slot->sequence;
	work->procedure = pgr->recent_number;
	work->retransmissions = 0;
	work->credits = pgr->current_credits;
	work->packet_bytes = pgr->packet_bytes;
	work->data_order = PGR_OWN_ORDER;
	work->since_ns = pgr->now_ns;
	slot->work = work;
}

struct pgr_work *pgr_work_of(struct pgr *pgr, const struct pgr_token *token)
{
	const uint64_t index = token->word[0];
	struct pgr_work *work;

	if (pgr->current)
		pgr_current_keep(pgr);

	if (index >= pgr->works_count)
		return NULL;
	work = pgr->works[index];
	return work->generation == token->word[1] ? work : NULL;
}

void pgr_set_client_data(struct pgr *pgr, const struct pgr_token *token, void *data)
{
	struct pgr_work *work = pgr_work_of(pgr, token);

	if (work && work->client)
		work->client->data = data;
}

/* The client has moved on or is forgotten: what it asked for is given up. */
static void abandon(struct pgr *pgr, struct pgr_client_slot *slot)
{
	struct pgr_work *work = slot->work;

	slot->work = NULL;
	if (!work)
		return;
	if (work->state == PGR_WORK_KEPT || work->state == PGR_WORK_REPLYING) {
		if (work->delegated) { /* its result belongs to another client, who will say so */
			work->client = NULL;
			return;
		}
		pgr_result_acked(pgr, work);
		return;
	}
	pgr_work_free(pgr, work);
}

/* ---- clients ---- */

/* Clients choose their identifiers: mixed, so that nobody makes them all lie in one list. */
static struct pgr_client **bucket_of(struct pgr *pgr, uint64_t id)
{
	return &pgr->buckets[pgr_mixed(pgr, id) & pgr->clients_mask];
}

struct pgr_client *pgr_client_of(struct pgr *pgr, uint64_t id)
{
	struct pgr_client *client = pgr->recent;

	if (PGR_LIKELY(client && client->id == id))
		return client;
	for (client = *bucket_of(pgr, id); client && client->id != id;)
		client = client->next;
	if (client)
		pgr->recent = client;
	return client;
}

void pgr_client_forget(struct pgr *pgr, struct pgr_client *client)
{
	struct pgr_client **at = bucket_of(pgr, client->id);

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	for (unsigned int i = 0; i < PGR_SLOTS; i++)
		abandon(pgr, &client->slots[i]);
	if (pgr->recent == client)
		pgr->recent = NULL;
	pgr->clients_count--;
	pgr_share_leave(pgr, client);
	free(client);
}

static uint64_t cookie_of(const struct pgr *pgr, const struct pgr_to *from, uint64_t id, uint64_t epoch)
{
	uint8_t room[sizeof(*from) + 2 * sizeof(uint64_t)];
	uint64_t cookie;

	memcpy(room, from, sizeof(*from));
	memcpy(room + sizeof(*from), &id, sizeof(id));
	memcpy(room + sizeof(*from) + sizeof(id), &epoch, sizeof(epoch));
	cookie = pgr_hash(pgr->secret, room, sizeof(room));
	return cookie ? cookie : 1;
}

static uint64_t epoch_of(const struct pgr *pgr)
{
	return pgr->now_ns / (PGR_COOKIE_EPOCH_S * UINT64_C(1000000000));
}

static bool cookie_is_right(const struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet)
{
	const uint64_t epoch = epoch_of(pgr);

	return packet->cookie && packet->head.incarnation == pgr->incarnation &&
	       (packet->cookie == cookie_of(pgr, from, packet->head.client, epoch) ||
		packet->cookie == cookie_of(pgr, from, packet->head.client, epoch - 1));
}

/* An answer without data to the packet `to`. */
static void answer(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to, uint8_t type,
		   uint32_t procedure, uint32_t packet_bytes, uint16_t credits)
{
	const struct pgr_header head = {
		.type = type,
		.version = PGR_VERSION,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.credits = credits,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = pgr->incarnation,
		.procedure = procedure,
		.packet_bytes = packet_bytes,
	};

	pgr_send(pgr, from, &head, 0, NULL, 0, false);
}

static PGR_COLD void challenge(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to)
{
	const uint64_t cookie = cookie_of(pgr, from, to->client, epoch_of(pgr));
	const uint64_t memory_ms = pgr->config.memory_ns / 1000000;
	const struct pgr_header head = {
		.type = PGR_CHALLENGE,
		.version = PGR_VERSION,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = pgr->incarnation,
		/* where the wire has parts of many sizes, it is no limit */
		.credits = (uint16_t)(pgr->reliable                    ? 0
				      : pgr->packet_bytes < UINT16_MAX ? pgr->packet_bytes
								       : UINT16_MAX),
		.procedure = to->incarnation,
		.message_bytes = (uint32_t)cookie,
		.packet_number = (uint32_t)(cookie >> 32),
		.packet_bytes = memory_ms < UINT32_MAX ? (uint32_t)memory_ms : UINT32_MAX,
	};

	pgr->stats.challenges_sent++;
	pgr_send(pgr, from, &head, 0, NULL, 0, false);
}

static PGR_COLD void reject(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
			    uint32_t reason)
{
	pgr->stats.rejects_sent++;
	answer(pgr, from, to, PGR_REJECT, reason, 0, 0);
}

/*
 * In the asker's own version, of which only the header is known to be as ours. Who has not our key gets no right check:
 * else anybody could have a refusal made for others. He gets one that is wrong, or none, as his own packet was, so that
 * a packet which was only damaged ends no call.
 */
void pgr_server_refuse(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
		       enum pgr_unread why)
{
	struct pgr_header head = {
		.type = PGR_REJECT,
		.version = to->version,
		.retransmissions = to->retransmissions,
		.slot = to->slot,
		.client = to->client,
		.sequence = to->sequence,
		.incarnation = to->incarnation,
		.procedure = why == PGR_UNREAD_VERSION ? PGR_REJECT_VERSION : PGR_REJECT_NOT_AUTHORISED,
	};

	pgr->stats.rejects_sent++;
	if (why == PGR_UNREAD_VERSION) {
		pgr_send(pgr, from, &head, 0, NULL, 0, false);
	} else {
		const uint8_t no_check[PGR_CHECK_BYTES] = {0};
		const struct pgr_piece pieces[] = {{&head, sizeof(head)}, {no_check, sizeof(no_check)}};

		head.flags = to->flags & PGR_FLAG_KEYED;
		pgr_le_header(&head, &head);
		pgr->stats.packets_sent++;
		pgr->wire->ops->send(pgr->wire, from, pieces, head.flags ? 2 : 1, false);
	}
}

/* Who sent this, if he has shown that he is where he says; else he is answered and NULL is returned. */
static PGR_COLD struct pgr_client *meet(struct pgr *pgr, struct pgr_client *client, const struct pgr_to *from,
					const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_share *share;
	void *data = client ? client->data : NULL;

	if (head->type != PGR_CALL && head->type != PGR_PROBE)
		return NULL;
	pgr_now(pgr); /* cookies age */
	if (head->type == PGR_PROBE || !cookie_is_right(pgr, from, packet)) {
		if (client)
			client->challenged_ns = pgr->now_ns;
		challenge(pgr, from, head);
		return NULL;
	}
	if (pgr->contact && pgr->contact(pgr->contact_arg, head->client, from->bytes, &data) != 0) {
		reject(pgr, from, head, PGR_REJECT_NOT_AUTHORISED);
		return NULL;
	}
	share = pgr_share_get(pgr, from);
	if (client && share) { /* the same binding at a new address */
		pgr_share_leave(pgr, client);
		pgr_share_enter(pgr, share, client);
		client->to = *from;
		client->data = data;
		return client;
	}
	client = share && pgr_share_has_place(pgr, share) ? calloc(1, sizeof(*client)) : NULL;
	if (!client) {
		pgr_share_put(pgr, share);
		reject(pgr, from, head, PGR_REJECT_BUSY);
		return NULL;
	}
	client->data = data;
	pgr_share_enter(pgr, share, client);
	client->id = head->client;
	client->active = pgr->period - 1;
	client->to = *from;
	client->next = *bucket_of(pgr, client->id);
	*bucket_of(pgr, client->id) = client;
	pgr->clients_count++;
	if (pgr->clients_active < pgr->clients_count)
		pgr->clients_active++;
	pgr_share_out(pgr);
	pgr->recent = client;
	return client;
}

/* ---- execution ---- */

struct pgr_procedure *pgr_procedure_of(struct pgr *pgr, uint32_t number)
{
	struct pgr_procedure *first = pgr->procedures;
	uint32_t left = pgr->procedures_count;

	if (PGR_LIKELY(pgr->recent_procedure && pgr->recent_number == number))
		return pgr->recent_procedure;
	pgr->recent_number = number;

	while (left) { /* sorted */
		const uint32_t half = left / 2;

		if (first[half].number == number)
			return pgr->recent_procedure = &first[half];
		if (first[half].number < number) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	/* the highest number of all serves the rest */
	first = pgr->procedures_count ? &pgr->procedures[pgr->procedures_count - 1] : NULL;
	pgr->recent_procedure = first && first->number == PGR_ANY_PROCEDURE ? first : NULL;
	return pgr->recent_procedure;
}

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
	if (flags & PGR_FLAG_WORDS) {
		bytes = pgr_words_take(signature, args, bytes, pgr->copied);
		if (bytes == PGR_WORDS_BAD)
			return NULL;
	} else {
		if (bytes)
			memcpy(pgr->copied, args, bytes);
		if ((flags & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER)
			pgr_swap(signature, pgr->copied, bytes);
	}
	pgr->stats.copies++;
	*bytes_inout = (size_t)bytes;
	return pgr->copied;
}

void pgr_execute(struct pgr *pgr, struct pgr_work *work, const void *args, size_t bytes)
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
	if (PGR_UNLIKELY((work->data_order & PGR_FLAG_WORDS) ||
			 (work->data_order & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER ||
			 (pgr->off & PGR_OFF_IN_PLACE))) {
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
		if (work->data_order & PGR_FLAG_DELEGATED) {
			if (!pgr_delegated_in(pgr, work, args, bytes)) {
				pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
				return;
			}
			args += PGR_TOKEN_BYTES;
			bytes -= PGR_TOKEN_BYTES;
		}
		pgr_execute(pgr, work, args, bytes);
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
		reject(pgr, &client->to, &packet->head, PGR_REJECT_TOO_LARGE);
	} else if (args) {
		pgr_execute(pgr, work, args, (size_t)bytes);
	} else {
		pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
	}
}

/* A call that is newer than what the slot has seen. */
static void begin(struct pgr *pgr, struct pgr_client *client, struct pgr_client_slot *slot,
		  const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_work *work;
	const bool single = !head->message_bytes || head->message_bytes <= head->packet_bytes;

	/*
	 * The client may be known by another slot's call only, made known again after it had been forgotten.
	 * What this slot executed before is forgotten too: an old copy must not pass, so a slot shows a
	 * cookie of its own.
	 */
	if (PGR_UNLIKELY(!slot->sequence)) {
		pgr_now(pgr);
		if (!cookie_is_right(pgr, &client->to, packet)) {
			client->challenged_ns = pgr->now_ns;
			challenge(pgr, &client->to, head);
			return;
		}
	}
	if (PGR_UNLIKELY(pgr->draining)) {
		reject(pgr, &client->to, head, PGR_REJECT_BUSY);
		return;
	}
	if (PGR_UNLIKELY((head->flags & PGR_FLAG_DELEGATED) && !pgr_may_delegate(pgr, &client->to))) {
		reject(pgr, &client->to, head, PGR_REJECT_NOT_AUTHORISED);
		return;
	}
	if (PGR_UNLIKELY(slot->work != NULL))
		abandon(pgr, slot);
	if (PGR_UNLIKELY(!pgr_procedure_of(pgr, head->procedure))) {
		reject(pgr, &client->to, head, PGR_REJECT_PROCEDURE);
		return;
	}
	if (PGR_UNLIKELY(head->message_bytes >
			 pgr->config.message_bytes_max +
				 (head->flags & PGR_FLAG_DELEGATED ? PGR_TOKEN_BYTES : 0))) {
		reject(pgr, &client->to, head, PGR_REJECT_TOO_LARGE);
		return;
	}
	work = work_take(pgr);
	if (PGR_UNLIKELY(!work)) {
		reject(pgr, &client->to, head, PGR_REJECT_BUSY);
		return;
	}
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
	if (PGR_UNLIKELY(!single)) {
		/* it may begin anew, in smaller packets */
		const uint32_t least_bytes =
			head->packet_bytes < PGR_SMALL_BYTES ? head->packet_bytes : PGR_SMALL_BYTES;
		const size_t map_bytes = pgr_packets_of(head->message_bytes, least_bytes) / 64 * 8 + 8;

		if (pgr_charge(pgr, work, head->message_bytes + map_bytes))
			work->args = pgr_buffer_take(pgr, head->message_bytes);
		if (!work->args || pgr_incoming_start(&work->in, head, work->args, NULL, 0) != PGR_OK) {
			pgr_work_free(pgr, work);
			reject(pgr, &client->to, head, PGR_REJECT_BUSY);
			return;
		}
	}
	slot->sequence = head->sequence;
	slot->work = work;
	client->lost &= ~(UINT64_C(1) << work->slot);
	if (PGR_UNLIKELY(!single)) {
		take_part(pgr, work, packet);
		return;
	}
	if (PGR_UNLIKELY(head->flags & PGR_FLAG_DELEGATED)) {
		if (!pgr_delegated_in(pgr, work, packet->data, head->data_bytes)) {
			pgr_work_reject(pgr, work, PGR_E_PROCEDURE_OWN);
			return;
		}
		pgr_execute(pgr, work, packet->data + PGR_TOKEN_BYTES, head->data_bytes - PGR_TOKEN_BYTES);
		return;
	}
	if (PGR_UNLIKELY(head->flags & PGR_FLAG_REFERENCE)) {
		execute_referred(pgr, work, packet);
		return;
	}
	pgr_execute(pgr, work, packet->data, head->data_bytes);
}

/* The same call again, or a question about it. */
static PGR_COLD void again(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	const bool asked = head->type == PGR_PROBE || (head->flags & PGR_FLAG_ASK);

	work->retransmissions = head->retransmissions;
	if (head->type == PGR_CALL && head->credits &&
	    !work->delegated) /* else they are not from who gets it */
		work->credits = head->credits;
	/* the call that passes another one on says nothing of who gets its result; a question about it does */
	if ((head->type == PGR_PROBE || !(work->data_order & PGR_FLAG_DELEGATED)) &&
	    PGR_UNLIKELY(pgr_result_smaller(pgr, work, head->packet_bytes)))
		return;
	switch (work->state) {
	case PGR_WORK_TAKING:
		if (head->type == PGR_CALL)
			take_part(pgr, work, packet);
		else
			report(pgr, work);
		return;
	case PGR_WORK_REPLYING:
	case PGR_WORK_KEPT:
		pgr->stats.duplicates++;
		if (!work->delegated) {
			const uint32_t large_bytes = pgr_result_large(pgr, work);

			pgr_result_again(pgr, work, head->retransmissions);
			if (PGR_UNLIKELY(large_bytes && asked)) /* where it does not arrive, this does */
				answer(pgr, &work->client->to, head, PGR_ALIVE, work->procedure, large_bytes,
				       pgr_grant_to_client(pgr, work->client));
			return;
		}
		/* the result goes elsewhere: who is there may miss it; who passed the call on hears that we are at it */
		pgr_result_again(pgr, work, work->retransmissions);
		__attribute__((fallthrough));
	case PGR_WORK_EXECUTING:
	case PGR_WORK_PASSED:
	default:
		if (work->onward && work->onward->state == PGR_SLOT_CALLING &&
		    asked) /* the next server hears who is asking, and may say it again */
			pgr_slot_ask(work->onward);
		if (asked)
			answer(pgr, &work->client->to, head, PGR_ALIVE, work->procedure,
			       pgr_result_large(pgr, work), pgr_grant_to_client(pgr, work->client));
		return;
	}
}

/* Who gets the result tells how far it has come. Returns false: all of it has, and the work is over. */
static bool learn_report(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet,
			 bool *news_out)
{
	const struct pgr_header *head = &packet->head;
	const bool nack = head->type == PGR_NACK;

	work->since_ns = pgr->now_ns;
	*news_out = false;
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
	*news_out = pgr_outgoing_learn(&work->out, head->packet_number, nack ? packet->data : NULL,
				       nack ? head->data_bytes : 0);
	return true;
}

/* A client acknowledges a delegated result: it is a stranger to our own slots. */
static PGR_COLD void delegated_report(struct pgr *pgr, const struct pgr_to *from,
				      const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	struct pgr_work *work = pgr->works_room ? *delegated_list(pgr, head) : NULL;
	bool news;

	for (; work; work = work->next_delegated) {
		if (work->head.client != head->client || work->head.sequence != head->sequence ||
		    work->head.slot != head->slot || work->head.incarnation != head->incarnation ||
		    memcmp(from, &work->to, sizeof(*from)) != 0)
			continue;
		work->heard = true;
		if (learn_report(pgr, work, packet, &news)) {
			if (news)
				work->repeats = 0;
			pgr_result_send(pgr, work, false);
		}
		return;
	}
	pgr->stats.duplicates++;
}

/* The client tells which packets of a result have come. */
static PGR_COLD void result_report(struct pgr *pgr, struct pgr_work *work, const struct pgr_packet *packet)
{
	const struct pgr_header *head = &packet->head;
	bool news;

	if (!work || work->delegated || (work->state != PGR_WORK_KEPT && work->state != PGR_WORK_REPLYING))
		return;
	if (!learn_report(pgr, work, packet, &news))
		return;
	/* it has waited in vain: the tail is lost, which no later packet can show */
	if (head->retransmissions)
		pgr_result_again(pgr, work, head->retransmissions);
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
		client = meet(pgr, client, from, packet);
		if (!client)
			return;
	}
	pgr_client_heard(pgr, client);
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
			answer(pgr, from, head, PGR_NACK, head->procedure, 0,
			       pgr_grant_to_client(pgr, client));
		else if (slot->work)
			again(pgr, slot->work, packet);
		else if (client->lost >> head->slot & 1)
			reject(pgr, from, head, PGR_REJECT_LOST);
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
