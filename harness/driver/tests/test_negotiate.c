/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be made between ends of which abilities. */
#include <string.h>

#include "launch/negotiate.h"
#include "points.h"
#include "tap.h"

#define RMA (CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD)

static const struct drv_ability messages = {
	.caps = CADGE_CAP_HOST | CADGE_CAP_RELIABLE,
	.message_bytes_max = 1024,
	.depth_max = 8,
};

static struct drv_ability with(uint64_t caps, enum cadge_progress progress)
{
	struct drv_ability ability = messages;

	ability.caps |= caps;
	ability.rma_bytes_max = 4096;
	ability.put = ability.get = ability.fetch_add = progress;
	return ability;
}

static void test_points(void)
{
	const struct drv_ability native = with(CADGE_CAP_RPC, CADGE_PROGRESS_NONE);
	const struct drv_ability direct = with(RMA, CADGE_PROGRESS_DIRECT),
				 library = with(RMA, CADGE_PROGRESS_LIBRARY);
	struct drv_ability tiny = messages;
	const struct {
		const char *what;
		const char *pattern;
		uint64_t request, reply, depth, operation, target;
		const struct drv_ability *both;
		enum drv_place place;
		enum drv_reason wanted;
		const char *says;
	} rows[] = {
		{"the largest message", "pingpong", 1024, 1024, 1, 0, 0, &messages, DRV_PLACE_WITHIN, DRV_OK,
		 ""},
		{"one byte more", "pingpong", 1025, 1025, 1, 0, 0, &messages, DRV_PLACE_WITHIN,
		 DRV_MSG_TOO_LARGE, "1024"},
		{"emulated rpc: the trailer counts", "rpc", 1008, 1008, 1, 0, 0, &messages, DRV_PLACE_WITHIN,
		 DRV_OK, ""},
		{"emulated rpc: request too large", "rpc", 1009, 0, 1, 0, 0, &messages, DRV_PLACE_WITHIN,
		 DRV_MSG_TOO_LARGE, "request of 1025"},
		{"emulated rpc: reply too large", "rpc", 0, 1009, 1, 0, 0, &messages, DRV_PLACE_WITHIN,
		 DRV_MSG_TOO_LARGE, "reply of 1025"},
		{"native rpc: no trailer", "rpc", 1024, 1024, 1, 0, 0, &native, DRV_PLACE_WITHIN, DRV_OK, ""},
		{"the deepest", "rpc", 0, 0, 8, 0, 0, &messages, DRV_PLACE_WITHIN, DRV_OK, ""},
		{"too deep", "rpc", 0, 0, 9, 0, 0, &messages, DRV_PLACE_WITHIN, DRV_DEPTH_TOO_DEEP,
		 "takes 8"},
		{"a stream", "stream", 1024, 0, 8, 0, 0, &messages, DRV_PLACE_WITHIN, DRV_OK, ""},
		{"a stream that cannot be ended", "stream", 8, 0, 1, 0, 0, &tiny, DRV_PLACE_WITHIN,
		 DRV_MSG_TOO_LARGE, "closing message"},
		{"put without it", "onesided", 8, 0, 1, 0, 0, &messages, DRV_PLACE_WITHIN, DRV_NO_CAP,
		 "needs PUT"},
		{"put", "onesided", 4096, 0, 1, 0, 0, &library, DRV_PLACE_WITHIN, DRV_OK, ""},
		{"put too large", "onesided", 4097, 0, 1, 0, 0, &library, DRV_PLACE_WITHIN, DRV_MSG_TOO_LARGE,
		 "4096"},
		{"put of nothing", "onesided", 0, 0, 1, 0, 0, &library, DRV_PLACE_WITHIN, DRV_NO_CAP,
		 "0 bytes"},
		{"passive needs direct", "onesided", 8, 0, 1, 1, 1, &library, DRV_PLACE_WITHIN, DRV_NO_CAP,
		 "here it is library"},
		{"passive and direct", "onesided", 8, 0, 1, 2, 1, &direct, DRV_PLACE_BETWEEN, DRV_OK, ""},
		{"passive self", "onesided", 8, 0, 1, 0, 1, &direct, DRV_PLACE_SELF, DRV_NO_CAP,
		 "the target is the caller"},
	};

	tiny.message_bytes_max = 16;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct drv_fail fail = {0};
		const struct drv_offer offer = {.place = rows[i].place, .both = *rows[i].both};
		struct drv_point point =
			point_make(rows[i].pattern, rows[i].request, rows[i].reply, rows[i].depth);
		int status;

		point_set(&point, "operation", rows[i].operation);
		point_set(&point, "target", rows[i].target);
		status = drv_negotiate_point(&point, &offer, &fail);

		tap_ok((status == 0) == (rows[i].wanted == DRV_OK) && fail.reason == rows[i].wanted &&
			       (status == 0 || strstr(fail.text, rows[i].says)),
		       "%s: %s %s", rows[i].what, drv_reason_name(fail.reason), fail.text);
		tap_ok(status == 0 || (drv_reason_is_refusal(fail.reason) && strstr(fail.text, "wanted")),
		       "%s: a refusal says what was wanted", rows[i].what);
	}
}

