/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding the calling thread to a core, and proof that it stayed there. Threads of a library are kept off the
 * callers' cores where there are others: one that shares its caller's core gets to run only when that gives
 * the core away, and a message that waits for it takes milliseconds.
 */
#ifndef DRV_PIN_H
#define DRV_PIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DRV_PIN_CPUS_MAX 64

struct drv_pin {
	int asked;                    /* core, or -1: not to be pinned */
	int actual[DRV_PIN_CPUS_MAX]; /* cores allowed, read back; ascending; the first 64 */
	int actual_count;
	bool ok; /* asked -1, or allowed on that core alone and running there */
	char detail[160];
	struct drv_cpus *before; /* the cores that were allowed before; NULL: not known */
};

/* Pins the calling thread (threads started later inherit it); -1 leaves everything as it is. Judged by
 * drv_pin_check. */
void drv_pin_set(struct drv_pin *pin, int cpu);

/*
 * Before a library starts threads, which inherit the caller's cores: gives the calling thread all cores that
 * were allowed before drv_pin_set, less those of the `callers` (-1: none); where none would be left, all of
 * them. Nothing where the thread was not to be pinned. drv_pin_restore ends it.
 */
void drv_pin_lift(struct drv_pin *pin, const int *callers, size_t callers_count);
/* Pins the calling thread, and it alone, as drv_pin_set did. */
void drv_pin_restore(struct drv_pin *pin);
/* Frees what drv_pin_set keeps. */
void drv_pin_free(struct drv_pin *pin);

/* The core that each thread of this process ran on last, the calling thread first: [0,3,3]. New reference or
 * NULL. */
json_t *drv_pin_threads_json(void);

/* Reads back affinity and current core into actual, ok and detail. */
void drv_pin_check(struct drv_pin *pin);

/* {"asked":0,"actual":[0],"ok":true}. New reference or NULL. */
json_t *drv_pin_json(const struct drv_pin *pin);

#endif
