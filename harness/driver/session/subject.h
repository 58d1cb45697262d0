/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session does differently for a layer and for a floor: finding it, opening, connecting, closing. */
#ifndef DRV_SUBJECT_H
#define DRV_SUBJECT_H

#include "engine/engine.h"
#include "session/result.h"

struct drv_subject {
	/* Finds it, and says from its table whether this launch can be at all. */
	int (*load)(struct drv_engine *engine, const char *modules, struct drv_result *result,
		    struct drv_fail *fail);
	/* Opens it for the launch, says what it can do here, and fills in the result's facts. */
	int (*open)(struct drv_engine *engine, struct drv_result *result, struct drv_ability *ability_out,
		    struct drv_fail *fail);
	/* All endpoints at once: joins the channels. */
	int (*connect)(struct drv_engine *engine, struct drv_result *result, uint64_t deadline_ns,
		       struct drv_fail *fail);
	/* What is used: an array with one entry a channel. New reference, or NULL with a reason. */
	json_t *(*paths)(struct drv_engine *engine, struct drv_fail *fail);
	/* Legal at any stage. */
	void (*close)(struct drv_engine *engine);
};

extern const struct drv_subject drv_subject_layer, drv_subject_floor;

#endif
