/* SPDX-License-Identifier: BSD-3-Clause */
/* Place self: the responder beside the requester, in the same process and on the same context. */
#ifndef DRV_SELF_H
#define DRV_SELF_H

#include "launch/pattern.h"

/* of a role's state */
#define DRV_STATE_ALIGN 4096u

/*
 * Prepares both roles of a role run whose other members are set, and puts a demultiplexer before them. Nothing is done for a
 * pattern of one role but to prepare that. The caller ends it with drv_self_stop, whether it worked or not.
 */
int drv_self_prepare(struct drv_role_run *run, struct drv_fail *fail);
/* Before the requester stops. */
void drv_self_stop(struct drv_role_run *run);
/* After a step of the requester that failed: why, where it was the responder. */
void drv_self_explain(const struct drv_role_run *run, struct drv_fail *fail);

#endif
