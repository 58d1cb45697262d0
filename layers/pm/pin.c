/* SPDX-License-Identifier: BSD-3-Clause */
#include "pm/pin.h"

#include <stdlib.h>

enum { PINS_MAX = 256, HANDLE_BYTES_MAX = 1024 }; /* of each side */

struct pm_pin {
	struct pm_pin *newer, *older;
	enum pm_side side;
	uint8_t *base;
	size_t bytes;
	uint32_t locks;
	struct cadge_region *region;
	size_t handle_bytes;
	uint8_t handle[HANDLE_BYTES_MAX];
};

static void take_out(struct pm_side_pins *pins, struct pm_pin *pin)
{
	*(pin->newer ? &pin->newer->older : &pins->first) = pin->older;
	*(pin->older ? &pin->older->newer : &pins->last) = pin->newer;
}

static void put_first(struct pm_side_pins *pins, struct pm_pin *pin)
{
	pin->newer = NULL;
	pin->older = pins->first;
	*(pin->older ? &pin->older->newer : &pins->last) = pin;
	pins->first = pin;
}

static void unpin(struct pm_pins *pins, struct pm_pin *pin)
{
	struct pm_side_pins *side = &pins->side[pin->side];

	take_out(side, pin);
	side->pinned_bytes -= pin->bytes;
	side->count--;
	cadge_wire_unexpose(pins->wire, pin->region);
	free(pin);
}

/* Evicts until `bytes` fit. What is locked leaves that much room, or there is nothing to evict for the count. */
static bool make_room(struct pm_pins *pins, struct pm_side_pins *side, size_t bytes)
{
	struct pm_pin *pin = side->last;

	while (pin && (side->pinned_bytes + bytes > side->quota_bytes || side->count == PINS_MAX)) {
		struct pm_pin *newer = pin->newer;

		if (!pin->locks) {
			unpin(pins, pin);
			side->evictions++;
		}
		pin = newer;
	}
	return side->count < PINS_MAX;
}

static int pin_new(struct pm_pins *pins, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out)
{
	struct pm_pin *pin = calloc(1, sizeof(*pin));
	struct cadge_blob_out handle = {.room_bytes = HANDLE_BYTES_MAX, .ok = true};
	int code = CADGE_E_MEMORY;

	if (pin) {
		handle.at = pin->handle;
		code = cadge_wire_expose(pins->wire, base, bytes,
					 side == PM_SEND ? CADGE_MAY_READ : CADGE_MAY_WRITE, &handle,
					 &pin->region);
	}
	if (code != CADGE_DONE) {
		free(pin);
		return code;
	}
	pin->side = side;
	pin->base = base;
	pin->bytes = bytes;
	pin->handle_bytes = handle.used_bytes;
	put_first(&pins->side[side], pin);
	pins->side[side].pinned_bytes += bytes;
	pins->side[side].count++;
	*pin_out = pin;
	return CADGE_DONE;
}

static struct pm_pin *find(const struct pm_side_pins *side, const void *base, size_t bytes)
{
	struct pm_pin *pin = side->first;

	while (pin && (pin->base != base || pin->bytes != bytes))
		pin = pin->older;
	return pin;
}

int pm_pins_lock(struct pm_pins *pins, enum pm_side number, void *base, size_t bytes, struct pm_pin **pin_out)
{
	struct pm_side_pins *side = &pins->side[number];
	struct pm_pin *pin = find(side, base, bytes);
	int code;

	if (pin) {
		side->hits++;
		take_out(side, pin);
		put_first(side, pin);
	} else {
		if (bytes > side->quota_bytes)
			return CADGE_E_TOO_LARGE;
		if (bytes > side->quota_bytes - side->locked_bytes || !make_room(pins, side, bytes)) {
			side->refusals++;
			return CADGE_BUSY;
		}
		code = pin_new(pins, number, base, bytes, &pin);
		if (code != CADGE_DONE)
			return code;
		side->misses++;
	}
	if (!pin->locks++)
		side->locked_bytes += bytes;
	*pin_out = pin;
	return CADGE_DONE;
}

struct pm_pin *pm_pins_locked(const struct pm_pins *pins, enum pm_side side, const void *base, size_t bytes)
{
	struct pm_pin *pin = find(&pins->side[side], base, bytes);

	return pin && pin->locks ? pin : NULL;
}

void pm_pins_unlock(struct pm_pins *pins, struct pm_pin *pin)
{
	if (!--pin->locks)
		pins->side[pin->side].locked_bytes -= pin->bytes;
}

void pm_pins_forget(struct pm_pins *pins, const void *base, size_t bytes)
{
	const uintptr_t from = (uintptr_t)base, to = from + bytes;

	for (unsigned int i = 0; i < 2; i++)
		for (struct pm_pin *pin = pins->side[i].first, *older; pin; pin = older) {
			const uintptr_t at = (uintptr_t)pin->base;

			older = pin->older;
			if (!pin->locks && at < to && from < at + pin->bytes)
				unpin(pins, pin);
		}
}

void pm_pins_close(struct pm_pins *pins)
{
	for (unsigned int i = 0; i < 2; i++)
		while (pins->side[i].first)
			unpin(pins, pins->side[i].first);
}

int pm_handle(const struct pm_pin *pin, struct cadge_blob_out *handle)
{
	cadge_blob_raw(handle, pin->handle, pin->handle_bytes);
	return handle->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

void pm_pins_counters(const struct pm_pins *pins, void (*each)(void *arg, const char *name, uint64_t value),
		      void *arg)
{
	const struct pm_side_pins *send = &pins->side[PM_SEND], *receive = &pins->side[PM_RECEIVE];

	each(arg, "pin_send_hits", send->hits);
	each(arg, "pin_send_misses", send->misses);
	each(arg, "pin_send_evictions", send->evictions);
	each(arg, "pin_send_refusals", send->refusals);
	each(arg, "pin_receive_hits", receive->hits);
	each(arg, "pin_receive_misses", receive->misses);
	each(arg, "pin_receive_evictions", receive->evictions);
	each(arg, "pin_receive_refusals", receive->refusals);
}
