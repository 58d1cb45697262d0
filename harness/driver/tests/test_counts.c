/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint counted survives the wire, with all 64 bits of sums, and nonsense does not pass for it. */
#include "session/counts.h"

#include <string.h>

#include "tap.h"

static void refused(const struct drv_counts *counts, const char *key, const char *json)
{
	json_t *wire = drv_counts_json(counts);
	struct drv_fail fail = {0};
	struct drv_counts there;

	json_object_set_new(wire, key, json_loads(json, JSON_DECODE_ANY, NULL));
	tap_ok(drv_counts_parse(wire, &there, &fail) && fail.reason == DRV_PROTOCOL, "%s: %s is refused", key,
	       json);
	json_decref(wire);
}

int main(void)
{
	struct drv_counts counts = {
		.posts = true,
		.posted = 7,
		.posted_keys = UINT64_MAX,
		.executes = true,
		.executed = 6,
		.executed_keys = UINT64_MAX - 1,
		.checked = 5,
		.full_checked = 4,
		.mismatches = 3,
		.waits = 2,
		.stamps = {.count = {9, INT64_MAX}, .sum = {UINT64_MAX - 2, 1}},
		.mismatch = "a wrong body",
	};
	struct drv_counts there;
	struct drv_stamps stamps = {0};
	struct drv_fail fail = {0};
	json_t *wire = drv_counts_json(&counts);

	tap_ok(wire && !drv_counts_parse(wire, &there, &fail), "counts are read: %s", fail.text);
	counts.usage = there.usage; /* of which another test knows */
	tap_ok(!memcmp(&counts, &there, sizeof(counts)), "and are the same");
	json_decref(wire);
	refused(&counts, "posted", "-1");
	refused(&counts, "stamps", "null");
	refused(&counts, "stamps", "{\"count\": [1], \"sum\": [\"1\", \"2\"]}");
	refused(&counts, "stamps", "{\"count\": [1, -1], \"sum\": [\"1\", \"2\"]}");
	refused(&counts, "stamps", "{\"count\": [1, 1], \"sum\": [\"1\", \"x\"]}");
	drv_stamp(&stamps, 1, UINT64_MAX);
	drv_stamp(&stamps, 1, 11);
	tap_ok(stamps.count[1] == 2 && stamps.sum[1] == 10 && !stamps.count[0],
	       "instants add up, beyond 64 bits as well");
	return tap_done();
}
