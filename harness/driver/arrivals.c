/* SPDX-License-Identifier: BSD-3-Clause */
/* Poisson arrivals and equal gaps, in integers. */
#include "arrivals.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define FRACTION_BITS 16

const char *const drv_arrivals_words[] = {"poisson", "fixed", NULL};

/* SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014. */
static uint64_t uniform(struct drv_arrivals *arrivals)
{
	uint64_t x = arrivals->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * An exponential gap of mean `gap`: von Neumann, Various Techniques Used in Connection with Random Digits, 1951. Uniform
 * numbers are drawn as long as each is smaller than the one before. Where they were an odd number, the first of them is
 * the part of the gap behind the point; where an even one, the gap is longer by one, and it begins anew. Exact in its 64
 * bits, without a logarithm, whose last bits differ from library to library.
 */
static uint64_t exponential(struct drv_arrivals *arrivals)
{
	uint64_t whole = 0;

	for (;; whole++) {
		const uint64_t first = uniform(arrivals);
		uint64_t last = first, next;
		bool odd = true;

		for (; (next = uniform(arrivals)) < last; odd = !odd)
			last = next;
		if (odd)
			return whole * arrivals->gap +
			       (uint64_t)((unsigned __int128)first * arrivals->gap >> 64);
	}
}

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
	arrivals->at += arrivals->process == DRV_ARRIVALS_POISSON ? exponential(arrivals) : arrivals->gap;
	return arrivals->at >> FRACTION_BITS;
}
