/* SPDX-License-Identifier: BSD-3-Clause */
/* The floors that this program was built with, and what the tables of all plug-ins say. The linker makes the lists. */
#ifndef DRV_PLUGINS_H
#define DRV_PLUGINS_H

#include <jansson.h>

struct drv_floor;

/* The floor called `name`; NULL when there is none. */
const struct drv_floor *drv_floor_find(const char *name);

/*
 * What stands in the tables, sorted by name (schema cadge.driver-patterns/1): roles, parameters with their types,
 * quantities with their kinds; of floors the forms; the names of all reasons. New reference, or NULL.
 */
json_t *drv_patterns_json(void);

#endif
