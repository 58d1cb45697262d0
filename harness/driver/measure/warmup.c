/* SPDX-License-Identifier: BSD-3-Clause */
/* When a measurement is warm: windows, medians, and their spread. */
#include "measure/warmup.h"

#include <string.h>

#define WINDOW_OPERATIONS 16u
#define SPREAD_PERCENT    3u

static _Thread_local uint64_t next_least_ticks, next_most_operations = UINT64_MAX;

void drv_warmup_last(uint64_t least_ticks)
{
	next_least_ticks = least_ticks;
}

void drv_warmup_count(uint64_t operations)
{
	next_most_operations = operations;
}

void drv_warmup_start(struct drv_warmup *warmup, uint64_t now, uint64_t window_ticks, uint64_t cap_ticks)
{
	memset(warmup, 0, sizeof(*warmup));
	warmup->started = warmup->window_started = now;
	warmup->window_ticks = window_ticks;
	warmup->cap_ticks = cap_ticks;
	warmup->least_ticks = next_least_ticks;
	warmup->most_operations = next_most_operations;
	if (next_most_operations != UINT64_MAX)
		warmup->least_ticks = warmup->cap_ticks = UINT64_MAX;
}

/* Sorts at most 128 values in place (insertion: they arrive nearly equal) and returns the middle one. */
static uint64_t median_of(uint64_t *values, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		const uint64_t value = values[i];
		uint32_t place = i;

		for (; place > 0 && values[place - 1] > value; place--)
			values[place] = values[place - 1];
		values[place] = value;
	}
	return values[count / 2];
}

static void end_window(struct drv_warmup *warmup, uint64_t now)
{
	const uint32_t held = warmup->in_window < DRV_WARMUP_HELD ? warmup->in_window : DRV_WARMUP_HELD;
	uint64_t least = UINT64_MAX, most = 0;

	warmup->median = median_of(warmup->values, held);
	warmup->medians[warmup->windows++ % DRV_WARMUP_WINDOWS] = warmup->median;
	warmup->in_window = 0;
	warmup->window_started = now;
	if (warmup->windows < DRV_WARMUP_WINDOWS)
		return;
	for (int i = 0; i < DRV_WARMUP_WINDOWS; i++) {
		if (warmup->medians[i] < least)
			least = warmup->medians[i];
		if (warmup->medians[i] > most)
			most = warmup->medians[i];
	}
	warmup->steady = (most - least) * 100 <= least * SPREAD_PERCENT;
	warmup->over = warmup->steady && now - warmup->started >= warmup->least_ticks;
}

bool drv_warmup_expired(struct drv_warmup *warmup, uint64_t now)
{
	if (!warmup->over &&
	    (now - warmup->started >= warmup->cap_ticks || warmup->operations >= warmup->most_operations)) {
		if (!warmup->windows && warmup->in_window) {
			const uint32_t held =
				warmup->in_window < DRV_WARMUP_HELD ? warmup->in_window : DRV_WARMUP_HELD;

			warmup->median = median_of(warmup->values, held);
		}
		warmup->over = true;
	}
	return warmup->over;
}

bool drv_warmup_add(struct drv_warmup *warmup, uint64_t now, uint64_t span)
{
	warmup->operations++;
	warmup->values[warmup->in_window++ % DRV_WARMUP_HELD] = span;
	if (warmup->in_window >= WINDOW_OPERATIONS && now - warmup->window_started >= warmup->window_ticks)
		end_window(warmup, now);
	return drv_warmup_expired(warmup, now);
}

void drv_warmup_begin(struct drv_warmup *warmup, const struct drv_clock *clock, uint64_t cap_ns)
{
	drv_warmup_start(warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, UINT64_C(100000)),
			 drv_clock_to_ticks(clock, cap_ns));
}

uint64_t drv_warmup_patience(const struct drv_warmup *warmup, const struct drv_clock *clock)
{
	const uint64_t median_ns = warmup->operations ? drv_clock_to_ns(clock, warmup->median) : 0;

	return drv_clock_to_ticks(clock, drv_loss_deadline_ns(median_ns));
}
