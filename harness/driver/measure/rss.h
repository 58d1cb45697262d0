/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resident memory of this process, from /proc/self/smaps: exact, where the counters in /proc/self/status are off by some
 * hundred KiB. The kernel walks the page tables, which takes a millisecond or a few: never in a measured region.
 *
 * What a kernel holds for a process (buffers of sockets, queues of a device) is in none of these.
 */
#ifndef DRV_RSS_H
#define DRV_RSS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct drv_rss {
	/* false: the kernel does not say; the rest is 0 */
	bool known;
	/* heap, stacks, data that was written: this process's alone */
	uint64_t private_bytes;
	/* mappings made to be shared, whole, as far as this process has touched them */
	uint64_t shared_bytes;
	/* the same, each page divided by the processes that have touched it: of all processes together, what there is */
	uint64_t shared_part_bytes;
	/* programs and libraries as they stand in their files, of which the machine has one copy */
	uint64_t file_bytes;
};

/* The moments of a launch that are told, none of them in a measured region or in a phase that is timed. */
enum drv_moment {
	/* the endpoints have met; nothing of the subject is loaded */
	DRV_BEFORE,
	DRV_OPENED,
	/* all channels of all endpoints are up; the driver has no buffers for messages yet */
	DRV_CONNECTED,
	DRV_MOMENTS,
};

struct drv_rss drv_rss_read(void);
/* The same of a text in the form of /proc/self/smaps. */
struct drv_rss drv_rss_parse(FILE *text);

/* {"before": {"private": bytes, ...}, ...}; null for what is not known. New reference or NULL. */
json_t *drv_rss_json(const struct drv_rss moments[DRV_MOMENTS]);

#endif
