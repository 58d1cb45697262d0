/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: every call of a measurement carries MORE, as many as a batch has are flushed at a time, and before it looks
 * for replies nothing stays behind, also where the layer was busy in the middle of one.
 */
#include "servers/batch.h"

#include <inttypes.h>
#include <string.h>

#include "tap.h"

enum { BYTES = 16, DEPTH = 12, BATCH = 4, HELD_MAX = 64, SIZES = BATCH + 1 };
#define DURATION_NS UINT64_C(20000000)

/* What was handed over and what has left; replies to what has left come with the next poll. */
static struct {
	uint64_t ids[HELD_MAX];
	uint32_t held, left;
	/* how many batches had so many calls; polls with something held; calls without the flag */
	uint64_t of_size[SIZES], behind, bare, calls;
	uint32_t since_flush;
	/* every so many calls one is refused; 0: never */
	uint64_t refuse_every;
	/* so many replies a poll at most */
	uint32_t at_once;
} seen;

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	(void)chan, (void)count, (void)token;
	if (seen.refuse_every && ++seen.calls % seen.refuse_every == 0)
		return CADGE_BUSY;
	drv_trailer_read(iov->base, iov->bytes, DRV_RPC_REQUEST, &seen.ids[seen.held++]);
	if (flags & CADGE_MORE) {
		seen.since_flush++;
	} else {
		seen.bare++;
		seen.left = seen.held;
	}
	return CADGE_DONE;
}

static int flush(struct cadge_chan *chan)
{
	(void)chan;
	seen.of_size[seen.since_flush < SIZES ? seen.since_flush : 0]++;
	seen.since_flush = 0;
	seen.left = seen.held;
	return CADGE_DONE;
}

static int poll_replies(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const struct drv_requester *requester = (const struct drv_requester *)sink;
	const uint32_t left = seen.left < seen.at_once ? seen.left : seen.at_once;
	uint8_t message[BYTES + DRV_RPC_TRAILER_BYTES];

	(void)ctx;
	seen.behind += seen.since_flush > 0;
	for (uint32_t i = 0; i < left; i++) {
		/* keys are numbers here, and so are ids above their slot */
		drv_head_write(message, BYTES, ~requester->exchange.seed, seen.ids[i] >> 12);
		drv_trailer_write(message, BYTES, seen.ids[i], DRV_RPC_REPLY);
		sink->recv(sink, 0, message, sizeof(message), NULL);
	}
	memmove(seen.ids, seen.ids + left, (seen.held - left) * sizeof(seen.ids[0]));
	seen.held -= left;
	seen.left -= left;
	return (int)left;
}

static const struct cadge_layer layer = {.post = post, .flush = flush, .poll = poll_replies};

static void check(struct drv_engine *engine, uint32_t depth, uint32_t at_once, uint64_t refuse_every)
{
	const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					      .request_bytes = BYTES,
					      .reply_bytes = BYTES,
					      .depth = depth,
					      .seed = 5};
	static struct drv_samples samples;
	struct drv_record record = {0};
	struct drv_requester requester;
	struct drv_fail fail;
	uint64_t handed = 0;

	drv_histogram_clear(&samples.histogram);
	memset(&seen, 0, sizeof(seen));
	seen.at_once = at_once;
	if (drv_requester_start(&requester, engine, exchange, &samples, &fail)) {
		tap_ok(false, "a requester starts: %s", fail.text);
		return;
	}
	seen.refuse_every = refuse_every;
	drv_batch_calls(&requester, BATCH);
	if (drv_requester_measure(&requester, DURATION_NS, &record, &fail))
		tap_ok(false, "it measures: %s", fail.text);
	for (uint32_t size = 1; size < SIZES; size++)
		handed += size * seen.of_size[size];
	tap_ok(record.operations > 100 && record.operations == handed && samples.histogram.count == handed &&
		       record.elapsed_ns >= DURATION_NS && engine->layer == &layer,
	       "%" PRIu64 " calls in %" PRIu64 " ns, as many as were handed over: %" PRIu64,
	       record.operations, record.elapsed_ns, handed);
	tap_ok(!seen.bare && !seen.behind && !seen.held && !seen.of_size[0] &&
		       !requester.progress.check.mismatches,
	       "each with MORE, and none behind when it looks for replies");
	if (refuse_every)
		tap_ok(seen.of_size[1] + seen.of_size[2] + seen.of_size[3] > 0 && seen.of_size[BATCH] > 0,
		       "a busy layer cuts batches short: %" PRIu64 " are whole", seen.of_size[BATCH]);
	else
		tap_ok(handed == BATCH * seen.of_size[BATCH], "and all batches are whole: %" PRIu64,
		       seen.of_size[BATCH]);
	drv_requester_stop(&requester);
}

int main(void)
{
	struct drv_engine engine = {.layer = &layer, .idle_sleep_scale = 1, .channels_count = 1};

	engine.offer.both.caps = CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_BATCH;
	drv_clock_start(&engine.clock, false);
	engine.launch_deadline_ns = drv_now_ns() + UINT64_C(60000000000);
	drv_engine_allow(&engine, UINT64_C(60000000000));
	check(&engine, DEPTH, HELD_MAX, 0);
	check(&engine, DEPTH, HELD_MAX, 7);
	/* no more than a batch has is ever free; and what is free grows by one at a time */
	check(&engine, BATCH, HELD_MAX, 0);
	check(&engine, DEPTH, 1, 0);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_REQUESTER]);
	return tap_done();
}
