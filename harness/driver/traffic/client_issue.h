/* SPDX-License-Identifier: BSD-3-Clause */
/* How one operation is handed to the layer: inlined wherever that is timed. Private to client*.c. */
#ifndef DRV_CLIENT_ISSUE_H
#define DRV_CLIENT_ISSUE_H

#include "traffic/client_parts.h"

/* Hands over a message whose body is written: for a full comparison, or since the exchange touches its messages. */
int drv_client_issue_written(struct drv_client *client, struct drv_slot *slot, uint64_t token);

/* After the layer took an operation, or said why not. 1: done; 0: it is busy; -1: failed. */
DRV_INLINE int drv_client_handed_over(struct drv_client *client, const enum drv_form form,
				      struct drv_slot *slot, int code)
{
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	if (DRV_UNLIKELY(code != CADGE_DONE && code != CADGE_QUEUED)) {
		drv_client_failure(client, form == DRV_FORM_NATIVE ? "call" : "post", code);
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

/* Hands one operation over. 1: done; 0: the layer is busy; -1: failed. */
DRV_INLINE int drv_client_issue(struct drv_client *client, const enum drv_form form, uint32_t index)
{
	const struct drv_engine *engine = client->port.engine;
	struct drv_slot *slot = &client->slots[index];
	const size_t bytes = (size_t)client->exchange.request_bytes;
	const uint64_t number = client->next_number;
	const uint64_t token = drv_client_token(number, index);
	int code, status;

	slot->number = number;
	if (DRV_UNLIKELY(client->writes)) {
		slot->key = drv_key_of(bytes, client->exchange.seed, number);
		code = drv_client_issue_written(client, slot, token);
	} else {
		const struct cadge_iov iov = {slot->payload, (size_t)drv_form_bytes(form, bytes)};
		const struct cadge_iov result = {slot->result, (size_t)client->exchange.reply_bytes};

		slot->key = drv_head_write(slot->payload, bytes, client->exchange.seed, number);
		if (form == DRV_FORM_EMULATED)
			drv_trailer_write(slot->payload, bytes, token, DRV_RPC_REQUEST);
		code = form == DRV_FORM_NATIVE ? engine->layer->call(slot->chan, 1, &iov, 1, &result,
								     client->places, 0, token)
					       : engine->layer->post(slot->chan, &iov, 1, 0, token);
	}
	status = drv_client_handed_over(client, form, slot, code);
	client->next_number += status > 0;
	return status;
}

#endif
