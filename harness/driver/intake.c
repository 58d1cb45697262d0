/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare paths of checking what arrives. */
#include "intake.h"

#include <stdarg.h>
#include <stdio.h>

#include "pattern.h"

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
