/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call holds while it is at the server; which of these need the clock; what a token names; and procedures. */
#include "clients.h"
#include "work.h"

#include <stdlib.h>

/* The list of a delegated result that this client awaits; works_room is a power of two. */
static struct pgr_work **delegated_list(struct pgr *pgr, const struct pgr_header *head)
{
	const uint64_t call = pgr_keyed_hash(pgr, head->sequence << 6 | head->slot);

	return &pgr->delegated[pgr_keyed_hash(pgr, head->client ^ call) & (pgr->works_room - 1)];
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

struct pgr_work *pgr_work_take(struct pgr *pgr)
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
	work->quota = NULL;
	work->onward = NULL;
	work->sent = NULL;
	work->rejected = 0;
	work->repeats = 0;
	work->delegated = false;
	return work;
}

/* ---- the pool ---- */

bool pgr_charge(struct pgr *pgr, struct pgr_work *work, size_t bytes)
{
	const uint64_t left = pgr->config.pool_bytes_max - pgr->stats.pool_bytes;
	struct pgr_quota *quota = work->quota;

	if (!quota && work->client)
		quota = work->client->quota;
	if (PGR_UNLIKELY(bytes > left || (quota && quota->pool_bytes + bytes > left)))
		return false;
	if (quota && !work->quota) {
		quota->users++;
		work->quota = quota;
	}
	if (quota)
		quota->pool_bytes += bytes;
	pgr->stats.pool_bytes += bytes;
	work->charged_bytes += bytes;
	if (pgr->stats.pool_bytes > pgr->stats.pool_bytes_peak)
		pgr->stats.pool_bytes_peak = pgr->stats.pool_bytes;
	return true;
}

void pgr_uncharge_to(struct pgr *pgr, struct pgr_work *work, size_t bytes)
{
	pgr->stats.pool_bytes -= work->charged_bytes - bytes;
	if (work->quota)
		work->quota->pool_bytes -= work->charged_bytes - bytes;
	work->charged_bytes = bytes;
}

void pgr_uncharge(struct pgr *pgr, struct pgr_work *work)
{
	pgr->stats.pool_bytes -= work->charged_bytes;
	if (PGR_UNLIKELY(work->quota != NULL)) {
		work->quota->pool_bytes -= work->charged_bytes;
		pgr_quota_put(pgr, work->quota);
		work->quota = NULL;
	}
	work->charged_bytes = 0;
}

/* ---- the clock ---- */

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
	pgr_flush_callers_data(pgr);
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

void pgr_current_take_work(struct pgr *pgr)
{
	struct pgr_client_slot *slot = &pgr->current_client->slots[pgr->current_slot];
	struct pgr_work *work =
		pgr_work_take(pgr); /* the same, and with the generation that the token names */

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
		pgr_current_take_work(pgr);

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

struct pgr_work *pgr_work_delegated(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *head)
{
	struct pgr_work *work = pgr->works_room ? *delegated_list(pgr, head) : NULL;

	while (work && (work->head.client != head->client || work->head.sequence != head->sequence ||
			work->head.slot != head->slot || work->head.incarnation != head->incarnation ||
			memcmp(from, &work->to, sizeof(*from)) != 0))
		work = work->next_delegated;
	return work;
}

/* ---- procedures, sorted by their numbers ---- */

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

int pgr_serve(struct pgr *pgr, uint32_t procedure, const struct pgr_signature *signature,
	      pgr_handler *handler, void *arg)
{
	const struct pgr_procedure *there = pgr_procedure_of(pgr, procedure);
	uint32_t at = pgr->procedures_count;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!handler || (there && there->number == procedure))
		return PGR_E_ARGUMENT;
	if (at == PGR_PROCEDURES_MAX)
		return PGR_E_FULL;
	pgr->recent_procedure = NULL;
	for (; at && pgr->procedures[at - 1].number > procedure; at--)
		pgr->procedures[at] = pgr->procedures[at - 1];
	pgr->procedures[at] = (struct pgr_procedure){.number = procedure, .handler = handler, .arg = arg};
	if (signature) {
		pgr->procedures[at].has_signature = true;
		pgr->procedures[at].signature = *signature;
	}
	pgr->procedures_count++;
	return PGR_OK;
}
