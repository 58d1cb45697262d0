/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor cacheline: a cache line bounced between two cores, which holds payload and flag. */
#include "memory.h"

#define LINE_PAYLOAD_MAX 56u

static int open_line(struct drv_floor_run *run, struct drv_fail *fail)
{
	return memory_open(run, LINE_PAYLOAD_MAX, fail);
}

static const struct drv_floor cacheline = {
	.name = "floor-cacheline",
	.substrate = "cacheline",
	.within = true,
	.poll = true,
	.settings =
		(const struct drv_floor_setting[]){
			{"lines", memory_lines_one, 0},
			{"spin", memory_spin, 0},
			{"pair", NULL, MEMORY_PAIRS - 1},
			{.name = NULL},
		},
	.open = open_line,
	.connect = memory_connect,
	.begin = memory_begin,
	.exchange = {memory_spin_client, memory_spin_server},
	.close = memory_close,
};
DRV_FLOOR(cacheline);
