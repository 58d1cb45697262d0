/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that a seed repeats on every machine: integers alone, nothing is allocated. A generator is one word,
 * which begins as its seed.
 */
#ifndef DRV_RANDOM_H
#define DRV_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* 64 uniform bits. SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014. */
static inline uint64_t drv_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * An exponential number of that mean: von Neumann, Various Techniques Used in Connection with Random Digits, 1951.
 * Uniform numbers are drawn as long as each is smaller than the one before. Where they were an odd number, the first of
 * them is the part of the result behind the point; where an even one, the result is longer by one mean, and it begins
 * anew. Exact in its 64 bits, without a logarithm, whose last bits differ from library to library. About 20 ns.
 */
static inline uint64_t drv_random_exponential(uint64_t *state, uint64_t mean)
{
	uint64_t whole = 0;

	for (;; whole++) {
		const uint64_t first = drv_random(state);
		uint64_t last = first, next;
		bool odd = true;

		for (; (next = drv_random(state)) < last; odd = !odd)
			last = next;
		if (odd)
			return whole * mean + (uint64_t)((unsigned __int128)first * mean >> 64);
	}
}

/* f(seed, number): 64 well-mixed bits. */
static inline uint64_t drv_mix(uint64_t seed, uint64_t number)
{
	uint64_t x = number * UINT64_C(0x9e3779b97f4a7c15) + seed;

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

#endif
