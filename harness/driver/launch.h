/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch file (schema cadge.launch/1): what one pair of processes is to measure. Reading is strict: every
 * key that is unknown, missing, of the wrong type or out of range is refused with a sentence that names the
 * field.
 */
#ifndef DRV_LAUNCH_H
#define DRV_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "fail.h"

#define DRV_LAUNCH_SCHEMA     "cadge.launch/1"
#define DRV_MESSAGE_BYTES_MAX (UINT64_C(1) << 30) /* sanity bound of sizes in a launch file */
#define DRV_DEPTH_MAX         4096u               /* and of depths */

enum drv_kind { DRV_KIND_LAYER, DRV_KIND_FLOOR };
enum drv_place { DRV_PLACE_SELF, DRV_PLACE_WITHIN, DRV_PLACE_BETWEEN }; /* same order as enum cadge_place */
enum drv_wait { DRV_WAIT_POLL, DRV_WAIT_BLOCK }; /* same order as enum cadge_wait_mode */
enum drv_pattern { DRV_PINGPONG, DRV_RPC, DRV_STREAM, DRV_ONESIDED };
enum drv_operation { DRV_OPERATION_NONE, DRV_PUT, DRV_GET, DRV_FETCH_ADD };
enum drv_target { DRV_TARGET_ACTIVE, DRV_TARGET_PASSIVE };

struct drv_point {
	char *attempt_id, *point_id;
	enum drv_pattern pattern;
	enum drv_operation operation; /* onesided only */
	enum drv_target target;       /* onesided only */
	uint64_t request_bytes, reply_bytes;
	uint32_t depth;
	uint64_t duration_ns, deadline_ns;
};

struct drv_endpoint {
	char *host, *device, *address, *raw_device;
	int cpu; /* -1: not pinned */
};

struct drv_name_value {
	char *name, *value;
};

struct drv_launch {
	char *launch_id, *campaign_id, *layer;
	enum drv_kind kind;
	char *launcher; /* "direct" or "mpirun" */
	enum drv_place place;
	enum drv_wait wait;
	char **shims; /* outermost first */
	size_t shims_count;
	struct drv_name_value *settings; /* in the order of their names */
	size_t settings_count;
	uint64_t seed, deadline_ns;
	uint16_t port_first, port_last;
	struct drv_endpoint endpoints[2];
	size_t endpoints_count; /* 1 only for place self */
	struct drv_point *points;
	size_t points_count;
	/* SHA-256 of the document in canonical form, hex: both endpoints must hold the same launch */
	char digest[65];
};

/* Reads and checks a launch file. On success the caller frees *launch_out; on failure it is untouched. */
int drv_launch_read(const char *path, struct drv_launch *launch_out, struct drv_fail *fail);

/* The same from text of `text_bytes` bytes, for tests. */
int drv_launch_parse(const char *text, size_t text_bytes, struct drv_launch *launch_out,
		     struct drv_fail *fail);

/* Frees what a launch holds, not the struct itself. Legal on a zeroed one. */
void drv_launch_free(struct drv_launch *launch);

/* The words of the launch file. */
const char *drv_place_name(enum drv_place place);
const char *drv_wait_name(enum drv_wait wait);
const char *drv_pattern_name(enum drv_pattern pattern);
const char *drv_operation_name(enum drv_operation operation); /* NULL for none */
const char *drv_target_name(enum drv_target target);

#endif
