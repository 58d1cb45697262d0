/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides whether a layer can make a point as asked, from nothing but what both ends say of themselves. Both
 * endpoints compute it with the same inputs; different answers abort the launch. Granted means: exactly as
 * asked, in every dimension.
 */
#ifndef DRV_NEGOTIATE_H
#define DRV_NEGOTIATE_H

#include <jansson.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "fail.h"
#include "launch.h"

#define DRV_RPC_HEADER_BYTES 16u /* what emulated RPC puts before the payload */
#define DRV_CONTROL_BYTES    32u /* room that the end of a stream needs */

/* What one end can do, as far as the decision needs it. */
struct drv_ability {
	uint64_t caps;
	uint64_t message_bytes_max, rma_bytes_max;
	uint32_t depth_max, iov_max;
	enum cadge_progress put, get, fetch_add;
};

/* From a live context. */
void drv_ability_read(const struct cadge_layer *layer, const struct cadge_ctx *ctx,
		      struct drv_ability *ability_out);

/* To and from the other endpoint. */
json_t *drv_ability_json(const struct drv_ability *ability);
int drv_ability_parse(const json_t *object, struct drv_ability *ability_out, struct drv_fail *fail);

/* What both can: the smaller of each. Commutative. */
struct drv_ability drv_ability_both(const struct drv_ability *left, const struct drv_ability *right);

/* The channel as a whole: can a layer that has `caps` be opened at this place and wait mode? 0, or -1 with
 * the reason. */
int drv_negotiate_launch(enum drv_place place, enum drv_wait wait, uint64_t caps, struct drv_fail *fail);

/* One point. 0: granted. -1: refused, with reason, what was wanted, and what there is. */
int drv_negotiate_point(const struct drv_point *point, enum drv_place place, const struct drv_ability *both,
			struct drv_fail *fail);

/* True when rpc points run over the layer's own calls. */
static inline int drv_rpc_is_native(const struct drv_ability *both)
{
	return (both->caps & CADGE_CAP_RPC) != 0;
}

#endif
