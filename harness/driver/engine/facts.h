/* SPDX-License-Identifier: BSD-3-Clause */
/* What a result says of the layer: names of capabilities, traits, semantics, paths, as JSON. All return new
 * references. */
#ifndef DRV_FACTS_H
#define DRV_FACTS_H

#include <jansson.h>

#include "cadge/layer.h"

/* ["RELIABLE", "ORDERED", ...] */
json_t *drv_facts_caps(uint64_t caps);
json_t *drv_facts_traits(const struct cadge_layer *layer, const struct cadge_ctx *ctx);
json_t *drv_facts_semantics(const struct cadge_layer *layer, const struct cadge_ctx *ctx);
json_t *drv_facts_limits(const struct cadge_limits *limits);
/* {"name","stated_version","file","build_id"} */
json_t *drv_facts_library(const struct cadge_layer *adapter);
/* The "adapter" member; `caps` are those granted. */
json_t *drv_facts_adapter(const struct cadge_layer *adapter, const struct cadge_layer *layer,
			  const struct cadge_ctx *ctx, uint64_t caps);
json_t *drv_facts_path(const struct cadge_path *path);
/* The table's options: [{"name","default","help"}]. */
json_t *drv_facts_options(const struct cadge_layer *layer);

#endif
