/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of messages of which the last to arrive is answered. Each message says which burst it belongs to and how many
 * that has, so that its receiver needs no order, and over an unreliable layer never takes a part for the whole.
 */
#ifndef DRV_BURST_H
#define DRV_BURST_H

#include <stdbool.h>
#include <stdint.h>

/* the length fits into 8 bits of the key */
#define DRV_BURST_MAX 255u

/* The key of a message (see payload.h): its burst, how long that is, and its place there. */
static inline uint64_t drv_burst_key(uint64_t burst, uint32_t length, uint32_t index)
{
	return burst << 16 | (uint64_t)length << 8 | index;
}

static inline uint64_t drv_burst_of(uint64_t key)
{
	return key >> 16;
}

static inline uint32_t drv_burst_length(uint64_t key)
{
	return key >> 8 & 0xff;
}

/* The receiver's account. Bursts are numbered from 1 on, and rise. */
struct drv_burst_count {
	uint64_t burst;
	uint32_t arrived;
};

/* A message is here: whether it completes its burst. What comes of an earlier burst is late, and completes nothing. */
static inline bool drv_burst_take(struct drv_burst_count *count, uint64_t key)
{
	const uint64_t burst = drv_burst_of(key);

	if (burst < count->burst)
		return false;
	if (burst > count->burst)
		*count = (struct drv_burst_count){.burst = burst};
	return ++count->arrived == drv_burst_length(key);
}

#endif
