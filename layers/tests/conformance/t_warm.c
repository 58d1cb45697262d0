/* SPDX-License-Identifier: BSD-3-Clause */
/* Where messages lie that are handed over: a layer that goes round many long buffers pushes its own data out of the caches. */
#include "cadge/sanitized.h"
#include "conformance.h"

#define WARM_BYTES (UINT64_C(1) << 20)

enum {
	WARM_MESSAGES = 40,
	WARM_UP = 16, /* buffers that were posted before the first long message came */
	WARM_PLACES = 4,
};

struct warm {
	const void *places[WARM_MESSAGES];
	unsigned int count; /* of different places of messages after the first WARM_UP */
	unsigned int arrived;
};

static enum cadge_keep warm_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				 struct cadge_lend *lend)
{
	struct warm *w = ep->arg;
	unsigned int i;

	(void)peer, (void)bytes, (void)lend;
	if (++w->arrived <= WARM_UP || w->arrived > WARM_MESSAGES)
		return CADGE_TAKEN;
	for (i = 0; i < w->count && w->places[i] != data; i++)
		;
	if (i == w->count)
		w->places[w->count++] = data;
	return CADGE_TAKEN;
}

/* One message at a time, there and back. */
static int warm_exchange(struct endpoint *ep, struct warm *w, struct cadge_iov *iov)
{
	struct rank *r = ep->r;

	for (unsigned int i = 0; i < WARM_MESSAGES; i++) {
		const uint64_t began_ns = now_ns();
		int code;

		if (rank_starts(r) && endpoint_post(ep, 0, iov, 1, 0, NULL, &code) < 0)
			return -1;
		while (w->arrived <= i) {
			const int got = endpoint_poll(ep);

			if (got < 0)
				return -1;
			if (!got)
				endpoint_idle(ep);
			if (now_ns() - began_ns > 8 * NS_PER_S)
				return fail(r, "message %u of %u did not come in 8 s", i, WARM_MESSAGES);
		}
		if (!rank_starts(r) && endpoint_post(ep, 0, iov, 1, 0, NULL, &code) < 0)
			return -1;
	}
	return endpoint_drain(ep) < 0 ? -1 : oob_barrier(r);
}

void test_long_stay_warm(struct rank *r)
{
	const struct wishes wishes = {.depth_max = 16, .message_bytes_max = WARM_BYTES};
	struct cadge_iov iov = {.bytes = WARM_BYTES};
	struct warm w = {.count = 0};
	struct endpoint *ep;

	if (CADGE_SANITIZED) {
		skip(r, "the address sanitizer gives freed memory out late, so that each message lies "
			"elsewhere");
		return;
	}
	if (endpoint_start(r, &wishes, &ep) < 0)
		return;
	if (ep->limits.message_bytes_max < WARM_BYTES || !(ep->limits.caps & CADGE_CAP_RELIABLE)) {
		endpoint_stop(ep);
		skip(r, "no message of %llu bytes is sure to arrive", (unsigned long long)WARM_BYTES);
		return;
	}
	iov.base = buffer_new(ep, iov.bytes);
	if (!iov.base)
		return;
	pattern_fill(iov.base, iov.bytes, 37, 0);
	ep->arg = &w;
	ep->on_recv = warm_recv;
	if (oob_barrier(r) < 0 || warm_exchange(ep, &w, &iov) < 0)
		return;
	if (w.count > WARM_PLACES)
		fail(r, "%u messages of 1 MiB, one at a time, came in %u places; at most %u stay warm",
		     WARM_MESSAGES - WARM_UP, w.count, WARM_PLACES);
	ep->on_recv = NULL;
	buffer_free(ep, iov.base, iov.bytes);
	endpoint_stop(ep);
}
