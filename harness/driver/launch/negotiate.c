/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ends of a launch can do together, and whether that is enough for a point. */
#include "launch/negotiate.h"

#include <inttypes.h>
#include <string.h>
#include <stdio.h>

#include "measure/caches.h"
#include "launch/pattern.h"
#include "base/text.h"

const char *drv_progress_name(enum cadge_progress progress)
{
	switch (progress) {
	case CADGE_PROGRESS_DIRECT: return "direct";
	case CADGE_PROGRESS_LIBRARY: return "library";
	case CADGE_PROGRESS_CADGE: return "cadge";
	case CADGE_PROGRESS_NONE:
	case CADGE_PROGRESS_WIDE: break;
	}
	return "none";
}

void drv_ability_read(const struct cadge_layer *layer, const struct cadge_ctx *ctx,
		      struct drv_ability *ability_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};
	const uint64_t caches = drv_caches_bytes(DRV_CACHES_FOLDER);

	layer->limits(ctx, &limits);
	layer->semantics(ctx, &semantics);
	*ability_out = (struct drv_ability){
		.caps = limits.caps & layer->caps,
		.message_bytes_max = limits.message_bytes_max,
		.rma_bytes_max = limits.rma_bytes_max,
		.depth_max = limits.depth_max,
		.put = semantics.put,
		.get = semantics.get,
		.fetch_add = semantics.fetch_add,
		.compare_swap = semantics.compare_swap,
		.caches_bytes = caches ? caches : INT64_MAX,
	};
}

json_t *drv_ability_json(const struct drv_ability *ability)
{
	/* capabilities as text: 64 bits do not fit a JSON integer */
	char caps[32];

	snprintf(caps, sizeof(caps), "%" PRIx64, ability->caps);
	return json_pack("{s:s, s:o, s:o, s:I, s:i, s:i, s:i, s:i, s:o, s:o}", "caps", caps,
			 "message_bytes_max", drv_json_count(ability->message_bytes_max), "rma_bytes_max",
			 drv_json_count(ability->rma_bytes_max), "depth_max", (json_int_t)ability->depth_max,
			 "put", (int)ability->put, "get", (int)ability->get, "fetch_add",
			 (int)ability->fetch_add, "compare_swap", (int)ability->compare_swap, "caches_bytes",
			 drv_json_count(ability->caches_bytes), "clock", drv_json_count(ability->clock));
}

static enum cadge_progress progress_from(int value)
{
	return value >= CADGE_PROGRESS_NONE && value <= CADGE_PROGRESS_CADGE ? (enum cadge_progress)value
									     : CADGE_PROGRESS_NONE;
}

int drv_ability_parse(const json_t *object, struct drv_ability *ability_out, struct drv_fail *fail)
{
	json_int_t message, rma, depth, caches, clock;
	const char *caps;
	int put, get, add, swap;
	char end;

	if (json_unpack((json_t *)object, "{s:s, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:I, s:I}", "caps", &caps,
			"message_bytes_max", &message, "rma_bytes_max", &rma, "depth_max", &depth, "put",
			&put, "get", &get, "fetch_add", &add, "compare_swap", &swap, "caches_bytes", &caches,
			"clock", &clock) ||
	    sscanf(caps, "%" SCNx64 "%c", &ability_out->caps, &end) != 1 || message < 0 || rma < 0 ||
	    caches < 0 || clock < 0 || depth < 0 || depth > UINT32_MAX)
		return drv_fail_set(fail, DRV_PROTOCOL, "an endpoint sent invalid limits");
	ability_out->message_bytes_max = (uint64_t)message;
	ability_out->rma_bytes_max = (uint64_t)rma;
	ability_out->depth_max = (uint32_t)depth;
	ability_out->put = progress_from(put);
	ability_out->get = progress_from(get);
	ability_out->fetch_add = progress_from(add);
	ability_out->compare_swap = progress_from(swap);
	ability_out->caches_bytes = (uint64_t)caches;
	ability_out->clock = (uint64_t)clock;
	return 0;
}

