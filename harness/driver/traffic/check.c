/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare paths of checking what arrives. */
#include "traffic/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launch/pattern.h"

#define SEARCH_AHEAD 64u
/* The phases that compare whole messages: before and after the measurement. */
#define FULL_PHASES 2u

void drv_check_wrong(struct drv_check *check, const char *format, ...)
{
	va_list arguments;

	if (check->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(check->mismatch, sizeof(check->mismatch), format, arguments) < 0)
		check->mismatch[0] = '\0';
	va_end(arguments);
}

bool drv_check_search(struct drv_check *check, const void *data, size_t bytes)
{
	for (uint64_t ahead = 1; !check->reliable && ahead < SEARCH_AHEAD; ahead++)
		if (drv_head_holds(data, bytes, check->seed, check->next_number + ahead)) {
			check->next_number += ahead;
			return true;
		}
	return false;
}

bool drv_check_phased(const struct drv_check *check, uint64_t word)
{
	return !check->reliable && word - check->seed <= FULL_PHASES;
}

bool drv_check_holds(const struct drv_check *check, const void *data, size_t bytes, uint64_t key)
{
	return check->full ? drv_body_holds(data, bytes, check->seed, check->phase, key)
			   : drv_touch_read(data, bytes, check->seed, key);
}

DRV_INLINE bool read_body(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
{
	if (DRV_LIKELY(!check->full))
		return drv_touch_read(data, bytes, check->seed, key);
	check->full_checked++;
	return drv_body_holds(data, bytes, check->seed, check->phase, key);
}

bool drv_check_read(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
{
	return read_body(check, data, bytes, key);
}

bool drv_check_read_request(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
{
	return drv_check_late(check, data, bytes) || read_body(check, data, bytes, key);
}

void drv_check_phase(struct drv_check *check, bool full, uint64_t phase)
{
	check->full = full;
	check->phase = phase;
	check->reads = full || check->touch;
}

void drv_check_counts(const struct drv_check *check, struct drv_counts *counts)
{
	counts->checked += check->checked;
	counts->full_checked += check->full_checked;
	if (check->mismatches && !counts->mismatches)
		memcpy(counts->mismatch, check->mismatch, sizeof(counts->mismatch));
	counts->mismatches += check->mismatches;
}

void drv_check_executed(const struct drv_check *check, struct drv_counts *counts)
{
	counts->executes = true;
	counts->executed += check->executions;
	counts->executed_keys += check->key_sum;
	drv_check_counts(check, counts);
}
