/* SPDX-License-Identifier: BSD-3-Clause */
/* A call, as its server has it. */
#ifndef PGR_WORK_H
#define PGR_WORK_H

#include "engine.h"

enum pgr_work_state {
	/* arguments arrive */
	PGR_WORK_TAKING,
	/* the procedure has the token */
	PGR_WORK_EXECUTING,
	/* delegated to another server */
	PGR_WORK_PASSED,
	/* a result of several packets, or a delegated one, is under way */
	PGR_WORK_REPLYING,
	/* the result is kept for repetitions */
	PGR_WORK_REPLIED,
};

/* A call at the server, from its first packet until its result is acknowledged. */
struct pgr_work {
	/* NULL: free, or the client has moved on */
	struct pgr_client *client;
	/* of the free list, or of those that need the clock */
	struct pgr_work *next;
	/* into that list; NULL: not in it */
	struct pgr_work **back;
	/* in its list of pgr->delegated, while it is among those that need the clock */
	struct pgr_work *next_delegated;
	/* what a token says; the generation is another one for each call */
	uint32_t index, generation;
	/* enum pgr_work_state; the client's slot; what the call said last; of the result, in a row */
	uint8_t state, slot, retransmissions, repeats;
	/* the result goes to `to` under the identity in `head`; who is there has spoken of it */
	bool delegated, acknowledged;
	/* that the receiver of the result gave */
	uint16_t credits;
	uint32_t procedure;
	/* of data in a full packet of the result, at most */
	uint32_t packet_bytes;
	uint64_t sequence;
	struct pgr_to to;
	/* of the result: client, slot, sequence, incarnation */
	struct pgr_header head;
	struct pgr_incoming in;
	/* owned: arguments of several packets, or kept beyond the handler */
	uint8_t *args;
	struct pgr_outgoing out;
	/* owned: the result of one packet, or marshalled */
	uint8_t *saved;
	/* passed on: our own call that carries it */
	struct pgr_slot *onward;
	/* to the pool, and to whose share of it; NULL: nobody's yet */
	size_t charged_bytes;
	struct pgr_quota *quota;
	/* what is sent in place of a result that stays where it is, until the client has read it */
	uint8_t reference[PGR_REFERENCE_BYTES];
	/* the result is a rejection (FAILED) with this code */
	int rejected;
	pgr_sent *sent;
	void *sent_arg;
	uint64_t due_ns, since_ns;
	/* flags of the arguments: byte order, words */
	uint64_t data_order;
	void *coroutine;
};

/* Of a result that was answered: the client has not said yet that it has read it, where it lies. */
static inline bool pgr_result_in_place(const struct pgr_work *work)
{
	return pgr_is_reference(&work->out, work->reference);
}

/* ---- work.c ---- */
/* One that is new; NULL: no memory, or the pool has no room. */
struct pgr_work *pgr_work_take(struct pgr *pgr);
/* The work that a token names; NULL: its caller has gone, or the token was consumed. */
struct pgr_work *pgr_work_of(struct pgr *pgr, const struct pgr_token *token);
/* Releases what a work owns; it goes to the free list, and its token means nothing any more. */
void pgr_work_free(struct pgr *pgr, struct pgr_work *work);
/* The call whose handler runs gets the work that its token names. */
void pgr_current_take_work(struct pgr *pgr);
/* Into and out of the list of works that need the clock; both may be said twice. */
void pgr_timed_add(struct pgr *pgr, struct pgr_work *work);
void pgr_timed_remove(struct pgr *pgr, struct pgr_work *work);
/* The delegated result that a packet from there speaks of; NULL. */
struct pgr_work *pgr_work_delegated(struct pgr *pgr, const struct pgr_to *from,
				    const struct pgr_header *head);
/* Charges so many bytes more of a work to the pool; false: it has no room, or not for this host. */
bool pgr_charge(struct pgr *pgr, struct pgr_work *work, size_t bytes);
/* What it was charged beyond `bytes`. */
void pgr_uncharge_to(struct pgr *pgr, struct pgr_work *work, size_t bytes);
/* All that it was charged. */
void pgr_uncharge(struct pgr *pgr, struct pgr_work *work);

/* ---- reply.c ---- */
/* Sends what credits allow, of a result. */
void pgr_result_send(struct pgr *pgr, struct pgr_work *work, bool more);
/* The call was repeated so many times in a row, or time has passed: says the result again. */
void pgr_result_resend(struct pgr *pgr, struct pgr_work *work, uint8_t retransmissions);
/* The client has it all: gives the buffers back, and forgets the result. */
void pgr_result_acked(struct pgr *pgr, struct pgr_work *work);
/* Nobody has asked for it for long: it is forgotten unacknowledged, and who asks later is told so. */
void pgr_result_dropped(struct pgr *pgr, struct pgr_work *work);
/* A delegated result was not acknowledged: nobody knows what became of it, and who passed the call on is told. */
void pgr_result_lost(struct pgr *pgr, struct pgr_work *work);
/*
 * Ends the call with a code of its procedure's, PGR_E_PROCEDURE, or PGR_E_GIVE_UP: nobody knows what became of it.
 */
void pgr_work_reject(struct pgr *pgr, struct pgr_work *work, int code);
/*
 * The client takes so many bytes of data in a packet of this result. Whether smaller ones than went out so far do now, or
 * it was lost for want of memory.
 */
bool pgr_result_shrink(struct pgr *pgr, struct pgr_work *work, uint32_t taken);
/* Bytes of data in the packets of this result, if it has any of more than 1,200 bytes; else 0. */
uint32_t pgr_result_large(const struct pgr *pgr, const struct pgr_work *work);

/* ---- delegate.c ---- */
/* Takes the token off the data of a delegated call; false: it is not right. */
bool pgr_delegated_in(const struct pgr *pgr, struct pgr_work *work, const uint8_t *data, size_t bytes);

#endif