static uint64_t smaller(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* The weaker claim: direct at one end only is not direct. */
static enum cadge_progress weaker(enum cadge_progress left, enum cadge_progress right)
{
	if (left == CADGE_PROGRESS_NONE || right == CADGE_PROGRESS_NONE)
		return CADGE_PROGRESS_NONE;
	return left > right ? left : right;
}

struct drv_ability drv_ability_both(const struct drv_ability *left, const struct drv_ability *right)
{
	return (struct drv_ability){
		.caps = left->caps & right->caps,
		.message_bytes_max = smaller(left->message_bytes_max, right->message_bytes_max),
		.rma_bytes_max = smaller(left->rma_bytes_max, right->rma_bytes_max),
		.depth_max = (uint32_t)smaller(left->depth_max, right->depth_max),
		.put = weaker(left->put, right->put),
		.get = weaker(left->get, right->get),
		.fetch_add = weaker(left->fetch_add, right->fetch_add),
		.compare_swap = weaker(left->compare_swap, right->compare_swap),
		.caches_bytes =
			left->caches_bytes > right->caches_bytes ? left->caches_bytes : right->caches_bytes,
		.clock = left->clock == right->clock ? left->clock : 0,
	};
}

int drv_negotiate_launch(enum drv_place place, enum drv_wait wait, uint64_t caps, struct drv_fail *fail)
{
	static const uint64_t places[] = {CADGE_CAP_SELF, CADGE_CAP_HOST, CADGE_CAP_NET};

	if (!(caps & places[place]))
		return drv_fail_set(fail, DRV_NO_CAP, "wanted place %s, the layer does not connect there",
				    drv_place_names[place]);
	if (wait == DRV_WAIT_BLOCK && !(caps & CADGE_CAP_WAIT))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "wanted to sleep while waiting, the layer can only poll");
	return 0;
}

int drv_negotiate_message(uint64_t wanted_bytes, const char *what, const struct drv_ability *both,
			  struct drv_fail *fail)
{
	if (wanted_bytes <= both->message_bytes_max)
		return 0;
	return drv_fail_set(fail, DRV_MSG_TOO_LARGE,
			    "wanted a %s of %" PRIu64 " bytes, the largest message here has %" PRIu64, what,
			    wanted_bytes, both->message_bytes_max);
}

int drv_negotiate_spread(uint64_t spread_bytes, const struct drv_ability *both, struct drv_fail *fail)
{
	if (spread_bytes && both->caches_bytes >= INT64_MAX)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted buffers over %" PRIu64
				    " bytes, more than the caches hold, but the "
				    "kernel does not say how much that is (" DRV_CACHES_FOLDER ")",
				    spread_bytes);
	if (spread_bytes && spread_bytes < 2 * both->caches_bytes)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted buffers over %" PRIu64 " bytes, less than twice the %" PRIu64
				    " that the caches hold",
				    spread_bytes, both->caches_bytes);
	return 0;
}

struct drv_needs drv_point_needs(const struct drv_point *point)
{
	struct drv_needs needs = {0};

	if (point->pattern->needs)
		point->pattern->needs(point->parameters, &needs);
	if (!needs.depth)
		needs.depth = 1;
	return needs;
}

struct drv_needs drv_launch_needs(const struct drv_launch *launch)
{
	struct drv_needs most = {.message_bytes = DRV_MESSAGE_ROOM_BYTES, .depth = 1};

	for (size_t i = 0; i < launch->points_count; i++) {
		const struct drv_needs needs = drv_point_needs(&launch->points[i]);

		if (needs.message_bytes > most.message_bytes)
			most.message_bytes = needs.message_bytes;
		if (needs.depth > most.depth)
			most.depth = needs.depth;
		if (needs.region_bytes > most.region_bytes)
			most.region_bytes = needs.region_bytes;
	}
	return most;
}

/* The value of parameter number `index`. */
static uint64_t value_of(const struct drv_point *point, uint32_t index)
{
	const struct drv_parameter *parameter = &point->pattern->parameters[index];
	const uint8_t *at = (const uint8_t *)point->parameters + parameter->offset;
	uint64_t integer = 0;
	uint32_t word = 0;

	if (parameter->type == DRV_CHOICE)
		memcpy(&word, at, sizeof(word));
	else
		memcpy(&integer, at, sizeof(integer));
	return parameter->type == DRV_CHOICE ? word : integer;
}

/* What the pattern's file says that such a point needs. */
static int negotiate_caps(const struct drv_point *point, uint64_t caps, struct drv_fail *fail)
{
	for (const struct drv_need *need = point->pattern->needs_caps; need && need->wanted; need++) {
		bool holds = true;

		for (uint32_t i = 0; i < need->when_count; i++)
			holds &= value_of(point, need->when[i].parameter) == need->when[i].value;
		if (holds && (caps & need->caps) != need->caps)
			return drv_fail_set(fail, DRV_NO_CAP,
					    "wanted %s, which needs %s: the layer does not grant it",
					    need->wanted, need->names);
	}
	return 0;
}

int drv_negotiate_point(const struct drv_point *point, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct drv_needs needs = drv_point_needs(point);

	if (offer->place == DRV_PLACE_SELF && !point->pattern->self)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted place self, but this pattern takes more than one endpoint");
	if (needs.depth > offer->both.depth_max)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, the layer takes %u", needs.depth,
				    offer->both.depth_max);
	if (negotiate_caps(point, offer->both.caps, fail))
		return -1;
	if (point->pattern->negotiate)
		return point->pattern->negotiate(point->parameters, offer, fail);
	return drv_negotiate_message(needs.message_bytes, "message", &offer->both, fail);
}
