/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the layer itself counts (the contract's `counters`: copies, retransmissions, hits of a cache), read at the ends of
 * phases and kept as what was added in between.
 */
#ifndef DRV_COUNTERS_H
#define DRV_COUNTERS_H

#include <jansson.h>
#include <stdint.h>

#include "cadge/layer.h"

#define DRV_COUNTERS_MAX       64u
#define DRV_COUNTER_NAME_BYTES 40u

struct drv_counters {
	uint32_t count;
	struct {
		char name[DRV_COUNTER_NAME_BYTES];
		uint64_t value;
	} list[DRV_COUNTERS_MAX];
};

/* Reads them now: those that layer.h calls counts, the first DRV_COUNTERS_MAX of them. None without COUNTERS. */
void drv_counters_read(const struct cadge_layer *layer, const struct cadge_ctx *ctx,
		       struct drv_counters *counters_out);

/* Adds those of another thread's context, by name. */
void drv_counters_add(struct drv_counters *sum, const struct drv_counters *more);

/* What grew from one reading to the next, of names that are in both: {"copies":17}. New reference or NULL. */
json_t *drv_counters_since_json(const struct drv_counters *earlier, const struct drv_counters *later);

/* All of them, and back. New reference or NULL; 0 or -1. */
json_t *drv_counters_json(const struct drv_counters *counters);
int drv_counters_parse(const json_t *object, struct drv_counters *counters_out);

#endif
