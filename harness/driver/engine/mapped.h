/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs and libraries are mapped into this process, how they came there, and how the kernel schedules it. */
#ifndef DRV_MAPPED_H
#define DRV_MAPPED_H

#include <jansson.h>

/*
 * All that is executable here and has a file, now: an array of {file, how} with build_id, or with sha256 where the file
 * has no build id. New reference, or NULL. how:
 *   program    this one
 *   needed     another one of these names it as its dependency
 *   preloaded  none does, and it was there before main: LD_PRELOAD, /etc/ld.so.preload
 *   loaded     none does, and it came later: a layer, a component of a library
 *   mapped     it came without the loader
 */
json_t *drv_mapped_json(void);

/* {policy, priority, nice} of the calling thread. New reference, or NULL. */
json_t *drv_scheduling_json(void);

/*
 * Puts an endpoint's objects into the launch's list, each once, and returns their places there. New reference, or NULL.
 */
json_t *drv_mapped_places(json_t *launch, const json_t *objects);

#endif
