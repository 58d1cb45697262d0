/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of requests and replies, closed or open, compiled for each form and way of waiting. */
#include "traffic/client_issue.h"
#include "traffic/progress.h"

/* Hands over all that may start. 0: the layer is busy, or it failed; 1: else. */
DRV_INLINE int issue_ready(struct drv_client *client, const enum drv_form form)
{
	while (client->ready_head != client->ready_tail && DRV_LIKELY(!client->ending)) {
		const int status = drv_client_issue(client, form,
						    client->ready[client->ready_head & client->ready_mask]);

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
		if (DRV_UNLIKELY(drv_client_issue(client, form, index) <= 0)) {
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
		if (DRV_UNLIKELY(drv_client_issue(client, form,
						  client->ready[client->ready_head & client->ready_mask]) <=
				 0))
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

/* What may be handed over: what is free, what is due, what another thread that takes replies gave back, or a whole round. */
enum kind { CLOSED, OPEN, AWAY, ROUNDS };

/* Whether nothing is on its way, or with the other thread. */
DRV_INLINE bool is_idle(const struct drv_client *client, const bool away)
{
	return drv_client_outstanding(client) == 0 && client->lents == 0 &&
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
	drv_client_take_back(client);
	return client->taker.calls ? drv_client_issue_made(client) : issue_ready(client, form);
}

/* The loop. Compiled for each form, kind and way of waiting, so that none of these is asked inside. */
DRV_INLINE int loop(struct drv_client *client, const enum drv_form form, const bool block,
		    const enum kind kind, struct drv_fail *fail)
{
	const bool open = kind == OPEN, away = kind == AWAY;
	struct drv_engine *engine = client->port.engine;
	const struct cadge_layer *layer = engine->layer;
	const uint64_t wait_ns = client->reliable || client->op_deadline == UINT64_MAX
					 ? engine->sleep_ns ? engine->sleep_ns : DRV_PROGRESS_WAIT_NS
					 : drv_clock_to_ns(&engine->clock, client->op_deadline) / 2;

	for (;;) {
		const int taken = issue_some(client, form, kind);
		uint64_t before, sleep_ns;
		int events, status;

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
		if (DRV_LIKELY(client->completed != before))
			continue;
		/* a busy layer is waited for like a reply: it ends the wait when it takes more */
		sleep_ns = open && taken && block && events == 0 ? until_due_ns(client, wait_ns) : wait_ns;
		status = drv_progress_rest(engine, events, block ? sleep_ns : 0, &client->idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0 || drv_client_look(client, fail))
			return -1;
	}
}

#define LOOP(name, form, block, kind)                                                                        \
	static int __attribute__((noinline)) name(struct drv_client *client, struct drv_fail *fail)          \
	{                                                                                                    \
		return loop(client, form, block, kind, fail);                                                \
	}
#define LOOPS(name, form, kind)                                                                              \
	LOOP(name##_poll, form, false, kind)                                                                 \
	LOOP(name##_block, form, true, kind)
LOOPS(bare, DRV_FORM_BARE, CLOSED)
LOOPS(emulated, DRV_FORM_EMULATED, CLOSED)
LOOPS(native, DRV_FORM_NATIVE, CLOSED)
LOOPS(open_emulated, DRV_FORM_EMULATED, OPEN)
LOOPS(open_native, DRV_FORM_NATIVE, OPEN)
LOOPS(away_emulated, DRV_FORM_EMULATED, AWAY)
LOOPS(away_native, DRV_FORM_NATIVE, AWAY)
LOOPS(round_emulated, DRV_FORM_EMULATED, ROUNDS)
LOOPS(round_native, DRV_FORM_NATIVE, ROUNDS)

/*
 * By kind and form, for polling and blocking. Messages without identity have one outstanding at a time and are no calls:
 * there is nothing to be opened, and no other thread to take them.
 */
typedef int (*loop_fn)(struct drv_client *client, struct drv_fail *fail);
static const loop_fn loops[][3][2] = {
	[CLOSED] = {{bare_poll, bare_block}, {emulated_poll, emulated_block}, {native_poll, native_block}},
	[OPEN] = {{NULL}, {open_emulated_poll, open_emulated_block}, {open_native_poll, open_native_block}},
	[AWAY] = {{NULL}, {away_emulated_poll, away_emulated_block}, {away_native_poll, away_native_block}},
	[ROUNDS] = {{NULL},
		    {round_emulated_poll, round_emulated_block},
		    {round_native_poll, round_native_block}},
};

void drv_client_start_slots(struct drv_client *client)
{
	const uint64_t now = drv_clock_now(&client->port.engine->clock);

	client->ready_head = client->ready_tail = 0;
	client->ending = false;
	client->message.full = client->mode == DRV_MODE_VERIFY;
	client->message.phase = client->phase;
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
			drv_client_make_ready(client, index);
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

int drv_client_run(struct drv_client *client, struct drv_fail *fail)
{
	const enum kind kind = kind_of(client);
	struct drv_engine *engine = client->port.engine;

	drv_client_start_slots(client);
	client->ending = client->mode == DRV_MODE_PACED && drv_pace_over(client->pace);
	if (loops[kind][client->exchange.form][engine->block ? 1 : 0](client, fail)) {
		/* what it has of the client is read from now on */
		drv_taker_stop(client);
		return -1;
	}
	/* what was given up as lost must not turn up in a later phase */
	return drv_client_close(client, fail);
}
