/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint: opens a wire, gives packets to those whom they concern, and lets time pass. */
#include "clients.h"
#include "fast.h"
#include "peer.h"
#include "slot.h"
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- packets ---- */

/* Who asks in another version, or without our key, is told; who is told so himself may believe it in the end. */
static PGR_COLD void answer_unreadable(struct pgr *pgr, const struct pgr_to *from, const void *at,
				       size_t bytes)
{
	struct pgr_header head;
	const enum pgr_fault why = pgr_packet_fault(at, bytes, pgr->has_key ? pgr->key : NULL, &head);

	pgr->stats.packets_dropped++;
	if (why == PGR_FAULT_JUNK)
		return;
	if (head.type == PGR_CALL || head.type == PGR_PROBE)
		pgr_server_refuse(pgr, from, &head, why);
	else if (head.type == PGR_REJECT && why == PGR_FAULT_CHECK && head.version == PGR_VERSION)
		pgr_client_refused(pgr, from, &head);
}

static bool input(void *engine, const struct pgr_to *from, const void *at, size_t bytes)
{
	struct pgr *pgr = engine;
	struct pgr_packet packet;

	pgr->stats.packets_received++;
	if (PGR_LIKELY(pgr->fast) && PGR_LIKELY(bytes >= PGR_HEADER_BYTES) &&
	    PGR_LIKELY(pgr_fast_input(pgr, from, at, bytes)))
		return true;
	if (PGR_UNLIKELY(!pgr->here))
		return false; /* an earlier packet's handler has forked */
	if (PGR_UNLIKELY(!pgr_packet_read(at, bytes, pgr->has_key ? pgr->key : NULL, &packet))) {
		answer_unreadable(pgr, from, at, bytes);
		return false;
	}
	if (PGR_UNLIKELY(packet.head.flags & PGR_FLAG_REFERENCE) && !pgr->wire->joins_processes) {
		pgr->stats.packets_dropped++; /* nobody there has memory that we could see */
		return false;
	}
	switch (packet.head.type) {
	case PGR_CALL:
	case PGR_PROBE: pgr_server_input(pgr, from, &packet); break;
	case PGR_ACK:
	case PGR_NACK:
		if (packet.head.flags & PGR_FLAG_OF_RESULT)
			pgr_server_input(pgr, from, &packet);
		else
			pgr_client_input(pgr, from, &packet);
		break;
	default: pgr_client_input(pgr, from, &packet); break;
	}
	return true;
}

/* ---- progress ---- */

/* What a wire had no room for. */
static PGR_COLD void send_stalled(struct pgr *pgr)
{
	struct pgr_work *next;

	pgr->stalled = false;
	for (struct pgr_peer *peer = pgr->busy; peer; peer = peer->busy_next)
		if (peer->queued)
			pgr_peer_send_queued(peer);
	for (struct pgr_work *work = pgr->timed; work; work = next) {
		next = work->next;
		if (!work->delegated)
			pgr_result_send(pgr, work, false);
	}
}

int pgr_poll(struct pgr *pgr)
{
	int received;

	if (PGR_UNLIKELY(!pgr->idle))
		return pgr->here ? PGR_E_ARGUMENT : PGR_E_CLOSED;
	pgr->idle = false;
	pgr->events = 0;
	received = pgr->wire->ops->receive(pgr->wire);
	if (PGR_UNLIKELY(pgr->stalled))
		send_stalled(pgr);
	if (received == 0 || PGR_UNLIKELY(pgr->polls >= pgr->polls_per_clock_read * 4)) {
		if (PGR_UNLIKELY(++pgr->polls >= pgr->polls_per_clock_read)) {
			pgr->polls = 0;
			if (pgr_now(pgr) >= pgr->next_tick_ns)
				pgr_tick(pgr);
		}
	} else {
		pgr->polls++;
	}
	if (PGR_UNLIKELY(pgr->holding))
		pgr_flush(pgr);
	pgr->idle = pgr->here; /* a child that was forked in this poll has none after it */
	return pgr->events;
}

