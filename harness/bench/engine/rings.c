/* SPDX-License-Identifier: BSD-3-Clause */
/* See floors.h: messages through a bare ring in shared memory, in parts, with nothing of a protocol. */
#include <stdlib.h>

#include "floors.h"

#define RING_BYTES (2u << 20) /* as the wire shm has; both fit shared->big */
#define SHORT      4096u /* below, a message begins behind its stamp; from here on, on a line of its own */

/* One direction, as its writer or its reader sees it. Slots of one size, each with its stamp: the number of its part, from 1. */
struct ring {
	uint8_t *slots;
	_Atomic uint64_t *taken; /* parts that the reader has done with: told now and then */
	size_t part, data_at, stride;
	uint64_t count, number, seen;
};

static _Atomic uint64_t *stamp_of(const struct ring *ring)
{
	return (_Atomic uint64_t *)(void *)(ring->slots + ring->number % ring->count * ring->stride);
}

static struct ring ring_new(unsigned int which)
{
	struct ring ring = {
		.slots = shared->big + which * RING_BYTES,
		.taken = &shared->lines[2 * which].word,
		.part = reading->part,
		.data_at = reading->bytes < SHORT ? sizeof(uint64_t) : 64,
	};

	ring.stride = (ring.data_at + ring.part + 63) / 64 * 64;
	ring.count = RING_BYTES / ring.stride;
	return ring;
}

static void ring_send(struct ring *ring, const uint8_t *from)
{
	for (size_t at = 0; at < reading->bytes; at += ring->part) {
		const size_t left = reading->bytes - at;
		_Atomic uint64_t *const stamp = stamp_of(ring);

		while (ring->number - ring->seen >= ring->count)
			ring->seen = atomic_load_explicit(ring->taken, memory_order_acquire);
		memcpy((uint8_t *)stamp + ring->data_at, from + at, left < ring->part ? left : ring->part);
		atomic_store_explicit(stamp, ++ring->number, memory_order_release);
	}
}

/* Reads all of a message where it lies. */
static uint64_t ring_receive(struct ring *ring)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < reading->bytes; at += ring->part) {
		const size_t left = reading->bytes - at;
		_Atomic uint64_t *const stamp = stamp_of(ring);

		while (atomic_load_explicit(stamp, memory_order_acquire) != ring->number + 1)
			;
		sum += sum_of((const uint8_t *)stamp + ring->data_at, left < ring->part ? left : ring->part);
		if (++ring->number - ring->seen >= ring->count / 4) {
			ring->seen = ring->number;
			atomic_store_explicit(ring->taken, ring->number, memory_order_release);
		}
	}
	return sum;
}

void rings_server(void)
{
	uint8_t *message = malloc(reading->bytes);
	struct ring in, out;
	uint64_t sum = 0;

	memset(shared->big, 0, sizeof(shared->big));
	in = ring_new(0);
	out = ring_new(1);
	shared->ready = 1;
	for (unsigned int i = 0; i < touched_rounds(); i++) {
		sum += ring_receive(&in);
		memset(message, (int)i, reading->bytes);
		ring_send(&out, message);
	}
	shared->sum = sum;
	free(message);
}

double rings_client(void)
{
	uint8_t *message = malloc(reading->bytes);
	struct ring out = ring_new(0), in = ring_new(1);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < touched_rounds(); i++) {
		const uint64_t begin = __rdtsc();

		memset(message, (int)i, reading->bytes);
		ring_send(&out, message);
		sum += ring_receive(&in);
		samples[i] = (uint32_t)(__rdtsc() - begin);
	}
	shared->sum = sum;
	free(message);
	return p50(touched_rounds());
}

/* ---- messages of one line, as a call without data is: stamp and header; what it is made from lies ready ---- */

struct rest {
	uint64_t word[7];
};

static void line_send(struct ring *ring, const struct rest *rest)
{
	_Atomic uint64_t *const stamp = stamp_of(ring);

	while (ring->number - ring->seen >= ring->count)
		ring->seen = atomic_load_explicit(ring->taken, memory_order_acquire);
	memcpy((uint8_t *)stamp + sizeof(uint64_t), rest, sizeof(*rest));
	atomic_store_explicit(stamp, ++ring->number, memory_order_release);
}

static void line_receive(struct ring *ring, struct rest *rest)
{
	_Atomic uint64_t *const stamp = stamp_of(ring);

	while (atomic_load_explicit(stamp, memory_order_acquire) != ring->number + 1)
		;
	memcpy(rest, (const uint8_t *)stamp + sizeof(uint64_t), sizeof(*rest));
	if (++ring->number - ring->seen >= ring->count / 4) {
		ring->seen = ring->number;
		atomic_store_explicit(ring->taken, ring->number, memory_order_release);
	}
}

void line_rings_server(void)
{
	struct rest rest = {{0}};
	struct ring in, out;

	memset(shared->big, 0, sizeof(shared->big));
	in = ring_new(0);
	out = ring_new(1);
	shared->ready = 1;
	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		line_receive(&in, &rest);
		line_send(&out, &rest);
	}
}

double line_rings_client(void)
{
	struct ring out = ring_new(0), in = ring_new(1);
	struct rest rest = {{0}};

	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		const uint64_t begin = __rdtsc();

		line_send(&out, &rest);
		line_receive(&in, &rest);
		if (i >= WARM_UP)
			samples[i - WARM_UP] = (uint32_t)(__rdtsc() - begin);
	}
	shared->sum = rest.word[0];
	return p50(CALLS);
}
