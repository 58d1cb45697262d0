/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives for the client: its callbacks, and what a completion means to each mode. */
#include <inttypes.h>
#include <string.h>

#include "traffic/client_parts.h"
#include "traffic/payload.h"

static void __attribute__((noinline)) complete_tallied(struct drv_client *client, const struct drv_slot *slot,
						       uint64_t now)
{
	drv_tally_done(client->tally, slot->number,
		       drv_clock_to_ns(&client->port.engine->clock, now - slot->start));
	if (now >= client->end)
		client->ending = true;
}

static void complete_stamped(struct drv_client *client, const struct drv_slot *slot, uint64_t now)
{
	drv_sample(client->samples, drv_clock_to_ns(&client->port.engine->clock, now - slot->start));
	drv_stamp(client->stamps, 0, slot->start);
	drv_stamp(client->stamps, 1, now);
	if (now >= client->end)
		client->ending = true;
}

/* Measuring ends with the last reply of a round, however long ago the time was over. */
static void __attribute__((noinline)) complete_in_round(struct drv_client *client,
							const struct drv_slot *slot, uint64_t now)
{
	const struct drv_clock *clock = &client->port.engine->clock;
	struct drv_rounds *rounds = client->rounds;

	drv_sample(rounds->each, drv_clock_to_ns(clock, now - slot->start));
	if (rounds->replies == 1)
		drv_sample(rounds->first, drv_clock_to_ns(clock, now - rounds->began));
	if (rounds->replies < client->exchange.depth)
		return;
	drv_sample(rounds->last, drv_clock_to_ns(clock, now - rounds->began));
	if (now >= client->end)
		client->ending = true;
}

/* What a completion means outside the closed loop's measurement. */
static void __attribute__((noinline)) complete_other(struct drv_client *client, const struct drv_slot *slot,
						     uint64_t now)
{
	if (client->rounds)
		client->rounds->replies++;
	if (client->mode == DRV_MODE_ROUNDS)
		complete_in_round(client, slot, now);
	else if (client->mode == DRV_MODE_PACED)
		drv_pace_done(client->pace, &client->port.engine->clock, slot->due, slot->start, now);
	else if (client->mode == DRV_MODE_TALLIED)
		complete_tallied(client, slot, now);
	else if (client->mode == DRV_MODE_STAMPED)
		complete_stamped(client, slot, now);
	else if (client->mode == DRV_MODE_WARMUP && drv_warmup_add(&client->warmup, now, now - slot->start))
		client->ending = true;
}

/* The reply of a slot is here: the one time stamp of an iteration. */
DRV_INLINE void complete(struct drv_client *client, uint32_t index, const void *data, size_t bytes,
			 const bool touch, const bool copies)
{
	struct drv_slot *slot = &client->slots[index];
	struct drv_engine *engine = client->port.engine;
	bool whole;
	uint64_t now;

	if (copies && DRV_LIKELY(bytes && bytes <= client->exchange.reply_bytes))
		data = memcpy(slot->result, data, bytes);
	/* a full comparison reads all as well, and finds other bytes */
	whole = !touch || DRV_UNLIKELY(client->mode == DRV_MODE_VERIFY) ||
		drv_touch_read(data, bytes, client->check.seed, slot->key);
	now = drv_clock_now(&engine->clock);
	slot->waiting = false;
	client->completed++;
	client->last = now;
	if (DRV_LIKELY(client->mode == DRV_MODE_MEASURE)) {
		drv_sample(client->samples, drv_clock_to_ns(&engine->clock, now - slot->start));
		if (DRV_UNLIKELY(now >= client->end))
			client->ending = true;
	} else {
		complete_other(client, slot, now);
	}
	slot->start = now;
	if (DRV_LIKELY(whole && bytes == client->exchange.reply_bytes &&
		       drv_head_holds(data, bytes, client->check.seed, slot->key)))
		client->check.checked++;
	else
		drv_check_wrong(&client->check,
				"the reply to operation %" PRIu64 " has %zu bytes or a wrong %s",
				slot->number, bytes, whole ? "head" : "body");
	if (DRV_UNLIKELY(client->mode == DRV_MODE_VERIFY)) {
		client->check.full_checked++;
		if (bytes == client->exchange.reply_bytes &&
		    !drv_body_holds(data, bytes, client->check.seed, client->phase, slot->key))
			drv_check_wrong(&client->check, "the reply to operation %" PRIu64 " has a wrong body",
					slot->number);
	}
	if (DRV_LIKELY(!slot->lent))
		drv_client_make_ready(client, index);
}

