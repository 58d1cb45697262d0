/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/nginx/ring.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static int compare(const void *one, const void *other)
{
	const struct press_ring_point *left = one, *right = other;

	return (left->hash > right->hash) - (left->hash < right->hash);
}

static uint32_t hash_of(uint32_t hash, const void *data, size_t bytes)
{
	return (uint32_t)crc32(hash, data, (uInt)bytes);
}

/* The points of one server: crc32(HOST \0 PORT BEFORE), where BEFORE is the point before, 0 at first. */
static void add_server(struct press_ring *ring, const char *name, uint32_t server)
{
	const char *colon = strrchr(name, ':');
	const size_t host_bytes = colon ? (size_t)(colon - name) : strlen(name);
	uint32_t base = hash_of(0, name, host_bytes), before = 0;

	base = hash_of(base, "", 1);
	base = colon ? hash_of(base, colon + 1, strlen(colon + 1)) : base;
	for (uint32_t i = 0; i < PRESS_RING_POINTS; i++) {
		/* its bytes from the lowest on, on every machine */
		const uint8_t bytes[4] = {(uint8_t)before, (uint8_t)(before >> 8), (uint8_t)(before >> 16),
					  (uint8_t)(before >> 24)};

		before = hash_of(base, bytes, sizeof(bytes));
		ring->points[ring->count++] = (struct press_ring_point){before, server};
	}
}

int press_ring_make(struct press_ring *ring, const char *const *names, uint32_t count)
{
	uint32_t last = 0;

	*ring = (struct press_ring){.points =
					    calloc((size_t)count * PRESS_RING_POINTS, sizeof(*ring->points))};
	if (!ring->points)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		add_server(ring, names[i], i);
	qsort(ring->points, ring->count, sizeof(*ring->points), compare);
	/* of several at one place the first stays */
	for (uint32_t i = 1; i < ring->count; i++)
		if (ring->points[i].hash != ring->points[last].hash)
			ring->points[++last] = ring->points[i];
	ring->count = last + 1;
	return 0;
}

void press_ring_free(struct press_ring *ring)
{
	free(ring->points);
	*ring = (struct press_ring){.count = 0};
}

uint32_t press_ring_find(const struct press_ring *ring, const char *key, size_t bytes)
{
	const uint32_t hash = hash_of(0, key, bytes);
	uint32_t low = 0, high = ring->count;

	/* the first point that is not before it; behind the last one comes the first */
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (ring->points[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return ring->points[low % ring->count].server;
}
