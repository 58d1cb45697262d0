/* SPDX-License-Identifier: BSD-3-Clause */
/* How much may be outstanding, and what happens when it is too much. */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "conformance.h"

void test_depth_one(struct rank *r)
{
	const struct wishes w = {.depth_max = 1, .message_bytes_max = 65536, .region_bytes_max = 0};
	struct flow f = {.seed = 21,
			 .messages = 300,
			 .bytes_min = 16,
			 .bytes_max = 4096,
			 .window = 1,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct endpoint *ep;

	if (endpoint_start(r, &w, &ep) < 0)
		return;
	if (f.bytes_max > ep->limits.message_bytes_max)
		f.bytes_max = (size_t)ep->limits.message_bytes_max;
	if (flow_run(ep, 0, &f) < 0)
		return;
	if (f.receive && !f.received)
		fail(r, "none of %llu messages arrived", (unsigned long long)f.messages);
	endpoint_stop(ep);
}

struct pile {
	uint64_t seed;
	unsigned int arrived, foreign;
	bool hold; /* the answerer holds its answers back until it has them all */
};

static enum cadge_keep pile_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				 struct cadge_lend *lend)
{
	struct pile *pile = ep->arg;
	uint64_t sequence;

	(void)peer;
	(void)lend;
	if (pattern_sequence(data, bytes, pile->seed, &sequence))
		pile->arrived++;
	else
		pile->foreign++;
	return CADGE_TAKEN;
}

static int pile_wait(struct endpoint *ep, struct pile *pile, unsigned int want, const char *what)
{
	uint64_t moved_ns = now_ns();
	unsigned int last = pile->arrived;
	int got;

	while (pile->arrived < want) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (pile->arrived != last) {
			last = pile->arrived;
			moved_ns = now_ns();
		} else if (now_ns() - moved_ns > 4 * NS_PER_S) {
			return fail(ep->r, "%s: only %u of %u arrived", what, pile->arrived, want);
		}
	}
	return 0;
}

/* Posts `count` messages of `bytes`, each from its own buffer, polling while BUSY. */
static int pile_post(struct endpoint *ep, struct pile *pile, unsigned char *base, unsigned int count,
		     size_t bytes)
{
	struct cadge_iov iov = {.bytes = bytes};
	int code;

	for (unsigned int i = 0; i < count; i++) {
		iov.base = base + i * bytes;
		pattern_fill(iov.base, bytes, pile->seed, i);
		if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0)
			return -1;
	}
	return 0;
}

/*
 * Part one: depth_max requests wait for their answers at the same time, for the peer answers none before it
 * has them all. Part two: the peer does not poll; never more than depth_max operations may be QUEUED at a
 * time, each accepted one arrives in the end.
 */
static int depth_held(struct endpoint *ep, struct pile *pile, unsigned int depth)
{
	const size_t bytes = 64;
	unsigned char *base = buffer_new(ep, depth * bytes);
	bool lossy = !(ep->limits.caps & CADGE_CAP_RELIABLE);
	struct rank *r = ep->r;

	if (!base || oob_barrier(r) < 0)
		return -1;
	if (rank_starts(r) && pile_post(ep, pile, base, depth, bytes) < 0)
		return -1;
	if (rank_answers(r) && !lossy &&
	    pile_wait(ep, pile, depth, "with depth_max requests outstanding") < 0)
		return -1;
	if (rank_starts(r) && endpoint_drain(ep) < 0)
		return -1;
	if (oob_barrier(r) < 0)
		return -1;
	if (r->count > 1) {
		if (rank_answers(r) && pile_post(ep, pile, base, depth, bytes) < 0)
			return -1;
		if (rank_starts(r) && !lossy && pile_wait(ep, pile, depth, "depth_max answers") < 0)
			return -1;
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return -1;
	buffer_free(ep, base, depth * bytes);
	return 0;
}

static int depth_bounded(struct endpoint *ep, unsigned int depth, unsigned char *base, size_t bytes,
			 unsigned int *posted_out)
{
	unsigned int tries = 4 * depth + 64, posted = 0, most = 0;
	struct cadge_iov iov = {.base = base, .bytes = bytes};
	uint64_t token;
	int rc = 0;

	if (tries > TOKENS_MAX - 1)
		tries = TOKENS_MAX - 1;
	/* All from one buffer of one content: it may be lent many times at once, for nobody writes. */
	pattern_fill(base, bytes, 23, 0);
	for (unsigned int i = 0; i < tries; i++) {
		token = token_new(ep, NULL);
		rc = ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token);
		if (endpoint_account(ep, rc, token, "post") < 0)
			return -1;
		if (rc == CADGE_BUSY)
			break;
		posted++;
		if (ep->outstanding > most)
			most = ep->outstanding;
	}
	*posted_out = posted;
	if (most > depth)
		return fail(ep->r, "%u operations were outstanding at a time, limits.depth_max says %u", most,
			    depth);
	return 0;
}