/*
 * How long there is nothing to do unless something comes: 0, UINT64_MAX. Before the next tick no poll does what is due. Nobody
 * reports room in a wire that loses nothing, so that is looked for.
 */
static uint64_t idle_ns(const struct pgr *pgr, uint64_t now_ns)
{
	uint64_t due_ns = pgr_next_due(pgr), ns;
	bool room = false;

	if (due_ns < pgr->next_tick_ns)
		due_ns = pgr->next_tick_ns;
	ns = due_ns == UINT64_MAX ? UINT64_MAX : due_ns <= now_ns ? 0 : due_ns - now_ns;
	for (const struct pgr_work *work = pgr->timed; pgr->reliable && work; work = work->next)
		room |= !pgr_result_in_place(work) || !work->out.next;
	for (const struct pgr_peer *peer = pgr->busy; pgr->reliable && peer; peer = peer->busy_next)
		room |= peer->queued != 0;
	if (room && ns > PGR_ROOM_NS)
		ns = PGR_ROOM_NS;
	return ns;
}

int pgr_wait(struct pgr *pgr, uint64_t timeout_ns)
{
	uint64_t ns;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!pgr->config.block)
		return PGR_E_ARGUMENT;
	ns = idle_ns(pgr, pgr_now(pgr));
	if (ns > timeout_ns)
		ns = timeout_ns;
	if (ns)
		pgr->wire->ops->wait(pgr->wire, ns);
	pgr_now(pgr);                           /* what has come is from now, not from before the sleep */
	pgr->polls = pgr->polls_per_clock_read; /* look at the clock first */
	return PGR_OK;
}

int pgr_watch(struct pgr *pgr, int fds[PGR_FDS], uint64_t *due_ns_out)
{
	uint64_t ns;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!pgr->config.block)
		return PGR_E_ARGUMENT;
	pgr->polls = pgr->polls_per_clock_read; /* look at the clock first */
	ns = idle_ns(pgr, pgr_now(pgr));
	if (!ns)
		return PGR_BUSY;
	pgr->wire->ops->watch(pgr->wire, fds);
	*due_ns_out = ns;
	return PGR_OK;
}

struct waiter {
	bool done;
	int code;
	size_t bytes;
};

static void waiter_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct waiter *waiter = arg;

	(void)result;
	*waiter = (struct waiter){true, code, result_bytes};
}

int pgr_call_and_wait(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
		      const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out,
		      uint32_t out_count, uint64_t within_ns, size_t *result_bytes_out)
{
	struct pgr *pgr = peer->pgr;
	struct waiter waiter = {0};
	int code;

	if (!pgr->idle)
		return pgr->here ? PGR_E_ARGUMENT : PGR_E_CLOSED;
	while ((code = pgr_call(peer, procedure, signature, in, in_count, out, out_count, 0, waiter_done,
				&waiter)) == PGR_BUSY)
		pgr_poll(pgr);
	if (code < 0)
		return code;
	if (within_ns)
		pgr_deadline(peer, &waiter, within_ns);
	while (!waiter.done) {
		code = pgr_poll(pgr);
		if (code < 0)
			return code; /* it has forked */
		if (code == 0 && !waiter.done && pgr->config.block)
			pgr_wait(pgr, UINT64_MAX);
	}
	if (result_bytes_out)
		*result_bytes_out = waiter.bytes;
	return waiter.code;
}

/* ---- life ---- */

static uint64_t power_of_two(uint64_t least)
{
	uint64_t value = 1;

	while (value < least)
		value *= 2;
	return value;
}

