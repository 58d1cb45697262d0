/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch result (schema cadge.result/2), which endpoint 0 writes: the file's shape as C structs, and its
 * one writer. Everything here is raw: integers in the unit of the name, no means, no quantiles.
 */
#ifndef DRV_RESULT_H
#define DRV_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/clock.h"
#include "measure/events.h"
#include "base/fail.h"
#include "measure/histogram.h"
#include "launch/launch.h"
#include "measure/record.h"
#include "measure/usage.h"

#define DRV_RESULT_SCHEMA "cadge.result/2"

enum drv_status { DRV_DONE, DRV_REFUSED, DRV_FAILED, DRV_UNSOUND };

/* One soundness check. `name` is static. */
struct drv_sound_check {
	const char *name;
	bool ok;
	char detail[200];
};

#define DRV_CHECKS_MAX 8

struct drv_checks {
	struct drv_sound_check list[DRV_CHECKS_MAX];
	size_t count;
};

/* Adds a check; a name that is there already is overwritten when the new verdict is worse. */
void drv_check_add(struct drv_checks *checks, const char *name, bool ok, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* One attempt at a point. Zeroed is a legal start; drv_attempt_free releases what it owns. */
struct drv_attempt {
	const struct drv_point *point;
	/* place in the launch, from 0 */
	uint32_t order;
	enum drv_status status;
	/* when refused, failed or unsound */
	struct drv_fail fail;
	/* since the start of the launch */
	uint64_t started_ns;
	uint64_t warmup_ns;
	/* static; NULL: no warm-up took place */
	const char *warmup_rule;
	/* of the step COUNT, all endpoints together; 0 where system calls were not counted */
	uint64_t counted_operations;
	/* what endpoint 0 measured; its totals are those of all endpoints */
	struct drv_record record;
	/* {"quantity": [{"endpoint": 1, ...}]}: what others measured; owned reference */
	json_t *others;
	/* samples above the range, of others */
	uint64_t overflows;
	/* false: nobody can count executions (put, get): written as null */
	bool executions_known;
	uint64_t executions_expected, executions_server;
	uint64_t verified_in_loop, verified_before, verified_after, mismatches;
	/* by endpoint; owned */
	struct drv_usage *cpu;
	/* endpoints that reported: 0 or all */
	size_t cpu_count;
	/* an object for each of them: what its layer counted meanwhile; owned, NULL: not known */
	json_t *counters;
	struct drv_checks checks;
};

void drv_attempt_free(struct drv_attempt *attempt);

struct drv_phases {
	uint64_t open_ns, connect_ns, verify_ns, warmup_ns, measure_ns, close_ns;
};

struct drv_result {
	const struct drv_launch *launch;
	enum drv_status status; /* of the launch: done, refused, failed */
	struct drv_fail fail;
	char started_utc[48];
	uint64_t started_ns; /* drv_now_ns at the start */
	struct drv_phases phases;
	/* Parts that are JSON already; NULL is written as null. Owned references. */
	json_t *library, *adapter, *limits;
	/* array with one entry a channel, by endpoint and channel */
	json_t *path;
	/* array of what was mapped into any endpoint; endpoints have their places in it */
	json_t *objects;
	/* by endpoint */
	json_t *clock[DRV_ENDPOINTS_MAX], *pinning[DRV_ENDPOINTS_MAX], *endpoint[DRV_ENDPOINTS_MAX];
	/* by endpoint: the core that each of its threads ran on last */
	json_t *threads[DRV_ENDPOINTS_MAX];
	/* by endpoint: resident memory of its process, see rss.h; NULL: it did not come to connect */
	json_t *rss[DRV_ENDPOINTS_MAX];
	/* array, by endpoint: bytes sent and received out of band; NULL: nobody to talk to */
	json_t *control_bytes;
	struct drv_checks checks;
	/* what the machine probe said before, between and after the attempts; owned reference */
	json_t *probe;
	struct drv_attempt *attempts;
	size_t attempts_count;
};

/* Notes the start: wall clock, monotonic clock, launch. */
void drv_result_start(struct drv_result *result, const struct drv_launch *launch);
/* Frees references and attempts, not the struct. */
void drv_result_free(struct drv_result *result);

/* The whole document as text from malloc, or NULL when memory is short. */
char *drv_result_text(const struct drv_result *result);

/* Writes text to `path`, see out.h. */
int drv_result_store(const char *path, const char *text, struct drv_fail *fail);

/* Parts that both kinds of program fill the same way. New references. */
json_t *drv_result_clock_json(const struct drv_clock *clock);
json_t *drv_result_endpoint_json(const struct drv_endpoint *endpoint, const struct drv_events *events);
json_t *drv_driver_json(void);

#endif
