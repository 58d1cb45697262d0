/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of requests and replies, closed or open, compiled for each form and way of waiting. */
#include "client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "in_place.h"
#include "loss.h"

#define SLOT_BITS      DRV_CLIENT_SLOT_BITS
#define SLOT_MASK      ((UINT64_C(1) << SLOT_BITS) - 1)
#define FULL_BYTES_MAX (UINT64_C(16) << 20)
#define WAIT_NS        UINT64_C(10000000)
#define SETTLE_NS      UINT64_C(500000000)

const char *const drv_payload_words[] = {"usual", "solicited", "unsolicited", "copied", NULL};

_Static_assert(DRV_CLIENT_DEPTH_MAX <= 1u << SLOT_BITS, "a slot number fits its bits of the token");
_Static_assert(DRV_BESIDE_NUMBER << SLOT_BITS == DRV_TOKEN_BESIDE,
	       "numbers of a second exchange mark its tokens");

uint64_t drv_full_messages(uint64_t larger_bytes, uint32_t depth)
{
	const uint64_t fit = larger_bytes ? FULL_BYTES_MAX / larger_bytes : depth;

	if (fit >= depth)
		return depth;
	return fit ? fit : 1;
}

static void __attribute__((cold, noinline, format(printf, 2, 3))) note_mismatch(struct drv_client *client,
										const char *format, ...)
{
	va_list arguments;

	if (client->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(client->mismatch, sizeof(client->mismatch), format, arguments) < 0)
		client->mismatch[0] = '\0';
	va_end(arguments);
}

static void __attribute__((cold, noinline)) note_failure(struct drv_client *client, const char *what,
							 int code)
{
	if (!client->failed)
		drv_engine_fail(what, code, &client->fail);
	client->failed = true;
	client->ending = true;
}

/* A layer that lends may not do so on all of its paths; on which, nothing says beforehand. */
static void __attribute__((cold, noinline)) note_not_lent(struct drv_client *client, size_t bytes)
{
	if (!client->failed)
		drv_fail_set(
			&client->fail, DRV_NO_CAP,
			"the layer did not lend a reply of %zu bytes, so another thread cannot look at it "
			"where the layer has it",
			bytes);
	client->failed = true;
	client->ending = true;
}

DRV_INLINE void make_ready(struct drv_client *client, uint32_t index)
{
	client->ready[client->ready_tail++ & client->ready_mask] = index;
}

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
		drv_touch_read(data, bytes, ~client->exchange.seed, slot->key);
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
		       drv_head_holds(data, bytes, ~client->exchange.seed, slot->key)))
		client->checked++;
	else
		note_mismatch(client, "the reply to operation %" PRIu64 " has %zu bytes or a wrong %s",
			      slot->number, bytes, whole ? "head" : "body");
	if (DRV_UNLIKELY(client->mode == DRV_MODE_VERIFY)) {
		client->full_checked++;
		if (bytes == client->exchange.reply_bytes &&
		    !drv_body_holds(data, bytes, ~client->exchange.seed, client->phase, slot->key))
			note_mismatch(client, "the reply to operation %" PRIu64 " has a wrong body",
				      slot->number);
	}
	if (DRV_LIKELY(!slot->lent))
		make_ready(client, index);
}

/*
 * The reply of a slot is here, and goes to the client's other thread. Where that one looks at it where the layer has it,
 * it stays lent; what is not lent, and what is wanted elsewhere, is copied here, in the delivery context.
 */
static enum cadge_keep __attribute__((noinline))
pass_on(struct drv_client *client, uint32_t index, const void *data, size_t bytes, struct cadge_lend *lend)
{
	struct drv_slot *slot = &client->slots[index];
	const bool looks = bytes && data != slot->result && client->exchange.payload != DRV_PAYLOAD_COPIED;

	slot->waiting = false;
	client->completed++;
	if (DRV_UNLIKELY(!client->taker.on)) /* it was ended, after a failure */
		return CADGE_TAKEN;
	if (DRV_UNLIKELY(looks && !lend && client->exchange.payload == DRV_PAYLOAD_UNSOLICITED)) {
		note_not_lent(client, bytes);
		return CADGE_TAKEN;
	}
	slot->data = looks && lend ? data : slot->result;
	slot->bytes = bytes;
	slot->kept = looks ? lend : NULL;
	if (bytes <= client->exchange.reply_bytes && bytes && !slot->kept && data != slot->result)
		memcpy(slot->result, data, bytes);
	drv_taker_give(client, index, DRV_TAKER_REPLY | (slot->lent ? DRV_TAKER_SENDING : 0));
	return slot->kept ? CADGE_KEEP : CADGE_TAKEN;
}

