/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns, and the forms of floors, that this program was built with. The linker makes the lists. */
#ifndef DRV_PATTERNS_H
#define DRV_PATTERNS_H

#include <stdbool.h>

#include "launch/pattern.h"

/* The pattern, or form of a floor, called `name`; NULL when there is none. */
const struct drv_pattern *drv_pattern_find(const char *name, bool form);

#endif
