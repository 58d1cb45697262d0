/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether an attempt that ran to its end is sound. */
#ifndef DRV_JUDGE_H
#define DRV_JUDGE_H

#include "launch/pattern.h"
#include "session/result.h"

/* The boundaries between the phases of an attempt. */
enum drv_boundary { DRV_AFTER_VERIFY, DRV_COUNTED, DRV_BEFORE, DRV_AFTER, DRV_LAST, DRV_BOUNDARIES };

/* What is known of one endpoint. */
struct drv_account {
	const char *role;
	bool measures;
	enum drv_sleep sleep;
	struct drv_counts counts[DRV_BOUNDARIES];
	/* of one that measures: what the measurement cost, and its operations */
	struct drv_usage usage;
	uint64_t operations;
	/* of the step COUNT; -1: not counted */
	int64_t system_calls;
};

/* Fills in what follows from the counts, makes all checks, and gives the verdict. */
void drv_judge(struct drv_attempt *attempt, const struct drv_account *accounts, size_t accounts_count,
	       bool reliable, bool block);

#endif
