/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pin-down cache of pm.h: ranges that are exposed on the wire, the most recently used first.
 *
 * States of a pin: locked; pinned (not locked); leaving (evicted after peers may have had its handle, and exposed until they
 * have answered); gone. Each pin to receive into has a slot and a number, which rises. Withdrawals are counted, and a leaving
 * pin goes when all peers have answered up to its own.
 */
#ifndef CADGE_PM_PIN_H
#define CADGE_PM_PIN_H

#include "pm/pm.h"

enum { PM_PINS_MAX = 256 }; /* of each side */

struct pm_pin {
	struct pm_pin *newer, *older;
	enum pm_side side;
	uint8_t *base;
	size_t bytes;
	uint32_t locks;
	uint32_t slot;   /* of a pin to receive into */
	uint64_t number; /* 0: to send from */
	bool handed_out;
	uint64_t withdrawal; /* of a pin that leaves */
	struct pm_pin *next; /* that leaves */
	struct cadge_region *region;
	size_t handle_bytes;
	uint8_t handle[1024];
};

/* Memory that is freed once this withdrawal was answered. */
struct pm_late_free {
	struct pm_late_free *next;
	void *base;
	size_t bytes;
	uint64_t withdrawal;
};

struct pm_pins {
	struct cadge_wire *wire;
	struct pm_side_pins {
		struct pm_pin *first, *last;
		uint64_t quota_bytes, pinned_bytes, locked_bytes, leaving_bytes;
		uint32_t count, leaving_count;
		uint64_t hits, misses, evictions, refusals;
	} side[2];
	uint64_t nonce; /* of handles of this context */
	uint64_t made;  /* the number of the newest pin */
	struct pm_pin *slots[PM_PINS_MAX];
	uint64_t valid_from[PM_PINS_MAX]; /* by slot: pins of lower numbers have left, or leave */
	uint32_t slots_used;
	struct pm_pin *leaving;
	struct pm_late_free *late_frees;
	uint64_t withdrawals, answered; /* so far, and by all peers */
	uint64_t waits;
};

int pm_pins_lock(struct pm_pins *pins, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out);
struct pm_pin *pm_pins_locked(const struct pm_pins *pins, enum pm_side side, const void *base, size_t bytes);
void pm_pins_unlock(struct pm_pins *pins, struct pm_pin *pin);
/* As pm_withdraw and pm_forget. */
void pm_pins_withdraw(struct pm_pins *pins, struct pm_pin *pin);
int pm_pins_forget(struct pm_pins *pins, const void *base, size_t bytes);
/* As pm_free: at once, or when what leaves of it has left. */
void pm_pins_free(struct pm_pins *pins, void *base, size_t bytes);
/* All peers have answered up to this withdrawal; UINT64_MAX: there is none who could write. */
void pm_pins_answered(struct pm_pins *pins, uint64_t withdrawal);
/* Before the wire is closed: all of them, locked or not. */
void pm_pins_close(struct pm_pins *pins);
void pm_pins_counters(const struct pm_pins *pins, void (*each)(void *arg, const char *name, uint64_t value),
		      void *arg);

#endif
