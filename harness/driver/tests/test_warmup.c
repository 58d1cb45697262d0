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
	tap_ok(warmup.over && !warmup.steady, "windows that differ by 10 %% are not steady");
	warmup = run(0, 0, 20000, 500);
	tap_ok(warmup.steady, "windows that differ by 2.5 %% are");
	warmup = run(0, 0, 4000000, 0);
	tap_ok(warmup.over && !warmup.steady && warmup.operations == 3,
	       "three slow operations reach the cap");
	tap_ok(warmup.median == 4000000, "and still give a median");
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