/* Bare messages have no identity but their place in the order, and from 1 byte on what they hold. */
DRV_INLINE enum cadge_keep recv_bare(struct drv_client *client, const void *data, size_t bytes,
				     struct cadge_lend *lend, const bool touch, const bool copies,
				     const bool away)
{
	const struct drv_slot *slot = &client->slots[0];

	(void)lend, (void)away;
	if (DRV_UNLIKELY(!slot->waiting || (!client->reliable && client->late < client->lost &&
					    !drv_head_holds(data, bytes, client->check.seed, slot->key))))
		drv_client_stray(client, "an unexpected message", bytes);
	else
		complete(client, 0, data, bytes, touch, copies);
	return CADGE_TAKEN;
}

DRV_INLINE enum cadge_keep recv_emulated(struct drv_client *client, const void *data, size_t bytes,
					 struct cadge_lend *lend, const bool touch, const bool copies,
					 const bool away)
{
	uint64_t token, index;

	if (DRV_UNLIKELY(!drv_trailer_read(data, bytes, DRV_RPC_REPLY, &token))) {
		drv_check_wrong(&client->check, "a message of %zu bytes is not a reply", bytes);
		return CADGE_TAKEN;
	}
	index = token & DRV_CLIENT_SLOT_MASK;
	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].waiting ||
			 client->slots[index].number != token >> DRV_CLIENT_SLOT_BITS))
		drv_client_stray(client, "an unexpected reply", bytes);
	else if (away)
		return drv_client_pass_on(client, (uint32_t)index, data, bytes - DRV_RPC_TRAILER_BYTES, lend);
	else
		complete(client, (uint32_t)index, data, bytes - DRV_RPC_TRAILER_BYTES, touch, copies);
	return CADGE_TAKEN;
}

DRV_INLINE enum cadge_keep replied(struct drv_client *client, uint64_t token, int code,
				   enum cadge_placement placement, const void *data, size_t bytes,
				   struct cadge_lend *lend, const bool touch, const bool copies,
				   const bool away)
{
	const uint64_t index = token & DRV_CLIENT_SLOT_MASK;

	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].waiting ||
			 client->slots[index].number != token >> DRV_CLIENT_SLOT_BITS)) {
		drv_client_stray(client, "an unexpected result", bytes);
		return CADGE_TAKEN;
	}
	if (DRV_UNLIKELY(code < 0)) {
		client->slots[index].waiting = false;
		client->completed++;
		drv_client_failure(client, "call", code);
		return CADGE_TAKEN;
	}
	if (placement == CADGE_PLACED)
		data = client->slots[index].result;
	if (away)
		return drv_client_pass_on(client, (uint32_t)index, data, bytes, lend);
	complete(client, (uint32_t)index, data, bytes, touch, copies);
	return CADGE_TAKEN;
}

/*
 * Callbacks: those that copy a message, or read it whole, those that do not, and those that pass it on to the other
 * thread, so that nothing is asked in them.
 */
#define RECEIVE(name, receive, touch, copies, away)                                                          \
	static enum cadge_keep name(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,  \
				    struct cadge_lend *lend)                                                 \
	{                                                                                                    \
		(void)peer;                                                                                  \
		return receive((struct drv_client *)sink, data, bytes, lend, touch, copies, away);           \
	}
#define REPLIED(name, touch, copies, away)                                                                   \
	static enum cadge_keep name(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,        \
				    enum cadge_placement placement, const void *data, size_t bytes,          \
				    struct cadge_lend *lend)                                                 \
	{                                                                                                    \
		(void)peer;                                                                                  \
		return replied((struct drv_client *)sink, token, code, placement, data, bytes, lend, touch,  \
			       copies, away);                                                                \
	}
