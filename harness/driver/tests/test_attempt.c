/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole attempts over a layer with faults to order: pairing, verification, counts, deadlines. */
#include <inttypes.h>

#include "role_runs.h"
#include "traffic/push.h"
#include "measure/service.h"
#include "tap.h"

enum { PUT, GET, FETCH_ADD, COMPARE_SWAP };

static void test_sound(void)
{
	static const uint64_t sizes[] = {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 64, 5000};
	const struct fake_orders ways[] = {{0},
					   {.in_sink = true},
					   {.queued = true},
					   {.queued = true, .in_sink = true},
					   {.native = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 3},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.native = true, .busy_every = 5},
					   {.reserve = true},
					   {.reserve = true, .queued = true},
					   {.reserve = true, .in_sink = true, .busy_every = 2}};

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			const uint64_t other = sizes[(i * 5 + way) % (sizeof(sizes) / sizeof(sizes[0]))];

			if ((i + way) %
			    tap_share()) /* each way with some sizes, and each size in some ways */
				continue;
			expect_sound(point_make("pingpong", sizes[i], sizes[i], 1), ways[way], "pingpong");
			expect_sound(point_make("rpc", sizes[i], other, 1), ways[way], "rpc");
			expect_sound(point_make("rpc", sizes[i], other, 7), ways[way], "rpc");
			expect_sound(point_make("stream", sizes[i], 0, 5), ways[way], "stream");
			expect_sound(point_make("msgrate", sizes[i], 0, 1), ways[way], "windows");
			expect_sound(point_make("msgrate", sizes[i], 0, 5), ways[way], "windows");
		}
	expect_sound(point_make("rpc", 8, 8, 16), (struct fake_orders){.unordered = true}, "unordered rpc");
	expect_sound(point_make("rpc", 64, 0, 16), (struct fake_orders){.unordered = true, .queued = true},
		     "unordered rpc");
	expect_sound(point_make("rpc", 64, 64, 64), (struct fake_orders){.unordered = true, .native = true},
		     "unordered rpc");
	expect_sound(point_make("stream", 64, 0, 16), (struct fake_orders){.unordered = true},
		     "unordered stream");
	expect_sound(point_make("msgrate", 64, 0, 16), (struct fake_orders){.unordered = true},
		     "unordered windows");
}

/* Written anew and read whole in every way that a layer may have, and not a byte that is not looked at. */
static void test_touched(void)
{
	static const uint64_t sizes[] = {0, 8, 17, 24, 85, 5000};
	const struct fake_orders ways[] = {{.in_sink = true},
					   {.queued = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 3},
					   {.native = true, .busy_every = 5},
					   {.unordered = true, .queued = true},
					   {.reserve = true},
					   {.reserve = true, .queued = true},
					   {.reserve = true, .in_sink = true, .busy_every = 2}};
	static const uint32_t wrong[] = {16, 40, 84};

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			const uint64_t other = sizes[(i * 5 + way) % (sizeof(sizes) / sizeof(sizes[0]))];

			if ((i + way) %
			    tap_share()) /* each way with some sizes, and each size in some ways */
				continue;
			if (!ways[way].unordered)
				expect_sound(touched(point_make("pingpong", sizes[i], sizes[i], 1)),
					     ways[way], "touched pingpong");
			expect_sound(touched(point_make("rpc", sizes[i], other, 7)), ways[way],
				     "touched rpc");
			expect_sound(touched(point_make("stream", sizes[i], 0, 5)), ways[way],
				     "touched stream");
			expect_sound(touched(point_make("msgrate", sizes[i], 0, 5)), ways[way],
				     "touched windows");
		}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		/* not among the first messages, which are compared in any case */
		const struct fake_orders flips = {.flip_every = 101, .flip_at = wrong[i]};

		expect_unsound(touched(point_make("pingpong", 85, 85, 1)), flips, "payload",
			       "a flipped byte of a message that is read");
		expect_unsound(touched(point_make("rpc", 85, 0, 4)), flips, "payload",
			       "a flipped byte of a request that is read");
		expect_unsound(touched(point_make("rpc", 0, 85, 4)), flips, "payload",
			       "a flipped byte of a reply that is read");
		expect_unsound(touched(point_make("stream", 85, 0, 4)), flips, "payload",
			       "a flipped byte of a stream that is read");
		expect_unsound(touched(point_make("msgrate", 85, 0, 4)), flips, "payload",
			       "a flipped byte of a window that is read");
	}
}

