/* SPDX-License-Identifier: BSD-3-Clause */
#include "pm/pin.h"

#include <stdlib.h>

#include "kit/adapter.h"

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

/* It is in no list any more. */
static void unpin(struct pm_pins *pins, struct pm_pin *pin)
{
	struct pm_side_pins *side = &pins->side[pin->side];

	side->pinned_bytes -= pin->bytes;
	side->count--;
	if (pin->number)
		pins->slots[pin->slot] = NULL;
	if (pin->region)
		cadge_wire_unexpose(pins->wire, pin->region);
	free(pin);
}

static bool overlaps(const struct pm_pin *pin, const void *base, size_t bytes)
{
	const uintptr_t at = (uintptr_t)pin->base, from = (uintptr_t)base;

	return at < from + bytes && from < at + pin->bytes;
}

/* ---- leaving ---- */

/* The last withdrawal of memory in this range that was not answered by all; 0: none. */
static uint64_t last_leaving(const struct pm_pins *pins, const void *base, size_t bytes)
{
	uint64_t last = 0;

	for (const struct pm_pin *pin = pins->leaving; pin; pin = pin->next)
		if (overlaps(pin, base, bytes))
			last = pin->withdrawal;
	return last;
}

static void drop_answered(struct pm_pins *pins)
{
	struct pm_late_free *late;
	struct pm_pin *pin;

	while ((pin = pins->leaving) && pin->withdrawal <= pins->answered) {
		pins->leaving = pin->next;
		pins->side[pin->side].leaving_bytes -= pin->bytes;
		pins->side[pin->side].leaving_count--;
		unpin(pins, pin);
	}
	while ((late = pins->late_frees) && late->withdrawal <= pins->answered) {
		pins->late_frees = late->next;
		cadge_wire_free(pins->wire, late->base, late->bytes);
		free(late);
	}
}

void pm_pins_answered(struct pm_pins *pins, uint64_t withdrawal)
{
	pins->answered = withdrawal;
	drop_answered(pins);
}

static void evict(struct pm_pins *pins, struct pm_pin *pin)
{
	struct pm_side_pins *side = &pins->side[pin->side];
	struct pm_pin **last = &pins->leaving;

	take_out(side, pin);
	if (!pin->handed_out) {
		unpin(pins, pin);
		return;
	}
	while (*last)
		last = &(*last)->next;
	*last = pin;
	pin->withdrawal = ++pins->withdrawals;
	pins->valid_from[pin->slot] = pins->made + 1;
	side->leaving_bytes += pin->bytes;
	side->leaving_count++;
}

int pm_pins_forget(struct pm_pins *pins, const void *base, size_t bytes)
{
	bool locked = false;

	for (unsigned int i = 0; i < 2; i++)
		for (struct pm_pin *pin = pins->side[i].first, *older; pin; pin = older) {
			older = pin->older;
			if (!overlaps(pin, base, bytes))
				continue;
			if (pin->locks)
				locked = true;
			else
				evict(pins, pin);
		}
	drop_answered(pins);
	if (locked)
		return CADGE_E_ARGUMENT;
	return last_leaving(pins, base, bytes) ? CADGE_BUSY : CADGE_DONE;
}

void pm_pins_withdraw(struct pm_pins *pins, struct pm_pin *pin)
{
	pm_pins_unlock(pins, pin);
	if (pin->locks)
		return;
	evict(pins, pin);
	drop_answered(pins);
}

void pm_pins_free(struct pm_pins *pins, void *base, size_t bytes)
{
	struct pm_late_free **last = &pins->late_frees, *late;
	uint64_t withdrawal;

	pm_pins_forget(pins, base, bytes);
	withdrawal = last_leaving(pins, base, bytes);
	if (!withdrawal) {
		cadge_wire_free(pins->wire, base, bytes);
		return;
	}
	late = malloc(sizeof(*late));
	if (!late)
		return; /* it goes with the wire */
	*late = (struct pm_late_free){.base = base, .bytes = bytes, .withdrawal = withdrawal};
	while (*last && (*last)->withdrawal <= withdrawal)
		last = &(*last)->next;
	late->next = *last;
	*last = late;
}

/* ---- locks ---- */

