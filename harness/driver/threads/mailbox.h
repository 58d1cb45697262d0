/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of numbers from one thread to one other, without a lock: Lamport's queue, with the other side's counter read
 * again only where the remembered one does not do ("Specifying concurrent program modules", TOPLAS 5(2), 1983).
 */
#ifndef DRV_MAILBOX_H
#define DRV_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Two lines a counter: processors fetch lines in pairs. */
#define DRV_MAILBOX_ALIGN 128

struct drv_mailbox {
	/* the giver's: numbers given so far, and how many it knows to be taken */
	_Alignas(DRV_MAILBOX_ALIGN) atomic_uint given;
	unsigned taken_seen;
	/* the taker's */
	_Alignas(DRV_MAILBOX_ALIGN) atomic_uint taken;
	unsigned given_seen;
	/* both only read these */
	_Alignas(DRV_MAILBOX_ALIGN) uint64_t *slots;
	unsigned mask;
};

/* Room for so many numbers at least; false: no memory. drv_mailbox_free is legal either way, and on a zeroed one. */
static inline bool drv_mailbox_make(struct drv_mailbox *box, uint32_t room)
{
	uint32_t size = 1;

	while (size < room)
		size *= 2;
	box->mask = size - 1;
	box->slots = calloc(size, sizeof(*box->slots));
	return box->slots != NULL;
}

static inline void drv_mailbox_free(struct drv_mailbox *box)
{
	free(box->slots);
	box->slots = NULL;
}

/* The giver's: false where it is full. */
static inline bool drv_mailbox_give(struct drv_mailbox *box, uint64_t number)
{
	const unsigned given = atomic_load_explicit(&box->given, memory_order_relaxed);

	if (given - box->taken_seen > box->mask) {
		box->taken_seen = atomic_load_explicit(&box->taken, memory_order_acquire);
		if (given - box->taken_seen > box->mask)
			return false;
	}
	box->slots[given & box->mask] = number;
	atomic_store_explicit(&box->given, given + 1, memory_order_release);
	return true;
}

/* The taker's: false where there is nothing. */
static inline bool drv_mailbox_take(struct drv_mailbox *box, uint64_t *number_out)
{
	const unsigned taken = atomic_load_explicit(&box->taken, memory_order_relaxed);

	if (taken == box->given_seen) {
		box->given_seen = atomic_load_explicit(&box->given, memory_order_acquire);
		if (taken == box->given_seen)
			return false;
	}
	*number_out = box->slots[taken & box->mask];
	atomic_store_explicit(&box->taken, taken + 1, memory_order_release);
	return true;
}

/* The taker's: whether there is something, whatever was remembered. */
static inline bool drv_mailbox_holds(struct drv_mailbox *box)
{
	return atomic_load_explicit(&box->given, memory_order_seq_cst) !=
	       atomic_load_explicit(&box->taken, memory_order_relaxed);
}

#endif
