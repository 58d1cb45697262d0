/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message that a pattern writes and hands over: where touched, anew each time; in memory of the library's own where
 * that lends some.
 */
#ifndef DRV_MESSAGE_H
#define DRV_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/in_place.h"
#include "traffic/touch.h"
#include "traffic/verify.h"

struct drv_message {
	/* a buffer of the pattern's, with room for its bytes */
	uint8_t *at;
	/* at least DRV_HEAD_BYTES */
	size_t bytes;
	/* what its head says, see verify.h */
	uint64_t seed, key;
	/* its body is that of a full comparison, of that phase; or it is written anew; else it has a head alone */
	bool full, touch;
	uint64_t phase;
	/* it lies in the buffer already: the layer was busy */
	bool written;
};

/* Writes it once, or as often as it takes in memory of the library, and hands it over. Codes as of post. */
static inline int drv_message_post(const struct drv_engine *engine, struct cadge_chan *chan,
				   struct drv_message *message, uint64_t token)
{
	const bool reserves = (message->full || message->touch) && drv_in_place_grants(engine->layer);
	struct cadge_iov iov = {message->at, message->bytes};

	if (reserves) {
		const int code = drv_in_place_begin(engine->layer, chan, &iov);

		if (code != CADGE_DONE)
			return code;
	}
	if (reserves || !message->written) {
		drv_head_write(iov.base, iov.bytes, message->seed, message->key);
		if (message->full)
			drv_body_fill(iov.base, iov.bytes, message->seed, message->phase, message->key);
		else if (message->touch)
			drv_touch_write(iov.base, iov.bytes, message->seed, message->key);
		message->written = true;
	}
	return reserves ? drv_in_place_end(engine->layer, chan, &iov, token)
			: engine->layer->post(chan, &iov, 1, 0, token);
}

#endif
