/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two buffers of the process's own memory: one that stays, and one that is mapped anew before each operation. What an
 * operation from the one costs more than from the other is what its layer does for memory that it does not know.
 *
 * For that to be all, both are treated alike before each operation, whichever it uses: one is unmapped and mapped, and both
 * are written, last the one in use. So the caches, the processor's translations and the kernel are in the same state.
 *
 * Each lies where none of them lay before, in the whole life of the process: a layer that remembers addresses cannot take
 * it for memory that it had. These addresses are the process's, so that one thread at a time may use all of this.
 */
#ifndef DRV_UNREGISTERED_BUFFER_H
#define DRV_UNREGISTERED_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

struct drv_unregistered_buffer {
	/* private anonymous memory, page-aligned, of `bytes` bytes, which are whole pages. NULL: not mapped */
	uint8_t *warm, *cold;
	size_t bytes;
	/* of each buffer, so many bytes from its start are written */
	size_t used_bytes;
};

/* Maps the warm buffer, which stays. `used_bytes`: at least 1. 0, or -1 with DRV_MEMORY; to be ended after both. */
int drv_unregistered_buffer_start(struct drv_unregistered_buffer *buffer, size_t used_bytes,
				  struct drv_fail *fail);

/*
 * Unmaps the cold buffer, maps another, and fills both with zeroes, last the cold one where `cold_last`, else the warm
 * one. 0, or -1 with DRV_MEMORY.
 */
int drv_unregistered_buffer_renew(struct drv_unregistered_buffer *buffer, bool cold_last,
				  struct drv_fail *fail);

/* Unmaps both. */
void drv_unregistered_buffer_end(struct drv_unregistered_buffer *buffer);

#endif