/* All messages of a stream leave from one buffer, which is written once a run and holds the same for all. */
static void test_same_buffer(void)
{
	static const uint64_t sizes[] = {0, 8, 24, 85, 5000};
	const struct fake_orders ways[] = {
		{0}, {.queued = true}, {.busy_every = 3}, {.reserve = true, .queued = true}};
	struct drv_point point;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			point = point_make("stream", sizes[i], 0, 5);
			point_set(&point, "buffers", 1);
			expect_sound(point, ways[way], "stream from one buffer");
		}
	expect_unsound(point, (struct fake_orders){.flip_every = 1, .flip_at = 4999}, "payload",
		       "a wrong last byte of a stream from one buffer");
	tap_ok(run(touched(point), (struct fake_orders){0}).attempt.status == DRV_REFUSED,
	       "a buffer that is being sent from is not written anew");
}

/* A library is handed a call as it is handed a bare message: one piece, from an aligned start. */
static void test_pieces(void)
{
	static const uint64_t sizes[] = {0, 8, 64, 4096, 65536};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		expect_sound(point_make("rpc", sizes[i], sizes[i], 3), (struct fake_orders){0}, "rpc");
		tap_ok(fake_messages > 0 && fake_scattered == 0,
		       "%" PRIu64 " calls of %" PRIu64 " bytes in one piece", fake_messages, sizes[i]);
	}
}

/* Buffers over more than the caches hold; those of this machine may hold too much for a test. */
static void spread(struct drv_point put, struct drv_point get)
{
	const uint64_t caches = UINT64_C(1) << 18;

	shared_caches_bytes = caches;
	point_set(&put, "spread", 2 * caches - 1);
	tap_ok(run(put, (struct fake_orders){0}).attempt.status == DRV_REFUSED, "the caches hold too much");
	put.deadline_ns = get.deadline_ns = 20000000000;
	point_set(&put, "spread", 2 * caches);
	point_set(&get, "spread", 2 * caches);
	expect_sound(put, (struct fake_orders){0}, "puts over more than the caches hold");
	expect_sound(get, (struct fake_orders){.queued = 1}, "gets over more than the caches hold");
	expect_unsound(put, (struct fake_orders){.put_lost = 3}, "payload", "every third put writes nothing");
	shared_caches_bytes = 0;
}

/* The same of a stream, which has no more messages lent to the layer for that. */
static void test_spread_stream(void)
{
	static const uint64_t sizes[] = {0, 24, 5000};
	const struct fake_orders ways[] = {
		{0}, {.queued = true}, {.busy_every = 3}, {.queued = true, .unreliable = true}};
	struct drv_point point;
	struct outcome outcome;

	shared_caches_bytes = UINT64_C(1) << 18;
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			point = point_make("stream", sizes[i], 0, 5);
			point_set(&point, "spread", UINT64_C(1) << 19);
			expect_sound(point, ways[way], "stream over more than the caches hold");
			expect_sound(touched(point), ways[way],
				     "touched stream over more than the caches hold");
		}
	expect_unsound(point, (struct fake_orders){.flip_every = 1, .flip_at = 4999}, "payload",
		       "a wrong last byte of such a stream");
	/* small ones: the layer is asked for events once in 32 of them */
	point = point_make("stream", 24, 0, 5);
	point_set(&point, "spread", UINT64_C(1) << 19);
	point.deadline_ns = 5000000000;
	outcome = run(point, (struct fake_orders){.queued = true});
	tap_ok(outcome.queued_most >= 5 && outcome.queued_most <= 5 + 1 + DRV_PUSHER_ANSWERS,
	       "at most 5 messages and the words of both sides with the layer: %u", outcome.queued_most);
	tap_ok(run(touched(point), (struct fake_orders){.reserve = true}).attempt.status == DRV_REFUSED,
	       "messages are written in the library's memory");
	point_set(&point, "buffers", 1);
	tap_ok(run(point, (struct fake_orders){0}).attempt.status == DRV_REFUSED, "one buffer, and many");
	point_set(&point, "buffers", 0);
	point_set(&point, "spread", (UINT64_C(1) << 19) - 1);
	tap_ok(run(point, (struct fake_orders){0}).attempt.status == DRV_REFUSED, "the caches hold too much");
	shared_caches_bytes = 0;
}

