/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The measuring clock. Reads the time-stamp counter where it is invariant and the kernel trusts it, else
 * CLOCK_MONOTONIC_RAW. The counter is calibrated against CLOCK_MONOTONIC_RAW at the start, and once more at
 * the end of the launch: if the two calibrations differ by more than DRV_CLOCK_DRIFT_MAX_PPM, the launch is
 * unsound.
 *
 * Loops work in ticks (counter cycles, or nanoseconds) and convert by a multiplication.
 */
#ifndef DRV_CLOCK_H
#define DRV_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define DRV_CLOCK_DRIFT_MAX_PPM 100.0

struct drv_clock_reading {
	uint64_t ticks;  /* middle of the bracket */
	uint64_t raw_ns; /* CLOCK_MONOTONIC_RAW */
	/* width of the tightest of 20 brackets; counted in ticks until the rate is known */
	uint64_t bracket_ns;
};

struct drv_clock {
	bool tsc;
	uint64_t hz;           /* ticks a second; 10^9 for the raw clock */
	uint64_t ns_per_tick;  /* fixed point, 32 fractional bits */
	uint64_t read_cost_ns; /* median cost of one drv_clock_now */
	uint64_t step_ticks;   /* what readings differ by multiples of, to a tick; 10 ns on some processors */
	double drift_ppm;      /* set by drv_clock_finish */
	uint64_t bracket_ns;   /* the widest of the brackets used */
	bool ok;               /* set by drv_clock_finish: drift within the bound */
	struct drv_clock_reading first, second, last;
};

/* Chooses the source and calibrates; takes about 12 ms. `allow_tsc` false forces the raw clock. */
void drv_clock_start(struct drv_clock *clock, bool allow_tsc);

/* Reads the clock pair once more and judges the drift since the start. Takes microseconds; may be called
 * again. */
void drv_clock_finish(struct drv_clock *clock);

/*
 * Names the clock that is read, equal for processes that read the same one: of one boot of one machine, and for the raw
 * clock of one time namespace. 0: not known. Fits 63 bits.
 */
uint64_t drv_clock_identity(const struct drv_clock *clock);

/* "tsc" or "monotonic_raw". */
const char *drv_clock_source(const struct drv_clock *clock);

/* CLOCK_MONOTONIC in ns: for deadlines and phases, not for samples. */
static inline uint64_t drv_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t drv_clock_raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The time now in ticks. A few ns to 40 ns. */
static inline uint64_t drv_clock_now(const struct drv_clock *clock)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock->tsc, 1)) {
		uint32_t low, high;

		__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
		return (uint64_t)high << 32 | low;
	}
#endif
	return drv_clock_raw_ns();
}

/* Computes for so many ticks. Returns for how many it did. */
static inline uint64_t drv_clock_compute(const struct drv_clock *clock, uint64_t ticks)
{
	const uint64_t begin = drv_clock_now(clock);
	uint64_t span;

	do
		span = drv_clock_now(clock) - begin;
	while (span < ticks);
	return span;
}

/* A span of ticks in ns, rounded down. */
static inline uint64_t drv_clock_to_ns(const struct drv_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock->ns_per_tick) >> 32);
}

/* A span of ns in ticks. Divides: not for loops. */
static inline uint64_t drv_clock_to_ticks(const struct drv_clock *clock, uint64_t span_ns)
{
	return (uint64_t)((((unsigned __int128)span_ns) << 32) / clock->ns_per_tick);
}

#endif
