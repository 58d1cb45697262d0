/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which buffers a responder answers. Large answers that nobody writes leave from the one that came back last: two in
 * turn were beyond a second-level cache where native tools have one. All others take turns.
 */
#include <stdlib.h>
#include <string.h>

#include "traffic/responder.h"
#include "tap.h"

enum { SEED = 7, REQUEST_BYTES = 64, KIB = 1024, ANSWERS = 8, POSTS_MAX = 64 };

/* A layer that notes from where it was given what, and sends none of it. */
static struct {
	/* what post says from now on */
	int code;
	const uint8_t *bases[POSTS_MAX];
	uint64_t tokens[POSTS_MAX];
	uint32_t posts;
} layer_has;

static int note_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)chan, (void)count, (void)flags;
	layer_has.bases[layer_has.posts % POSTS_MAX] = iov->base;
	layer_has.tokens[layer_has.posts++ % POSTS_MAX] = token;
	return layer_has.code;
}

struct site {
	struct drv_engine engine;
	struct drv_responder responder;
	/* requests so far: the key of the next one */
	uint64_t requests;
};

static void start(struct site *site, uint64_t reply_bytes, uint32_t depth, enum drv_touch touch, int code)
{
	static const struct cadge_layer layer = {.post = note_post};
	const struct drv_exchange exchange = {.request_bytes = REQUEST_BYTES,
					      .reply_bytes = reply_bytes,
					      .depth = depth,
					      .seed = SEED,
					      .touch = touch};
	const struct drv_phase phase = {.full = false};
	struct drv_counts counts = {0};
	struct drv_fail fail;

	memset(site, 0, sizeof(*site));
	memset(&layer_has, 0, sizeof(layer_has));
	layer_has.code = code;
	site->engine.layer = &layer;
	site->engine.offer.both.caps = CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_POST_IN_SINK;
	site->engine.channels_count = 1;
	if (drv_responder_start(&site->responder, &site->engine, exchange, &fail))
		abort();
	drv_responder_phase(&site->responder, &phase, &counts);
}

static void end(struct site *site)
{
	tap_ok(site->responder.lines[0].check.mismatches == 0 && !site->responder.failed,
	       "nothing was wrong: %s%s", site->responder.lines[0].check.mismatch, site->responder.fail.text);
	drv_responder_stop(&site->responder);
	drv_memory_free(&site->engine, &site->engine.pools[DRV_POOL_RESPONDER]);
}

/* The client asks; it is answered inside the callback. */
static void ask(struct site *site)
{
	uint8_t request[REQUEST_BYTES];

	drv_head_write(request, sizeof(request), SEED, site->requests);
	drv_touch_write(request, sizeof(request), SEED, site->requests++);
	site->responder.port.sink.recv(&site->responder.port.sink, 0, request, sizeof(request), NULL);
}

/* The layer gives the buffer of that post back. */
static void sent(struct site *site, uint32_t post)
{
	site->responder.port.sink.sent(&site->responder.port.sink, 0, layer_has.tokens[post], CADGE_DONE);
}

/* How many different buffers so many answers, one at a time, left from. */
static uint32_t buffers_of(uint64_t reply_bytes, enum drv_touch touch, int code)
{
	struct site site;
	uint32_t different = 0;

	start(&site, reply_bytes, 1, touch, code);
	for (uint32_t i = 0; i < ANSWERS; i++) {
		bool known = false;

		ask(&site);
		if (code == CADGE_QUEUED)
			sent(&site, i);
		for (uint32_t j = 0; j < i; j++)
			known |= layer_has.bases[j] == layer_has.bases[i];
		different += !known;
	}
	tap_ok(layer_has.posts == ANSWERS, "%u answers to %d requests", layer_has.posts, ANSWERS);
	end(&site);
	return different;
}

