/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instants at which the calls of an open loop are due: a Poisson process, or equal gaps. Integers only, so that a
 * seed gives the same instants on every machine; nothing is allocated, and nothing of the measured system is looked at.
 */
#ifndef DRV_ARRIVALS_H
#define DRV_ARRIVALS_H

#include <stdint.h>

enum drv_arrival_process { DRV_ARRIVALS_POISSON, DRV_ARRIVALS_FIXED };

/* In that order, NULL at the end: the words of a pattern's choice. */
extern const char *const drv_arrivals_words[];

struct drv_arrivals {
	enum drv_arrival_process process;
	/* of the generator of random numbers */
	uint64_t state;
	/* the mean gap, and the latest instant since the beginning: ticks with 16 fractional bits */
	uint64_t gap, at;
};

/*
 * Begins at instant 0, with `calls` calls in `span_ticks` on average. Neither is 0; a span of up to 2^47 ticks (half a
 * day of a counter of 3 GHz) can be passed through.
 */
void drv_arrivals_start(struct drv_arrivals *arrivals, enum drv_arrival_process process, uint64_t seed,
			uint64_t calls, uint64_t span_ticks);

/* The next instant, in ticks since the beginning; never before the one that it gave last. About 20 ns. */
uint64_t drv_arrivals_next(struct drv_arrivals *arrivals);

#endif