static void set_defaults(struct pgr_config *config)
{
	if (!config->peers_max)
		config->peers_max = 64;
	if (!config->clients_max)
		config->clients_max = 1024;
	if (!config->message_bytes_max)
		config->message_bytes_max = UINT64_C(16) << 20;
	if (!config->pool_bytes_max)
		config->pool_bytes_max = UINT64_C(256) << 20;
	if (!config->give_up_ns)
		config->give_up_ns = UINT64_C(10000000000);
	if (config->memory_ns < 3 * config->give_up_ns + UINT64_C(10000000000))
		config->memory_ns = 3 * config->give_up_ns + UINT64_C(10000000000);
	if (!config->rto_min_ns)
		config->rto_min_ns = 2000000;
}

void pgr_close(struct pgr *pgr)
{
	if (!pgr)
		return;
	while (pgr->peers) {
		struct pgr_peer *peer = pgr->peers;

		pgr->peers = peer->next;
		for (unsigned int i = 0; i < PGR_SLOTS; i++) {
			struct pgr_slot *slot = peer->slots[i];

			if (slot && slot->state != PGR_SLOT_FREE) {
				if (slot->delegating)
					free(slot->arg);
				pgr_outgoing_end(&slot->out);
				pgr_incoming_end(&slot->in);
				pgr_buffer_give(pgr, slot->staging);
				pgr_buffer_give(pgr, slot->marshal);
			}
			free(slot);
		}
		free(peer);
	}
	while (pgr->silent.first) {
		struct pgr_client *client = pgr->silent.first;

		pgr_quota_leave(pgr, client);
		free(client);
	}
	for (uint32_t i = 0; i < pgr->works_count; i++) {
		struct pgr_work *work = pgr->works[i];

		pgr_buffer_give(pgr, work->args);
		pgr_buffer_give(pgr, work->saved);
		pgr_outgoing_end(&work->out);
		pgr_incoming_end(&work->in);
		pgr_uncharge(pgr, work);
		free(work);
	}
	if (pgr->wire)
		pgr->wire->ops->close(pgr->wire);
	pgr_memory_free(pgr);
	if (pgr->off & PGR_OFF_NO_THREAD_STATE)
		pgr_own_stack_free();
	pgr_buffers_free(pgr);
	free(pgr->works);
	free(pgr->delegated);
	free(pgr->procedures);
	pgr_table_free(pgr->quotas, pgr->clients_mask);
	free(pgr->delegators);
	pgr_table_free(pgr->buckets, pgr->clients_mask);
	pgr_table_free(pgr->by_hash, pgr->peers_mask);
	free(pgr->scratch);
	free(pgr->copy);
	free(pgr->copied);
	pgr_endpoint_give(pgr);
}

/* What the wire that is open, and the program, allow. */
static void attach(struct pgr *pgr, const struct pgr_config *config)
{
	uint32_t packet_bytes = pgr->wire->packet_bytes_max;

	pgr->wire->here = &pgr->here;
	pgr->wire->on_unreachable = pgr_client_unreachable;
	pgr->reliable = pgr->wire->reliable;
	pgr->shared = pgr->wire->joins_processes && !(pgr->off & PGR_OFF_IN_PLACE);
	if (pgr->config.packet_bytes_max && pgr->config.packet_bytes_max < packet_bytes)
		packet_bytes = pgr->config.packet_bytes_max;
	/* a multiple of 8, so that packets which the kernel joins behind each other begin at one */
	pgr->packet_bytes = (packet_bytes - PGR_HEADER_BYTES - PGR_EXTENSIONS_BYTES) & ~UINT32_C(7);
	pgr->small_bytes = pgr->packet_bytes < PGR_SMALL_BYTES ? pgr->packet_bytes : PGR_SMALL_BYTES;
	pgr->single_bytes =
		pgr->reliable && pgr->packet_bytes > PGR_SINGLE_BYTES ? PGR_SINGLE_BYTES : pgr->packet_bytes;
	pgr->in_place_bytes = config->in_place_bytes_min > pgr->single_bytes ? config->in_place_bytes_min
									     : pgr->single_bytes + 1;
	if (config->key) {
		memcpy(pgr->key, config->key, sizeof(pgr->key));
		pgr->has_key = true;
	}
	do
		pgr->incarnation = (uint32_t)pgr_random();
	while (!pgr->incarnation);
	for (size_t i = 0; i < sizeof(pgr->secret); i += sizeof(uint64_t)) {
		const uint64_t value = pgr_random();

		memcpy(pgr->secret + i, &value, sizeof(value));
	}
}

