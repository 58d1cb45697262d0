/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded queue of numbers, without a lock: each place has a sequence number that says whether it is empty or full in which lap
 * (Vyukov's array queue, 2010). `many`, a constant: whether several threads put, or take; one alone needs no exchange. A
 * queue has 2^bits places. All zero is an empty one.
 */
#ifndef DRV_QUEUE_H
#define DRV_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two lines: processors fetch lines in pairs. */
#define DRV_QUEUE_ALIGN 128

struct drv_queue_place {
	/* 2 x lap: empty, to be filled in that lap; 2 x lap + 1: full */
	_Atomic uint64_t sequence;
	uint64_t number;
};

struct drv_queue {
	_Alignas(DRV_QUEUE_ALIGN) _Atomic uint64_t put;
	_Alignas(DRV_QUEUE_ALIGN) _Atomic uint64_t taken;
	_Alignas(DRV_QUEUE_ALIGN) struct drv_queue_place places[];
};

/* A multiple of DRV_QUEUE_ALIGN. */
#define DRV_QUEUE_BYTES(bits)                                                                                \
	(sizeof(struct drv_queue) + ((sizeof(struct drv_queue_place) << (bits)) + DRV_QUEUE_ALIGN - 1) /     \
					    DRV_QUEUE_ALIGN * DRV_QUEUE_ALIGN)

/* The next place that is empty (`full` 0) or full (1) in the lap of its counter; it is the caller's now. NULL: none. */
static inline struct drv_queue_place *drv_queue_claim(struct drv_queue *queue, _Atomic uint64_t *counter,
						      unsigned bits, uint64_t full, const bool many)
{
	uint64_t at = atomic_load_explicit(counter, memory_order_relaxed);

	for (;;) {
		struct drv_queue_place *place = &queue->places[at & ((UINT64_C(1) << bits) - 1)];
		const uint64_t wanted = 2 * (at >> bits) + full;
		const uint64_t sequence = atomic_load_explicit(&place->sequence, memory_order_acquire);

		if (sequence < wanted)
			return NULL;
		if (many && sequence > wanted) {
			at = atomic_load_explicit(counter, memory_order_relaxed);
		} else if (!many) {
			atomic_store_explicit(counter, at + 1, memory_order_relaxed);
			return place;
		} else if (atomic_compare_exchange_weak_explicit(counter, &at, at + 1, memory_order_relaxed,
								 memory_order_relaxed)) {
			return place;
		}
	}
}

/* The caller has filled it, or emptied it. */
static inline void drv_queue_pass(struct drv_queue_place *place)
{
	const uint64_t sequence = atomic_load_explicit(&place->sequence, memory_order_relaxed);

	atomic_store_explicit(&place->sequence, sequence + 1, memory_order_release);
}

/* False: it is full. */
static inline bool drv_queue_put(struct drv_queue *queue, unsigned bits, uint64_t number, const bool many)
{
	struct drv_queue_place *place = drv_queue_claim(queue, &queue->put, bits, 0, many);

	if (!place)
		return false;
	place->number = number;
	drv_queue_pass(place);
	return true;
}

/* False: it is empty. */
static inline bool drv_queue_take(struct drv_queue *queue, unsigned bits, uint64_t *number_out,
				  const bool many)
{
	struct drv_queue_place *place = drv_queue_claim(queue, &queue->taken, bits, 1, many);

	if (!place)
		return false;
	*number_out = place->number;
	drv_queue_pass(place);
	return true;
}

/* Of its only taker: whether there is something. */
static inline bool drv_queue_holds(struct drv_queue *queue, unsigned bits)
{
	const uint64_t at = atomic_load_explicit(&queue->taken, memory_order_relaxed);

	return atomic_load(&queue->places[at & ((UINT64_C(1) << bits) - 1)].sequence) == 2 * (at >> bits) + 1;
}

#endif
