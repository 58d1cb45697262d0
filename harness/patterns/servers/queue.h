/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded queue from any threads to any threads, without a lock: each place has a turn that says whether it is empty or
 * full in which lap (Vyukov's array queue, 2010). All zero is an empty one.
 */
#ifndef DRV_QUEUE_H
#define DRV_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DRV_QUEUE_BITS   12
#define DRV_QUEUE_PLACES (1u << DRV_QUEUE_BITS)
/* Two lines: processors fetch lines in pairs. */
#define DRV_QUEUE_ALIGN 128

struct drv_queue {
	_Alignas(DRV_QUEUE_ALIGN) _Atomic uint64_t put;
	_Alignas(DRV_QUEUE_ALIGN) _Atomic uint64_t taken;
	/* 2 x lap: empty, to be filled in that lap; 2 x lap + 1: full */
	_Alignas(DRV_QUEUE_ALIGN) struct {
		_Atomic uint64_t turn;
		void *item;
	} places[DRV_QUEUE_PLACES];
};

/* False: it is full. */
static inline bool drv_queue_put(struct drv_queue *queue, void *item)
{
	uint64_t at = atomic_load_explicit(&queue->put, memory_order_relaxed);

	for (;;) {
		const uint64_t wanted = 2 * (at >> DRV_QUEUE_BITS);
		const uint64_t turn = atomic_load_explicit(&queue->places[at % DRV_QUEUE_PLACES].turn,
							   memory_order_acquire);

		if (turn < wanted)
			return false;
		if (turn > wanted) {
			at = atomic_load_explicit(&queue->put, memory_order_relaxed);
		} else if (atomic_compare_exchange_weak_explicit(
				   &queue->put, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
			queue->places[at % DRV_QUEUE_PLACES].item = item;
			atomic_store_explicit(&queue->places[at % DRV_QUEUE_PLACES].turn, wanted + 1,
					      memory_order_release);
			return true;
		}
	}
}

/* NULL: it is empty. */
static inline void *drv_queue_take(struct drv_queue *queue)
{
	uint64_t at = atomic_load_explicit(&queue->taken, memory_order_relaxed);

	for (;;) {
		const uint64_t wanted = 2 * (at >> DRV_QUEUE_BITS) + 1;
		const uint64_t turn = atomic_load_explicit(&queue->places[at % DRV_QUEUE_PLACES].turn,
							   memory_order_acquire);

		if (turn < wanted)
			return NULL;
		if (turn > wanted) {
			at = atomic_load_explicit(&queue->taken, memory_order_relaxed);
		} else if (atomic_compare_exchange_weak_explicit(
				   &queue->taken, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
			void *item = queue->places[at % DRV_QUEUE_PLACES].item;

			atomic_store_explicit(&queue->places[at % DRV_QUEUE_PLACES].turn, wanted + 1,
					      memory_order_release);
			return item;
		}
	}
}

#endif
