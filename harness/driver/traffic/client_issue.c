/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose bodies are written before they are handed over. */
#include "traffic/client_issue.h"

int drv_client_issue_written(struct drv_client *client, struct drv_slot *slot, uint64_t token)
{
	const struct drv_engine *engine = client->port.engine;
	struct drv_message *message = &client->message;
	int code;

	message->at = slot->payload;
	message->key = client->next_number;
	message->id = token;
	message->written = slot->filled;
	if (client->exchange.form == DRV_FORM_NATIVE) {
		const struct cadge_iov iov = {slot->payload, message->bytes};
		const struct cadge_iov result = {slot->result, (size_t)client->exchange.reply_bytes};

		drv_message_write(message);
		code = engine->layer->call(slot->chan, 1, &iov, 1, &result, client->places, 0, token);
	} else {
		code = drv_message_post(engine, slot->chan, message, token);
	}
	slot->filled = message->written;
	return code;
}