/* Prepared buffers: one operation at a time, from one buffer. */
static void test_registration(void)
{
	const struct drv_offer offer = {.place = DRV_PLACE_WITHIN, .both = with(RMA, CADGE_PROGRESS_LIBRARY)};

	for (uint64_t which = 1; which <= 2; which++) {
		const char *said = which == 1 ? "registration warm" : "registration cold";
		struct drv_fail fail = {0};
		struct drv_point point = point_make("onesided", 64, 0, 1);

		point_set(&point, "registration", which);
		tap_ok(drv_negotiate_point(&point, &offer, &fail) == 0, "%s %s", said, fail.text);
		point_set(&point, "depth", 2);
		tap_ok(drv_negotiate_point(&point, &offer, &fail) && fail.reason == DRV_DEPTH_TOO_DEEP &&
			       strstr(fail.text, said),
		       "depth 2: %s", fail.text);
		point_set(&point, "depth", 1);
		point_set(&point, "spread", 1 << 27);
		tap_ok(drv_negotiate_point(&point, &offer, &fail) && fail.reason == DRV_NO_CAP &&
			       strstr(fail.text, said),
		       "spread: %s", fail.text);
	}
}

static void test_launches(void)
{
	struct drv_fail fail = {0};

	tap_ok(drv_negotiate_launch(DRV_PLACE_WITHIN, DRV_WAIT_POLL, CADGE_CAP_HOST, &fail) == 0,
	       "within, poll");
	tap_ok(drv_negotiate_launch(DRV_PLACE_BETWEEN, DRV_WAIT_POLL, CADGE_CAP_HOST, &fail) &&
		       fail.reason == DRV_NO_CAP,
	       "between needs NET: %s", fail.text);
	tap_ok(drv_negotiate_launch(DRV_PLACE_SELF, DRV_WAIT_POLL, CADGE_CAP_HOST, &fail) &&
		       fail.reason == DRV_NO_CAP,
	       "self needs SELF: %s", fail.text);
	tap_ok(drv_negotiate_launch(DRV_PLACE_WITHIN, DRV_WAIT_BLOCK, CADGE_CAP_HOST, &fail) &&
		       fail.reason == DRV_NO_WAIT,
	       "block needs WAIT: %s", fail.text);
	tap_ok(drv_negotiate_launch(DRV_PLACE_WITHIN, DRV_WAIT_BLOCK, CADGE_CAP_HOST | CADGE_CAP_WAIT,
				    &fail) == 0,
	       "within, block");
}

static int same(const struct drv_ability *left, const struct drv_ability *right)
{
	return left->caps == right->caps && left->message_bytes_max == right->message_bytes_max &&
	       left->rma_bytes_max == right->rma_bytes_max && left->depth_max == right->depth_max &&
	       left->put == right->put && left->get == right->get && left->fetch_add == right->fetch_add &&
	       left->compare_swap == right->compare_swap && left->caches_bytes == right->caches_bytes &&
	       left->clock == right->clock;
}

static void test_both(void)
{
	const struct drv_ability left = with(RMA, CADGE_PROGRESS_DIRECT);
	struct drv_ability right = with(CADGE_CAP_PUT | CADGE_CAP_RPC, CADGE_PROGRESS_LIBRARY), there, one,
			   other;
	struct drv_fail fail;
	json_t *wire;

	right.message_bytes_max = UINT64_C(1) << 40;
	right.depth_max = 4;
	right.clock = INT64_MAX;
	one = drv_ability_both(&left, &right);
	other = drv_ability_both(&right, &left);
	tap_ok(same(&one, &other), "what both can is the same from either end");
	tap_ok(one.caps == (messages.caps | CADGE_CAP_PUT) && one.message_bytes_max == 1024 &&
		       one.depth_max == 4 && one.put == CADGE_PROGRESS_LIBRARY,
	       "and the weaker of each");
	tap_ok(one.clock == 0 && drv_ability_both(&right, &right).clock == right.clock,
	       "one clock serves those alone that have the same");
	wire = drv_ability_json(&right);
	tap_ok(wire && drv_ability_parse(wire, &there, &fail) == 0 && same(&there, &right),
	       "an ability survives the wire");
	json_object_set_new(wire, "caps", json_string("0xnonsense"));
	tap_ok(drv_ability_parse(wire, &there, &fail) && fail.reason == DRV_PROTOCOL,
	       "nonsense is refused: %s", fail.text);
	json_object_del(wire, "caps");
	tap_ok(drv_ability_parse(wire, &there, &fail) && fail.reason == DRV_PROTOCOL,
	       "a missing member is refused");
	json_decref(wire);
}

int main(void)
{
	test_points();
	test_registration();
	test_launches();
	test_both();
	return tap_done();
}
