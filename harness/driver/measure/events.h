/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernel and processor count of this process while they are asked to: system calls, cycles, instructions. Of all
 * threads that are there when counting begins, and of those that these start.
 *
 * Nothing that is timed is made slower. While anybody counts system calls each of them costs twice as much, of every
 * process of the machine: so they are counted in a step of its own before the warm-up, and only in launches that are
 * asked to, since to end it takes the kernel tens of milliseconds. Cycles are counted over the measured loop of poll mode, where that costs
 * nothing; in block mode it would lengthen each switch of context, and they are not counted.
 */
#ifndef DRV_EVENTS_H
#define DRV_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/usage.h"

enum drv_event { DRV_SYSTEM_CALLS, DRV_CYCLES, DRV_INSTRUCTIONS, DRV_EVENTS };

/* One in a process. */
struct drv_events {
	/* this launch counts system calls; it may count cycles */
	bool calls, cycles;
	struct {
		/* one a thread; NULL: not counting */
		int *fds;
		size_t count;
		/* where counting began, for what is attached earlier */
		int64_t begun;
		/* how it was counted, or why not; "" before the first try */
		char how[160];
	} of[DRV_EVENTS];
};

/* Nothing is counted yet. */
void drv_events_start(struct drv_events *events, bool calls, bool cycles);

/* Counts system calls, or cycles and instructions, from now on, where this launch does and it can be done. */
void drv_events_count_calls(struct drv_events *events);
void drv_events_count_cycles(struct drv_events *events);

/* Counts from here on, not from where it was attached. */
void drv_events_begin(struct drv_events *events);

/* Says what was counted in `usage`: -1 of what was not. */
void drv_events_read(const struct drv_events *events, struct drv_usage *usage);

/* Ends all counting. Legal where nothing was begun. */
void drv_events_end(struct drv_events *events);

/* {"system_calls", "cycles"}: how each was counted, or why not. New reference or NULL. */
json_t *drv_events_json(const struct drv_events *events);

#endif
