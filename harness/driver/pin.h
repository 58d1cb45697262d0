/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding the process to a core, and proof that it stayed there. */
#ifndef DRV_PIN_H
#define DRV_PIN_H

#include <jansson.h>
#include <stdbool.h>

#define DRV_PIN_CPUS_MAX 64

struct drv_pin {
	int asked;                    /* core, or -1: not to be pinned */
	int actual[DRV_PIN_CPUS_MAX]; /* cores allowed, read back; ascending; the first 64 */
	int actual_count;
	bool ok; /* asked -1, or allowed on that core alone and running there */
	char detail[160];
};

/* Pins the calling thread (threads started later inherit it); -1 leaves everything as it is. Judged by
 * drv_pin_check. */
void drv_pin_set(struct drv_pin *pin, int cpu);

/* Reads back affinity and current core into actual, ok and detail. */
void drv_pin_check(struct drv_pin *pin);

/* {"asked":0,"actual":[0],"ok":true}. New reference or NULL. */
json_t *drv_pin_json(const struct drv_pin *pin);

#endif
