/* SPDX-License-Identifier: BSD-3-Clause */
/* The points of a launch, on either side. */
#ifndef CADGE_FLOOR_RUN_H
#define CADGE_FLOOR_RUN_H

#include "floor.h"

/* Endpoint 0: makes one attempt at each point. -1 only when the launch cannot go on. */
int points_measure(struct floor_run *run, struct drv_result *result, struct drv_fail *fail);
/* Endpoint 1: serves phases until endpoint 0 says that it was the last. */
int points_serve(struct floor_run *run, struct drv_fail *fail);

#endif
