/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What time brings about: repetition, giving up, forgetting. There is no timer a call: a tick looks through the slots in use,
 * which costs nothing where calls are answered between two ticks.
 */
#include "clients.h"
#include "peer.h"
#include "slot.h"
#include "work.h"

#include <stdlib.h>

/* after so long a slot acknowledges by itself, and a binding is busy no more */
#define IDLE_NS  UINT64_C(20000000)
#define SWEEP_NS UINT64_C(500000000)
/* looked at in one sweep */
#define SWEEP_WORKS 1024u

static void tick_slot(struct pgr *pgr, struct pgr_slot *slot)
{
	if (pgr->now_ns >= slot->give_up_ns) {
		if (slot->state == PGR_SLOT_QUEUED &&
		    pgr->now_ns - slot->peer->last_packet_ns < pgr->config.give_up_ns)
			return; /* the server speaks; it is our own calls that this one waits for */
		pgr_slot_end(slot, slot->code, NULL, 0);
		return;
	}
	if (slot->state == PGR_SLOT_QUEUED || pgr->now_ns < slot->due_ns)
		return;
	pgr_slot_timed_out(slot);
	pgr_slot_arm_repeat(slot);
}

/*
 * A server whose process has ended answers no more. What it had answered before has been taken when it is seen the
 * second time.
 */
static bool has_ended(struct pgr *pgr, struct pgr_peer *peer)
{
	const bool before = peer->ended;

	if (!pgr->wire->ops->ended || !~peer->free || pgr->now_ns - peer->life_checked_ns < PGR_LIFE_NS)
		return false;
	peer->ended = pgr->wire->ops->ended(pgr->wire, &peer->to);
	if (peer->ended && !before)
		return false;
	peer->life_checked_ns = pgr->now_ns;
	return peer->ended;
}

/* Calls that have a deadline of their own. Their servers need not keep a result for them. */
static PGR_COLD void tick_deadlines(struct pgr *pgr, struct pgr_peer *peer)
{
	for (uint64_t deadlines = peer->deadlines; deadlines; deadlines &= deadlines - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(deadlines)];
		const uint64_t bit = UINT64_C(1) << slot->number;
		const bool ended = slot->state == PGR_SLOT_FREE || slot->deadline_sequence != slot->sequence;

		if (!ended && pgr->now_ns < slot->deadline_ns)
			continue;
		peer->deadlines &= ~bit;
		if (ended)
			continue;
		slot->in.packet_bytes = 0; /* the ack is of whatever there will be */
		if (!pgr->reliable && slot->first_sent)
			peer->unacked |= bit;
		pgr_slot_end(slot, slot->deadline_code, NULL, 0);
	}
}

static void tick_peer(struct pgr *pgr, struct pgr_peer *peer)
{
	if (PGR_UNLIKELY(peer->deadlines != 0))
		tick_deadlines(pgr, peer);
	if (PGR_UNLIKELY(has_ended(pgr, peer)))
		for (uint64_t busy = ~peer->free; busy; busy &= busy - 1)
			pgr_slot_end(peer->slots[__builtin_ctzll(busy)], PGR_E_RESTARTED, NULL, 0);
	for (uint64_t busy = ~peer->free; busy; busy &= busy - 1)
		tick_slot(pgr, peer->slots[__builtin_ctzll(busy)]);
	for (uint64_t unacked = peer->unacked; unacked; unacked &= unacked - 1) {
		struct pgr_slot *slot = peer->slots[__builtin_ctzll(unacked)];

		if (pgr->now_ns - slot->ended_ns < IDLE_NS)
			continue;
		peer->unacked &= ~(UINT64_C(1) << slot->number);
		pgr_slot_ack(slot, &peer->to, false, slot->claimed);
	}
	if (peer->queued)
		pgr_peer_send_queued(peer);
	if (!(~peer->free | peer->unacked | peer->deadlines) && !peer->closing &&
	    pgr->now_ns - peer->last_packet_ns >= IDLE_NS)
		pgr_peer_idle(peer);
}

/*
 * Results that this side has to bring home by itself: delegated ones, those for which the wire had no room, and those that
 * their client reads in our memory, until it has or has ended.
 */
static void tick_work(struct pgr *pgr, struct pgr_work *work)
{
	if (pgr->now_ns < work->due_ns)
		return;
	if (PGR_UNLIKELY(pgr_result_in_place(work) && work->out.next)) {
		if (pgr->wire->ops->ended(pgr->wire, &work->client->to))
			pgr_result_dropped(pgr, work);
		else
			work->due_ns = pgr->now_ns + PGR_LIFE_NS;
		return;
	}
	if (pgr->now_ns - work->since_ns > 2 * pgr->config.give_up_ns) {
		if (work->delegated)
			pgr_result_lost(pgr, work);
		else
			pgr_result_dropped(pgr, work); /* the client has given up long ago */
		return;
	}
	if (work->repeats < UINT8_MAX)
		work->repeats++;
	work->due_ns = pgr->now_ns + pgr_backed_off(pgr, 5 * pgr->config.rto_min_ns, work->repeats);
	/* nobody has spoken from there yet: no more than he or the server before us asks for */
	if (work->delegated && !work->acknowledged && work->out.next)
		return;
	pgr->stats.retransmissions++;
	pgr_result_resend(pgr, work, work->retransmissions);
}

