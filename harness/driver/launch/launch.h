/* SPDX-License-Identifier: BSD-3-Clause */
/* A launch: what its processes are to measure, as its file says (launch_file.h). */
#ifndef DRV_LAUNCH_H
#define DRV_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

#define DRV_LAUNCH_SCHEMA "cadge.launch/2"
#define DRV_ENDPOINTS_MAX 64u
#define DRV_PEERS_MAX     64u
#define DRV_THREADS_MAX   64u

enum drv_kind { DRV_KIND_LAYER, DRV_KIND_FLOOR };
/* in the order of enum cadge_place and enum cadge_wait_mode */
enum drv_place { DRV_PLACE_SELF, DRV_PLACE_WITHIN, DRV_PLACE_BETWEEN };
enum drv_wait { DRV_WAIT_POLL, DRV_WAIT_BLOCK };

struct drv_pattern;
struct drv_trace;

struct drv_point {
	char *attempt_id, *point_id;
	const struct drv_pattern *pattern;
	/* pattern->parameters_bytes, filled in by the pattern's table; owned */
	void *parameters;
	/* {"pattern", "parameters"} as it stands in the file; owned reference */
	json_t *workload;
	uint64_t duration_ns, deadline_ns;
};

struct drv_endpoint {
	/* as the patterns of the launch name it */
	char *role;
	char *host, *device, *address, *raw_device;
	/* NULL: nothing of a pattern goes over the management network */
	char *management_address;
	/* one a thread: core, or -1: not pinned; none means one thread that is not pinned */
	int cpus[DRV_THREADS_MAX];
	size_t cpus_count;
	/* one a worker (see workers.h): core, or -1 */
	int worker_cpus[DRV_THREADS_MAX];
	size_t worker_cpus_count;
	/* by place in the list: the endpoint named there, and where that one names this one */
	uint8_t peers[DRV_PEERS_MAX], channels[DRV_PEERS_MAX];
	size_t peers_count;
};

struct drv_name_value {
	char *name, *value;
};

/* The trace that a launch names (see trace.h). */
struct drv_launch_trace {
	/* in the folder of the launch file */
	char *file;
	char sha256[65];
	/* once it was read; owned */
	struct drv_trace *read;
};

struct drv_launch {
	char *launch_id, *campaign_id, *layer;
	enum drv_kind kind;
	/* "direct" or "mpirun" */
	char *launcher;
	enum drv_place place;
	enum drv_wait wait;
	/* outermost first */
	char **shims;
	size_t shims_count;
	/* in the order of their names */
	struct drv_name_value *settings;
	size_t settings_count;
	uint64_t seed, deadline_ns;
	/* for tests: each measurement and warm-up ends after so many of each thread that measures; 0: time ends them */
	uint64_t operations;
	/* see events.h */
	bool system_calls;
	uint16_t port_first, port_last;
	/* what some points replay; file NULL: nothing */
	struct drv_launch_trace trace;
	/* 1 to 64; exactly one at place self */
	struct drv_endpoint *endpoints;
	size_t endpoints_count;
	struct drv_point *points;
	size_t points_count;
	/* SHA-256 of the document in canonical form, hex: all endpoints must hold the same launch */
	char digest[65];
};

/* Frees what a launch holds, not the struct itself. Legal on a zeroed one. */
void drv_launch_free(struct drv_launch *launch);

/* The core of the first thread of an endpoint, or -1. */
static inline int drv_endpoint_cpu(const struct drv_endpoint *endpoint)
{
	return endpoint->cpus_count ? endpoint->cpus[0] : -1;
}

static inline size_t drv_endpoint_threads(const struct drv_endpoint *endpoint)
{
	return endpoint->cpus_count ? endpoint->cpus_count : 1;
}

/* The other end of a channel. */
struct drv_end {
	uint8_t endpoint, thread, channel;
};

/*
 * The channels of one thread of an endpoint, in the order of their numbers; the count, which is larger than `room` where
 * they do not fit. Each pair of entries in the two endpoints' lists stands for as many channels as the one with more
 * threads has; the k-th of them joins thread k modulo the number of threads of either.
 */
size_t drv_launch_channels(const struct drv_launch *launch, size_t endpoint, size_t thread,
			   struct drv_end *out, size_t room);

/* The words of the launch file. */
extern const char *const drv_place_names[3], *const drv_wait_names[2];

#endif
