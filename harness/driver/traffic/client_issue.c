/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose bodies are written before they are handed over. */
#include "traffic/client_issue.h"
#include "engine/in_place.h"
#include "traffic/touch.h"

int drv_client_issue_written(struct drv_client *client, struct drv_slot *slot, uint64_t token)
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
