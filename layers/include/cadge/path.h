/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path that cannot be read back. Some libraries do not say what they use, not even by their internals: MPICH, and Open MPI
 * without its internal headers. Their layers say so in describe_path: `used` begins with CADGE_NOT_READ_BACK and goes on with
 * the reason, `as_asked` is 0 because nothing proves it, and `medium` is CADGE_MEDIUM_UNKNOWN. A caller shows the reason,
 * takes such a path neither for what was asked nor for something else, and lets the counters of the interfaces decide.
 * Header-only, so that layers, the driver and the conformance suite share one rule.
 */
#ifndef CADGE_PATH_H
#define CADGE_PATH_H

#include <stdbool.h>
#include <string.h>

#include "cadge/layer.h"

#define CADGE_NOT_READ_BACK "not read back: "

/* `used` of a path: whether the library said what it uses. */
static inline bool cadge_path_is_read_back(const char *used)
{
	return strncmp(used, CADGE_NOT_READ_BACK, strlen(CADGE_NOT_READ_BACK)) != 0;
}

#endif
