/* SPDX-License-Identifier: BSD-3-Clause */
/* The pin-down cache of pm.h: ranges that are exposed on the wire, the most recently used first. */
#ifndef CADGE_PM_PIN_H
#define CADGE_PM_PIN_H

#include "pm/pm.h"

struct pm_pins {
	struct cadge_wire *wire;
	struct pm_side_pins {
		struct pm_pin *first, *last;
		uint64_t quota_bytes, pinned_bytes, locked_bytes;
		uint32_t count;
		uint64_t hits, misses, evictions, refusals;
	} side[2];
};

int pm_pins_lock(struct pm_pins *pins, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out);
struct pm_pin *pm_pins_locked(const struct pm_pins *pins, enum pm_side side, const void *base, size_t bytes);
void pm_pins_unlock(struct pm_pins *pins, struct pm_pin *pin);
void pm_pins_forget(struct pm_pins *pins, const void *base, size_t bytes);
/* Before the wire is closed: all of them, locked or not. */
void pm_pins_close(struct pm_pins *pins);
void pm_pins_counters(const struct pm_pins *pins, void (*each)(void *arg, const char *name, uint64_t value),
		      void *arg);

#endif