static bool make_tables(struct pgr *pgr)
{
	const bool gathers = pgr->has_key || (pgr->off & PGR_OFF_GATHER),
		   copies = pgr->off & PGR_OFF_IN_PLACE;

	pgr->peers_mask = power_of_two(2 * (uint64_t)pgr->config.peers_max + 1) - 1;
	pgr->clients_mask = (uint32_t)(power_of_two(pgr->config.clients_max) - 1);
	pgr->by_hash = pgr_table_take(pgr->peers_mask);
	pgr->buckets = pgr_table_take(pgr->clients_mask);
	pgr->quotas = pgr_table_take(pgr->clients_mask);
	pgr->procedures = calloc(PGR_PROCEDURES_MAX, sizeof(*pgr->procedures));
	pgr->scratch = gathers ? malloc(pgr->wire->packet_bytes_max) : NULL;
	pgr->copy = copies ? malloc(pgr->wire->packet_bytes_max) : NULL;
	return pgr->by_hash && pgr->buckets && pgr->quotas && pgr->procedures && (pgr->scratch || !gathers) &&
	       (pgr->copy || !copies);
}

int pgr_open_on(const struct pgr_wire_ops *ops, const struct pgr_config *config, struct pgr **pgr_out)
{
	struct pgr *pgr = pgr_endpoint_take();
	int code;

	if (!pgr)
		return PGR_E_MEMORY;
	pgr->here = pgr->idle = true;
	pgr->config = *config;
	set_defaults(&pgr->config);
	pgr->off = config->off;
	if (pgr->config.message_bytes_max > PGR_MESSAGE_BYTES_MAX - PGR_TOKEN_BYTES) {
		pgr_close(pgr);
		return pgr_open_fail(config, PGR_E_ARGUMENT, "a message has at most 1 GiB");
	}
	if (pgr->config.packet_bytes_max && pgr->config.packet_bytes_max < PGR_PACKET_BYTES_MIN) {
		pgr_close(pgr);
		return pgr_open_fail(config, PGR_E_ARGUMENT, "a packet has at least %d bytes",
				     PGR_PACKET_BYTES_MIN);
	}
	code = ops->open(&pgr->config, input, pgr, &pgr->wire);
	if (code != PGR_OK) {
		pgr->wire = NULL;
		pgr_close(pgr);
		return code;
	}
	attach(pgr, config);
	if (!make_tables(pgr)) {
		pgr_close(pgr);
		return PGR_E_MEMORY;
	}
	pgr_credits_divide(pgr);
	pgr->fast = pgr_fast_can(pgr);
	pgr->probe_ns = pgr->config.give_up_ns / 4 < PGR_PROBE_NS ? pgr->config.give_up_ns / 4 : PGR_PROBE_NS;
	pgr->tick_ns = pgr->config.rto_min_ns / 4;
	pgr->polls_per_clock_read = ops->now_ns ? 1 : pgr->reliable ? 1024 : 128;
	pgr->next_tick_ns = pgr_now(pgr) + pgr->tick_ns;
	*pgr_out = pgr;
	return PGR_OK;
}

int pgr_open(const struct pgr_config *config, struct pgr **pgr_out)
{
	const struct pgr_wire_ops *ops = pgr_wire_find(config->wire);

	if (config->bytes != sizeof(*config))
		return pgr_open_fail(config, PGR_E_ARGUMENT, "config.bytes is not that of this library");
	if (!ops)
		return pgr_open_fail(config, PGR_E_ARGUMENT, "there is no wire named %s",
				     config->wire ? config->wire : "(nothing)");
	return pgr_open_on(ops, config, pgr_out);
}
