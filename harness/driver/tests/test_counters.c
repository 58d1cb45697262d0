/* SPDX-License-Identifier: BSD-3-Clause */
/* What a layer counts: which names are counts, what was added, and the way through a message. */
#include "measure/counters.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

static uint64_t copies, retries, timeout;
static unsigned many;

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = CADGE_CAP_COUNTERS;
}

static void no_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx, (void)limits_out;
}

static void counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		     void *arg)
{
	char name[32];

	(void)ctx;
	each(arg, "copies", copies);
	each(arg, "retries", retries);
	each(arg, "timeout_ns_now", timeout);
	each(arg, "queue_most", 9);
	each(arg, "ring.17.post.0", 123);
	each(arg, "", 5);
	each(arg, "a_name_that_is_longer_than_forty_bytes_are", 5);
	each(arg, "copies", 1); /* as a shim over a layer might */
	for (unsigned i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "n.%c%c", 'a' + (int)(i / 26), 'a' + (int)(i % 26));
		each(arg, name, i);
	}
}

static const struct cadge_layer counts = {.limits = limits, .counters = counters};
static const struct cadge_layer counts_not = {.limits = no_limits, .counters = counters};

int main(void)
{
	const struct cadge_ctx *ctx = (const struct cadge_ctx *)&copies;
	struct drv_counters before, after, back;
	json_t *said, *grown;

	drv_counters_read(&counts_not, ctx, &before);
	tap_ok(before.count == 0, "a layer without COUNTERS has none");
	drv_counters_read(NULL, NULL, &before);
	tap_ok(before.count == 0, "nor has a floor");
	drv_counters_read(&counts, ctx, &before);
	tap_ok(before.count == 2 && !strcmp(before.list[0].name, "copies") && before.list[0].value == 1 &&
		       !strcmp(before.list[1].name, "retries"),
	       "states, entries of lists and names without end are no counts: %u", before.count);
	copies = 7;
	timeout = 100;
	many = 100;
	drv_counters_read(&counts, ctx, &after);
	tap_ok(after.count == DRV_COUNTERS_MAX, "no more than there is room for");
	grown = drv_counters_since_json(&before, &after);
	tap_ok(json_object_size(grown) == 1 && json_integer_value(json_object_get(grown, "copies")) == 7,
	       "what grew of what was there before");
	said = drv_counters_json(&after);
	tap_ok(!drv_counters_parse(said, &back) && back.count == after.count && back.list[0].value == 8,
	       "there and back through a message");
	json_object_set_new(said, "one_more", json_integer(1));
	tap_ok(drv_counters_parse(said, &back) != 0, "more than there may be is refused");
	json_object_clear(said);
	json_object_set_new(said, "Copies", json_integer(1));
	tap_ok(drv_counters_parse(said, &back) != 0, "and a name that is none");
	json_object_clear(said);
	json_object_set_new(said, "copies", json_integer(-1));
	tap_ok(drv_counters_parse(said, &back) != 0 && drv_counters_parse(NULL, &back) != 0,
	       "and less than nothing, and nothing at all");
	drv_counters_add(&before, &after);
	tap_ok(before.list[0].value == 1 + 8, "threads are added up");
	json_decref(said);
	json_decref(grown);
	return tap_done();
}
