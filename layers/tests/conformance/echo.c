/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message at a time: the starter posts, the answerer checks every byte and posts another of the same
 * length, the starter checks that. For sizes below 16 bytes, where a message cannot name itself, its place in
 * this order does.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

#define RESEND_NS (250 * NS_PER_MS)

struct echo_state {
	uint64_t seed;
	const size_t *sizes;
	size_t count;
	size_t requests, replies; /* received so far */
	size_t answered;          /* requests answered; below `requests`: an answer is due */
	bool again;               /* the starter asked twice: answer the last request once more */
	bool lossy;
	void *buffer;
};

static bool matches(const struct echo_state *st, const void *data, size_t bytes, uint64_t side, size_t i,
		    size_t *wrong_out)
{
	*wrong_out = 0;
	return i < st->count && bytes == st->sizes[i] &&
	       pattern_check(data, bytes, st->seed + side, i, wrong_out);
}

static enum cadge_keep echo_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				 struct cadge_lend *lend)
{
	struct echo_state *st = ep->arg;
	struct rank *r = ep->r;
	bool request = rank_answers(r) && (!rank_starts(r) || st->requests == st->replies);
	size_t i = request ? st->requests : st->replies, wrong;

	(void)peer;
	(void)lend;
	if (matches(st, data, bytes, request ? 0 : 1, i, &wrong)) {
		if (request)
			st->requests++;
		else
			st->replies++;
		return CADGE_TAKEN;
	}
	if (st->lossy && i > 0) {
		size_t unused;

		if (matches(st, data, bytes, request ? 0 : 1, i - 1, &unused)) {
			st->again = request;
			return CADGE_TAKEN;
		}
	}
	for (size_t j = 0, unused; j < i && j < st->count; j++)
		if ((bytes >= PATTERN_HEAD_BYTES || (bytes && j + 1 == i)) &&
		    matches(st, data, bytes, request ? 0 : 1, j, &unused)) {
			fail(r, "message %zu of %zu bytes was delivered twice", j, bytes);
			return CADGE_TAKEN;
		}
	if (i >= st->count)
		fail(r, "a message of %zu bytes came after the last one", bytes);
	else if (bytes != st->sizes[i])
		fail(r, "a message of %zu bytes arrived with %zu", st->sizes[i], bytes);
	else
		fail(r, "message %zu of %zu bytes arrived with a wrong byte at offset %zu", i, bytes, wrong);
	return CADGE_TAKEN;
}

static int echo_post(struct endpoint *ep, uint32_t peer, struct echo_state *st, uint64_t side, size_t i)
{
	struct cadge_iov iov = {.base = st->buffer, .bytes = st->sizes[i]};
	int code;

	pattern_fill(st->buffer, iov.bytes, st->seed + side, i);
	if (endpoint_post(ep, peer, &iov, 1, 0, NULL, &code) < 0 || endpoint_drain(ep) < 0)
		return -1;
	memset(st->buffer, 0xee, iov.bytes);
	return 0;
}

static int echo_answer(struct endpoint *ep, uint32_t peer, struct echo_state *st)
{
	if (st->answered < st->requests) {
		if (echo_post(ep, peer, st, 1, st->answered) < 0)
			return -1;
		st->answered++;
	} else if (st->again && st->answered) {
		st->again = false;
		if (echo_post(ep, peer, st, 1, st->answered - 1) < 0)
			return -1;
	}
	return 0;
}

/* The starter's part of message i: post it, then wait for its echo. */
static int echo_one(struct endpoint *ep, uint32_t peer, struct echo_state *st, size_t i)
{
	uint64_t posted_ns = now_ns();
	unsigned int tries = 1;
	int got;

	if (echo_post(ep, peer, st, 0, i) < 0)
		return -1;
	while (st->replies <= i) {
		got = endpoint_poll(ep);
		if (got < 0 || (rank_answers(ep->r) && echo_answer(ep, peer, st) < 0))
			return -1;
		if (got)
			continue;
		endpoint_idle(ep);
		if (st->lossy && now_ns() - posted_ns > RESEND_NS && tries < 20) {
			tries++;
			posted_ns = now_ns();
			if (echo_post(ep, peer, st, 0, i) < 0)
				return -1;
		} else if (now_ns() - posted_ns > 8 * NS_PER_S) {
			return fail(ep->r, "a message of %zu bytes was not answered in 8 s", st->sizes[i]);
		}
	}
	return 0;
}

int echo_run(struct endpoint *ep, uint32_t peer, uint64_t seed, const size_t *sizes, size_t count)
{
	struct echo_state st = {.seed = seed,
				.sizes = sizes,
				.count = count,
				.lossy = !(ep->limits.caps & CADGE_CAP_RELIABLE)};
	struct rank *r = ep->r;
	size_t largest = 0;
	char said[8];
	int got;

	for (size_t i = 0; i < count; i++)
		largest = sizes[i] > largest ? sizes[i] : largest;
	st.buffer = buffer_new(ep, largest);
	if (!st.buffer)
		return -1;
	ep->arg = &st;
	ep->on_recv = echo_recv;
	ep->on_sent = NULL;
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_starts(r)) {
		for (size_t i = 0; i < count; i++)
			if (echo_one(ep, peer, &st, i) < 0)
				return -1;
		if (r->count > 1 && oob_send(r, ep->peer[peer].rank, "done", 4) < 0)
			return -1;
	} else {
		while (!(got = oob_try(r, ep->peer[peer].rank, said, sizeof(said), NULL))) {
			got = endpoint_poll(ep);
			if (got < 0 || echo_answer(ep, peer, &st) < 0)
				return -1;
			if (!got)
				endpoint_idle(ep);
		}
		if (got < 0)
			return -1;
	}
	if (oob_barrier(r) < 0)
		return -1;
	ep->on_recv = NULL;
	buffer_free(ep, st.buffer, largest);
	return 0;
}