static void notification(struct drv_point put)
{
	put.deadline_ns = 20000000000;
	point_set(&put, "notify", 1);
	expect_sound(put, (struct fake_orders){.busy_every = 7}, "puts that tell their target");
	expect_sound(put, (struct fake_orders){.queued = 1}, "the same, completed later");
	expect_unsound(put, (struct fake_orders){.note_lost = 501}, "payload", "a put that tells nobody");
	expect_unsound(put, (struct fake_orders){.note_twice = 501}, "payload", "a put that tells twice");
	point_set(&put, "operation", GET);
	tap_ok(run(put, (struct fake_orders){0}).attempt.status == DRV_REFUSED, "a get tells nobody");
	point_set(&put, "operation", PUT);
	point_set(&put, "notify", 0);
}

/* Each operation from memory that the layer knows, or from memory that it does not. */
static void test_registration(void)
{
	static const uint64_t sizes[] = {1, 8, 100, 8192};
	enum { LIBRARY, WARM, COLD };
	struct drv_point point;

	for (int registers = 0; registers < 2; registers++)
		for (uint64_t operation = PUT; operation <= COMPARE_SWAP; operation++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				for (uint64_t which = WARM; which <= COLD; which++) {
					const struct fake_orders orders = {
						.queued = i % 2, .busy_every = 7, .registers = registers};
					const bool atomic = operation >= FETCH_ADD;
					struct outcome outcome;

					if (atomic && sizes[i] != 8)
						continue;
					if (!atomic && (i + operation + which + (size_t)registers) % 2 &&
					    tap_share() > 1)
						continue;
					point = point_make("onesided", sizes[i], 0, 1);
					point_set(&point, "operation", operation);
					point_set(&point, "registration", which);
					expect_sound(point, orders, which == WARM ? "warm" : "cold");
					outcome = run(point, orders);
					/* the region of the target is registered as well */
					tap_ok(!registers || (which == WARM ? outcome.mem_regs == 2
									    : outcome.mem_regs >
										      outcome.operations),
					       "%" PRIu64 " calls of mem_reg", outcome.mem_regs);
					tap_ok(outcome.left_registered == 0, "nothing stays registered");
					tap_ok(atomic ||
						       (which == WARM ? outcome.buffers == 1
								      : outcome.buffers > outcome.operations),
					       "%" PRIu64 " buffers, one after the other", outcome.buffers);
				}
	expect_unsound(point, (struct fake_orders){.swap_lost = 50}, "payload", "a swap that is lost, cold");
	point = point_make("onesided", 64, 0, 1);
	for (uint64_t which = WARM; which <= COLD; which++) {
		point_set(&point, "registration", which);
		expect_unsound(point, (struct fake_orders){.put_lost = 1}, "payload", "puts that are lost");
		expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
			      "a put that is always busy");
	}
	expect_failed(point, (struct fake_orders){.registers = true, .reg_fails = 50}, DRV_MEMORY, false,
		      "memory that cannot be registered");
	tap_ok(run(point, (struct fake_orders){.registers = true, .reg_fails = 50}).left_registered == 0,
	       "nothing stays registered after a failure");
	point_set(&point, "operation", GET);
	expect_unsound(point, (struct fake_orders){.flip_every = 1, .flip_at = 63}, "payload",
		       "a wrong last byte of a get, cold");
}