/* A reply that nobody waits for: late after a loss, else something is wrong. */
static void __attribute__((cold, noinline)) stray_reply(struct drv_client *client, const char *what,
							size_t bytes)
{
	if (!client->reliable && client->late < client->lost)
		client->late++;
	else
		note_mismatch(client, "%s of %zu bytes: no operation outstanding", what, bytes);
}

/* Bare messages have no identity but their place in the order, and from 1 byte on what they hold. */
DRV_INLINE enum cadge_keep recv_bare(struct drv_client *client, const void *data, size_t bytes,
				     struct cadge_lend *lend, const bool touch, const bool copies,
				     const bool away)
{
	const struct drv_slot *slot = &client->slots[0];

	(void)lend, (void)away;
	if (DRV_UNLIKELY(!slot->waiting || (!client->reliable && client->late < client->lost &&
					    !drv_head_holds(data, bytes, ~client->exchange.seed, slot->key))))
		stray_reply(client, "an unexpected message", bytes);
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
		note_mismatch(client, "a message of %zu bytes is not a reply", bytes);
		return CADGE_TAKEN;
	}
	index = token & SLOT_MASK;
	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].waiting ||
			 client->slots[index].number != token >> SLOT_BITS))
		stray_reply(client, "an unexpected reply", bytes);
	else if (away)
		return pass_on(client, (uint32_t)index, data, bytes - DRV_RPC_TRAILER_BYTES, lend);
	else
		complete(client, (uint32_t)index, data, bytes - DRV_RPC_TRAILER_BYTES, touch, copies);
	return CADGE_TAKEN;
}

DRV_INLINE enum cadge_keep replied(struct drv_client *client, uint64_t token, int code,
				   enum cadge_placement placement, const void *data, size_t bytes,
				   struct cadge_lend *lend, const bool touch, const bool copies,
				   const bool away)
{
	const uint64_t index = token & SLOT_MASK;

	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].waiting ||
			 client->slots[index].number != token >> SLOT_BITS)) {
		stray_reply(client, "an unexpected result", bytes);
		return CADGE_TAKEN;
	}
	if (DRV_UNLIKELY(code < 0)) {
		client->slots[index].waiting = false;
		client->completed++;
		note_failure(client, "call", code);
		return CADGE_TAKEN;
	}
	if (placement == CADGE_PLACED)
		data = client->slots[index].result;
	if (away)
		return pass_on(client, (uint32_t)index, data, bytes, lend);
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

/* A slot is free, with nothing of it on the way: whoever makes the calls has it, or will get it. */
static void free_again(struct drv_client *client, uint32_t index)
{
	const struct drv_slot *slot = &client->slots[index];

	if (slot->taken || slot->lent || client->ending || !client->taker.on)
		return;
	if (client->taker.calls)
		drv_taker_give(client, index, 0);
	else
		make_ready(client, index);
}

/* What the other thread has given back: calls of its own, and slots that are free. */
static void __attribute__((noinline)) take_back(struct drv_client *client)
{
	uint32_t index, what;

	while (drv_taker_get(client, &index, &what)) {
		if (what & DRV_TAKER_ENDING)
			client->ending = true;
		if (what & DRV_TAKER_CALL) {
			make_ready(client, index);
			continue;
		}
		/* a worker has no calls to make: the next one begins here */
		if (!client->taker.calls)
			client->slots[index].start = drv_clock_now(&client->port.engine->clock);
		free_again(client, index);
	}
}