void test_depth_max(struct rank *r)
{
	struct wishes w = wishes_default;
	struct pile pile = {.seed = 22};
	struct endpoint *ep;
	unsigned int depth, posted = 0;
	size_t bytes;

	w.depth_max = 512;
	if (endpoint_start(r, &w, &ep) < 0)
		return;
	ep->arg = &pile;
	ep->on_recv = pile_recv;
	depth = ep->limits.depth_max < 512 ? ep->limits.depth_max : 512;
	if (depth_held(ep, &pile, depth) < 0)
		return;
	bytes = (size_t)(ep->limits.message_bytes_max < 32768 ? ep->limits.message_bytes_max : 32768);
	pile = (struct pile){.seed = 23};
	/* From here on the answerer does not poll, not even while it waits for the starter to begin. */
	if (rank_answers(r))
		r->polled = NULL;
	if (oob_barrier(r) < 0)
		return;
	if (ep->limits.depth_max <= 1024) {
		unsigned char *base = buffer_new(ep, bytes);

		if (!base ||
		    (rank_starts(r) && depth_bounded(ep, ep->limits.depth_max, base, bytes, &posted) < 0))
			return;
		/* It slept on the out-of-band channel. */
		if (rank_starts(r) && oob_send(r, rank_other(r), &posted, sizeof(posted)) < 0)
			return;
		if (rank_answers(r)) {
			if (oob_recv(r, rank_other(r), &posted, sizeof(posted), NULL) < 0)
				return;
			r->polled = ep;
			if ((ep->limits.caps & CADGE_CAP_RELIABLE) &&
			    pile_wait(ep, &pile, posted, "after depth_max") < 0)
				return;
		}
		if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
			return;
		buffer_free(ep, base, bytes);
	}
	r->polled = ep;
	/* Answers of the first part may come late where messages may be lost. */
	if (pile.foreign && (ep->limits.caps & CADGE_CAP_RELIABLE))
		fail(r, "messages arrived that were not those posted: %u", pile.foreign);
	endpoint_stop(ep);
}

#define FLOOD_BYTES_MAX (UINT64_C(512) << 20)

/*
 * A fast sender and a receiver that does not look: BUSY must come, and after it progress, and nothing is
 * lost.
 */
void test_busy_then_progress(struct rank *r)
{
	struct pile pile = {.seed = 24};
	uint64_t token, sum = 0;
	struct cadge_iov iov;
	struct endpoint *ep;
	unsigned int posted = 0;
	bool busy = false;
	size_t bytes;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	ep->arg = &pile;
	ep->on_recv = pile_recv;
	bytes = (size_t)(ep->limits.message_bytes_max < 65536 ? ep->limits.message_bytes_max : 65536);
	iov = (struct cadge_iov){.base = buffer_new(ep, bytes), .bytes = bytes};
	if (!iov.base)
		return;
	pattern_fill(iov.base, bytes, pile.seed, 0);
	if (rank_answers(r))
		r->polled = NULL;
	if (oob_barrier(r) < 0)
		return;
	if (rank_starts(r)) {
		while (!busy && sum < FLOOD_BYTES_MAX) {
			token = token_new(ep, NULL);
			if (token == UINT64_MAX)
				return;
			rc = ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token);
			if (endpoint_account(ep, rc, token, "post") < 0)
				return;
			busy = rc == CADGE_BUSY;
			posted += !busy;
			sum += bytes;
		}
		if (oob_send(r, rank_other(r), &posted, sizeof(posted)) < 0)
			return;
	}
	if (rank_answers(r)) {
		if (oob_recv(r, rank_other(r), &posted, sizeof(posted), NULL) < 0)
			return;
		r->polled = ep;
		if ((ep->limits.caps & CADGE_CAP_RELIABLE) &&
		    pile_wait(ep, &pile, posted, "after the flood") < 0)
			return;
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return;
	if (rank_starts(r) && !busy && (ep->limits.caps & CADGE_CAP_FLOW_CONTROL)) {
		fail(r,
		     "FLOW_CONTROL is claimed, but %u messages of %zu bytes were accepted while the peer did "
		     "not poll",
		     posted, bytes);
		return;
	}
	/* After BUSY a post must get through again. */
	pile.arrived = 0;
	pile.seed = 25;
	if (oob_barrier(r) < 0 || (rank_starts(r) && pile_post(ep, &pile, iov.base, 1, 16) < 0) ||
	    (rank_answers(r) && pile_wait(ep, &pile, 1, "after BUSY and progress") < 0) ||
	    endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return;
	buffer_free(ep, iov.base, bytes);
	endpoint_stop(ep);
}
