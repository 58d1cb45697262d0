/* SPDX-License-Identifier: BSD-3-Clause */
/* When a measurement is warm: windows, medians, their spread and their trend. */
#include "measure/warmup.h"

#include <string.h>

#define WINDOW_OPERATIONS 16u
#define SPREAD_PERCENT    3u
#define WINDOWS_LEAST     8u /* until the cap, however slow operations are: enough to see a trend */

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
	warmup->window_most_ticks = cap_ticks / WINDOWS_LEAST;
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

/* The median of window `i`, of those kept. */
static uint64_t median_at(const struct drv_warmup *warmup, uint32_t i)
{
	return warmup->medians[i % DRV_WARMUP_KEPT];
}

static void end_window(struct drv_warmup *warmup, uint64_t now)
{
	const uint32_t held = warmup->in_window < DRV_WARMUP_HELD ? warmup->in_window : DRV_WARMUP_HELD;
	uint64_t least = UINT64_MAX, most = 0;

	warmup->median = median_of(warmup->values, held);
	warmup->medians[warmup->windows++ % DRV_WARMUP_KEPT] = warmup->median;
	warmup->in_window = 0;
	warmup->window_started = now;
	if (warmup->windows < DRV_WARMUP_WINDOWS)
		return;
	for (uint32_t i = warmup->windows - DRV_WARMUP_WINDOWS; i < warmup->windows; i++) {
		const uint64_t median = median_at(warmup, i);

		if (median < least)
			least = median;
		if (median > most)
			most = median;
	}
	warmup->steady = (most - least) * 100 <= least * SPREAD_PERCENT;
	warmup->over = warmup->steady && now - warmup->started >= warmup->least_ticks;
}

/*
 * True where the medians kept are enough to tell, and neither rise nor fall: of their pairs about as many do the one as
 * the other.
 */
static bool is_without_trend(const struct drv_warmup *warmup)
{
	const uint32_t first = warmup->windows > DRV_WARMUP_KEPT ? warmup->windows - DRV_WARMUP_KEPT : 0;
	const int64_t count = warmup->windows - first;
	int64_t rises = 0, beyond;

	for (uint32_t i = first; i < warmup->windows; i++)
		for (uint32_t j = i + 1; j < warmup->windows; j++)
			rises += (median_at(warmup, j) > median_at(warmup, i)) -
				 (median_at(warmup, j) < median_at(warmup, i));
	beyond = (rises < 0 ? -rises : rises) - 1;
	/* its variance is count (count - 1) (2 count + 5) / 18, and 1.96 squared is 3.8416 */
	return count >= DRV_WARMUP_WINDOWS &&
	       (beyond <= 0 || beyond * beyond * 180000 <= 38416 * count * (count - 1) * (2 * count + 5));
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
		warmup->steady = warmup->steady || is_without_trend(warmup);
		warmup->over = true;
	}
	return warmup->over;
}

bool drv_warmup_add(struct drv_warmup *warmup, uint64_t now, uint64_t span)
{
	warmup->operations++;
	warmup->values[warmup->in_window++ % DRV_WARMUP_HELD] = span;
	if ((warmup->in_window >= WINDOW_OPERATIONS &&
	     now - warmup->window_started >= warmup->window_ticks) ||
	    now - warmup->window_started >= warmup->window_most_ticks)
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
