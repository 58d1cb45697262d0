/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor futex: one copy into shared memory, and a futex that wakes the other side. It only blocks. */
#include "memory.h"

static int open_any(struct drv_floor_run *run, struct drv_fail *fail)
{
	return memory_open(run, MEMORY_BYTES_MAX, fail);
}

static const struct drv_floor futex = {
	.name = "floor-futex",
	.substrate = "futex",
	.within = true,
	.block = true,
	.settings =
		(const struct drv_floor_setting[]){
			{"copies", memory_copies_one, 0},
			{"made", memory_made, 0},
			{"slots", memory_slots_words, 0},
			{"pages", memory_pages, 0},
			{"ring", memory_rings, 0},
			{.name = NULL},
		},
	.open = open_any,
	.connect = memory_connect,
	.begin = memory_begin,
	.exchange = {memory_futex_client, memory_futex_server},
	.flow = {ring_client, ring_server},
	.close = memory_close,
};
DRV_FLOOR(futex);