/* Those who have been silent for too long are the first ones. */
static void sweep_clients(struct pgr *pgr)
{
	struct pgr_client *next;

	for (struct pgr_client *client = pgr->silent.first;
	     client && pgr->now_ns - client->queued_ns > pgr->config.memory_ns; client = next) {
		next = client->behind[PGR_OF_ALL];
		if (pgr->now_ns - client->last_packet_ns > pgr->config.memory_ns &&
		    !pgr_client_has_work(client))
			pgr_client_forget(pgr, client);
	}
}

/* Results that were kept, and that nobody can be waiting for any more; their sequence numbers stay. Some each time. */
static void sweep_works(struct pgr *pgr)
{
	const uint32_t count = pgr->works_count < SWEEP_WORKS ? pgr->works_count : SWEEP_WORKS;

	for (uint32_t i = 0; i < count && pgr->works_used; i++) {
		struct pgr_work *work = pgr->works[pgr->works_swept++ % pgr->works_count];

		if (work->client &&
		    (work->state == PGR_WORK_REPLIED ||
		     (work->state == PGR_WORK_REPLYING && !pgr_result_in_place(work)) ||
		     work->state == PGR_WORK_TAKING) &&
		    pgr->now_ns - work->since_ns > 2 * pgr->config.give_up_ns)
			pgr_result_dropped(pgr, work);
	}
}

static void sweep(struct pgr *pgr)
{
	sweep_clients(pgr);
	pgr_credits_renew(pgr);
	if (PGR_UNLIKELY(pgr->views != NULL))
		pgr_views_sweep(pgr);
	sweep_works(pgr);
}

void pgr_tick(struct pgr *pgr)
{
	struct pgr_work *next_work;
	struct pgr_peer *next;

	if (PGR_UNLIKELY(!pgr->here))
		return;
	pgr->next_tick_ns = pgr->now_ns + pgr->tick_ns;
	for (struct pgr_peer *peer = pgr->busy; peer; peer = next) {
		next = peer->busy_next;
		if (PGR_UNLIKELY(peer->closing))
			pgr_peer_end(peer);
		else
			tick_peer(pgr, peer);
	}
	for (struct pgr_work *work = pgr->timed; work; work = next_work) {
		next_work = work->next;
		tick_work(pgr, work);
	}
	if (pgr->now_ns >= pgr->next_sweep_ns) {
		pgr->next_sweep_ns = pgr->now_ns + SWEEP_NS;
		sweep(pgr);
	}
}

/* When something has to be done although nothing arrives. */
uint64_t pgr_next_due(const struct pgr *pgr)
{
	uint64_t due_ns = pgr->next_sweep_ns;

	for (const struct pgr_peer *peer = pgr->busy; peer; peer = peer->busy_next) {
		if (peer->closing)
			return pgr->now_ns;
		for (uint64_t busy = ~peer->free; busy; busy &= busy - 1) {
			const struct pgr_slot *slot = peer->slots[__builtin_ctzll(busy)];

			if (slot->state == PGR_SLOT_QUEUED)
				continue; /* sees to itself at the next tick, below */
			if (slot->due_ns < due_ns)
				due_ns = slot->due_ns;
			if (slot->give_up_ns < due_ns)
				due_ns = slot->give_up_ns;
		}
		for (uint64_t deadlines = peer->deadlines & ~peer->free; deadlines;
		     deadlines &= deadlines - 1) {
			const struct pgr_slot *slot = peer->slots[__builtin_ctzll(deadlines)];

			if (slot->deadline_sequence == slot->sequence && slot->deadline_ns < due_ns)
				due_ns = slot->deadline_ns;
		}
		if (pgr->wire->ops->ended && ~peer->free && pgr->now_ns + PGR_LIFE_NS < due_ns)
			due_ns = pgr->now_ns + PGR_LIFE_NS;
		if (peer->unacked && pgr->now_ns + IDLE_NS < due_ns)
			due_ns = pgr->now_ns + IDLE_NS;
		if (peer->queued && pgr->next_tick_ns < due_ns)
			due_ns = pgr->next_tick_ns;
	}
	for (const struct pgr_work *work = pgr->timed; work; work = work->next)
		if (work->due_ns < due_ns)
			due_ns = work->due_ns;
	return due_ns;
}
