/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two ends of a one-way exchange tell each other through the layer, between its messages: a message of 24
 * bytes, or of 32 where the exchange's own have 24, so that its length tells it apart.
 */
#ifndef DRV_CONTROL_H
#define DRV_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traffic/payload.h"

#define DRV_CONTROL_BYTES 32u
#define DRV_CONTROL_MAGIC UINT64_C(0x6d61657274534443)

/* From the sender: below DRV_CONTROL_TO_SENDER. */
enum drv_control_kind {
	/* the run is over; how many messages it had */
	DRV_CONTROL_END = 1,
	/* unreliable: a window's acknowledgement did not come; how many messages were sent so far */
	DRV_CONTROL_ASK = 3,
	DRV_CONTROL_TO_SENDER = 16,
	/* how many messages of the run are here, of all or of those that ever will be */
	DRV_CONTROL_CONFIRM = DRV_CONTROL_TO_SENDER,
	/* a whole window came; how many messages of the run are here */
	DRV_CONTROL_ACKNOWLEDGE,
	/* repeats what the sender said when it asked */
	DRV_CONTROL_ANSWER,
};

struct drv_control {
	enum drv_control_kind kind;
	/* which run, counted at both ends */
	uint32_t run;
	uint64_t number;
};

static inline size_t drv_control_bytes(uint64_t message_bytes)
{
	return message_bytes == 24 ? 32 : 24;
}

static inline void drv_control_write(void *out, struct drv_control control)
{
	drv_store64(out, DRV_CONTROL_MAGIC);
	drv_store64((uint8_t *)out + 8, (uint64_t)control.run << 8 | control.kind);
	drv_store64((uint8_t *)out + 16, control.number);
}

/* Whether what arrived in an exchange of messages of `message_bytes` is such a word, and which. */
static inline bool drv_control_read(const void *data, size_t bytes, uint64_t message_bytes,
				    struct drv_control *control_out)
{
	const uint8_t *at = data;

	if (bytes != drv_control_bytes(message_bytes) || drv_load64(at) != DRV_CONTROL_MAGIC)
		return false;
	control_out->kind = (enum drv_control_kind)(drv_load64(at + 8) & 0xff);
	control_out->run = (uint32_t)(drv_load64(at + 8) >> 8);
	control_out->number = drv_load64(at + 16);
	return true;
}

#endif
