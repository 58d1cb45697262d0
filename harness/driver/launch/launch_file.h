/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch file (schema cadge.launch/2): what the processes of a launch are to measure. Reading is strict: every
 * key that is unknown, missing, of the wrong type or out of range is refused with a sentence that names the field.
 * What a pattern's parameters are called and may be stands in the pattern's table.
 */
#ifndef DRV_LAUNCH_FILE_H
#define DRV_LAUNCH_FILE_H

#include "launch/launch.h"

/* Reads and checks a launch file. On success the caller frees *launch_out; on failure it is untouched. */
int drv_launch_read(const char *path, struct drv_launch *launch_out, struct drv_fail *fail);

/* The same from text of `text_bytes` bytes, for tests. */
int drv_launch_parse(const char *text, size_t text_bytes, struct drv_launch *launch_out,
		     struct drv_fail *fail);

/* Reads the trace that a launch names, if any, from the folder of its launch file. */
int drv_launch_trace_read(struct drv_launch *launch, const char *launch_path, struct drv_fail *fail);

#endif
