/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A turn of a loop: what it notices, and when it looks around or sleeps. Who works for others sleeps in block mode also while it has work that the layer has no room for: the layer's wait ends
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

/* What a turn polls: gives a buffer back, twice, with a code. */
static struct {
	struct drv_progress *progress;
	uint64_t token;
	unsigned int times;
	int code;
} gives;

static int poll_and_give(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const unsigned int times = gives.times;

	(void)ctx;
	for (; gives.times; gives.times--)
		sink->sent(sink, 0, gives.token, gives.code);
	return times > 0;
}

static bool has_lent(void *arg)
{
	return ((const struct drv_progress *)arg)->in_flight_count > 0;
}

static void test_turns(struct drv_engine *engine)
{
	static struct drv_progress progress;
	bool in_flight[2] = {false, false};
	struct drv_fail fail;
	int failed = 0;

	drv_progress_start(&progress, engine, NULL, in_flight, 2);
	drv_progress_set(&progress, 1, CADGE_QUEUED);
	drv_progress_set(&progress, 0, CADGE_DONE);
	tap_ok(progress.in_flight_count == 1 && in_flight[1] && !in_flight[0],
	       "a buffer is lent until its completion");
	gives.token = 1;
	gives.times = 2;
	tap_ok(!drv_progress_turn(&progress, 0, &fail) && progress.in_flight_count == 0 &&
		       progress.check.mismatches == 1,
	       "a completion that comes twice is a mismatch: %s", progress.check.mismatch);
	gives.token = 2;
	gives.times = 1;
	tap_ok(!drv_progress_turn(&progress, 0, &fail) && progress.check.mismatches == 2,
	       "and one of a buffer that there is not");
	engine->down_code = CADGE_E_DOWN;
	progress.idle = 0;
	for (int i = 0; i < 63; i++)
		failed += drv_progress_turn(&progress, 0, &fail) != 0;
	tap_ok(!failed && progress.idle == 63, "63 idle turns do not look around");
	engine->down_code = 0;
	engine->deadline = 0;
	tap_ok(drv_progress_turn(&progress, 0, &fail) && fail.reason == DRV_DEADLINE, "the 64th does: %s",
	       fail.text);
	drv_engine_allow(engine, UINT64_C(60000000000));
	drv_progress_set(&progress, 1, CADGE_QUEUED);
	gives.token = 1;
	gives.times = 1;
	gives.code = CADGE_E_LOST;
	tap_ok(!drv_progress_turn(&progress, 0, &fail) && !progress.failed, "a loss is no failure");
	drv_progress_set(&progress, 1, CADGE_QUEUED);
	gives.times = 1;
	gives.code = CADGE_E_DOWN;
	tap_ok(drv_progress_turn(&progress, 0, &fail) && fail.reason == DRV_PEER_LOST,
	       "what failed inside a callback ends the turn: %s", fail.text);
	drv_progress_fail(&progress, "post", CADGE_E_MEMORY);
	tap_ok(progress.fail.reason == DRV_PEER_LOST, "the first failure is kept");
	tap_ok(drv_progress_settle(&progress, has_lent, &progress) &&
		       drv_progress_settle(&progress, NULL, NULL),
	       "it settles where nothing is lent");
	drv_progress_set(&progress, 1, CADGE_QUEUED);
	tap_ok(!drv_progress_settle(&progress, has_lent, &progress) &&
		       !drv_progress_settle(&progress, NULL, NULL),
	       "and not where something stays lent");
}

int main(void)
{
	static const struct cadge_layer layer = {.poll = poll_nothing, .wait = wait_for_room};
	static const struct cadge_layer giving = {.poll = poll_and_give, .wait = wait_for_room};
	struct drv_engine engine = {.layer = &layer, .idle_sleep_scale = 1};
	struct drv_fail fail;
	json_t *message;
	int status;

	drv_clock_start(&engine.clock, false);
	engine.launch_deadline_ns = drv_now_ns() + UINT64_C(60000000000);
	drv_engine_allow(&engine, UINT64_C(60000000000));
	engine.block = true;
	status = drv_poll_until_message(&engine, NULL, NULL, due, drain, &message, &fail);
	tap_ok(status < 0 && seen.waits == WAITS, "it waited %u times for room, and looked %u times",
	       seen.waits, seen.polls);
	memset(&seen, 0, sizeof(seen));
	engine.block = false;
	status = drv_poll_until_message(&engine, NULL, NULL, due, drain, &message, &fail);
	tap_ok(status < 0 && seen.waits == 0 && seen.polls == LOOKS_MOST,
	       "who polls never waits: it looked %u times", seen.polls);
	engine.layer = &giving;
	test_turns(&engine);
	return tap_done();
}