static void test_one_at_a_time(void)
{
	static const struct {
		uint64_t kib;
		enum drv_touch touch;
		uint32_t buffers;
		const char *what;
	} rows[] = {
		{1024, DRV_TOUCH_NONE, 1, "1 MiB that nobody writes"},
		{65, DRV_TOUCH_NONE, 1, "65 KiB that nobody writes"},
		{64, DRV_TOUCH_NONE, 2, "64 KiB that nobody writes"},
		{1024, DRV_TOUCH_WRITE_READ, 2, "1 MiB that is written anew"},
		{64, DRV_TOUCH_WRITE_READ, 2, "64 KiB that is written anew"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint64_t bytes = rows[i].kib * KIB;
		const uint32_t queued = buffers_of(bytes, rows[i].touch, CADGE_QUEUED),
			       done = buffers_of(bytes, rows[i].touch, CADGE_DONE);

		tap_ok(queued == rows[i].buffers && done == rows[i].buffers,
		       "buffers of %s: %u where the layer keeps them for a while, %u else", rows[i].what,
		       queued, done);
	}
}

/* A buffer that the layer still has is not answered from; what comes back last leaves first. */
static void test_late(void)
{
	struct site site;

	start(&site, 1024 * KIB, 2, DRV_TOUCH_NONE, CADGE_QUEUED);
	ask(&site);
	ask(&site);
	tap_ok(layer_has.bases[0] != layer_has.bases[1], "two that are outstanding have a buffer each");
	sent(&site, 1);
	sent(&site, 0);
	ask(&site);
	ask(&site);
	tap_ok(layer_has.bases[2] == layer_has.bases[0] && layer_has.bases[3] == layer_has.bases[1],
	       "the last to come back is the first to leave");
	sent(&site, 3);
	sent(&site, 2);
	end(&site);
}

/* The layer is busy: the same buffer leaves as soon as it is not. */
static void test_busy(uint64_t reply_bytes, enum drv_touch touch)
{
	struct drv_fail fail;
	struct site site;

	start(&site, reply_bytes, 1, touch, CADGE_BUSY);
	ask(&site);
	tap_ok(drv_responder_drain(&site.responder, &fail) == 0 && layer_has.posts == 2 &&
		       layer_has.bases[0] == layer_has.bases[1],
	       "a busy layer is asked again with the same buffer");
	layer_has.code = CADGE_QUEUED;
	tap_ok(drv_responder_drain(&site.responder, &fail) == 0 && layer_has.posts == 3 &&
		       layer_has.bases[2] == layer_has.bases[0] && layer_has.tokens[2] == layer_has.tokens[0],
	       "which takes it once it is not");
	sent(&site, 2);
	tap_ok(drv_responder_drain(&site.responder, &fail) == 0 && layer_has.posts == 3,
	       "and there is no second answer");
	end(&site);
}

/* What was written for an answer that the layer was too busy for is not written again, but for the next one. */
static void test_written(void)
{
	enum { BYTES = 1024 * KIB };
	struct drv_fail fail;
	struct site site;
	uint8_t *body, other;

	start(&site, BYTES, 1, DRV_TOUCH_WRITE_READ, CADGE_BUSY);
	ask(&site);
	body = site.responder.lines[0].replies + (layer_has.bases[0] - site.responder.lines[0].replies) +
	       BYTES / 2;
	other = *body ^ 0xff;
	*body = other;
	layer_has.code = CADGE_DONE;
	tap_ok(drv_responder_drain(&site.responder, &fail) == 0 && layer_has.posts == 2 &&
		       layer_has.bases[1] == layer_has.bases[0] && *body == other,
	       "an answer is written once, however often it is tried");
	ask(&site);
	ask(&site);
	tap_ok(layer_has.bases[3] == layer_has.bases[0] && *body == drv_touch_byte(~(uint64_t)SEED, 2),
	       "the next one from that buffer is written anew");
	end(&site);
}

/* A layer that answers one at a time: who is asked anew while an answer waits answers the latest alone. */
static void test_latest(void)
{
	struct drv_fail fail;
	struct site site;

	start(&site, 64, 1, DRV_TOUCH_NONE, CADGE_BUSY);
	drv_responder_due_latest(&site.responder, 1);
	tap_ok(layer_has.posts == 0 && site.responder.port.due, "an answer leaves after poll");
	tap_ok(!drv_responder_drain_latest(&site.responder, &fail) && layer_has.posts == 1 &&
		       site.responder.port.due,
	       "a busy layer leaves it due");
	drv_responder_due_latest(&site.responder, 2);
	layer_has.code = CADGE_QUEUED;
	tap_ok(!drv_responder_drain_latest(&site.responder, &fail) && layer_has.posts == 2 &&
		       drv_head_key(layer_has.bases[1], 64) == 2 && !site.responder.port.due,
	       "one that waited is replaced by the latest");
	drv_responder_due_latest(&site.responder, 3);
	tap_ok(!drv_responder_drain_latest(&site.responder, &fail) &&
		       layer_has.bases[2] != layer_has.bases[1],
	       "the next one leaves from the other buffer");
	drv_responder_due_latest(&site.responder, 4);
	tap_ok(!drv_responder_drain_latest(&site.responder, &fail) && layer_has.posts == 3 &&
		       site.responder.port.due,
	       "and one more waits for a buffer");
	sent(&site, 1);
	tap_ok(!drv_responder_drain_latest(&site.responder, &fail) && layer_has.posts == 4 &&
		       layer_has.bases[3] == layer_has.bases[1] && !site.responder.port.due,
	       "which the layer gives back");
	sent(&site, 2);
	sent(&site, 3);
	layer_has.code = CADGE_E_DOWN;
	drv_responder_due_latest(&site.responder, 5);
	tap_ok(drv_responder_drain_latest(&site.responder, &fail) == -1 && site.responder.port.due,
	       "a layer that fails fails the drain");
	site.responder.failed = false;
	end(&site);
}

/* A completion that came twice is told, and gives no buffer twice. */
static void test_twice(uint64_t reply_bytes)
{
	struct site site;

	start(&site, reply_bytes, 1, DRV_TOUCH_NONE, CADGE_QUEUED);
	ask(&site);
	sent(&site, 0);
	sent(&site, 0);
	tap_ok(site.responder.lines[0].check.mismatches == 1, "a completion that comes twice: %s",
	       site.responder.lines[0].check.mismatch);
	ask(&site);
	ask(&site);
	tap_ok(layer_has.posts == 3 && layer_has.bases[1] != layer_has.bases[2],
	       "two answers have a buffer each after it");
	drv_responder_stop(&site.responder);
	drv_memory_free(&site.engine, &site.engine.pools[DRV_POOL_RESPONDER]);
}

int main(void)
{
	test_one_at_a_time();
	test_late();
	test_busy(1024 * KIB, DRV_TOUCH_NONE);
	test_busy(64 * KIB, DRV_TOUCH_NONE);
	test_busy(1024 * KIB, DRV_TOUCH_WRITE_READ);
	test_written();
	test_twice(1024 * KIB);
	test_twice(64);
	test_latest();
	return tap_done();
}
