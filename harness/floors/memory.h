/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory between the two endpoints: a control page, and two regions of messages. A message lies in a
 * *slot*: a flag of 8 bytes at its start, on a cache line of its own when the payload is large, and the
 * payload after it. The flag is the number of the message, stored after the payload.
 */
#ifndef CADGE_FLOOR_MEMORY_H
#define CADGE_FLOOR_MEMORY_H

#include <string.h>

#include "traffic/floor.h"
#include "base/relax.h"

#define MEMORY_PAIRS      64u  /* pairs of lines to choose from */
#define MEMORY_PAIR_BYTES 128u /* apart: the neighbour line is prefetched with the first */
#define MEMORY_SCATTER    (MEMORY_PAIRS * MEMORY_PAIR_BYTES)
/*
 * Payloads from here on begin on a line of their own; if they are written before the flag is, already from there on: whoever
 * waits for a flag takes its line back into its own cache as soon as anything in it is written.
 */
#define MEMORY_APART_BYTES         4096u
#define MEMORY_TOUCHED_APART_BYTES 57u
#define MEMORY_PAGED_BYTES                                                                                   \
	(64u << 10) /* and from here on on a page of their own, as the buffers that they come from do */
#define MEMORY_BYTES_MAX  (UINT64_C(1) << 30)
#define MEMORY_RING_BYTES (UINT64_C(2) << 20)
/*
 * The ring of a stream, by the size of its messages. Below 512 B it has as many slots as the window: few lines go to and fro
 * between both caches. Up to 256 KiB it fills a core's own cache, whatever the window is: a line that its reader still has is
 * written more slowly than one that it had to give away (at 4 KiB 1.8 times). Larger messages, and windows that do not fit
 * there, go through the cache that both share, in twice as many slots as the window (at 1 MiB 0.7 times the time).
 */
#define MEMORY_RING_SMALL_BYTES  512u
#define MEMORY_RING_LARGE_BYTES  (UINT64_C(256) << 10)
#define MEMORY_RING_SHARED_BYTES (UINT64_C(8) << 20)
#define MEMORY_RING_BYTES_MAX    (UINT64_C(32) << 20)
/* slots of large messages; from which size on one is beyond all caches by itself */
#define MEMORY_TURNS_MIN       4u
#define MEMORY_TURNS_BYTES_MIN 2048u
#define MEMORY_TURNS_BYTES_MAX (UINT64_C(1) << 20)

struct memory_control {
	/* stream: messages consumed; the producer sleeps on its low half */
	_Alignas(64) uint64_t consumed;
	/* messages in chunks: how many of each direction were taken out */
	_Alignas(64) uint64_t taken[2 * 8];
	/* who sleeps: reader of requests, reader of replies, producer of a stream, waiters for room in chunks
	 * (2) */
	_Alignas(64) uint32_t asleep[5 * 16];
};

/* From here on a message may be copied in two steps, and up to here that is faster if its data are touched. */
#define MEMORY_CHUNKED_BYTES     (UINT64_C(32) << 10)
#define MEMORY_CHUNKED_BYTES_MAX (UINT64_C(64) << 10)
#define MEMORY_CHUNK_BYTES       ((size_t)16 << 10)
#define MEMORY_CHUNKS            128u /* slots of their ring, in each direction */

/* Of a message: one; two, in chunks, from MEMORY_CHUNKED_BYTES on; two where that is faster. */
enum memory_copies { MEMORY_ONE_COPY, MEMORY_TWO_COPIES, MEMORY_BY_SIZE };

/* Which slots a stream has; MEMORY_RING_BY_SIZE: those of the size that is fastest. */
enum memory_ring { MEMORY_RING_BY_SIZE, MEMORY_RING_WINDOW, MEMORY_RING_OWN, MEMORY_RING_SHARED };

struct floor_state {
	uint8_t *area;
	size_t area_bytes, region_bytes;
	struct memory_control *control;
	/* the variant: settings of the floor */
	bool one_line, pause, huge_pages, apart, one_slot;
	/* the shared memory lies on huge pages that the system keeps */
	bool huge_shared;
	uint32_t pair;
	/* of the point */
	/* of an exchange: the first slot of each direction, and the one whose turn it is; all slots of a direction */
	uint8_t *requests, *replies, *request, *reply;
	size_t turn_bytes;
	uint64_t turns;
	size_t payload_at;
	uint64_t sent, received;
	uint32_t *wake, *sleep; /* futex: flags in control of the other reader and of this one */
	enum memory_copies copies;
	bool chunks;
	size_t gathered; /* of the message that arrives in chunks */
	/* stream: slots of the ring, how many of them may be in flight, and after how many slots are given back */
	enum memory_ring ring;
	uint64_t slots, window, batch;
	size_t stride;
	uint64_t next; /* message */
};

/* Where the payload of a message begins in its slot. */
DRV_INLINE size_t memory_payload_at(uint64_t bytes, bool touched)
{
	if (bytes >= MEMORY_PAGED_BYTES)
		return 4096;
	return bytes >= (touched ? MEMORY_TOUCHED_APART_BYTES : MEMORY_APART_BYTES) ? 64 : 8;
}

DRV_INLINE size_t memory_stride(uint64_t bytes)
{
	return ((size_t)bytes + memory_payload_at(bytes, true) + 63) / 64 * 64;
}

