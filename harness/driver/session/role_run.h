/* SPDX-License-Identifier: BSD-3-Clause */
/* One role in one attempt, from its beginning to its end, as endpoint 0 and all others go through it. */
#ifndef DRV_ROLE_RUN_H
#define DRV_ROLE_RUN_H

#include "launch/pattern.h"

/* The role that this endpoint has in a point's pattern; at place self the one that measures. */
const struct drv_role *drv_role_here(const struct drv_engine *engine, const struct drv_point *point);

/* Makes the state and prepares the role. The caller ends it with drv_role_run_stop, whether it worked or not. */
int drv_role_run_start(struct drv_role_run *run, struct drv_engine *engine, size_t index,
		       struct drv_record *record, struct drv_fail *fail);
void drv_role_run_stop(struct drv_role_run *run);

/* Runs one step of a role that measures. `usage_out` is what the measurement cost; zeroes for other steps. */
int drv_role_run_step(struct drv_role_run *run, enum drv_step step, uint64_t serial,
		      struct drv_usage *usage_out, struct drv_fail *fail);

/* One thread's measurement: measures, or serves until a message comes. Private to role_run.c, but that programs count by its name. */
int drv_measured(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
	__attribute__((noinline));

/* Ends a phase and begins the next; fills in all counts, usage included. */
void drv_role_run_phase(struct drv_role_run *run, const struct drv_phase *phase,
			struct drv_counts *counts_out);

/* After a failure: whether nothing of this role is outstanding any more. */
bool drv_role_run_settle(struct drv_role_run *run);

/* Works for others, in all threads, until a message comes. */
int drv_role_run_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);

/* The same in the calling thread alone; JSON's null stands for the recall. */
int drv_role_run_serve_alone(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);

#endif
