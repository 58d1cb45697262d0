/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that are taken in another thread: a blocked caller, or a worker that continuations are queued to. */
#include "traffic/requester.h"

#include <inttypes.h>

#include "role_runs.h"
#include "tap.h"

static struct drv_point taken(uint64_t request, uint64_t reply, uint64_t depth, enum drv_reply how,
			      enum drv_payload payload)
{
	struct drv_point point = point_make("rpc", request, reply, depth);

	point_set(&point, "reply", how);
	point_set(&point, "payload", payload);
	return point;
}

/* What is lent goes to the other thread as it lies, and comes back; nothing else is kept. */
static void expect_taken(struct drv_point point, struct fake_orders orders)
{
	const bool looks = orders.lends && point_get(&point, "reply_bytes") &&
			   (point_get(&point, "payload") == DRV_PAYLOAD_UNSOLICITED ||
			    (point_get(&point, "payload") == DRV_PAYLOAD_USUAL && !orders.native));
	const struct outcome outcome =
		expect_sound(point, orders, drv_reply_words[point_get(&point, "reply")]);

	tap_ok(outcome.left_lent == 0 && (outcome.held > 0) == looks, "%" PRIu64 " replies were kept",
	       outcome.held);
}

/* Another thread takes replies, in every way that a layer may have, and as they may come. */
static void test_reply_thread(void)
{
	const struct fake_orders ways[] = {{0},
					   {.lends = true, .in_sink = true},
					   {.lends = true, .queued = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.native = true, .lends = true},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.native = true, .busy_every = 5},
					   {.reserve = true, .queued = true, .busy_every = 3},
					   {.unordered = true, .lends = true}};
	static const uint64_t sizes[][2] = {{16, 0}, {0, 85}, {16, 5000}, {5000, 8}};
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
	uint32_t made = 0;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (enum drv_reply how = DRV_REPLY_WAIT; how <= DRV_REPLY_DEFER; how++)
			for (enum drv_payload payload = DRV_PAYLOAD_USUAL; payload <= DRV_PAYLOAD_COPIED;
			     payload++)
				for (uint64_t depth = 1; depth <= 7; depth += 6) {
					const uint64_t *size = sizes[made++ % SIZES];
					const struct drv_point point =
						taken(size[0], size[1], depth, how, payload);

					if ((made + way) % tap_share()) /* each way with some of them */
						continue;
					if ((payload == DRV_PAYLOAD_SOLICITED && !ways[way].native) ||
					    (payload == DRV_PAYLOAD_UNSOLICITED && !ways[way].lends))
						continue;
					expect_taken(made % 2 ? touched(point) : point, ways[way]);
				}
}

/* What is wrong is seen in the other thread too, and whatever fails both threads end. */
static void test_reply_thread_faults(void)
{
	for (enum drv_reply how = DRV_REPLY_WAIT; how <= DRV_REPLY_DEFER; how++) {
		struct drv_point point = taken(16, 85, 4, how, DRV_PAYLOAD_USUAL);
		const struct fake_orders flips = {.flip_every = 11, .flip_at = 40};
		struct outcome outcome;

		/* where both threads share a core, little is done in a time slice */
		point.duration_ns = 20000000;
		expect_unsound(touched(point), flips, "payload", "a flipped byte that another thread reads");
		expect_unsound(point, (struct fake_orders){.flip_every = 11, .flip_at = 3}, "payload",
			       "a flipped byte of a head that another thread reads");
		expect_unsound(point, (struct fake_orders){.twice_every = 11}, "payload",
			       "a message delivered twice");
		expect_failed(point, (struct fake_orders){.drop_every = 11}, DRV_DEADLINE, true,
			      "a call lost for good");
		expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
			      "a layer that is always busy");
		expect_failed(point, (struct fake_orders){.fail_after = 100}, DRV_LIBRARY, true,
			      "a poll that fails");
		outcome = run(point, (struct fake_orders){.lends = true, .fail_after = 100});
		tap_ok(outcome.attempt.status == DRV_FAILED && outcome.left_lent == 0,
		       "what was lent is given back after a failure");
		point_set(&point, "payload", DRV_PAYLOAD_UNSOLICITED);
		expect_failed(point, (struct fake_orders){.lends = true, .lends_most = 64}, DRV_NO_CAP, false,
			      "a reply that is not lent");
		for (uint64_t payload = DRV_PAYLOAD_SOLICITED; payload <= DRV_PAYLOAD_UNSOLICITED;
		     payload++) {
			point_set(&point, "payload", payload);
			tap_ok(run(point, (struct fake_orders){0}).attempt.status == DRV_REFUSED,
			       "refused without calls and without LEND: %s", drv_payload_words[payload]);
		}
		point = taken(8, 8, 4, how, DRV_PAYLOAD_USUAL);
		point.duration_ns = 100000000;
		point.deadline_ns = 3000000000;
		outcome = run(point, (struct fake_orders){.unreliable = true, .drop_every = 23});
		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 && outcome.operations > 0 &&
			       outcome.attempt.executions_expected == outcome.operations + outcome.lost,
		       "losses: %s", show(&outcome));
	}
}

/* In block mode the sleep of who owns the context has to be one that another thread can end. */
static void test_reply_thread_descriptor(void)
{
	const struct drv_exchange cont = {.reply_bytes = 8}, wait = {.reply = DRV_REPLY_WAIT};
	const struct drv_ability polls = {0}, sleeps = {.caps = CADGE_CAP_WAIT},
				 is_woken = {.caps = CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD};
	struct drv_fail fail = {0};

	tap_ok(!drv_reply_thread_negotiate(&cont, &sleeps, &fail) &&
		       !drv_reply_thread_negotiate(&wait, &polls, &fail) &&
		       !drv_reply_thread_negotiate(&wait, &is_woken, &fail) &&
		       drv_reply_thread_negotiate(&wait, &sleeps, &fail) && fail.reason == DRV_NO_WAIT,
	       "a layer that sleeps without a descriptor is refused: %s", fail.text);
}

int main(void)
{
	role_runs_start();
	test_reply_thread();
	test_reply_thread_faults();
	test_reply_thread_descriptor();
	return tap_done();
}
