/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that another thread takes: what goes to it, and what comes back; see taker.h. */
#include <string.h>

#include "traffic/client_issue.h"

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

enum cadge_keep drv_client_pass_on(struct drv_client *client, uint32_t index, const void *data, size_t bytes,
				   struct cadge_lend *lend)
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

void drv_client_free_again(struct drv_client *client, uint32_t index)
{
	const struct drv_slot *slot = &client->slots[index];

	if (slot->taken || slot->lent || client->ending || !client->taker.on)
		return;
	if (client->taker.calls)
		drv_taker_give(client, index, 0);
	else
		drv_client_make_ready(client, index);
}

void drv_client_take_back(struct drv_client *client)
{
	uint32_t index, what;

	while (drv_taker_get(client, &index, &what)) {
		if (what & DRV_TAKER_ENDING)
			client->ending = true;
		if (what & DRV_TAKER_CALL) {
			drv_client_make_ready(client, index);
			continue;
		}
		/* a worker has no calls to make: the next one begins here */
		if (!client->taker.calls)
			client->slots[index].start = drv_clock_now(&client->port.engine->clock);
		drv_client_free_again(client, index);
	}
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
		return drv_client_handed_over(client, form, slot,
					      engine->layer->post(slot->chan, &iov, 1, 0, token));
	return drv_client_handed_over(
		client, form, slot,
		engine->layer->call(slot->chan, 1, &iov, 1, &result, client->places, 0, token));
}

int drv_client_issue_made(struct drv_client *client)
{
	while (client->ready_head != client->ready_tail && DRV_LIKELY(!client->failed)) {
		if (issue_made(client, client->ready[client->ready_head & client->ready_mask]) <= 0)
			return 0;
		client->ready_head++;
	}
	return 1;
}