/* Slots of a stream's ring: two at least, and where it is by size no fewer than the window, up to MEMORY_RING_BYTES_MAX. */
DRV_INLINE uint64_t memory_slots(uint64_t bytes, uint32_t depth, enum memory_ring ring)
{
	const uint64_t stride = memory_stride(bytes), most = MEMORY_RING_BYTES_MAX / stride;
	uint64_t slots = depth;

	if (ring == MEMORY_RING_BY_SIZE)
		ring = bytes < MEMORY_RING_SMALL_BYTES ? MEMORY_RING_WINDOW
		       : bytes < MEMORY_RING_LARGE_BYTES && bytes * depth <= MEMORY_RING_BYTES
			       ? MEMORY_RING_OWN
			       : MEMORY_RING_SHARED;
	if (ring == MEMORY_RING_OWN && slots < MEMORY_RING_BYTES / stride)
		slots = MEMORY_RING_BYTES / stride;
	if (ring == MEMORY_RING_SHARED) {
		slots *= 2;
		if (slots < MEMORY_RING_SHARED_BYTES / stride)
			slots = MEMORY_RING_SHARED_BYTES / stride;
	}
	if (slots > most)
		slots = most;
	return slots < 2 ? 2 : slots;
}

/*
 * Slots of an exchange in each direction, where data are touched: what nobody reads stays in its writer's cache, in one
 * slot. A small message has one slot, too. Larger ones take turns in a ring that fills a core's own cache: lines that the other
 * core still has in its own are fetched more slowly than those that it had to give away.
 */
DRV_INLINE uint64_t memory_turns(uint64_t bytes)
{
	const uint64_t fit = MEMORY_RING_BYTES / memory_stride(bytes);

	if (bytes < MEMORY_TURNS_BYTES_MIN || bytes > MEMORY_TURNS_BYTES_MAX)
		return 1;
	return fit < MEMORY_TURNS_MIN ? MEMORY_TURNS_MIN : fit;
}

DRV_INLINE uint8_t *memory_region(const struct floor_state *state, unsigned int which)
{
	return state->area + 4096 + which * state->region_bytes;
}

/* Slot of a chunk, in the direction of requests (0) or replies (1). */
DRV_INLINE uint8_t *memory_chunk(const struct floor_state *state, unsigned int which, uint64_t number)
{
	return memory_region(state, which) + number % MEMORY_CHUNKS * (64 + MEMORY_CHUNK_BYTES);
}

/* Nothing where it is there already: a message that is written anew is made in its place. */
DRV_INLINE void memory_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (bytes == 8)
		drv_store64(to, drv_load64(from));
	else if (DRV_LIKELY(to != from))
		memcpy(to, from, bytes);
}

DRV_INLINE uint64_t memory_flag(const uint8_t *slot)
{
	return __atomic_load_n((const uint64_t *)(const void *)slot, __ATOMIC_ACQUIRE);
}

DRV_INLINE void memory_flag_set(uint8_t *slot, uint64_t flag)
{
	__atomic_store_n((uint64_t *)(void *)slot, flag, __ATOMIC_RELEASE);
}

/*
 * Sleeps until the low half of *word is not `expected`, a few ms at most. `asleep` is this reader's mark. -1:
 * errno.
 */
int memory_sleep(uint32_t *word, uint32_t expected, uint32_t *asleep);
/* After a store to *word: wakes its reader when it sleeps. -1: errno. */
int memory_wake(uint32_t *word, uint32_t *asleep);

/*
 * The words of the settings, the default first: one line for both directions or a line each, spinning with or
 * without a pause instruction, large messages in one copy or in two.
 */
extern const char *const memory_lines_one[], *const memory_lines_two[];
extern const char *const memory_spin[], *const memory_copies_by_size[], *const memory_copies_one[];
/*
 * Pages of large messages: huge ones, where the system keeps some for shared memory (MFD_HUGETLB) and gives some when it is
 * asked (MADV_HUGEPAGE), or those that it gives to everybody. All are touched before anything is timed.
 */
extern const char *const memory_pages[];
/* A message whose data are touched is written where its receiver reads it, or apart and copied there. */
extern const char *const memory_made[];
/* Touched messages of 2 KiB to 1 MiB in many slots, in turn, or in one. */
extern const char *const memory_slots_words[];
/* The ring of a stream, as in enum memory_ring. */
extern const char *const memory_rings[];

/* `bytes_max`: the largest message. The settings lines, spin, pair, copies and pages are read where the floor has them. */
int memory_open(struct drv_floor_run *run, uint64_t bytes_max, struct drv_fail *fail);
int memory_connect(struct drv_floor_run *run, struct drv_fail *fail);
int memory_begin(struct drv_floor_loop *loop, struct drv_fail *fail);
void memory_close(struct drv_floor_run *run);

/* The loops of an exchange that spins, and of one that sleeps. */
int memory_spin_client(struct drv_floor_loop *loop);
int memory_spin_server(struct drv_floor_loop *loop);
int memory_futex_client(struct drv_floor_loop *loop);
int memory_futex_server(struct drv_floor_loop *loop);

/* chunk.c: a message is copied twice, in pieces that stay in the cache, by both sides at once. */
size_t chunk_region_bytes(void);
int chunk_client(struct drv_floor_loop *loop);
int chunk_server(struct drv_floor_loop *loop);

/* ring.c */
int ring_client(struct drv_floor_loop *loop);
int ring_server(struct drv_floor_loop *loop);

#endif
