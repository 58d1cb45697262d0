/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock: rate, conversions, drift. */
#include "measure/clock.h"
#include "tap.h"

static void test_source(bool allow_tsc)
{
	struct drv_clock clock;
	uint64_t ticks, raw_ns, span_ns, raw_span_ns;
	struct timespec pause = {.tv_nsec = 50000000};
	int forward = 1, multiple = 1;

	drv_clock_start(&clock, allow_tsc);
	printf("# source %s, %llu Hz, read %llu ns, bracket %llu ns\n", drv_clock_source(&clock),
	       (unsigned long long)clock.hz, (unsigned long long)clock.read_cost_ns,
	       (unsigned long long)clock.bracket_ns);
	tap_ok(allow_tsc || !clock.tsc, "the counter can be forbidden");
	tap_ok(clock.hz >= 10000000 && clock.hz < UINT64_C(20000000000), "the rate is that of a clock");
	tap_ok(clock.read_cost_ns < 2000, "reading it takes less than 2 us");
	ticks = drv_clock_now(&clock);
	for (int i = 0; i < 100000; i++) {
		const uint64_t now = drv_clock_now(&clock);

		forward &= now >= ticks;
		ticks = now;
	}
	tap_ok(forward, "it never goes back");
	tap_ok(clock.step_ticks > 0 && drv_clock_to_ns(&clock, clock.step_ticks) < 1000,
	       "readings differ by multiples of %llu ticks, to a tick", (unsigned long long)clock.step_ticks);
	for (int i = 0; i < 100000; i++) {
		const uint64_t before = drv_clock_now(&clock), span = drv_clock_now(&clock) - before;
		const uint64_t steps = (span + clock.step_ticks / 2) / clock.step_ticks;
		const uint64_t whole = steps * clock.step_ticks;

		multiple &= (span > whole ? span - whole : whole - span) <= steps + 1;
	}
	tap_ok(multiple, "and by nothing else");
	ticks = drv_clock_now(&clock);
	raw_ns = drv_clock_raw_ns();
	nanosleep(&pause, NULL);
	span_ns = drv_clock_to_ns(&clock, drv_clock_now(&clock) - ticks);
	raw_span_ns = drv_clock_raw_ns() - raw_ns;
	/* both readings may be interrupted: a wide bound still shows a wrong rate */
	tap_ok(span_ns > raw_span_ns - raw_span_ns / 20 && span_ns < raw_span_ns + raw_span_ns / 20,
	       "50 ms are 50 ms: %llu against %llu", (unsigned long long)span_ns,
	       (unsigned long long)raw_span_ns);
	drv_clock_finish(&clock);
	tap_ok(clock.ok && clock.drift_ppm < 100 && clock.drift_ppm > -100, "drift of %.3f ppm",
	       clock.drift_ppm);
	ticks = drv_clock_to_ticks(&clock, 1000000);
	tap_ok(drv_clock_to_ns(&clock, ticks) >= 999000 && drv_clock_to_ns(&clock, ticks) <= 1000000,
	       "conversion there and back");
}

int main(void)
{
	struct drv_clock clock;

	test_source(true);
	test_source(false);
	drv_clock_start(&clock, true);
	{
		struct drv_clock again, raw;

		drv_clock_start(&again, true);
		drv_clock_start(&raw, false);
		tap_ok(drv_clock_identity(&clock) &&
			       drv_clock_identity(&clock) == drv_clock_identity(&again) &&
			       (drv_clock_identity(&clock) != drv_clock_identity(&raw)) == clock.tsc,
		       "a clock is known by its name");
	}
	if (clock.tsc) {
		clock.ns_per_tick += clock.ns_per_tick / 5000; /* 200 ppm */
		drv_clock_finish(&clock);
		tap_ok(!clock.ok && clock.drift_ppm > 150, "a rate that is 200 ppm wrong is noticed: %.1f",
		       clock.drift_ppm);
	}
	return tap_done();
}
