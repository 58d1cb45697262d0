/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester that asks one thing at a time, and its responder, as the pattern closed_loop has them, over a layer with faults to order. */
#include "traffic/ask.h"
#include "traffic/responder.h"
#include "role_runs.h"

static void test_sound(void)
{
	static const uint64_t sizes[] = {16, 17, 31, 64, 5000};
	const struct fake_orders ways[] = {{0},
					   {.queued = true},
					   {.in_sink = true},
					   {.reserve = true, .busy_every = 3},
					   {.busy_every = 2}};
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (size_t i = 0; i < count; i++)
			expect_sound(point_make("closed_loop", sizes[i], sizes[(i * 3 + way) % count], 1),
				     ways[way], "closed loop");
}

static void test_faults(void)
{
	struct drv_point point = point_make("closed_loop", 64, 32, 1);
	struct outcome outcome;

	expect_unsound(point, (struct fake_orders){.flip_every = 501, .flip_at = 24}, "payload",
		       "a byte of a body that is another one");
	expect_unsound(point, (struct fake_orders){.flip_every = 501, .flip_at = 9}, "payload",
		       "a byte of a head that is another one");
	expect_unsound(point, (struct fake_orders){.twice_every = 501}, "payload",
		       "a message that comes twice");
	expect_failed(point, (struct fake_orders){.drop_every = 100}, DRV_DEADLINE, true,
		      "an answer that never comes");
	point.deadline_ns = 5000000000;
	outcome = run_lossy(point, (struct fake_orders){.unreliable = true, .drop_every = 301});
	tap_ok(outcome.attempt.status == DRV_DONE && outcome.lost > 0 && !outcome.attempt.mismatches,
	       "what an unreliable layer drops is lost: %s", show(&outcome));
}

static size_t posted_bytes;

static int note_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)chan, (void)count, (void)flags, (void)token;
	posted_bytes = iov->bytes;
	return CADGE_DONE;
}

/* What a responder takes as a request, and how large its answer is. */
static void test_asked(void)
{
	enum { SEED = 7, LARGEST = 64 };
	static const struct {
		size_t request, answer;
		bool due;
	} asked[] = {{16, 15, false},
		     {16, 16, true},
		     {16, LARGEST, true},
		     {16, LARGEST + 1, false},
		     {15, 16, false}};
	static const struct cadge_layer layer = {.post = note_post};
	struct drv_engine engine = {.layer = &layer};
	uint8_t message[DRV_HEAD_BYTES];

	engine.channels_count = 1;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct drv_responder server = {0};
		struct drv_role_run run = {.engine = &engine, .state = &server, .seed = SEED};
		struct cadge_sink *sink = &server.port.sink;
		struct drv_fail fail;

		tap_ok(!drv_responder_role_prepare_asked(&run, NULL, LARGEST, false, &fail) &&
			       engine.sink == sink,
		       "a responder starts");
		drv_check_phase(&server.lines->check, false, 0);
		drv_head_write(message, DRV_HEAD_BYTES, SEED, drv_ask_key(1, asked[i].answer));
		sink->recv(sink, 0, message, asked[i].request, NULL);
		tap_ok(server.port.due == asked[i].due &&
			       (server.lines->check.mismatches == 0) == asked[i].due,
		       "%zu bytes that ask for %zu", asked[i].request, asked[i].answer);
		posted_bytes = 0;
		tap_ok(!drv_responder_drain_latest(&server, &fail) &&
			       posted_bytes == (asked[i].due ? asked[i].answer : 0),
		       "are answered with %zu", posted_bytes);
		drv_responder_stop(&server);
		drv_memory_free(&engine, &engine.pools[DRV_POOL_RESPONDER]);
	}
}

/* A message too short for a head is no answer, whatever lies behind its end. */
static void test_short(void)
{
	enum { SEED = 7, BYTES = 8 };
	struct drv_engine engine = {.layer = fake_layer(), .clock = shared_clock};
	struct drv_requester state = {0};
	struct drv_role_run run = {.engine = &engine, .state = &state, .seed = SEED};
	struct cadge_sink *sink = &state.progress.port.sink;
	uint8_t message[DRV_HEAD_BYTES];
	struct drv_fail fail;

	tap_ok(!drv_ask_start(&run, NULL, 1, DRV_HEAD_BYTES, false, &fail) && engine.sink == sink,
	       "a requester starts");
	state.awaited = drv_ask_key(0, BYTES);
	drv_head_write(message, DRV_HEAD_BYTES, ~(uint64_t)SEED, state.awaited);
	sink->recv(sink, 0, message, BYTES, NULL);
	tap_ok(state.progress.check.mismatches == 1 && !state.answered_at, "an answer of %d bytes is none",
	       BYTES);
	drv_requester_stop(&state);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_REQUESTER]);
}

int main(void)
{
	role_runs_start();
	test_sound();
	test_faults();
	test_asked();
	test_short();
	return tap_done();
}