static void test_onesided(void)
{
	static const char *const operations[] = {"put", "get", "fetch_add", "compare_swap"};
	static const uint64_t sizes[] = {1, 8, 15, 16, 100, 8192};

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
			for (uint32_t depth = 1; depth <= 5; depth += 4)
				for (int queued = 0; queued < 2; queued++) {
					struct drv_point point = point_make("onesided", sizes[j], 0, depth);

					point_set(&point, "operation", i);
					if (i >= FETCH_ADD && sizes[j] != 8)
						continue;
					if (i == COMPARE_SWAP && depth > 1)
						continue;
					if (i < FETCH_ADD && (i + j + depth / 4 + (size_t)queued) % 2 &&
					    tap_share() > 1)
						continue;
					expect_sound(point,
						     (struct fake_orders){.queued = queued, .busy_every = 7},
						     operations[i]);
				}
	{
		struct drv_point put = point_make("onesided", 64, 0, 1);
		struct drv_point get = point_make("onesided", 64, 0, 1),
				 add = point_make("onesided", 8, 0, 1),
				 swap = point_make("onesided", 8, 0, 1);

		point_set(&put, "operation", PUT);
		point_set(&get, "operation", GET);
		point_set(&add, "operation", FETCH_ADD);
		point_set(&swap, "operation", COMPARE_SWAP);
		expect_unsound(put, (struct fake_orders){.put_lost = 1}, "payload",
			       "puts that write nothing");
		expect_unsound(get, (struct fake_orders){.flip_every = 900, .flip_at = 3}, "payload",
			       "a get that lies");
		expect_unsound(get, (struct fake_orders){.flip_every = 1, .flip_at = 63}, "payload",
			       "a wrong last byte");
		expect_unsound(add, (struct fake_orders){.add_twice = 500}, "executions",
			       "an addition that happens twice");
		expect_unsound(swap, (struct fake_orders){.swap_lost = 500}, "payload",
			       "a swap that writes nothing");
		expect_failed(put, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
			      "a put that is always busy");
		notification(put);
		spread(put, get);
		point_set(&put, "spread", 0);
		point_set(&put, "target", 1);
		tap_ok(run(put, (struct fake_orders){0}).attempt.status == DRV_REFUSED,
		       "place self has no passive target");
	}
}

static void test_faults(void)
{
	const struct drv_point small = point_make("pingpong", 8, 8, 1),
			       large = point_make("pingpong", 64, 64, 1);
	const struct drv_point rpc = point_make("rpc", 64, 64, 4), stream = point_make("stream", 64, 0, 4),
			       windows = point_make("msgrate", 64, 0, 4);

	expect_unsound(small, (struct fake_orders){.flip_every = 1000}, "payload", "a flipped byte of 8");
	expect_unsound(large, (struct fake_orders){.flip_every = 1000, .flip_at = 9}, "payload",
		       "a flipped byte of the head");
	expect_unsound(large, (struct fake_orders){.flip_every = 1, .flip_at = 63}, "payload",
		       "a flipped last byte");
	expect_unsound(rpc, (struct fake_orders){.flip_every = 1000, .flip_at = 1}, "payload",
		       "a flipped byte of a request");
	expect_unsound(stream, (struct fake_orders){.flip_every = 1001, .flip_least = 64}, "payload",
		       "a flipped byte of a stream");
	expect_unsound(rpc, (struct fake_orders){.twice_every = 1000}, "payload",
		       "a message delivered twice");
	expect_failed(rpc, (struct fake_orders){.drop_every = 1000}, DRV_DEADLINE, true,
		      "a lost message, reliable layer");
	expect_failed(stream, (struct fake_orders){.drop_every = 1000}, DRV_DEADLINE, true,
		      "a lost message of a stream");
	expect_failed(windows, (struct fake_orders){.drop_every = 1000}, DRV_DEADLINE, true,
		      "a lost message of a window");
	expect_unsound(windows, (struct fake_orders){.twice_every = 1000}, "payload",
		       "a message of a window delivered twice");
	expect_failed(small, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
		      "a layer that is always busy");
	expect_failed(stream, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, true,
		      "a stream that is always busy");
	expect_failed(small, (struct fake_orders){.reserve = true, .busy_every = 1}, DRV_DEADLINE, false,
		      "memory of a library that is always busy");
	expect_failed(rpc, (struct fake_orders){.fail_after = 100}, DRV_LIBRARY, true, "a poll that fails");
}

