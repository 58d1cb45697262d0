/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/arena.h"

#include <stdlib.h>
#include <string.h>

static uint32_t pages_of(size_t bytes)
{
	return (uint32_t)((bytes + PRESS_PAGE_BYTES - 1) / PRESS_PAGE_BYTES);
}

int press_arena_start(struct press_arena *arena, uint8_t *base, size_t bytes)
{
	*arena = (struct press_arena){.base = base, .pages = (uint32_t)(bytes / PRESS_PAGE_BYTES)};
	arena->taken = calloc(arena->pages, 1);
	return arena->taken ? 0 : -1;
}

void press_arena_end(struct press_arena *arena)
{
	free(arena->taken);
	*arena = (struct press_arena){.base = NULL};
}

/* The first stretch of `wanted` free pages from `from` on, before `to`; arena->pages: there is none. */
static uint32_t find(const struct press_arena *arena, uint32_t from, uint32_t to, uint32_t wanted)
{
	uint32_t length = 0;

	for (uint32_t page = from; page < to; page++) {
		length = arena->taken[page] ? 0 : length + 1;
		if (length == wanted)
			return page + 1 - wanted;
	}
	return arena->pages;
}

uint8_t *press_arena_take(struct press_arena *arena, size_t bytes)
{
	const uint32_t wanted = pages_of(bytes ? bytes : 1);
	uint32_t first = find(arena, arena->next, arena->pages, wanted);

	if (first == arena->pages)
		first = find(arena, 0, arena->pages, wanted);
	if (first == arena->pages)
		return NULL;
	memset(arena->taken + first, 1, wanted);
	arena->next = first + wanted;
	return arena->base + (size_t)first * PRESS_PAGE_BYTES;
}

void press_arena_give(struct press_arena *arena, const uint8_t *at, size_t bytes)
{
	memset(arena->taken + (size_t)(at - arena->base) / PRESS_PAGE_BYTES, 0, pages_of(bytes ? bytes : 1));
}
