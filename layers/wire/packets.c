/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/packets.h"

#include <stdlib.h>
#include <sys/mman.h>

size_t cadge_packet_stride(size_t packet_bytes)
{
	return (CADGE_PACKET_HEAD_BYTES + packet_bytes + 127) / 128 * 128 + 64;
}

uint8_t *cadge_packet_pool(size_t count, size_t stride_bytes)
{
	void *pool = mmap(NULL, count * stride_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pool == MAP_FAILED ? NULL : pool;
}

static struct cadge_packet *packet_at(const struct cadge_packet_sets *sets,
				      const struct cadge_packet_set *set, uint32_t number)
{
	return (struct cadge_packet *)(void *)(set->pool + number * sets->stride_bytes);
}

static struct cadge_packet_set *make_set(struct cadge_packet_sets *sets)
{
	struct cadge_packet_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->pool = sets->count ? cadge_packet_pool(sets->count, sets->stride_bytes) : NULL;
	if (sets->count && !set->pool) {
		free(set);
		return NULL;
	}
	set->next = sets->first;
	sets->first = set;
	return set;
}

struct cadge_packet_set *cadge_packet_set_begin(struct cadge_packet_sets *sets, void *user)
{
	struct cadge_packet_set *set = sets->first;

	while (set && (set->user || set->out))
		set = set->next;
	if (!set)
		set = make_set(sets);
	if (!set)
		return NULL;
	set->user = user;
	set->idle = NULL;
	for (uint32_t i = sets->count; i-- > 0;) {
		struct cadge_packet *packet = packet_at(sets, set, i);

		packet->set = set;
		packet->out = packet->held = false;
		CADGE_POOL_GIVE(set->idle, packet);
	}
	return set;
}

void cadge_packet_set_end(struct cadge_packet_set *set)
{
	set->user = NULL;
	set->idle = NULL;
}

struct cadge_packet *cadge_packet_find(const struct cadge_packet_sets *sets, void *at)
{
	for (const struct cadge_packet_set *set = sets->first; set; set = set->next) {
		const uintptr_t offset_bytes = (uintptr_t)at - (uintptr_t)set->pool;

		if (offset_bytes < sets->count * sets->stride_bytes && offset_bytes % sets->stride_bytes == 0)
			return at;
	}
	return NULL;
}

bool cadge_packets_out(const struct cadge_packet_sets *sets)
{
	for (const struct cadge_packet_set *set = sets->first; set; set = set->next)
		if (set->out)
			return true;
	return false;
}

void cadge_packet_sets_destroy(struct cadge_packet_sets *sets)
{
	struct cadge_packet_set *set;

	while ((set = sets->first)) {
		sets->first = set->next;
		if (set->pool)
			munmap(set->pool, sets->count * sets->stride_bytes);
		free(set);
	}
}