/* Evicts until `bytes` fit, which may be later, when what was evicted has left. */
static bool make_room(struct pm_pins *pins, struct pm_side_pins *side, size_t bytes)
{
	struct pm_pin *pin = side->last;

	while (pin && (side->pinned_bytes - side->leaving_bytes + bytes > side->quota_bytes ||
		       side->count - side->leaving_count == PM_PINS_MAX)) {
		struct pm_pin *newer = pin->newer;

		if (!pin->locks) {
			evict(pins, pin);
			side->evictions++;
		}
		pin = newer;
	}
	drop_answered(pins);
	return side->pinned_bytes + bytes <= side->quota_bytes && side->count < PM_PINS_MAX;
}

/* A handle: nonce, slot and number, and the wire's key. */
static void take_slot(struct pm_pins *pins, struct pm_pin *pin, struct cadge_blob_out *handle)
{
	while (pins->slots[pin->slot])
		pin->slot++;
	pin->number = ++pins->made;
	cadge_blob_u64(handle, pins->nonce);
	cadge_blob_u32(handle, pin->slot);
	cadge_blob_u64(handle, pin->number);
}

static int pin_new(struct pm_pins *pins, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out)
{
	struct pm_pin *pin = calloc(1, sizeof(*pin));
	struct cadge_blob_out handle = {.room_bytes = sizeof(pin->handle), .ok = true};
	int code = pin ? CADGE_DONE : CADGE_E_MEMORY;

	if (pin && !(side == PM_SEND && cadge_wire_facts(pins->wire)->window_only)) {
		handle.at = pin->handle;
		if (side == PM_RECEIVE)
			take_slot(pins, pin, &handle);
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
	if (pin->number)
		pins->slots[pin->slot] = pin;
	if (pin->number && pin->slot >= pins->slots_used)
		pins->slots_used = pin->slot + 1;
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

/* DONE: there is room. */
static int find_room(struct pm_pins *pins, struct pm_side_pins *side, size_t bytes)
{
	if (bytes > side->quota_bytes)
		return CADGE_E_TOO_LARGE;
	if (bytes > side->quota_bytes - side->locked_bytes) {
		side->refusals++;
		return CADGE_BUSY;
	}
	if (make_room(pins, side, bytes))
		return CADGE_DONE;
	*(side->leaving_count ? &pins->waits : &side->refusals) += 1;
	return CADGE_BUSY;
}

int pm_pins_lock(struct pm_pins *pins, enum pm_side number, void *base, size_t bytes, struct pm_pin **pin_out)
{
	struct pm_side_pins *side = &pins->side[number];
	struct pm_pin *pin = find(side, base, bytes);
	int code;

	if (number == PM_RECEIVE && last_leaving(pins, base, bytes)) {
		pins->waits++;
		return CADGE_BUSY;
	}
	if (pin) {
		side->hits++;
		take_out(side, pin);
		put_first(side, pin);
	} else {
		code = find_room(pins, side, bytes);
		if (code == CADGE_DONE)
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

void pm_pins_close(struct pm_pins *pins)
{
	struct pm_late_free *late;

	for (unsigned int i = 0; i < 2; i++)
		for (struct pm_pin *pin; (pin = pins->side[i].first);) {
			take_out(&pins->side[i], pin);
			unpin(pins, pin);
		}
	for (struct pm_pin *pin; (pin = pins->leaving);) {
		pins->leaving = pin->next;
		unpin(pins, pin);
	}
	while ((late = CADGE_POOL_TAKE(pins->late_frees)))
		free(late);
}

int pm_handle(struct pm_pin *pin, struct cadge_blob_out *handle)
{
	if (!pin->number)
		return CADGE_E_ARGUMENT;
	cadge_blob_raw(handle, pin->handle, pin->handle_bytes);
	if (!handle->ok)
		return CADGE_E_TOO_LARGE;
	pin->handed_out = true;
	return CADGE_DONE;
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
	each(arg, "pin_withdrawals", pins->withdrawals);
	each(arg, "pin_withdrawals_answered", pins->withdrawals - pins->side[PM_RECEIVE].leaving_count);
	each(arg, "pin_withdrawal_waits", pins->waits);
}
