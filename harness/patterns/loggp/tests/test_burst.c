/* SPDX-License-Identifier: BSD-3-Clause */
/* When a burst is complete: in any order, with parts lost, with latecomers. */
#include "loggp/burst.h"
#include "tap.h"

static void test_key(void)
{
	const uint64_t key = drv_burst_key(UINT64_C(0x123456789abc), DRV_BURST_MAX, 254);

	tap_ok(drv_burst_of(key) == UINT64_C(0x123456789abc), "a key tells its burst");
	tap_ok(drv_burst_length(key) == DRV_BURST_MAX, "a key tells how long its burst is");
	tap_ok(drv_burst_key(7, 3, 1) != drv_burst_key(7, 3, 2),
	       "messages of a burst have keys of their own");
}

static void test_order(void)
{
	struct drv_burst_count count = {0};
	int wrong = 0;

	for (uint64_t burst = 1; burst < 100; burst++)
		for (uint32_t i = 0; i < 5; i++)
			wrong += drv_burst_take(&count,
						drv_burst_key(burst, 5, (i * 3 + (uint32_t)burst) % 5)) !=
				 (i == 4);
	tap_ok(!wrong, "the last to arrive completes a burst, whatever its place in it");
}

static void test_loss(void)
{
	struct drv_burst_count count = {0};
	int wrong = 0;

	for (uint32_t i = 0; i < 3; i++)
		wrong += drv_burst_take(&count, drv_burst_key(1, 4, i));
	tap_ok(!wrong, "a burst that lost a message is never complete");
	tap_ok(drv_burst_take(&count, drv_burst_key(2, 1, 0)), "the next one is complete by itself");
	tap_ok(!drv_burst_take(&count, drv_burst_key(1, 4, 3)),
	       "a message that comes late completes nothing");
	tap_ok(!drv_burst_take(&count, drv_burst_key(3, 2, 0)) &&
		       drv_burst_take(&count, drv_burst_key(3, 2, 1)),
	       "and is counted to no other burst");
}

static void test_none(void)
{
	struct drv_burst_count count = {0};

	tap_ok(!drv_burst_take(&count, drv_burst_key(1, 0, 0)), "a message of no burst completes nothing");
	tap_ok(drv_burst_take(&count, drv_burst_key(2, 1, 0)), "and the burst after it is whole");
}

int main(void)
{
	test_key();
	test_order();
	test_loss();
	test_none();
	return tap_done();
}
