/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch result (schema cadge.result/1), which endpoint 0 writes: the file's shape as C structs, and its
 * one writer. Everything here is raw: integers in the unit of the name, no means, no quantiles.
 */
#ifndef DRV_RESULT_H
#define DRV_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "fail.h"
#include "histogram.h"
#include "launch.h"
#include "usage.h"

#define DRV_RESULT_SCHEMA "cadge.result/1"
#define DRV_FIRST_MAX     1000

enum drv_status { DRV_DONE, DRV_REFUSED, DRV_FAILED, DRV_UNSOUND };

/* One soundness check. `name` is static. */
struct drv_check {
	const char *name;
	bool ok;
	char detail[200];
};

#define DRV_CHECKS_MAX 8

struct drv_checks {
	struct drv_check list[DRV_CHECKS_MAX];
	size_t count;
};

/* Adds a check; a name that is there already is overwritten when the new verdict is worse. */
void drv_check_add(struct drv_checks *checks, const char *name, bool ok, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* True when every check held. */
bool drv_checks_hold(const struct drv_checks *checks);

/* One attempt at a point. Zeroed is a legal start; histograms and first_ns are owned by it. */
struct drv_attempt {
	const struct drv_point *point;
	uint32_t order; /* place in the launch, from 0 */
	enum drv_status status;
	struct drv_fail fail; /* when refused, failed or unsound */
	uint64_t started_ns;  /* since the start of the launch */
	uint64_t warmup_operations, warmup_ns;
	bool warmup_steady;
	const char *warmup_rule; /* static; NULL: no warm-up took place */
	uint64_t elapsed_ns, operations, bytes;
	uint64_t lost, late;
	struct drv_histogram *histogram; /* NULL for stream */
	struct drv_histogram *remote;    /* onesided put: put to visible */
	uint64_t *first_ns;
	uint32_t first_count;
	bool executions_known; /* false: nobody at the target can count (put, get): written as null */
	uint64_t executions_expected, executions_server;
	uint64_t verified_in_loop, verified_before, verified_after, mismatches;
	struct drv_usage cpu[2];
	size_t cpu_count; /* endpoints that reported: 0, 1 or 2 */
	struct drv_checks checks;
};

/* Gives an attempt empty histograms and room for first samples. -1 when memory is short. */
int drv_attempt_prepare(struct drv_attempt *attempt, bool histogram, bool remote, struct drv_fail *fail);
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
	/* Parts that are JSON already, by endpoint where there are two; NULL is written as null. Owned
	 * references. */
	json_t *library, *adapter, *limits;
	json_t *path[2], *clock[2], *pinning[2], *endpoint[2];
	struct drv_checks checks;
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
json_t *drv_result_endpoint_json(const char *host);
json_t *drv_driver_json(void);

#endif