DRV_INLINE void sent(struct drv_client *client, uint64_t token, int code, const bool away)
{
	const uint64_t index = token & SLOT_MASK;

	if (DRV_UNLIKELY(index >= client->exchange.depth || !client->slots[index].lent)) {
		note_mismatch(client, "a completion for token %" PRIu64 " that is not outstanding", token);
		return;
	}
	client->slots[index].lent = false;
	client->lents--;
	if (!client->slots[index].waiting) {
		if (away)
			free_again(client, (uint32_t)index);
		else
			make_ready(client, (uint32_t)index);
	}
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(client, "post", code);
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

/*
 * Hands over a message whose body is written: for a full comparison, or since the exchange touches its messages. Head
 * and trailer are there already. A message that is touched is written where it leaves from; elsewhere than in memory of
 * the library that is once, however often the layer is busy.
 */
static int __attribute__((noinline)) hand_over_written(struct drv_client *client, struct drv_slot *slot,
						       uint64_t token)
{
	const struct drv_engine *engine = client->port.engine;
	const struct drv_exchange *exchange = &client->exchange;
	const size_t bytes = (size_t)exchange->request_bytes;
	const struct cadge_iov result = {slot->result, (size_t)exchange->reply_bytes};
	struct cadge_iov iov = {slot->payload, (size_t)drv_form_bytes(exchange->form, bytes)};
	/* where nothing is touched, a full comparison is of what is measured: post */
	const bool reserves = exchange->touch != DRV_TOUCH_NONE && exchange->form != DRV_FORM_NATIVE &&
			      drv_in_place_grants(engine->layer);
	const uint64_t number = client->next_number;

	if (reserves) {
		const int code = drv_in_place_begin(engine->layer, slot->chan, &iov);

		if (code != CADGE_DONE)
			return code;
		slot->filled = false;
		drv_head_write(iov.base, bytes, exchange->seed, number);
		if (exchange->form == DRV_FORM_EMULATED)
			drv_trailer_write(iov.base, bytes, token, DRV_RPC_REQUEST);
	}
	if (!slot->filled && client->mode == DRV_MODE_VERIFY)
		drv_body_fill(iov.base, bytes, exchange->seed, client->phase, number);
	else if (!slot->filled)
		drv_touch_write(iov.base, bytes, exchange->seed, number);
	slot->filled = true;
	if (exchange->form == DRV_FORM_NATIVE)
		return engine->layer->call(slot->chan, 1, &iov, 1, &result, client->places, 0, token);
	return reserves ? drv_in_place_end(engine->layer, slot->chan, &iov, token)
			: engine->layer->post(slot->chan, &iov, 1, 0, token);
}

/* After the layer took an operation, or said why not. 1: done; 0: it is busy; -1: failed. */
DRV_INLINE int handed_over(struct drv_client *client, const enum drv_form form, struct drv_slot *slot,
			   int code)
{
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	if (DRV_UNLIKELY(code != CADGE_DONE && code != CADGE_QUEUED)) {
		note_failure(client, form == DRV_FORM_NATIVE ? "call" : "post", code);
		return -1;
	}
	if (form != DRV_FORM_NATIVE && code == CADGE_QUEUED) {
		slot->lent = true;
		client->lents++;
	}
	slot->waiting = true;
	slot->filled = false;
	client->key_sum += slot->key;
	if (DRV_UNLIKELY(++client->posted == client->limit))
		client->ending = true;
	return 1;
}

/* Hands over a call that the other thread has made. */
static int __attribute__((noinline)) issue_made(struct drv_client *client, uint32_t index)
{
	const struct drv_engine *engine = client->port.engine;
	const enum drv_form form = client->exchange.form;
	struct drv_slot *slot = &client->slots[index];
	const struct cadge_iov iov = {slot->payload,
				      (size_t)drv_form_bytes(form, client->exchange.request_bytes)};
	const struct cadge_iov result = {slot->result, (size_t)client->exchange.reply_bytes};
	const uint64_t token = drv_client_token(slot->number, index);

	if (form != DRV_FORM_NATIVE)
		return handed_over(client, form, slot, engine->layer->post(slot->chan, &iov, 1, 0, token));
	return handed_over(client, form, slot,
			   engine->layer->call(slot->chan, 1, &iov, 1, &result, client->places, 0, token));
}

/* All of them: what was made is handed over, also when nothing new is to begin. */
static int issue_all_made(struct drv_client *client)
{
	while (client->ready_head != client->ready_tail && DRV_LIKELY(!client->failed)) {
		if (issue_made(client, client->ready[client->ready_head & client->ready_mask]) <= 0)
			return 0;
		client->ready_head++;
	}
	return 1;
}

/* Hands one operation over. 1: done; 0: the layer is busy; -1: failed. */
DRV_INLINE int issue(struct drv_client *client, const enum drv_form form, uint32_t index)
{
	const struct drv_engine *engine = client->port.engine;
	struct drv_slot *slot = &client->slots[index];
	const size_t bytes = (size_t)client->exchange.request_bytes;
	const uint64_t number = client->next_number;
	const uint64_t token = drv_client_token(number, index);
	const uint64_t key = drv_head_write(slot->payload, bytes, client->exchange.seed, number);
	const struct cadge_iov iov = {.base = slot->payload, .bytes = (size_t)drv_form_bytes(form, bytes)};
	int code, status;

	if (form == DRV_FORM_EMULATED)
		drv_trailer_write(slot->payload, bytes, token, DRV_RPC_REQUEST);
	if (DRV_UNLIKELY(client->writes)) {
		code = hand_over_written(client, slot, token);
	} else if (form == DRV_FORM_NATIVE) {
		const struct cadge_iov result = {slot->result, (size_t)client->exchange.reply_bytes};

		code = engine->layer->call(slot->chan, 1, &iov, 1, &result, client->places, 0, token);
	} else {
		code = engine->layer->post(slot->chan, &iov, 1, 0, token);
	}
	slot->number = number;
	slot->key = key;
	status = handed_over(client, form, slot, code);
	client->next_number += status > 0;
	return status;
}

/* Hands over all that may start. 0: the layer is busy, or it failed; 1: else. */
DRV_INLINE int issue_ready(struct drv_client *client, const enum drv_form form)
{
	while (client->ready_head != client->ready_tail && DRV_LIKELY(!client->ending)) {
		const int status =
			issue(client, form, client->ready[client->ready_head & client->ready_mask]);

		if (DRV_UNLIKELY(status <= 0))
			return 0;
		client->ready_head++;
	}
	return 1;
}

/* The same in the open loop: hands over what is due. */
DRV_INLINE int issue_due(struct drv_client *client, const enum drv_form form)
{
	struct drv_pace *pace = client->pace;

	while (client->ready_head != client->ready_tail && DRV_LIKELY(!client->ending)) {
		const uint32_t index = client->ready[client->ready_head & client->ready_mask];
		const uint64_t now = drv_clock_now(&client->port.engine->clock);
		struct drv_slot *slot = &client->slots[index];

		if (now < pace->due)
			return 1;
		/* the slot that has been free for longest was not yet */
		pace->holds |= slot->start > pace->due;
		slot->start = now;
		slot->due = pace->due;
		if (DRV_UNLIKELY(issue(client, form, index) <= 0)) {
			pace->holds = true;
			return 0;
		}
		client->ready_head++;
		drv_pace_sent(pace);
		if (DRV_UNLIKELY(drv_pace_over(pace)))
			client->ending = true;
	}
	return 1;
}

/*
 * The same in rounds: hands over what is left of this one, or begins the next if all slots are free again. A round begins
 * where the one before ended, or, after a loss, now; the turn of each call is when the one before it was handed over.
 */
DRV_INLINE int issue_round(struct drv_client *client, const enum drv_form form)
{
	const struct drv_clock *clock = &client->port.engine->clock;
	struct drv_rounds *rounds = client->rounds;

	if (!rounds->left) {
		if (client->ready_tail - client->ready_head < client->exchange.depth)
			return 1;
		rounds->began =
			rounds->replies == client->exchange.depth ? client->last : drv_clock_now(clock);
		rounds->replies = 0;
		rounds->left = client->exchange.depth;
		client->slots[client->ready[client->ready_head & client->ready_mask]].start = rounds->began;
	}
	while (rounds->left && DRV_LIKELY(!client->ending)) {
		if (DRV_UNLIKELY(
			    issue(client, form, client->ready[client->ready_head & client->ready_mask]) <= 0))
			return 0;
		client->ready_head++;
		if (--rounds->left)
			client->slots[client->ready[client->ready_head & client->ready_mask]].start =
				drv_clock_now(clock);
	}
	return 1;
}

/* How long the open loop may sleep: until a call is due that has a slot, or for `most_ns`. */
static uint64_t until_due_ns(const struct drv_client *client, uint64_t most_ns)
{
	const struct drv_clock *clock = &client->port.engine->clock;
	const uint64_t now = drv_clock_now(clock), due = client->pace->due;
	uint64_t due_ns;

	if (client->ending || client->ready_head == client->ready_tail)
		return most_ns;
	due_ns = due > now ? drv_clock_to_ns(clock, due - now) : 0;
	return due_ns < most_ns ? due_ns : most_ns;
}

static uint64_t outstanding(const struct drv_client *client)
{
	return client->posted - client->completed - client->lost;
}

/* After a loss of messages without identity: nothing more is sent until what is on its way has come in. */
static int quieten(struct drv_client *client, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t quiet_ns = DRV_QUIET_NS;
	const uint64_t latest_ns = drv_now_ns() + DRV_QUIET_MAX_NS;
	uint64_t until_ns = drv_now_ns() + quiet_ns;

	while (drv_now_ns() < until_ns && drv_now_ns() < latest_ns) {
		const uint64_t late = client->late;
		const int events = engine->layer->poll(engine->ctx, client->sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (client->late != late)
			until_ns = drv_now_ns() + quiet_ns;
		if (events == 0 && engine->block && drv_engine_wait(engine, quiet_ns, fail))
			return -1;
	}
	return 0;
}

/* Over an unreliable layer: operations past their deadline are lost, their slots start again. */
static int expire(struct drv_client *client, uint64_t now, struct drv_fail *fail)
{
	const struct drv_engine *engine = client->port.engine;
	const bool bare = client->exchange.form == DRV_FORM_BARE;

	for (uint32_t index = 0; index < client->exchange.depth; index++) {
		struct drv_slot *slot = &client->slots[index];

		if (!slot->waiting || now - slot->start < client->op_deadline)
			continue;
		slot->waiting = false;
		client->lost++;
		if (client->taker.on) {
			drv_taker_give(client, index, DRV_TAKER_LOST | (slot->lent ? DRV_TAKER_SENDING : 0));
			continue;
		}
		if (bare && quieten(client, fail))
			return -1;
		slot->start = drv_clock_now(&engine->clock);
		if (!slot->lent)
			make_ready(client, index);
	}
	if (client->taker.on) /* who takes replies looks at the time */
		return 0;
	if (client->mode == DRV_MODE_WARMUP && drv_warmup_expired(&client->warmup, now))
		client->ending = true;
	if (client->mode >= DRV_MODE_MEASURE && client->mode != DRV_MODE_PACED && now >= client->end)
		client->ending = true;
	return 0;
}

static int __attribute__((noinline)) look_around(struct drv_client *client, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);

	if (!client->reliable && expire(client, now, fail))
		return -1;
	return drv_engine_look(engine, now, NULL, fail);
}

/* The server of this process, where there is one. */
enum own_server { NO_SERVER, SERVER, WORKING_SERVER };

/* What may be handed over: what is free, what is due, what another thread that takes replies gave back, or a whole round. */
enum kind { CLOSED, OPEN, AWAY, ROUNDS };

/* Whether nothing is on its way, or with the other thread. */
DRV_INLINE bool is_idle(const struct drv_client *client, const bool away)
{
	return outstanding(client) == 0 && client->lents == 0 &&
	       (!away || (client->taker.has == 0 &&
			  (!client->taker.calls || client->ready_head == client->ready_tail)));
}

DRV_INLINE int issue_some(struct drv_client *client, const enum drv_form form, const enum kind kind)
{
	if (kind == OPEN)
		return issue_due(client, form);
	if (kind == CLOSED)
		return issue_ready(client, form);
	if (kind == ROUNDS)
		return issue_round(client, form);
	take_back(client);
	return client->taker.calls ? issue_all_made(client) : issue_ready(client, form);
}

/* The loop. Compiled for each form, kind and way of waiting, so that none of these is asked inside. */
DRV_INLINE int loop(struct drv_client *client, const enum drv_form form, const bool block,
		    const enum own_server server, const enum kind kind, struct drv_fail *fail)
{
	const bool open = kind == OPEN, away = kind == AWAY;
	struct drv_engine *engine = client->port.engine;
	const struct cadge_layer *layer = engine->layer;
	const uint64_t wait_ns = client->reliable || client->op_deadline == UINT64_MAX
					 ? WAIT_NS
					 : drv_clock_to_ns(&engine->clock, client->op_deadline) / 2;

	for (;;) {
		const int taken = issue_some(client, form, kind);
		uint64_t before;
		int events;

		if (DRV_UNLIKELY(client->ending)) {
			if (client->failed) {
				*fail = client->fail;
				return -1;
			}
			if (is_idle(client, away))
				return 0;
		}
		before = client->completed;
		events = layer->poll(engine->ctx, client->sink);
		if (server != NO_SERVER &&
		    DRV_UNLIKELY(server == SERVER ? drv_server_drain(client->server)
						  : drv_server_drain_serving(client->server))) {
			*fail = client->server->fail;
			return -1;
		}
		if (DRV_LIKELY(client->completed != before))
			continue;
		if (DRV_UNLIKELY(events < 0))
			return drv_engine_fail("poll", events, fail);
		if (block && events == 0) {
			/* a busy layer is waited for like a reply: it ends the wait when it takes more */
			const uint64_t sleep_ns = open && taken ? until_due_ns(client, wait_ns) : wait_ns;

			client->waits += sleep_ns > 0;
			if (sleep_ns && drv_engine_wait(engine, sleep_ns, fail))
				return -1;
		} else if (DRV_LIKELY(++client->idle & 63)) {
			continue;
		}
		if (look_around(client, fail))
			return -1;
	}
}

#define LOOP(name, form, block, server, kind)                                                                \
	static int __attribute__((noinline)) name(struct drv_client *client, struct drv_fail *fail)          \
	{                                                                                                    \
		return loop(client, form, block, server, kind, fail);                                        \
	}
#define LOOPS(name, form, kind)                                                                              \
	LOOP(name##_poll, form, false, NO_SERVER, kind)                                                      \
	LOOP(name##_block, form, true, NO_SERVER, kind)                                                      \
	LOOP(name##_self, form, false, SERVER, kind)                                                         \
	LOOP(name##_self_block, form, true, SERVER, kind)
LOOPS(bare, DRV_FORM_BARE, CLOSED)
LOOPS(emulated, DRV_FORM_EMULATED, CLOSED)
LOOPS(native, DRV_FORM_NATIVE, CLOSED)
LOOPS(open_emulated, DRV_FORM_EMULATED, OPEN)
LOOPS(open_native, DRV_FORM_NATIVE, OPEN)
LOOPS(away_emulated, DRV_FORM_EMULATED, AWAY)
LOOPS(away_native, DRV_FORM_NATIVE, AWAY)
LOOP(emulated_working, DRV_FORM_EMULATED, false, WORKING_SERVER, CLOSED)
LOOP(emulated_working_block, DRV_FORM_EMULATED, true, WORKING_SERVER, CLOSED)
LOOP(native_working, DRV_FORM_NATIVE, false, WORKING_SERVER, CLOSED)
LOOP(native_working_block, DRV_FORM_NATIVE, true, WORKING_SERVER, CLOSED)
LOOP(round_emulated, DRV_FORM_EMULATED, false, NO_SERVER, ROUNDS)
LOOP(round_emulated_block, DRV_FORM_EMULATED, true, NO_SERVER, ROUNDS)
LOOP(round_native, DRV_FORM_NATIVE, false, NO_SERVER, ROUNDS)
LOOP(round_native_block, DRV_FORM_NATIVE, true, NO_SERVER, ROUNDS)

/*
 * By kind and form; for polling, blocking, and both beside a server of this process; closed, also where that works
 * before it answers. Messages without identity have one outstanding at a time and are no calls: nobody works for them,
 * there is nothing to be opened, and no other thread to take them.
 */
typedef int (*loop_fn)(struct drv_client *client, struct drv_fail *fail);
static const loop_fn loops[][3][6] = {
	[CLOSED] = {{bare_poll, bare_block, bare_self, bare_self_block},
		    {emulated_poll, emulated_block, emulated_self, emulated_self_block, emulated_working,
		     emulated_working_block},
		    {native_poll, native_block, native_self, native_self_block, native_working,
		     native_working_block}},
	[OPEN] = {{NULL},
		  {open_emulated_poll, open_emulated_block, open_emulated_self, open_emulated_self_block},
		  {open_native_poll, open_native_block, open_native_self, open_native_self_block}},
	[AWAY] = {{NULL},
		  {away_emulated_poll, away_emulated_block, away_emulated_self, away_emulated_self_block},
		  {away_native_poll, away_native_block, away_native_self, away_native_self_block}},
	[ROUNDS] = {{NULL}, {round_emulated, round_emulated_block}, {round_native, round_native_block}},
};

/* All slots may start at this moment. */
static void start_slots(struct drv_client *client)
{
	const uint64_t now = drv_clock_now(&client->port.engine->clock);

	client->ready_head = client->ready_tail = 0;
	client->ending = false;
	client->last = now;
	if (client->rounds)
		client->rounds->left = client->rounds->replies = 0;
	drv_taker_begin(client);
	for (uint32_t index = 0; index < client->exchange.depth; index++) {
		client->slots[index].start = now;
		client->slots[index].filled = false; /* what an earlier phase did not get rid of */
		if (client->taker.on && client->taker.calls)
			drv_taker_give(client, index, 0);
		else
			make_ready(client, index);
	}
}

/* Whole payloads are compared slot by slot. */
static enum kind kind_of(const struct drv_client *client)
{
	if (client->mode == DRV_MODE_PACED)
		return OPEN;
	if (client->rounds && client->mode != DRV_MODE_VERIFY)
		return ROUNDS;
	return client->taker.on ? AWAY : CLOSED;
}

/* Starts all slots and runs. */
static int run(struct drv_client *client, struct drv_fail *fail)
{
	const enum kind kind = kind_of(client);
	struct drv_engine *engine = client->port.engine;
	const enum own_server server = !client->server           ? NO_SERVER
				       : client->server->service ? WORKING_SERVER
								 : SERVER;

	start_slots(client);
	client->ending = client->mode == DRV_MODE_PACED && drv_pace_over(client->pace);
	if (loops[kind][client->exchange.form][2 * server + (engine->block ? 1 : 0)](client, fail)) {
		/* what it has of the client is read from now on */
		drv_taker_stop(client);
		return -1;
	}
	/* what was given up as lost must not turn up in a later phase */
	return client->lost > client->late ? quieten(client, fail) : 0;
}

int drv_client_verify(struct drv_client *client, uint64_t phase, struct drv_fail *fail)
{
	client->mode = DRV_MODE_VERIFY;
	client->writes = true;
	client->phase = phase;
	client->limit = client->posted +
			drv_full_messages(client->exchange.request_bytes > client->exchange.reply_bytes
						  ? client->exchange.request_bytes
						  : client->exchange.reply_bytes,
					  client->exchange.depth);
	return run(client, fail);
}

int drv_client_warmup(struct drv_client *client, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;

	client->mode = DRV_MODE_WARMUP;
	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = UINT64_MAX;
	drv_warmup_start(&client->warmup, drv_clock_now(&engine->clock),
			 drv_clock_to_ticks(&engine->clock, 100000),
			 drv_clock_to_ticks(&engine->clock, cap_ns));
	if (run(client, fail))
		return -1;
	client->op_deadline = drv_clock_to_ticks(
		&engine->clock,
		drv_loss_deadline_ns(client->warmup.operations
					     ? drv_clock_to_ns(&engine->clock, client->warmup.median)
					     : 0));
	return 0;
}

/* Measures, as the mode says, and fills the totals. */
static int measure(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		   struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t completed = client->completed, lost = client->lost, late = client->late;
	uint64_t started, ended;
	int status;

	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = UINT64_MAX;
	started = drv_clock_now(&engine->clock);
	client->end = started + drv_clock_to_ticks(&engine->clock, duration_ns);
	if (client->mode == DRV_MODE_PACED)
		drv_pace_begin(client->pace, started, client->end);
	status = run(client, fail);
	/* a loss at the end took time as well, which no completion marks */
	ended = client->lost == lost ? client->last : drv_clock_now(&engine->clock);
	/* after the last call of an open loop none was due until its end: that is time that it took as well */
	if (client->mode == DRV_MODE_PACED && ended < client->end)
		ended = client->end;
	record->elapsed_ns = drv_clock_to_ns(&engine->clock, ended - started);
	record->operations = client->completed - completed;
	record->bytes = record->operations * (client->exchange.request_bytes + client->exchange.reply_bytes);
	record->lost = client->lost - lost;
	record->late = client->late - late;
	return status;
}

int drv_client_measure(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		       struct drv_fail *fail)
{
	client->mode = DRV_MODE_MEASURE;
	return measure(client, duration_ns, record, fail);
}

int drv_client_pace(struct drv_client *client, struct drv_pace *pace, uint64_t duration_ns,
		    struct drv_record *record, struct drv_fail *fail)
{
	int status;

	client->mode = DRV_MODE_PACED;
	client->pace = pace;
	/* else the kernel may wake who sleeps until a call is due 50 us too late; 0 is the usual again */
	if (client->port.engine->block)
		prctl(PR_SET_TIMERSLACK, 1UL);
	status = measure(client, duration_ns, record, fail);
	if (client->port.engine->block)
		prctl(PR_SET_TIMERSLACK, 0UL);
	return status;
}

int drv_client_tally(struct drv_client *client, struct drv_tally *tally, uint64_t service_most_ns,
		     uint64_t duration_ns, struct drv_record *record, struct drv_fail *fail)
{
	client->mode = DRV_MODE_TALLIED;
	client->tally = tally;
	client->op_deadline += drv_clock_to_ticks(&client->port.engine->clock, service_most_ns);
	return measure(client, duration_ns, record, fail);
}

void drv_client_open(struct drv_client *client, uint64_t end)
{
	client->mode = DRV_MODE_MEASURE;
	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = UINT64_MAX;
	client->end = end;
	start_slots(client);
}

bool drv_client_push(struct drv_client *client)
{
	int status;

	if (client->ready_head == client->ready_tail || client->ending)
		return false;
	status = client->exchange.form == DRV_FORM_NATIVE
			 ? issue(client, DRV_FORM_NATIVE,
				 client->ready[client->ready_head & client->ready_mask])
			 : issue(client, DRV_FORM_EMULATED,
				 client->ready[client->ready_head & client->ready_mask]);
	if (status <= 0)
		return false;
	client->ready_head++;
	return true;
}

bool drv_client_rests(const struct drv_client *client)
{
	return outstanding(client) == 0 && client->lents == 0;
}

int drv_client_look(struct drv_client *client, struct drv_fail *fail)
{
	return look_around(client, fail);
}

int drv_client_close(struct drv_client *client, struct drv_fail *fail)
{
	return client->lost > client->late ? quieten(client, fail) : 0;
}

int drv_client_stamp(struct drv_client *client, struct drv_stamps *stamps, uint64_t duration_ns,
		     struct drv_record *record, struct drv_fail *fail)
{
	client->mode = DRV_MODE_STAMPED;
	client->stamps = stamps;
	return measure(client, duration_ns, record, fail);
}

int drv_client_rounds(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		      struct drv_fail *fail)
{
	client->mode = DRV_MODE_ROUNDS;
	return measure(client, duration_ns, record, fail);
}

bool drv_client_settle(struct drv_client *client)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	bool waiting = true;

	client->mode = DRV_MODE_WARMUP; /* nothing is recorded any more */
	client->warmup.over = true;
	client->ending = true;
	while (waiting && !engine->down_code && drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, client->sink) < 0)
			return false;
		if (client->server && (client->server->dispatch ? drv_server_drain_serving(client->server)
								: drv_server_drain(client->server)))
			return false;
		waiting = client->lents > 0;
		for (uint32_t index = 0; index < client->exchange.depth; index++)
			waiting |= client->slots[index].waiting;
	}
	return !waiting;
}

int drv_client_start(struct drv_client *client, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_samples *samples, struct drv_server *server, struct drv_fail *fail)
{
	const size_t request_stride =
		drv_memory_stride(drv_form_bytes(exchange.form, exchange.request_bytes));
	enum cadge_keep (*const receivers[2][3])(struct cadge_sink *, uint32_t, const void *, size_t,
						 struct cadge_lend *) = {
		{on_recv_bare, on_recv_emulated, on_recv_emulated_copied},
		{on_recv_bare_whole, on_recv_emulated_whole, on_recv_emulated_copied_whole}};
	enum cadge_keep (*const replies[2][2])(struct cadge_sink *, uint32_t, uint64_t, int,
					       enum cadge_placement, const void *, size_t,
					       struct cadge_lend *) = {
		{on_replied, on_replied_copied}, {on_replied_whole, on_replied_copied_whole}};
	const bool native = exchange.form == DRV_FORM_NATIVE, copies = exchange.payload == DRV_PAYLOAD_COPIED;
	const bool away = exchange.reply != DRV_REPLY_CONT;
	const bool places =
		native && exchange.reply_bytes &&
		(exchange.payload == DRV_PAYLOAD_USUAL || exchange.payload == DRV_PAYLOAD_SOLICITED);
	const size_t result_stride = native || copies || away ? drv_memory_stride(exchange.reply_bytes) : 0;
	const uint32_t depth = exchange.depth;
	uint32_t ring = 1;

	memset(client, 0, sizeof(*client));
	if (depth > DRV_CLIENT_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, tokens have room for %u", depth,
				    DRV_CLIENT_DEPTH_MAX);
	drv_port_start(&client->port, engine);
	client->exchange = exchange;
	client->port.sink.recv = receivers[exchange.touch][exchange.form == DRV_FORM_BARE ? 0
							   : copies                       ? 2
											  : 1];
	client->port.sink.sent = on_sent;
	client->port.sink.replied = replies[exchange.touch][copies];
	if (away) {
		client->port.sink.recv = on_recv_emulated_away;
		client->port.sink.sent = on_sent_away;
		client->port.sink.replied = on_replied_away;
	}
	client->places = places;
	client->sink = &client->port.sink;
	client->server = server;
	client->samples = samples;
	client->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	client->op_deadline = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	client->next_number = exchange.beside ? DRV_BESIDE_NUMBER : 0;
	while (ring < depth)
		ring *= 2;
	client->ready_mask = ring - 1;
	client->ready = calloc(ring, sizeof(*client->ready));
	client->slots = calloc(depth, sizeof(*client->slots));
	if (!client->ready || !client->slots) {
		drv_client_stop(client);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the client's slots");
	}
	client->memory = drv_pool_take(engine, exchange.beside ? DRV_POOL_CLIENT_BESIDE : DRV_POOL_CLIENT,
				       depth * (request_stride + result_stride), fail);
	if (!client->memory) {
		drv_client_stop(client);
		return -1;
	}
	for (uint32_t index = 0; index < depth; index++) {
		struct drv_slot *slot = &client->slots[index];

		slot->chan = engine->channels[0].chan;
		slot->payload = client->memory + index * request_stride;
		if (result_stride)
			slot->result = client->memory + depth * request_stride + index * result_stride;
	}
	return drv_taker_start(client, fail);
}

void drv_client_call_on(struct drv_client *client, struct cadge_chan *chan)
{
	for (uint32_t index = 0; index < client->exchange.depth; index++)
		client->slots[index].chan = chan;
}

void drv_client_go_round(struct drv_client *client, struct drv_rounds *rounds)
{
	for (uint32_t index = 0; index < client->exchange.depth; index++)
		client->slots[index].chan = client->port.engine->channels[index].chan;
	client->rounds = rounds;
}

void drv_client_stop(struct drv_client *client)
{
	drv_taker_stop(client);
	free(client->ready);
	free(client->slots);
	client->ready = NULL;
	client->slots = NULL;
}

void drv_client_counts(const struct drv_client *client, struct drv_counts *counts)
{
	counts->posts = true;
	counts->posted += client->posted;
	counts->posted_keys += client->key_sum;
	counts->checked += client->checked;
	counts->full_checked += client->full_checked;
	counts->waits += client->waits;
	if (client->mismatches && !counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%.158s", client->mismatch);
	counts->mismatches += client->mismatches;
	if (client->taker.mismatches && !counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%.158s", client->taker.mismatch);
	counts->mismatches += client->taker.mismatches;
}
