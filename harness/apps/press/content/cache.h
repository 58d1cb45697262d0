/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that a node holds in memory: the least recently used go first, and all of them together never have more bytes
 * than the cache may. What is in use is pinned, and stays. A file for which there is no room can be had all the same: it
 * is no part of the cache then, and goes when it is used no longer.
 */
#ifndef PRESS_CACHE_H
#define PRESS_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "press/content/arena.h"

struct press_entry {
	uint32_t file, bytes, pins;
	/* part of the cache; filled */
	bool cached, whole;
	struct press_entry *newer, *older;
	/* who waits until it is filled; the caller's */
	void *waiting;
	/* the content: pages of this arena, or, where that is NULL, behind the entry */
	uint8_t *data;
	struct press_arena *arena;
};

struct press_cache {
	uint64_t bytes_max, bytes;
	uint32_t files;
	/* by file: NULL where it is not kept */
	struct press_entry **entries;
	struct press_entry *newest, *oldest;
	/* where content goes as long as it has room; NULL: wherever memory is */
	struct press_arena *arena;
	/* called for each file that has to go; NULL: nobody asks */
	void (*evicted)(void *arg, uint32_t file);
	void *arg;
	/* since the beginning */
	uint64_t evictions;
};

/* An empty cache for files numbered below `files`. 0, or -1 when memory is short. */
int press_cache_start(struct press_cache *cache, uint64_t bytes_max, uint32_t files);
/* Frees everything. Nothing may be pinned that is not kept. */
void press_cache_free(struct press_cache *cache);

/* What is kept of this file, whole or on its way, now the newest; not pinned. NULL: nothing. */
struct press_entry *press_cache_find(struct press_cache *cache, uint32_t file);

/*
 * Room for a file that is not kept, pinned once and not filled. Where the cache has room for it, or can make some from what
 * is not pinned, it is kept. NULL: memory is short.
 */
struct press_entry *press_cache_add(struct press_cache *cache, uint32_t file, uint32_t bytes);

/*
 * An entry beside any cache, pinned once and not filled; its content is in pages of this arena, or, where that is NULL or
 * full, behind it. NULL: memory is short.
 */
struct press_entry *press_entry_new(uint32_t file, uint32_t bytes, struct press_arena *arena);
/* The same over content that is there already: pages that were taken from this arena, and go with the entry. */
struct press_entry *press_entry_over(uint32_t file, uint32_t bytes, struct press_arena *arena, uint8_t *data);

static inline void press_entry_pin(struct press_entry *entry)
{
	entry->pins++;
}

/* Ends one pin, and with the last one an entry that is not kept. */
void press_entry_unpin(struct press_entry *entry);

/* It could not be filled: it is kept no longer. The caller's pin stays. */
void press_cache_drop(struct press_cache *cache, struct press_entry *entry);

#endif
