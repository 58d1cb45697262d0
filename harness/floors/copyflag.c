/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor copyflag: one copy into shared memory, and a flag that the other side spins on. */
#include "memory.h"

static int open_any(struct drv_floor_run *run, struct drv_fail *fail)
{
	return memory_open(run, MEMORY_BYTES_MAX, fail);
}

static const struct drv_floor copyflag = {
	.name = "floor-copyflag",
	.substrate = "copyflag",
	.within = true,
	.poll = true,
	.settings =
		(const struct drv_floor_setting[]){
			{"lines", memory_lines_two, 0},
			{"spin", memory_spin, 0},
			{"pair", NULL, MEMORY_PAIRS - 1},
			{"copies", memory_copies_by_size, 0},
			{"made", memory_made, 0},
			{"slots", memory_slots_words, 0},
			{"pages", memory_pages, 0},
			{"ring", memory_rings, 0},
			{.name = NULL},
		},
	.open = open_any,
	.connect = memory_connect,
	.begin = memory_begin,
	.exchange = {memory_spin_client, memory_spin_server},
	.flow = {ring_client, ring_server},
	.close = memory_close,
};
DRV_FLOOR(copyflag);
