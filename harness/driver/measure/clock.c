/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibrates the measuring clock and judges its drift. */
#include "measure/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define BRACKETS       20
#define FIRST_SPAN_NS  UINT64_C(10000000)
#define COST_READS     101
#define STEP_READS     1000
#define STEP_SPAN_MAX  1024 /* ticks */
#define STEP_EXACT_MAX 4    /* ticks */

/* The kernel's verdict on the counter: when it fell back to one of these, it found the counter unstable. */
static bool kernel_distrusts_tsc(void)
{
	static const char *const fallbacks[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
	char name[64] = "";
	FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (!file)
		return false;
	if (fscanf(file, "%63s", name) != 1)
		name[0] = '\0';
	fclose(file);
	for (size_t i = 0; i < sizeof(fallbacks) / sizeof(fallbacks[0]); i++)
		if (!strcmp(name, fallbacks[i]))
			return true;
	return false;
}

/* Runs at one rate in all power states, on all cores: CPUID leaf 0x80000007, EDX bit 8. */
static bool tsc_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
#else
	return false;
#endif
}

/* The tightest of some bracketed readings: counter, raw clock, counter. */
static struct drv_clock_reading read_pair(const struct drv_clock *clock)
{
	struct drv_clock_reading best = {.bracket_ns = UINT64_MAX};

	for (int i = 0; i < BRACKETS; i++) {
		const uint64_t before = drv_clock_now(clock);
		const uint64_t raw_ns = drv_clock_raw_ns();
		const uint64_t after = drv_clock_now(clock);

		if (after - before < best.bracket_ns) {
			best.bracket_ns = after - before;
			best.ticks = before + (after - before) / 2;
			best.raw_ns = raw_ns;
		}
	}
	return best;
}

/* ns per tick between two readings, fixed point with 32 fractional bits. */
static uint64_t rate_between(const struct drv_clock_reading *from, const struct drv_clock_reading *to)
{
	return (uint64_t)(((unsigned __int128)(to->raw_ns - from->raw_ns) << 32) / (to->ticks - from->ticks));
}

static void measure_read_cost(struct drv_clock *clock)
{
	uint64_t costs[COST_READS];

	for (int i = 0; i < COST_READS; i++) {
		const uint64_t before = drv_clock_now(clock);
		uint64_t cost;
		int place = i;

		for (int reads = 0; reads < 16; reads++)
			drv_clock_now(clock);
		cost = drv_clock_now(clock) - before;
		for (; place > 0 && costs[place - 1] > cost; place--)
			costs[place] = costs[place - 1];
		costs[place] = cost;
	}
	clock->read_cost_ns = (drv_clock_to_ns(clock, costs[COST_READS / 2]) + 8) / 17;
}

/* The greatest common divisor, where a remainder of up to `off` on either side is none. */
static uint64_t common_divisor(uint64_t one, uint64_t other, uint64_t off)
{
	while (other > off) {
		uint64_t left = one % other;

		if (other - left <= off)
			left = 0;
		one = other;
		other = left;
	}
	return one;
}

/*
 * What readings differ by, with waits of many lengths between them, has a common divisor, to a tick: some processors
 * count a second reading in the same step one tick on, so that no two are the same. Steps too short for that to
 * distinguish are looked for exactly, and so are those of the raw clock, which are whole nanoseconds. Spans with an
 * interrupt in them are left out: of a step that is no whole number of ticks they add up too many.
 */
static void measure_step(struct drv_clock *clock)
{
	uint64_t spans[STEP_READS], exact = 0, rounded = 0, ticks = 0, steps = 0;

	for (int i = 0; i < STEP_READS; i++) {
		const uint64_t before = drv_clock_now(clock);

		for (volatile int wait = 0; wait < i % 97; wait++)
			;
		spans[i] = drv_clock_now(clock) - before;
		if (spans[i] > STEP_SPAN_MAX)
			continue;
		exact = common_divisor(exact, spans[i], 0);
		rounded = common_divisor(rounded, spans[i], 1);
	}
	if (!clock->tsc || rounded <= STEP_EXACT_MAX) {
		clock->step_ticks = exact ? exact : 1;
		return;
	}
	for (int i = 0; i < STEP_READS; i++)
		if (spans[i] <= STEP_SPAN_MAX) {
			ticks += spans[i];
			steps += (spans[i] + rounded / 2) / rounded;
		}
	clock->step_ticks = (ticks + steps / 2) / steps;
}

void drv_clock_start(struct drv_clock *clock, bool allow_tsc)
{
	uint64_t until_ns;

	memset(clock, 0, sizeof(*clock));
	clock->tsc = allow_tsc && tsc_is_invariant() && !kernel_distrusts_tsc();
	clock->first = read_pair(clock);
	until_ns = clock->first.raw_ns + FIRST_SPAN_NS;
	while (drv_clock_raw_ns() < until_ns) {
		const struct timespec pause = {.tv_nsec = 1000000};

		nanosleep(&pause, NULL);
	}
	clock->second = read_pair(clock);
	if (clock->tsc) {
		clock->ns_per_tick = rate_between(&clock->first, &clock->second);
		clock->hz = (uint64_t)(((unsigned __int128)1000000000u << 32) / clock->ns_per_tick);
	} else {
		clock->ns_per_tick = UINT64_C(1) << 32;
		clock->hz = UINT64_C(1000000000);
	}
	measure_read_cost(clock);
	measure_step(clock);
	drv_clock_finish(clock);
}

void drv_clock_finish(struct drv_clock *clock)
{
	uint64_t widest = clock->first.bracket_ns;

	clock->last = read_pair(clock);
	if (clock->second.bracket_ns > widest)
		widest = clock->second.bracket_ns;
	if (clock->last.bracket_ns > widest)
		widest = clock->last.bracket_ns;
	clock->bracket_ns = drv_clock_to_ns(clock, widest);
	clock->drift_ppm = 0.0;
	if (clock->tsc) {
		const double whole = (double)(clock->last.raw_ns - clock->first.raw_ns) /
				     (double)(clock->last.ticks - clock->first.ticks);
		const double used = (double)clock->ns_per_tick / 4294967296.0;

		clock->drift_ppm = (used - whole) / whole * 1e6;
	}
	clock->ok =
		clock->drift_ppm <= DRV_CLOCK_DRIFT_MAX_PPM && clock->drift_ppm >= -DRV_CLOCK_DRIFT_MAX_PPM;
}

uint64_t drv_clock_identity(const struct drv_clock *clock)
{
	char text[160] = "";
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t bytes;

	if (!file)
		return 0;
	bytes = fread(text, 1, 64, file);
	fclose(file);
	if (bytes < 36)
		return 0;
	if (!clock->tsc) {
		/* each time namespace has an offset of its own; no link: the kernel has none */
		const ssize_t more = readlink("/proc/self/ns/time", text + bytes, sizeof(text) - bytes);

		bytes += more > 0 ? (size_t)more : 0;
	}
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	hash = (hash ^ clock->tsc) * UINT64_C(0x100000001b3);
	return hash >> 1 ? hash >> 1 : 1;
}

const char *drv_clock_source(const struct drv_clock *clock)
{
	return clock->tsc ? "tsc" : "monotonic_raw";
}
