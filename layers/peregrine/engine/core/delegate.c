/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passing a call on. It travels as an ordinary call of ours to the next server, which so is acknowledged,
 * repeated and executed at most once; its data begin with who is to have the result. PROTOCOL.md,
 * "Delegation".
 */
#include "clients.h"
#include "peer.h"
#include "slot.h"
#include "work.h"

#include <stdlib.h>

/* Who waits for the result, as it is on the wire. */
struct wire_token {
	uint8_t address[PGR_ADDRESS_BYTES];
	uint32_t address_bytes;
	/* in packets of how many bytes of data the result may come */
	uint32_t packet_bytes;
	uint64_t client, sequence;
	uint32_t slot, incarnation;
};
_Static_assert(sizeof(struct wire_token) == PGR_TOKEN_BYTES, "as PROTOCOL.md says");

bool pgr_delegated_in(const struct pgr *pgr, struct pgr_work *work, const uint8_t *data, size_t bytes)
{
	struct wire_token token;

	if (bytes < sizeof(token))
		return false;
	memcpy(&token, data, sizeof(token));
	if (!pgr_read_address(pgr, token.address, pgr_le32(token.address_bytes), &work->to) ||
	    pgr_le32(token.slot) >= PGR_SLOTS || !token.sequence)
		return false;
	work->head.client = pgr_le64(token.client);
	work->head.sequence = pgr_le64(token.sequence);
	work->head.slot = (uint16_t)pgr_le32(token.slot);
	work->head.incarnation = pgr_le32(token.incarnation);
	work->credits = PGR_CREDITS_FIRST;
	work->packet_bytes = pgr_result_size(pgr, pgr_le32(token.packet_bytes));
	work->delegated = true;
	work->acknowledged = false;
	return true;
}

/* ---- who may pass calls on to us ---- */

/* The place of this address among those that are trusted, which are sorted. */
static uint32_t delegator_at(const struct pgr *pgr, const struct pgr_to *from)
{
	uint32_t first = 0, left = pgr->delegators_count;

	while (left) {
		const uint32_t half = left / 2;
		const bool below = memcmp(&pgr->delegators[first + half], from, sizeof(*from)) < 0;

		first += below ? half + 1 : 0;
		left = below ? left - half - 1 : half;
	}
	return first;
}

static bool is_delegator(const struct pgr *pgr, uint32_t at, const struct pgr_to *from)
{
	return at < pgr->delegators_count && memcmp(&pgr->delegators[at], from, sizeof(*from)) == 0;
}

bool pgr_may_delegate(const struct pgr *pgr, const struct pgr_to *from)
{
	return is_delegator(pgr, delegator_at(pgr, from), from);
}

int pgr_delegations_from(struct pgr *pgr, const void *address, size_t address_bytes, uint32_t allow)
{
	struct pgr_to from, *all;
	uint32_t at;
	bool there;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!pgr_read_address(pgr, address, address_bytes, &from))
		return PGR_E_ARGUMENT;
	at = delegator_at(pgr, &from);
	there = is_delegator(pgr, at, &from);
	if (there && !allow)
		memmove(&pgr->delegators[at], &pgr->delegators[at + 1],
			(--pgr->delegators_count - at) * sizeof(from));
	if (there || !allow)
		return PGR_OK;
	if (pgr->delegators_count == pgr->delegators_room) {
		const uint32_t room = pgr->delegators_room ? 2 * pgr->delegators_room : 8;

		all = realloc(pgr->delegators, room * sizeof(*all));
		if (!all)
			return PGR_E_MEMORY;
		pgr->delegators = all;
		pgr->delegators_room = room;
	}
	memmove(&pgr->delegators[at + 1], &pgr->delegators[at],
		(pgr->delegators_count++ - at) * sizeof(from));
	pgr->delegators[at] = from;
	return PGR_OK;
}

/* ---- passing on ---- */

/* A call that is passed on: which one it was here. */
struct passed {
	struct pgr *pgr;
	struct pgr_token token;
};

static void passed_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct passed passed = *(struct passed *)arg;
	struct pgr_work *work = pgr_work_of(passed.pgr, &passed.token);

	(void)result, (void)result_bytes;
	free(arg);
	passed.pgr->events--; /* it is our own affair */
	if (!work || work->state != PGR_WORK_PASSED)
		return;
	work->onward = NULL;
	if (code <= PGR_E_PROCEDURE_OWN || code == PGR_E_PROCEDURE) {
		pgr_work_reject(passed.pgr, work, code);
		return;
	}
	if (code != PGR_OK) { /* nobody can know what became of it, so it is not passed on again */
		pgr_work_reject(passed.pgr, work, PGR_E_GIVE_UP);
		return;
	}
	pgr_result_acked(passed.pgr, work); /* the caller has the result */
}

int pgr_delegate(struct pgr_peer *to, const struct pgr_token *token, uint32_t procedure,
		 const struct pgr_iov *iov, uint32_t count)
{
	struct pgr *pgr = to->pgr;
	struct pgr_work *work = pgr_work_of(pgr, token);
	const uint64_t bytes = pgr_iov_bytes(iov, count);
	struct wire_token who = {.address_bytes = pgr_le32(PGR_ADDRESS_BYTES)};
	struct passed *passed;
	struct pgr_slot *slot;
	int code;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!work)
		return PGR_OK;
	if (work->state != PGR_WORK_EXECUTING || count > PGR_IOV_MAX)
		return PGR_E_ARGUMENT;
	if (bytes > pgr->config.message_bytes_max)
		return PGR_E_TOO_LARGE;
	code = pgr_slot_take(to, &slot);
	if (code != PGR_OK)
		return code;
	passed = malloc(sizeof(*passed));
	slot->marshal = pgr_buffer_take(pgr, sizeof(who) + bytes);
	if (!passed || !slot->marshal) {
		free(passed);
		pgr_slot_put_back(slot);
		return PGR_E_MEMORY;
	}
	memcpy(who.address, work->delegated ? work->to.bytes : work->client->to.bytes, sizeof(who.address));
	who.client = pgr_le64(work->delegated ? work->head.client : work->client->id);
	who.sequence = pgr_le64(work->delegated ? work->head.sequence : work->sequence);
	who.slot = pgr_le32(work->delegated ? work->head.slot : work->slot);
	who.incarnation = pgr_le32(work->delegated ? work->head.incarnation : pgr->incarnation);
	who.packet_bytes = pgr_le32(work->packet_bytes);
	slot->result_packet_bytes = work->packet_bytes;
	memcpy(slot->marshal, &who, sizeof(who));
	pgr_gather(iov, count, slot->marshal + sizeof(who));
	slot->out.iov[0] = (struct pgr_iov){slot->marshal, (size_t)(sizeof(who) + bytes)};
	slot->out.count = 1;
	slot->out.bytes = (uint32_t)(sizeof(who) + bytes);
	slot->to_count = 0;
	slot->to_bytes = 0;
	slot->signature = NULL;
	slot->delegating = true;
	slot->head.flags = PGR_OWN_ORDER | PGR_FLAG_DELEGATED;
	*passed = (struct passed){pgr, *token};
	work->state = PGR_WORK_PASSED;
	work->onward = slot;
	code = pgr_slot_start(slot, procedure, passed_done, passed, false);
	if (code != PGR_OK) {
		work->state = PGR_WORK_EXECUTING;
		work->onward = NULL;
		slot->head.flags = to->flags;
		free(passed);
		pgr_slot_put_back(slot);
	}
	return code;
}