RECEIVE(on_recv_bare, recv_bare, false, false, false)
RECEIVE(on_recv_bare_whole, recv_bare, true, false, false)
RECEIVE(on_recv_emulated, recv_emulated, false, false, false)
RECEIVE(on_recv_emulated_whole, recv_emulated, true, false, false)
RECEIVE(on_recv_emulated_copied, recv_emulated, false, true, false)
RECEIVE(on_recv_emulated_copied_whole, recv_emulated, true, true, false)
RECEIVE(on_recv_emulated_away, recv_emulated, false, false, true)
REPLIED(on_replied, false, false, false)
REPLIED(on_replied_whole, true, false, false)
REPLIED(on_replied_copied, false, true, false)
REPLIED(on_replied_copied_whole, true, true, false)
REPLIED(on_replied_away, false, false, true)

DRV_INLINE void sent(struct drv_client *client, uint64_t token, int code, const bool away)
{
	const uint64_t index = token & DRV_CLIENT_SLOT_MASK;

	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].lent)) {
		drv_check_wrong(&client->check, "a completion for token %" PRIu64 " that is not outstanding",
				token);
		return;
	}
	client->slots[index].lent = false;
	client->lents--;
	if (!client->slots[index].waiting) {
		if (away)
			drv_client_free_again(client, (uint32_t)index);
		else
			drv_client_make_ready(client, (uint32_t)index);
	}
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_client_failure(client, "post", code);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)peer;
	sent((struct drv_client *)sink, token, code, false);
}

static void on_sent_away(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)peer;
	sent((struct drv_client *)sink, token, code, true);
}

/* Of two exchanges the trailers are alike but for the numbers. */
static bool claims_own(const struct drv_port *port, const void *data, size_t bytes)
{
	uint64_t token;

	return drv_trailer_read(data, bytes, DRV_RPC_REPLY, &token) &&
	       ((token & DRV_TOKEN_BESIDE) != 0) == ((const struct drv_client *)port)->exchange.beside;
}

static void claim(struct drv_client *client)
{
	struct drv_port *port = &client->port;

	port->claims = claims_own;
	port->claim_at = -8;
	port->claim_bytes = DRV_RPC_TRAILER_BYTES;
	port->claim_word = (uint64_t)DRV_RPC_MAGIC << 32 | DRV_RPC_REPLY;
	if (client->exchange.form == DRV_FORM_BARE)
		port->claim = DRV_CLAIM_TURNS;
	else if (client->exchange.form == DRV_FORM_EMULATED)
		port->claim = DRV_CLAIM_WORD;
}

void drv_client_listen(struct drv_client *client)
{
	enum cadge_keep (*const receivers[2][3])(struct cadge_sink *, uint32_t, const void *, size_t,
						 struct cadge_lend *) = {
		{on_recv_bare, on_recv_emulated, on_recv_emulated_copied},
		{on_recv_bare_whole, on_recv_emulated_whole, on_recv_emulated_copied_whole}};
	enum cadge_keep (*const replies[2][2])(struct cadge_sink *, uint32_t, uint64_t, int,
					       enum cadge_placement, const void *, size_t,
					       struct cadge_lend *) = {
		{on_replied, on_replied_copied}, {on_replied_whole, on_replied_copied_whole}};
	const struct drv_exchange *exchange = &client->exchange;
	const bool copies = exchange->payload == DRV_PAYLOAD_COPIED;
	struct cadge_sink *sink = &client->port.sink;

	claim(client);
	if (exchange->reply != DRV_REPLY_CONT) {
		sink->recv = on_recv_emulated_away;
		sink->sent = on_sent_away;
		sink->replied = on_replied_away;
		return;
	}
	sink->recv = receivers[exchange->touch][exchange->form == DRV_FORM_BARE ? 0 : copies ? 2 : 1];
	sink->sent = on_sent;
	sink->replied = replies[exchange->touch][copies];
}
