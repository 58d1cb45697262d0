/* SPDX-License-Identifier: BSD-3-Clause */
/* The two large parts of a launch file, each read by a file of its own. Private to this room. */
#ifndef DRV_LAUNCH_PARTS_H
#define DRV_LAUNCH_PARTS_H

#include "launch/launch.h"
#include "launch/reader.h"

#define DRV_LAUNCH_MS_MAX         (INT64_C(24) * 3600 * 1000)
#define DRV_NS_PER_MS             UINT64_C(1000000)
#define DRV_LAUNCH_OPERATIONS_MAX (INT64_C(1) << 40)

/* Endpoints, and that their channels fit together. launch->place is known. */
int drv_launch_endpoints(const struct drv_reader *top, struct drv_launch *launch);

/* Limits of patterns, then points. launch->kind, place and endpoints are known. */
int drv_launch_points(const struct drv_reader *top, struct drv_launch *launch);

#endif
