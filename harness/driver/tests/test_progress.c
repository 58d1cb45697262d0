/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who works for others sleeps in block mode also while it has work that the layer has no room for: the layer's wait ends
 * when it has. Spinning took the processor from those that would have made room.
 */
#include <string.h>

#include "traffic/progress.h"
#include "tap.h"

enum { WAITS = 5, LOOKS_MOST = 1000 };

/* A layer without room until somebody has waited for it so many times. */
static struct {
	unsigned int polls, waits, drains;
} seen;

static int poll_nothing(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx, (void)sink;
	seen.polls++;
	return 0;
}

static int wait_for_room(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	(void)ctx, (void)timeout_ns;
	seen.waits++;
	return CADGE_DONE;
}

static bool due(void *arg)
{
	(void)arg;
	return true;
}

/* Ends the loop by an error, once there was room or after far too many looks. */
static int drain(void *arg, struct drv_fail *fail)
{
	(void)arg;
	if (seen.waits < WAITS && ++seen.drains < LOOKS_MOST)
		return 0;
	return drv_fail_set(fail, DRV_STOPPED, "enough");
}

int main(void)
{
	static const struct cadge_layer layer = {.poll = poll_nothing, .wait = wait_for_room};
	struct drv_engine engine = {.layer = &layer, .nap_factor = 1};
	struct drv_fail fail;
	json_t *message;
	int status;

	drv_clock_start(&engine.clock, false);
	engine.launch_deadline_ns = drv_now_ns() + UINT64_C(60000000000);
	drv_engine_allow(&engine, UINT64_C(60000000000));
	engine.block = true;
	status = drv_serve_loop(&engine, NULL, NULL, due, drain, &message, &fail);
	tap_ok(status < 0 && seen.waits == WAITS, "it waited %u times for room, and looked %u times",
	       seen.waits, seen.polls);
	memset(&seen, 0, sizeof(seen));
	engine.block = false;
	status = drv_serve_loop(&engine, NULL, NULL, due, drain, &message, &fail);
	tap_ok(status < 0 && seen.waits == 0 && seen.polls == LOOKS_MOST,
	       "who polls never waits: it looked %u times", seen.polls);
	return tap_done();
}
