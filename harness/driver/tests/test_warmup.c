/* SPDX-License-Identifier: BSD-3-Clause */
/* The warm-up: when it is steady, and when it gives up. */
#include "tap.h"
#include "measure/warmup.h"

/* Operations of `first` ticks for a while, then of `later` ticks; ends when the rule says so. */
static struct drv_warmup run(uint64_t first, uint64_t first_count, uint64_t later, uint64_t wobble)
{
	struct drv_warmup warmup;
	uint64_t now = 1000;

	drv_warmup_start(&warmup, now, 100000, 10000000);
	for (uint64_t i = 0; i < 10000000; i++) {
		const uint64_t span = i < first_count ? first : later + (i / 16 % 2 ? wobble : 0);

		now += span;
		if (drv_warmup_add(&warmup, now, span))
			break;
	}
	return warmup;
}

/* Until the cap, windows of 16 equal operations: of `first` ticks, of `step` more each, and of up to `noise` more by chance. */
static struct drv_warmup drift(uint64_t first, int64_t step, uint64_t noise)
{
	struct drv_warmup warmup;
	uint64_t now = 1000, random = 1;

	drv_warmup_start(&warmup, now, 100000, 10000000);
	for (int64_t window = 0; !warmup.over; window++) {
		const uint64_t span = first + (uint64_t)(step * window) + (random >> 33) % (noise + 1);

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		for (int i = 0; i < 16 && !warmup.over; i++) {
			now += span;
			drv_warmup_add(&warmup, now, span);
		}
	}
	return warmup;
}

int main(void)
{
	struct drv_warmup warmup = run(0, 0, 1000, 0);

	tap_ok(warmup.over && warmup.steady && warmup.operations == 500,
	       "equal operations of 1 us: 5 windows of 100");
	tap_ok(warmup.median == 1000, "the median is theirs");
	warmup = run(0, 0, 20000, 0);
	tap_ok(warmup.steady && warmup.operations == 80, "operations of 20 us: 5 windows of 16");
	warmup = run(5000, 90, 1000, 0);
	tap_ok(warmup.steady && warmup.operations > 500, "a slow start is waited out: %llu operations",
	       (unsigned long long)warmup.operations);
	warmup = run(0, 0, 20000, 2000);
	tap_ok(warmup.over && warmup.steady && warmup.windows > 16,
	       "windows that differ by 10 %% by turns wait for the cap, and are steady there");
	warmup = drift(20000, 1000, 0);
	tap_ok(warmup.over && !warmup.steady, "windows that rise are not");
	warmup = drift(60000, -1000, 0);
	tap_ok(warmup.over && !warmup.steady, "nor those that fall");
	warmup = drift(20000, 10, 4000);
	tap_ok(warmup.steady, "a rise that the scatter hides is none");
	warmup = drift(20000, 500, 4000);
	tap_ok(!warmup.steady, "one that it does not hide is");
	warmup = run(0, 0, 20000, 500);
	tap_ok(warmup.steady, "windows that differ by 2.5 %% are");
	warmup = run(0, 0, 4000000, 0);
	tap_ok(warmup.over && !warmup.steady && warmup.operations == 3,
	       "three slow operations reach the cap, and are too few to tell");
	tap_ok(warmup.median == 4000000, "and still give a median");
	warmup = run(0, 0, 1400000, 0);
	tap_ok(warmup.over && warmup.steady && warmup.operations == 5, "five of 1.4 ms are enough");
	drv_warmup_start(&warmup, 0, 100, 1000);
	tap_ok(!drv_warmup_expired(&warmup, 999) && drv_warmup_expired(&warmup, 1000) && warmup.median == 0,
	       "no operation at all ends at the cap too");
	drv_warmup_last(5000000);
	warmup = run(0, 0, 1000, 0);
	tap_ok(warmup.over && warmup.steady && warmup.operations == 5000,
	       "where 5 ms are asked for, steady operations of 1 us take as long: %llu",
	       (unsigned long long)warmup.operations);
	drv_warmup_last(0);
	warmup = run(0, 0, 1000, 0);
	tap_ok(warmup.operations == 500, "and no longer than it takes afterwards");
	drv_warmup_count(7);
	warmup = run(0, 0, 4000000, 0);
	tap_ok(warmup.over && warmup.operations == 7 && warmup.median == 4000000,
	       "where 7 operations are asked for, slow ones go on beyond the cap");
	warmup = run(0, 0, 1000, 0);
	tap_ok(warmup.over && warmup.operations == 7, "and fast ones end before they are steady");
	drv_warmup_count(UINT64_MAX);
	tap_ok(drv_warmup_cap_ns(25000000) == 10000000 && drv_warmup_cap_ns(250000000) == 50000000,
	       "the cap is 10 ms or a fifth of the duration");
	return tap_done();
}
