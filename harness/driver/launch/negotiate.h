/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides whether a layer can make a point as asked, from nothing but what its ends say of themselves. All
 * endpoints compute it with the same inputs; different answers abort the launch. Granted means: exactly as
 * asked, in every dimension.
 */
#ifndef DRV_NEGOTIATE_H
#define DRV_NEGOTIATE_H

#include <jansson.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "base/fail.h"
#include "launch/launch.h"

/* What one end can do, as far as the decision needs it. */
struct drv_ability {
	uint64_t caps;
	uint64_t message_bytes_max, rma_bytes_max;
	uint32_t depth_max;
	enum cadge_progress put, get, fetch_add, compare_swap;
	/* what the caches of its host hold; INT64_MAX: not known */
	uint64_t caches_bytes;
	/* its clock, see drv_clock_identity; of several ends 0 where they differ */
	uint64_t clock;
};

/* From a live context, and from its host. */
void drv_ability_read(const struct cadge_layer *layer, const struct cadge_ctx *ctx,
		      struct drv_ability *ability_out);

/* To and from other endpoints. */
json_t *drv_ability_json(const struct drv_ability *ability);
int drv_ability_parse(const json_t *object, struct drv_ability *ability_out, struct drv_fail *fail);

/* What both can: the smaller of each, but the larger caches. Commutative and associative, so that it folds over all endpoints. */
struct drv_ability drv_ability_both(const struct drv_ability *left, const struct drv_ability *right);

/* The channel as a whole: can a layer that has `caps` be opened at this place and wait mode? 0, or -1 with
 * the reason. */
int drv_negotiate_launch(enum drv_place place, enum drv_wait wait, uint64_t caps, struct drv_fail *fail);

/* What a launch asks for at least: the head of a message is written whole, also where a shorter one is sent. */
#define DRV_MESSAGE_ROOM_BYTES 16u

/* What a point asks of a layer, known before it is opened. */
struct drv_needs {
	/* largest message, control messages of the pattern included */
	uint64_t message_bytes;
	/* operations outstanding on one channel, at least 1 */
	uint32_t depth;
	/* of the region that exposing roles expose; 0: none */
	uint64_t region_bytes;
};

struct drv_floor;

/* What the endpoints of a launch can do together. */
struct drv_offer {
	enum drv_place place;
	struct drv_ability both;
	/* NULL for layers */
	const struct drv_floor *floor;
};

/* What one point asks for; `depth` is at least 1. */
struct drv_needs drv_point_needs(const struct drv_point *point);

/* What a launch asks for: the largest of all its points. */
struct drv_needs drv_launch_needs(const struct drv_launch *launch);

/* One point. 0: granted. -1: refused, with reason, what was wanted, and what there is. */
int drv_negotiate_point(const struct drv_point *point, const struct drv_offer *offer, struct drv_fail *fail);

/* For patterns: a message of `wanted_bytes`, called `what`, against the largest that both ends take. */
int drv_negotiate_message(uint64_t wanted_bytes, const char *what, const struct drv_ability *both,
			  struct drv_fail *fail);

/* The same: buffers over so many bytes, 0 or more than twice what the caches hold, as far as the kernel says. */
int drv_negotiate_spread(uint64_t spread_bytes, const struct drv_ability *both, struct drv_fail *fail);

/* The word for who carries an operation out: "direct", "library", "cadge" or "none". */
const char *drv_progress_name(enum cadge_progress progress);

#endif
