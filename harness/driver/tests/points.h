/* SPDX-License-Identifier: BSD-3-Clause */
/* Points for tests, made through the tables of the patterns as the launch file's reader makes them. */
#ifndef DRV_TESTS_POINTS_H
#define DRV_TESTS_POINTS_H

#include <stdlib.h>
#include <string.h>

#include "launch/pattern.h"
#include "launch/patterns.h"

/* Sets a parameter where the pattern has it. */
static inline void point_set(struct drv_point *point, const char *name, uint64_t value)
{
	for (const struct drv_parameter *parameter = point->pattern->parameters; parameter->name; parameter++)
		if (!strcmp(parameter->name, name)) {
			uint8_t *to = (uint8_t *)point->parameters + parameter->offset;

			if (parameter->type == DRV_CHOICE)
				memcpy(to, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
			else
				memcpy(to, &value, sizeof(value));
		}
}

/* Sizes and depth where the pattern has them; all else is 0. Parameters stay until the program ends. */
static inline struct drv_point point_make(const char *pattern, uint64_t request, uint64_t reply,
					  uint64_t depth)
{
	/* used in turn: a test keeps no more of them at a time */
	static _Alignas(16) uint8_t store[256][64];
	static unsigned used;
	struct drv_point point = {.attempt_id = (char *)(uintptr_t)"1",
				  .point_id = (char *)(uintptr_t)"p",
				  .pattern = drv_pattern_find(pattern, false),
				  .parameters = store[used++ % 256],
				  .duration_ns = 400000,
				  .deadline_ns = 250000000};

	if (!point.pattern || point.pattern->parameters_bytes > sizeof(store[0]))
		abort();
	memset(point.parameters, 0, sizeof(store[0]));
	point_set(&point, "bytes", request);
	point_set(&point, "request_bytes", request);
	point_set(&point, "reply_bytes", reply);
	point_set(&point, "depth", depth);
	return point;
}

/* The value of a number, or the index of a word, among the parameters; 0 where the pattern has none of this name. */
static inline uint64_t point_get(const struct drv_point *point, const char *name)
{
	uint64_t value = 0;

	for (const struct drv_parameter *parameter = point->pattern->parameters; parameter->name; parameter++)
		if (!strcmp(parameter->name, name)) {
			const uint8_t *at = (const uint8_t *)point->parameters + parameter->offset;
			uint32_t word;

			memcpy(&word, at, sizeof(word));
			memcpy(&value, at, sizeof(value));
			if (parameter->type == DRV_CHOICE)
				value = word;
		}
	return value;
}

#endif
