/* SPDX-License-Identifier: BSD-3-Clause */
/* A reply is that of one call alone: one to an earlier call of the same slot, which may come late or twice, is stale. */
#include <stdlib.h>

#include "traffic/requester.h"
#include "tap.h"

enum { BYTES = 64, SEED = 7 };

/* The identity of the last call. */
static uint64_t called;

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	(void)chan, (void)count, (void)flags, (void)token;
	return drv_trailer_read(iov->base, iov->bytes, DRV_RPC_REQUEST, &called) ? CADGE_DONE
										 : CADGE_E_LIBRARY;
}

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx, (void)limits_out;
}

/* The reply to call `number`, as its responder writes it. Mismatches so far. */
static uint64_t deliver(struct drv_requester *requester, uint64_t id, uint64_t number)
{
	struct cadge_sink *sink = &requester->progress.port.sink;
	uint8_t reply[BYTES + DRV_RPC_TRAILER_BYTES];

	drv_head_write(reply, BYTES, ~(uint64_t)SEED, number);
	drv_trailer_write(reply, BYTES, id, DRV_RPC_REPLY);
	sink->recv(sink, 0, reply, sizeof(reply), NULL);
	return requester->progress.check.mismatches;
}

int main(void)
{
	const struct cadge_layer layer = {.post = post, .limits = limits};
	const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					      .request_bytes = BYTES,
					      .reply_bytes = BYTES,
					      .depth = 1,
					      .seed = SEED};
	struct drv_engine engine = {.layer = &layer, .offer.both.caps = CADGE_CAP_RELIABLE};
	struct drv_samples *samples = calloc(1, sizeof(*samples));
	struct drv_requester requester;
	struct drv_fail fail;
	uint64_t first;

	drv_clock_start(&engine.clock, false);
	if (!samples || !tap_ok(!drv_requester_start(&requester, &engine, exchange, samples, &fail),
				"a requester starts"))
		return 1;
	drv_requester_open(&requester, UINT64_MAX, UINT64_MAX);
	drv_requester_push(&requester);
	first = called;
	tap_ok(!deliver(&requester, first, 0) && requester.completed == 1, "its call is answered");
	drv_requester_push(&requester);
	tap_ok(deliver(&requester, first, 0) == 1 && requester.completed == 1,
	       "a second answer to that is not one to the next call");
	tap_ok(deliver(&requester, called, 1) == 1 && requester.completed == 2, "which is answered after it");
	tap_ok(deliver(&requester, called, 1) == 2 && requester.completed == 2, "once");
	/* one that was lost may come once */
	requester.progress.check.reliable = false;
	requester.lost = 1;
	tap_ok(deliver(&requester, first, 0) == 2 && requester.late == 1 &&
		       deliver(&requester, first, 0) == 3,
	       "after a loss one is late, and the next is not");
	drv_requester_stop(&requester);
	free(samples);
	return tap_done();
}