/* Where too little is measured for a fault to come, as on a machine at other work, it is given the time. */
static void test_little_time(void)
{
	struct drv_point add = point_make("onesided", 8, 0, 1), call = point_make("rpc", 64, 64, 4);

	point_set(&add, "operation", FETCH_ADD);
	add.duration_ns = call.duration_ns = 1;
	expect_unsound(add, (struct fake_orders){.add_twice = 500}, "executions",
		       "an addition that happens twice, in no time");
	call.deadline_ns = 3000000000;
	{
		const struct outcome outcome =
			run_lossy(call, (struct fake_orders){.unreliable = true, .drop_every = 4000});

		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0, "losses in no time: %s",
		       show(&outcome));
	}
}

/* An unreliable layer loses messages without being unsound; they are counted. */
static void test_losses(void)
{
	static const uint64_t sizes[] = {0, 1, 8, 64};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t depth = 1; depth <= 4; depth += 3) {
			struct drv_point point =
				point_make(depth == 1 ? "pingpong" : "rpc", sizes[i], sizes[i], depth);
			struct outcome outcome;

			if ((i + depth) % tap_share()) /* each pattern with some sizes */
				continue;
			point.duration_ns = 100000000;
			point.deadline_ns = 3000000000;
			outcome =
				run_lossy(point, (struct fake_orders){.unreliable = true, .drop_every = 601});
			tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 &&
				       outcome.operations > 0 &&
				       outcome.attempt.executions_server <=
					       outcome.attempt.executions_expected &&
				       outcome.attempt.executions_expected ==
					       outcome.operations + outcome.lost,
			       "losses at %" PRIu64 " bytes, depth %u: %s", sizes[i], depth, show(&outcome));
		}
	{
		const struct outcome outcome =
			run_lossy(point_make("stream", 64, 0, 4),
				  (struct fake_orders){.unreliable = true, .drop_every = 100});

		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 &&
			       outcome.attempt.executions_server == outcome.operations,
		       "losses in a stream: %s", show(&outcome));
	}
	/* a message, a whole window, an acknowledgement: the end that asks gets an answer, and goes on */
	for (uint64_t depth = 1; depth <= 9; depth += 4) {
		struct drv_point point = point_make("msgrate", 64, 0, depth);
		struct outcome outcome;

		point.duration_ns = 150000000;
		point.deadline_ns = 3000000000;
		outcome = run_lossy(point, (struct fake_orders){.unreliable = true, .drop_every = 701});
		/* one in 701 is dropped, and takes its window with it: how many there are is the machine's */
		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 &&
			       outcome.lost * 10 < outcome.operations &&
			       outcome.attempt.executions_server == outcome.operations,
		       "losses in windows of %" PRIu64 ": %s", depth, show(&outcome));
	}
}

