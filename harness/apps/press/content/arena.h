/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for files in one block of memory that a layer knows: a stretch of pages that lie side by side for each. First fit, from
 * where the last one ended. The block is the caller's.
 */
#ifndef PRESS_ARENA_H
#define PRESS_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define PRESS_PAGE_BYTES 4096u

struct press_arena {
	uint8_t *base;
	uint32_t pages, next;
	/* by page: not 0 where it is taken */
	uint8_t *taken;
};

/* Over `bytes` bytes at `base`. 0, or -1 when memory is short. */
int press_arena_start(struct press_arena *arena, uint8_t *base, size_t bytes);
void press_arena_end(struct press_arena *arena);

/* NULL: there is no stretch that is long enough. */
uint8_t *press_arena_take(struct press_arena *arena, size_t bytes);
/* `bytes` as they were asked for. */
void press_arena_give(struct press_arena *arena, const uint8_t *at, size_t bytes);

#endif
