/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers: from the layer where it has some, else from the kernel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/engine.h"

void *drv_zeroed(size_t align, size_t bytes)
{
	const size_t whole = (bytes / align + 1) * align;
	void *made = aligned_alloc(align, whole);

	return made ? memset(made, 0, whole) : NULL;
}

int drv_memory_make(struct drv_engine *engine, size_t bytes, struct drv_memory *memory_out,
		    struct drv_fail *fail)
{
	struct drv_memory memory = {.bytes = (bytes + 4095) / 4096 * 4096};
	int code;

	if (engine->offer.both.caps & CADGE_CAP_MEM_ALLOC) {
		memory.base = engine->layer->mem_alloc(engine->ctx, memory.bytes);
		memory.from_layer = memory.base != NULL;
		if (!memory.base)
			return drv_fail_set(fail, DRV_MEMORY,
					    "the layer cannot allocate %zu bytes for buffers", memory.bytes);
	} else {
		void *base = mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (base == MAP_FAILED)
			return drv_fail_set(fail, DRV_MEMORY, "cannot allocate %zu bytes for buffers: %s",
					    memory.bytes, strerror(errno));
		memory.base = base;
	}
	memset(memory.base, 0, memory.bytes);
	if (engine->offer.both.caps & CADGE_CAP_MEM_REG) {
		code = engine->layer->mem_reg(engine->ctx, memory.base, memory.bytes);
		if (code < 0) {
			drv_memory_free(engine, &memory);
			return drv_engine_fail("mem_reg", code, fail);
		}
		memory.registered = true;
	}
	*memory_out = memory;
	return 0;
}

void drv_memory_free(struct drv_engine *engine, struct drv_memory *memory)
{
	if (!memory->base)
		return;
	if (memory->registered && engine->layer->mem_dereg(engine->ctx, memory->base, memory->bytes) < 0)
		fprintf(stderr, "cadge: the layer's mem_dereg failed\n");
	if (memory->from_layer)
		engine->layer->mem_free(engine->ctx, memory->base, memory->bytes);
	else if (munmap(memory->base, memory->bytes))
		fprintf(stderr, "cadge: munmap failed: %s\n", strerror(errno));
	memset(memory, 0, sizeof(*memory));
}

uint8_t *drv_pool_take(struct drv_engine *engine, enum drv_pool pool, size_t bytes, struct drv_fail *fail)
{
	struct drv_memory *memory = &engine->pools[pool];

	if (memory->bytes < bytes) {
		drv_memory_free(engine, memory);
		if (drv_memory_make(engine, bytes, memory, fail))
			return NULL;
	}
	return memory->base;
}