/* Calls that come at a rate of their own, below and above what the layer does, in every way that it may have. */
static void test_open_loop(void)
{
	static const uint64_t loads[] = {20, 50, 100, 150};
	const struct fake_orders ways[] = {{0},
					   {.queued = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.native = true, .busy_every = 5},
					   {.reserve = true, .in_sink = true, .busy_every = 2},
					   {.unordered = true, .queued = true}};
	struct drv_point point = point_make("load", 85, 85, 7);

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < 4 * sizeof(loads) / sizeof(loads[0]); i++) {
			point = point_make("load", i / 4 ? 85 : 0, i / 4 ? 4000 : 8, i % 3 ? 7 : 1);
			point.duration_ns = 5000000;
			point_set(&point, "load_percent", loads[i % 4]);
			point_set(&point, "arrivals", i / 4 % 2);
			if ((i + way) % tap_share() == 0) /* each way at some loads */
				expect_sound(i / 8 ? touched(point) : point, ways[way], "load");
		}
	expect_unsound(point, (struct fake_orders){.flip_every = 97, .flip_at = 8}, "payload",
		       "a flipped byte under load");
	expect_unsound(point, (struct fake_orders){.twice_every = 97}, "payload",
		       "a message delivered twice under load");
	expect_failed(point, (struct fake_orders){.drop_every = 97}, DRV_DEADLINE, true,
		      "a call lost for good");
	expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
		      "a layer that is always busy");
	expect_failed(point, (struct fake_orders){.fail_after = 1000}, DRV_LIBRARY, true,
		      "a poll that fails under load");
	point = point_make("load", 8, 8, 7);
	point_set(&point, "load_percent", 50);
	point.duration_ns = 100000000;
	point.deadline_ns = 3000000000;
	{
		const struct outcome outcome =
			run_lossy(point, (struct fake_orders){.unreliable = true, .drop_every = 601});

		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 && outcome.operations > 0 &&
			       outcome.attempt.executions_expected == outcome.operations + outcome.lost,
		       "losses under load: %s", show(&outcome));
	}
}

/* Calls whose server works before it answers: once each, in every way that a layer may have. */
static void test_service(void)
{
	const struct fake_orders ways[] = {{0},
					   {.queued = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.native = true, .busy_every = 5},
					   {.reserve = true, .in_sink = true, .busy_every = 2},
					   {.unordered = true, .queued = true}};
	struct drv_point point;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (uint64_t work = DRV_SERVICE_SPIN; work <= DRV_SERVICE_TOUCH; work++)
			for (uint64_t spread = DRV_SERVICE_FIXED; spread <= DRV_SERVICE_BIMODAL; spread++) {
				point = point_make("handler", way % 2 ? 16 : 85, way % 3 ? 85 : 0,
						   spread % 2 ? 7 : 1);
				point_set(&point, "work", work);
				point_set(&point, "spread", spread);
				point_set(&point, work == DRV_SERVICE_TOUCH ? "work_bytes" : "service_ns",
					  2000);
				expect_sound(way % 2 ? touched(point) : point, ways[way],
					     "calls that take time");
			}
	point = point_make("handler", 85, 85, 7);
	point_set(&point, "service_ns", 2000);
	expect_unsound(point, (struct fake_orders){.flip_every = 499, .flip_at = 8}, "payload",
		       "a flipped byte of a call that takes time");
	expect_unsound(point, (struct fake_orders){.twice_every = 97}, "payload",
		       "a call that is delivered twice");
	expect_failed(point, (struct fake_orders){.drop_every = 97}, DRV_DEADLINE, true,
		      "a call lost for good");
	expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
		      "a layer that is always busy");
}

/* The same where other threads do the work: as many answers, in whatever order they are done. */
static void test_workers(void)
{
	const struct fake_orders ways[] = {{0},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.reserve = true, .in_sink = true, .busy_every = 2},
					   {.unordered = true, .queued = true}};
	struct drv_point point;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (uint64_t workers = 1; workers <= 2; workers++) {
			point = point_make("handler", 85, way % 2 ? 85 : 0, way == 1 ? 1 : 7);
			point_set(&point, "dispatch", 1);
			point_set(&point, "workers", workers);
			point_set(&point, "work", workers % 2 ? DRV_SERVICE_SPIN : DRV_SERVICE_TOUCH);
			point_set(&point, "spread", DRV_SERVICE_EXPONENTIAL);
			point_set(&point, workers % 2 ? "service_ns" : "work_bytes", 2000);
			expect_sound(way % 2 ? touched(point) : point, ways[way],
				     "calls that others work for");
		}
	/* a worker spins: where the machine is at other work, little is done within the time */
	point = point_make("handler", 85, 85, 7);
	point_set(&point, "dispatch", 1);
	point_set(&point, "workers", 1);
	point_set(&point, "service_ns", 2000);
	point.deadline_ns = 2000000000;
	expect_unsound(point, (struct fake_orders){.flip_every = 9, .flip_at = 8}, "payload",
		       "a flipped byte of a call that others work for");
	expect_unsound(point, (struct fake_orders){.twice_every = 9}, "payload",
		       "a call that is delivered twice to workers");
	point.deadline_ns = 500000000; /* which passes */
	expect_failed(point, (struct fake_orders){.drop_every = 9}, DRV_DEADLINE, true,
		      "a call lost for good");
	expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
		      "a layer that is always busy, and answers that nobody takes");
	point_set(&point, "workers", 0);
	{
		const struct outcome outcome = run(point, (struct fake_orders){0});

		tap_ok(outcome.attempt.status == DRV_REFUSED && outcome.attempt.fail.reason == DRV_ARGUMENT,
		       "workers without any: %s", show(&outcome));
	}
}

