/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns, forms and floors that this program was built with. The linker makes the lists. */
#ifndef DRV_PATTERNS_H
#define DRV_PATTERNS_H

#include <jansson.h>
#include <stdbool.h>

#include "pattern.h"

struct drv_floor;

/* The pattern, or form of a floor, called `name`; NULL when there is none. */
const struct drv_pattern *drv_pattern_find(const char *name, bool form);

/* The floor called `name`; NULL when there is none. */
const struct drv_floor *drv_floor_find(const char *name);

/*
 * What stands in the tables, sorted by name (schema cadge.driver-patterns/1): roles, parameters with their types,
 * quantities with their kinds; of floors the forms; the names of all reasons. New reference, or NULL.
 */
json_t *drv_patterns_json(void);

#endif
