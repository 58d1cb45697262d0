/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, loads and checks a layer and, around it, a shim. */
#ifndef DRV_LOADER_H
#define DRV_LOADER_H

#include <jansson.h>

#include "cadge/layer.h"
#include "base/fail.h"

/* Tables of our own, taken from the modules' (cadge_layer_take); they last until the process ends. */
struct drv_loaded {
	const struct cadge_layer *layer; /* what to talk to: the shim, or the layer itself */
	const struct cadge_layer *inner; /* NULL without a shim: for cadge_open_args.inner */
};

/*
 * Loads DIR/<layer>.so, or DIR/<layer>@<label>.so (one of several versions of its library), and at most one
 * DIR/shim-<name>.so. Modules stay loaded until the process ends. Fails with DRV_BUILD_ABSENT (no module; the
 * reason of its .absent file), DRV_NODE_LACKS (a library that it needs is missing) or DRV_LIBRARY (the module is
 * not a layer).
 */
int drv_loader_load(const char *modules, const char *layer, const char *shim, struct drv_loaded *loaded_out,
		    struct drv_fail *fail);

/* The layer itself, whatever is around it. */
static inline const struct cadge_layer *drv_loaded_adapter(const struct drv_loaded *loaded)
{
	return loaded->inner ? loaded->inner : loaded->layer;
}

/*
 * Which file an address of this process was loaded from, and that file's build id: {"file": path or null,
 * "build_id": hex or null}. A NULL address gives two nulls. New reference or NULL.
 */
json_t *drv_loader_origin(const void *address);
/* The same for the module that a layer's code lies in. */
json_t *drv_loader_layer_origin(const struct cadge_layer *layer);

#endif
