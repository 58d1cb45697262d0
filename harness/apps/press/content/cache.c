/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/cache.h"

#include <stdlib.h>

int press_cache_start(struct press_cache *cache, uint64_t bytes_max, uint32_t files)
{
	*cache = (struct press_cache){.bytes_max = bytes_max, .files = files};
	cache->entries = calloc(files, sizeof(struct press_entry *));
	return cache->entries ? 0 : -1;
}

struct press_entry *press_entry_over(uint32_t file, uint32_t bytes, struct press_arena *arena, uint8_t *data)
{
	struct press_entry *entry = malloc(sizeof(*entry));

	if (entry)
		*entry = (struct press_entry){
			.file = file, .bytes = bytes, .pins = 1, .data = data, .arena = arena};
	return entry;
}

struct press_entry *press_entry_new(uint32_t file, uint32_t bytes, struct press_arena *arena)
{
	uint8_t *data = arena ? press_arena_take(arena, bytes) : NULL;
	struct press_entry *entry;

	if (data) {
		entry = press_entry_over(file, bytes, arena, data);
		if (!entry)
			press_arena_give(arena, data, bytes);
		return entry;
	}
	entry = malloc(sizeof(*entry) + bytes);
	if (entry)
		*entry = (struct press_entry){
			.file = file, .bytes = bytes, .pins = 1, .data = (uint8_t *)(entry + 1)};
	return entry;
}

static void free_entry(struct press_entry *entry)
{
	if (entry->arena)
		press_arena_give(entry->arena, entry->data, entry->bytes);
	free(entry);
}

static void unlink_entry(struct press_cache *cache, struct press_entry *entry)
{
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
	entry->newer = entry->older = NULL;
}

static void link_newest(struct press_cache *cache, struct press_entry *entry)
{
	entry->older = cache->newest;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

static void forget(struct press_cache *cache, struct press_entry *entry)
{
	unlink_entry(cache, entry);
	cache->entries[entry->file] = NULL;
	cache->bytes -= entry->bytes;
	entry->cached = false;
	if (!entry->pins)
		free_entry(entry);
}

void press_cache_free(struct press_cache *cache)
{
	while (cache->newest) {
		cache->newest->pins = 0;
		forget(cache, cache->newest);
	}
	free(cache->entries);
	cache->entries = NULL;
}

struct press_entry *press_cache_find(struct press_cache *cache, uint32_t file)
{
	struct press_entry *entry = cache->entries[file];

	if (entry && entry != cache->newest) {
		unlink_entry(cache, entry);
		link_newest(cache, entry);
	}
	return entry;
}

/* Whether `bytes` more fit, once what is oldest and not in use has gone. */
static bool make_room(struct press_cache *cache, uint64_t bytes)
{
	struct press_entry *entry = cache->oldest;

	if (bytes > cache->bytes_max)
		return false;
	while (entry && cache->bytes + bytes > cache->bytes_max) {
		struct press_entry *newer = entry->newer;

		if (!entry->pins) {
			const uint32_t file = entry->file;

			forget(cache, entry);
			cache->evictions++;
			if (cache->evicted)
				cache->evicted(cache->arg, file);
		}
		entry = newer;
	}
	return cache->bytes + bytes <= cache->bytes_max;
}

struct press_entry *press_cache_add(struct press_cache *cache, uint32_t file, uint32_t bytes)
{
	/* room first, so that pages that have just become free can be had */
	const bool cached = make_room(cache, bytes);
	struct press_entry *entry = press_entry_new(file, bytes, cache->arena);

	if (!entry)
		return NULL;
	if (cached) {
		entry->cached = true;
		cache->entries[file] = entry;
		cache->bytes += bytes;
		link_newest(cache, entry);
	}
	return entry;
}

void press_entry_unpin(struct press_entry *entry)
{
	if (--entry->pins == 0 && !entry->cached)
		free_entry(entry);
}

void press_cache_drop(struct press_cache *cache, struct press_entry *entry)
{
	if (entry->cached)
		forget(cache, entry);
}