/* Small calls beside a stream on one engine: each is told from the other, whatever the layer does. */
static void test_two_flows(void)
{
	enum { SAME, CHANNEL, ENDPOINT, NONE };
	const struct fake_orders ways[] = {{0},
					   {.queued = true},
					   {.native = true, .queued = true, .in_sink = true},
					   {.busy_every = 2, .queued = true, .in_sink = true},
					   {.native = true, .busy_every = 5},
					   {.reserve = true, .in_sink = true, .busy_every = 2},
					   {.unordered = true, .queued = true},
					   {.native = true, .unordered = true}};
	struct drv_point point;

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (uint64_t window = 1; window <= 16; window += 5) {
			point = point_make("mixed", way % 3 ? 8 : 0, way % 2 ? 85 : 8, 0);
			point_set(&point, "bulk_bytes", 9000);
			point_set(&point, "window", window);
			point_set(&point, "aggressor", window == 11 ? NONE : SAME);
			expect_sound(way % 2 ? touched(point) : point, ways[way], "calls beside a stream");
		}
	point = point_make("mixed", 8, 8, 0);
	point_set(&point, "bulk_bytes", 9000);
	point_set(&point, "window", 4);
	expect_unsound(point, (struct fake_orders){.flip_every = 97, .flip_at = 3}, "payload",
		       "a flipped byte beside a stream");
	/* of a window of four a message in five is a call or its reply: 97 meets both */
	expect_unsound(point, (struct fake_orders){.twice_every = 97}, "payload",
		       "a message that is delivered twice");
	expect_failed(point, (struct fake_orders){.drop_every = 97}, DRV_DEADLINE, true,
		      "a call, or a message of the stream, lost for good");
	expect_failed(point, (struct fake_orders){.busy_every = 1}, DRV_DEADLINE, false,
		      "a layer that is always busy");
	expect_failed(point, (struct fake_orders){.fail_after = 1000}, DRV_LIBRARY, true,
		      "a poll that fails beside a stream");
	point.duration_ns = 100000000;
	point.deadline_ns = 3000000000;
	{
		const struct outcome outcome =
			run_lossy(point, (struct fake_orders){.unreliable = true, .drop_every = 997});

		tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 && outcome.operations > 0,
		       "losses beside a stream that goes on: %s", show(&outcome));
	}
	point_set(&point, "aggressor", ENDPOINT);
	{
		const struct outcome outcome = run(point, (struct fake_orders){0});

		tap_ok(outcome.attempt.status == DRV_REFUSED && outcome.attempt.fail.reason == DRV_NO_CAP,
		       "another endpoint is none of a process that plays all: %s", show(&outcome));
	}
	point_set(&point, "aggressor", SAME);
	point_set(&point, "bulk_bytes", 8);
	{
		const struct outcome outcome = run(point, (struct fake_orders){0});

		tap_ok(outcome.attempt.status == DRV_REFUSED && outcome.attempt.fail.reason == DRV_ARGUMENT,
		       "calls as large as the stream's messages could not be told apart: %s", show(&outcome));
	}
}

int main(void)
{
	role_runs_start();
	test_sound();
	test_touched();
	test_same_buffer();
	test_spread_stream();
	test_pieces();
	test_onesided();
	test_registration();
	test_faults();
	test_little_time();
	test_losses();
	test_open_loop();
	test_service();
	test_workers();
	test_two_flows();
	return tap_done();
}
