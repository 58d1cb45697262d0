/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that takes replies where the delivery context does not, and how slots come to it and back. */
#include "traffic/taker.h"

#include <inttypes.h>

#include "traffic/client_parts.h"
#include "traffic/payload.h"

const char *const drv_reply_words[] = {"cont", "wait", "defer", NULL};

_Static_assert(DRV_CLIENT_DEPTH_MAX <= DRV_TAKER_SLOTS + 1u,
	       "a slot's number leaves room for what goes with it");

/* Whether the loop goes on after an operation that ended now; of a lost one there is no time to record. */
static bool goes_on(struct drv_client *client, uint64_t started, uint64_t now, bool lost)
{
	const struct drv_clock *clock = &client->port.engine->clock;

	if (client->mode == DRV_MODE_WARMUP)
		return lost ? !drv_warmup_expired(&client->warmup, now)
			    : !drv_warmup_add(&client->warmup, now, now - started);
	if (client->mode == DRV_MODE_VERIFY)
		return true;
	if (!lost)
		drv_sample(client->samples, drv_clock_to_ns(clock, now - started));
	if (!lost && client->mode == DRV_MODE_STAMPED) {
		drv_stamp(client->stamps, 0, started);
		drv_stamp(client->stamps, 1, now);
	}
	return now < client->end;
}

/* The same as the delivery context does, in the same order: reads, takes the time, looks whether it is right. */
static void take_reply(struct drv_client *client, struct drv_slot *slot)
{
	const struct drv_exchange *exchange = &client->exchange;
	const uint64_t seed = ~exchange->seed;
	const bool fits = slot->bytes == exchange->reply_bytes;
	const bool full = client->mode == DRV_MODE_VERIFY;
	const bool whole = !fits || full || exchange->touch == DRV_TOUCH_NONE ||
			   drv_touch_read(slot->data, slot->bytes, seed, slot->key);
	const uint64_t now = drv_clock_now(&client->port.engine->clock);

	if (!goes_on(client, slot->start, now, false))
		client->taker.ending = true;
	client->last = slot->start = now;
	if (whole && fits && drv_head_holds(slot->data, slot->bytes, seed, slot->key))
		client->check.checked++;
	else
		drv_check_wrong(&client->taker.check,
				"the reply to operation %" PRIu64 " has %zu bytes or a wrong %s",
				slot->number, slot->bytes, whole ? "head" : "body");
	if (!full)
		return;
	client->check.full_checked++;
	if (fits && !drv_body_holds(slot->data, slot->bytes, seed, client->phase, slot->key))
		drv_check_wrong(&client->taker.check, "the reply to operation %" PRIu64 " has a wrong body",
				slot->number);
}

static void take_loss(struct drv_client *client, struct drv_slot *slot)
{
	const uint64_t now = drv_clock_now(&client->port.engine->clock);

	if (!goes_on(client, slot->start, now, true))
		client->taker.ending = true;
	slot->start = now;
}

/* The next call: all of its request, as the caller has it. */
static void make_call(struct drv_client *client, struct drv_slot *slot, uint32_t index)
{
	struct drv_message message = client->message;

	slot->number = client->next_number++;
	message.at = slot->payload;
	message.key = slot->number;
	message.id = drv_client_token(slot->number, index);
	message.written = false;
	drv_message_write(&message);
	slot->key = drv_key_of(message.bytes, message.seed, slot->number);
	if (client->next_number == client->limit)
		client->taker.ending = true;
}

/* In the other thread: all that is done with a slot there. */
static uint64_t take_and_call(void *arg, uint32_t worker, uint64_t given)
{
	struct drv_client *client = arg;
	struct drv_taker *taker = &client->taker;
	const uint32_t index = given & DRV_TAKER_SLOTS;
	struct drv_slot *slot = &client->slots[index];

	(void)worker;
	if (given & DRV_TAKER_REPLY)
		take_reply(client, slot);
	else if (given & DRV_TAKER_LOST)
		take_loss(client, slot);
	if (taker->calls && !taker->ending && !(given & DRV_TAKER_SENDING)) {
		make_call(client, slot, index);
		return index | DRV_TAKER_CALL;
	}
	return taker->ending ? index | DRV_TAKER_ENDING : index;
}

int drv_taker_negotiate(const struct drv_exchange *exchange, const struct drv_ability *both,
			struct drv_fail *fail)
{
	if (exchange->reply == DRV_REPLY_CONT)
		return 0;
	if ((both->caps & CADGE_CAP_WAIT) && !(both->caps & CADGE_CAP_EVENT_FD))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "the layer has no descriptor to wait for (EVENT_FD), so another thread "
				    "cannot end its sleep");
	return 0;
}

int drv_taker_start(struct drv_client *client, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const bool on = client->exchange.reply != DRV_REPLY_CONT;

	client->taker = (struct drv_taker){.calls = client->exchange.reply == DRV_REPLY_WAIT};
	if (!on)
		return 0;
	if (drv_workers_wanted(engine) != 1)
		return drv_fail_set(fail, DRV_ARGUMENT,
				    "replies are taken by 1 other thread, and the launch has %u",
				    drv_workers_wanted(engine));
	if (drv_workers_start(engine, take_and_call, client, client->exchange.depth, fail))
		return -1;
	client->taker.on = true;
	return 0;
}

static void release(struct drv_client *client, struct drv_slot *slot)
{
	const struct drv_engine *engine = client->port.engine;

	if (slot->kept)
		engine->layer->release(engine->ctx, slot->kept);
	slot->kept = NULL;
}

void drv_taker_stop(struct drv_client *client)
{
	if (!client->taker.on)
		return;
	drv_workers_end(client->port.engine);
	client->taker.on = false;
	client->taker.has = 0;
	for (uint32_t index = 0; index < client->exchange.depth; index++) {
		client->slots[index].taken = false;
		release(client, &client->slots[index]);
	}
}

void drv_taker_begin(struct drv_client *client)
{
	client->taker.ending = false;
	client->taker.has = 0;
}

void drv_taker_give(struct drv_client *client, uint32_t index, uint32_t what)
{
	client->slots[index].taken = true;
	client->taker.has++;
	/* there is room for all slots */
	drv_workers_give(client->port.engine, 0, index | what);
}

bool drv_taker_get(struct drv_client *client, uint32_t *index_out, uint32_t *what_out)
{
	uint64_t number;
	uint32_t worker;

	if (!drv_workers_take(client->port.engine, &worker, &number))
		return false;
	*index_out = number & DRV_TAKER_SLOTS;
	*what_out = (uint32_t)number & ~(uint32_t)DRV_TAKER_SLOTS;
	client->slots[*index_out].taken = false;
	client->taker.has--;
	release(client, &client->slots[*index_out]);
	return true;
}
