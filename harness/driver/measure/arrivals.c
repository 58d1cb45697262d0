/* SPDX-License-Identifier: BSD-3-Clause */
/* Poisson arrivals and equal gaps, in integers. */
#include "measure/arrivals.h"

#include <stddef.h>
#include <string.h>

#include "base/random.h"

#define FRACTION_BITS 16

const char *const drv_arrivals_words[] = {"poisson", "fixed", NULL};

void drv_arrivals_start(struct drv_arrivals *arrivals, enum drv_arrival_process process, uint64_t seed,
			uint64_t calls, uint64_t span_ticks)
{
	memset(arrivals, 0, sizeof(*arrivals));
	arrivals->process = process;
	arrivals->state = seed;
	arrivals->gap = (uint64_t)(((unsigned __int128)span_ticks << FRACTION_BITS) / calls);
}

uint64_t drv_arrivals_next(struct drv_arrivals *arrivals)
{
	arrivals->at += arrivals->process == DRV_ARRIVALS_POISSON
				? drv_random_exponential(&arrivals->state, arrivals->gap)
				: arrivals->gap;
	return arrivals->at >> FRACTION_BITS;
}
