/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a result goes. A regular file, or a new one, is there whole or is as it was: part, fsync, rename.
 * What is no regular file (a device, a pipe, one of this process's descriptors) is written into as it is. A
 * link is followed, and stays.
 */
#ifndef DRV_OUT_H
#define DRV_OUT_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/fail.h"

struct drv_out {
	char path[PATH_MAX];     /* without links */
	char part[PATH_MAX + 8]; /* empty: written into as it is */
	int descriptor;          /* the one that is meant, or -1 */
	mode_t mode;             /* of the file that is there; 0 where none is */
};

/* Finds out what `path` is, and whether it can be written; a file that is made to try it is removed again. */
int drv_out_find(const char *path, struct drv_out *out, struct drv_fail *fail);

/* Writes all of it. -1 with errno; then a file is as it was. Async-signal-safe. */
int drv_out_write(const struct drv_out *out, const char *text, size_t bytes);

#endif
