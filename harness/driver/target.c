/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "remote.h"

uint64_t drv_region_bytes(const struct drv_launch *launch, const struct drv_ability *both)
{
	uint64_t most = 0;

	for (size_t i = 0; i < launch->points_count; i++) {
		const struct drv_point *point = &launch->points[i];
		const uint64_t bytes =
			drv_memory_stride(point->request_bytes) * drv_region_slots(point->depth);
		struct drv_fail refused;

		if (point->pattern == DRV_ONESIDED && bytes > most &&
		    !drv_negotiate_point(point, launch->place, both, &refused))
			most = bytes;
	}
	return most;
}

int drv_target_make(struct drv_engine *engine, uint64_t bytes, struct drv_target_memory *target_out,
		    struct drv_fail *fail)
{
	struct drv_target_memory target = {.key_bytes = sizeof(target.key)};
	int code;

	if (drv_memory_make(engine, (size_t)bytes, &target.memory, fail))
		return -1;
	code = engine->layer->expose(engine->ctx, target.memory.base, target.memory.bytes, target.key,
				     &target.key_bytes, &target.region);
	if (code < 0 || target.key_bytes > sizeof(target.key)) {
		drv_memory_free(engine, &target.memory);
		return code < 0 ? drv_engine_fail("expose", code, fail)
				: drv_fail_set(fail, DRV_LIBRARY, "the layer's key is longer than its room");
	}
	*target_out = target;
	return 0;
}

void drv_target_free(struct drv_engine *engine, struct drv_target_memory *target)
{
	if (target->region)
		engine->layer->unexpose(engine->ctx, target->region);
	target->region = NULL;
	drv_memory_free(engine, &target->memory);
}

void drv_target_prepare(const struct drv_target_memory *target, const struct drv_point *point, uint64_t seed,
			uint64_t phase)
{
	const size_t bytes = (size_t)point->request_bytes;
	const size_t stride = drv_memory_stride(bytes);
	const uint32_t slots = drv_region_slots(point->depth);

	for (uint32_t slot = 0; slot < slots; slot++) {
		uint8_t *at = target->memory.base + slot * stride;

		if (point->operation == DRV_GET) {
			drv_head_write(at, bytes, seed, slot);
			drv_body_fill(at, bytes, seed, phase, slot);
		} else {
			memset(at, 0, bytes);
		}
	}
	/* remote reads and writes do not pass through this core */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint64_t drv_target_inspect(const struct drv_target_memory *target, const struct drv_point *point,
			    uint64_t seed, uint64_t phase, bool full, uint64_t next_number)
{
	const size_t bytes = (size_t)point->request_bytes;
	const size_t stride = drv_memory_stride(bytes);
	const uint32_t slots = drv_region_slots(point->depth);
	const uint64_t wanted = full ? drv_full_messages(point) : slots;
	const uint64_t first = next_number > wanted ? next_number - wanted : 0;
	uint64_t wrong = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint64_t number = first; number < next_number; number++) {
		const uint8_t *at = target->memory.base + (number & (slots - 1)) * stride;

		if (!drv_head_holds(at, bytes, seed, number) ||
		    (full && !drv_body_holds(at, bytes, seed, phase, number)))
			wrong++;
	}
	return wrong;
}

uint64_t drv_target_counter(const struct drv_target_memory *target)
{
	return target->memory.base
		       ? __atomic_load_n((uint64_t *)(void *)target->memory.base, __ATOMIC_SEQ_CST)
		       : 0;
}
