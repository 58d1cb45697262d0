/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare paths of checking what arrives. */
#include "traffic/intake.h"

#include <stdarg.h>
#include <stdio.h>

#include "launch/pattern.h"
#include "traffic/touch.h"

#define SEARCH_AHEAD 64u

void drv_intake_mismatch(struct drv_intake *intake, const char *format, ...)
{
	va_list arguments;

	if (intake->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(intake->mismatch, sizeof(intake->mismatch), format, arguments) < 0)
		intake->mismatch[0] = '\0';
	va_end(arguments);
}

bool drv_intake_search(struct drv_intake *intake, const void *data, size_t bytes)
{
	for (uint64_t ahead = 1; !intake->reliable && ahead < SEARCH_AHEAD; ahead++)
		if (drv_head_holds(data, bytes, intake->seed, intake->next_number + ahead)) {
			intake->next_number += ahead;
			return true;
		}
	return false;
}

bool drv_intake_holds(const struct drv_intake *intake, const void *data, size_t bytes, uint64_t key)
{
	return intake->full ? drv_body_holds(data, bytes, intake->seed, intake->phase, key)
			    : drv_touch_read(data, bytes, intake->seed, key);
}

bool drv_intake_read(struct drv_intake *intake, const void *data, size_t bytes, uint64_t key)
{
	intake->full_checked += intake->full;
	return drv_intake_holds(intake, data, bytes, key);
}

void drv_intake_phase(struct drv_intake *intake, bool full, uint64_t phase)
{
	intake->full = full;
	intake->phase = phase;
	intake->reads = full || intake->touch;
}

void drv_intake_counts(const struct drv_intake *intake, struct drv_counts *counts)
{
	counts->executes = true;
	counts->executed += intake->executions;
	counts->executed_keys += intake->key_sum;
	counts->checked += intake->checked;
	counts->full_checked += intake->full_checked;
	if (intake->mismatches && !counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch), "%.158s", intake->mismatch);
	counts->mismatches += intake->mismatches;
}
