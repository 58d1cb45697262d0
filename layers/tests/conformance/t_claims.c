/* SPDX-License-Identifier: BSD-3-Clause */
/* Order, exactly once, both directions, posting inside the sink, lending: as claimed. */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "conformance.h"

static void size_limit(const struct endpoint *ep, struct flow *f)
{
	if (f->bytes_max > ep->limits.message_bytes_max)
		f->bytes_max = (size_t)ep->limits.message_bytes_max;
}

void test_order_as_claimed(struct rank *r)
{
	struct flow f = {.seed = 31,
			 .messages = 3000,
			 .bytes_min = 16,
			 .bytes_max = 20000,
			 .window = 32,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	size_limit(ep, &f);
	if (!(ep->limits.caps & CADGE_CAP_ORDERED)) {
		endpoint_stop(ep);
		skip(r, "ORDERED is not granted");
		return;
	}
	if (flow_run(ep, 0, &f) < 0)
		return;
	if (f.backwards)
		fail(r, "ORDERED is claimed, but %llu of %llu messages arrived after a later one",
		     (unsigned long long)f.backwards, (unsigned long long)f.messages);
	endpoint_stop(ep);
}

void test_exactly_once_as_claimed(struct rank *r)
{
	struct flow f = {.seed = 32,
			 .messages = 3000,
			 .bytes_min = 16,
			 .bytes_max = 3000,
			 .window = 32,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	size_limit(ep, &f);
	if (flow_run(ep, 0, &f) < 0)
		return;
	if (f.repeated)
		fail(r, "%llu of %llu messages arrived more than once", (unsigned long long)f.repeated,
		     (unsigned long long)f.messages);
	if (f.missing && (ep->limits.caps & CADGE_CAP_RELIABLE))
		fail(r,
		     "RELIABLE is claimed, but %llu of %llu messages never arrived and the channel stayed up",
		     (unsigned long long)f.missing, (unsigned long long)f.messages);
	if (f.receive && f.missing == f.messages)
		fail(r, "not one of %llu messages arrived", (unsigned long long)f.messages);
	endpoint_stop(ep);
}

void test_both_directions_at_once(struct rank *r)
{
	struct flow f = {.seed = 33,
			 .messages = 400,
			 .bytes_min = 16,
			 .bytes_max = 60000,
			 .window = 16,
			 .send = true,
			 .receive = true,
			 .layer_memory = true};
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	size_limit(ep, &f);
	/* flow_run fails by itself when two full directions wait for each other. */
	if (flow_run(ep, 0, &f) < 0)
		return;
	if (f.missing == f.messages)
		fail(r, "not one of %llu messages arrived while both sides sent",
		     (unsigned long long)f.messages);
	endpoint_stop(ep);
}

void test_poll_counts_events(struct rank *r)
{
	struct flow f = {.seed = 34,
			 .messages = 300,
			 .bytes_min = 16,
			 .bytes_max = 4000,
			 .window = 8,
			 .send = true,
			 .receive = true,
			 .layer_memory = true};
	struct endpoint *ep;
	uint64_t miscounted;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	size_limit(ep, &f);
	ep->miscounted = 0;
	if (flow_run(ep, 0, &f) < 0)
		return;
	miscounted = ep->miscounted;
	if (miscounted)
		fail(r, "%llu of %llu polls returned another number than the events they delivered",
		     (unsigned long long)miscounted, (unsigned long long)ep->polls);
	endpoint_stop(ep);
}

struct sink_post {
	uint64_t seed;
	unsigned char *replies; /* one line of 64 bytes a message */
	unsigned int messages, requested, answered, late, returned;
	bool due[256]; /* BUSY in the sink: to be answered outside */
};

static int sink_answer(struct endpoint *ep, struct sink_post *sp, uint64_t sequence)
{
	struct cadge_iov iov = {.base = sp->replies + sequence * 64, .bytes = 64};
	uint64_t token = token_new(ep, NULL);
	int rc;

	pattern_fill(iov.base, iov.bytes, sp->seed + 1, sequence);
	rc = ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token);
	return endpoint_account(ep, rc, token, "post inside the sink");
}

static enum cadge_keep sink_post_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sink_post *sp = ep->arg;
	uint64_t sequence;
	size_t wrong;

	(void)peer;
	(void)lend;
	if (pattern_sequence(data, bytes, sp->seed, &sequence) && sequence < sp->messages) {
		int busy = sink_answer(ep, sp, sequence);

		sp->due[sequence] = busy > 0;
		sp->answered += busy == 0;
	} else if (pattern_sequence(data, bytes, sp->seed + 1, &sequence) &&
		   pattern_check(data, bytes, sp->seed + 1, sequence, &wrong)) {
		sp->returned++;
	} else {
		fail(ep->r, "a message that was posted inside the sink came back changed");
	}
	return CADGE_TAKEN;
}

static int sink_post_loop(struct endpoint *ep, struct sink_post *sp)
{
	uint64_t began = now_ns();
	bool lossy = !(ep->limits.caps & CADGE_CAP_RELIABLE);
	struct rank *r = ep->r;
	char said[8];
	int got;

	for (;;) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		for (unsigned int i = 0; i < sp->messages; i++)
			if (sp->due[i] && sink_answer(ep, sp, i) == 0) {
				sp->due[i] = false;
				sp->answered++;
			}
		if (rank_starts(r)) {
			bool enough = sp->returned == sp->messages;

			if (enough || (lossy && sp->returned && now_ns() - began > NS_PER_S))
				return r->count > 1 ? oob_send(r, 1, "done", 4) : 0;
			if (now_ns() - began > 8 * NS_PER_S)
				return fail(r,
					    "%u of %u messages came back that the peer posts inside its sink",
					    sp->returned, sp->messages);
		} else {
			got = oob_try(r, 0, said, sizeof(said), NULL);
			if (got)
				return got < 0 ? -1 : 0;
		}
	}
}

static enum cadge_keep too_late(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	(void)ep, (void)peer, (void)data, (void)bytes, (void)lend;
	return CADGE_TAKEN;
}

void test_post_in_sink_as_claimed(struct rank *r)
{
	struct sink_post sp = {.seed = 35, .messages = 256};
	struct cadge_iov iov = {.bytes = 64};
	unsigned char *requests;
	struct endpoint *ep;
	int code;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_POST_IN_SINK)) {
		endpoint_stop(ep);
		skip(r, "POST_IN_SINK is not granted");
		return;
	}
	requests = buffer_new(ep, sp.messages * 64);
	sp.replies = buffer_new(ep, sp.messages * 64);
	if (!requests || !sp.replies)
		return;
	ep->arg = &sp;
	ep->on_recv = sink_post_recv;
	if (oob_barrier(r) < 0)
		return;
	for (unsigned int i = 0; rank_starts(r) && i < sp.messages; i++) {
		iov.base = requests + i * 64;
		pattern_fill(iov.base, 64, sp.seed, i);
		if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0)
			return;
	}
	if (sink_post_loop(ep, &sp) < 0 || endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return;
	ep->on_recv = too_late; /* of an unreliable layer, what was given up */
	buffer_free(ep, requests, sp.messages * 64);
	buffer_free(ep, sp.replies, sp.messages * 64);
	endpoint_stop(ep);
}

#define LENDS_MAX 12u

struct lends {
	uint64_t seed;
	struct {
		const void *data;
		size_t bytes;
		uint64_t sequence;
		struct cadge_lend *lend;
	} kept[LENDS_MAX];
	unsigned int kept_count, kept_ever, arrived, expected;
};

/* Keeps every fourth message. */
static enum cadge_keep lends_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct lends *l = ep->arg;
	uint64_t sequence = 0;

	(void)peer;
	l->arrived++;
	if (!pattern_sequence(data, bytes, l->seed, &sequence))
		fail(ep->r, "a message came whose first line is not the suite's");
	if (!lend || sequence % 4 || l->kept_count == LENDS_MAX)
		return CADGE_TAKEN;
	l->kept[l->kept_count].data = data;
	l->kept[l->kept_count].bytes = bytes;
	l->kept[l->kept_count].sequence = sequence;
	l->kept[l->kept_count++].lend = lend;
	return CADGE_KEEP;
}

static int lends_judge(struct endpoint *ep, struct lends *l)
{
	size_t wrong;

	l->kept_ever += l->kept_count;
	for (unsigned int i = 0; i < l->kept_count; i++)
		if (!pattern_check(l->kept[i].data, l->kept[i].bytes, l->seed, l->kept[i].sequence, &wrong))
			return fail(ep->r, "kept message %llu changed at offset %zu before it was released",
				    (unsigned long long)l->kept[i].sequence, wrong);
	/* In another order than they came. */
	while (l->kept_count)
		ep->layer->release(ep->ctx, l->kept[--l->kept_count].lend);
	return 0;
}

static int lends_round(struct endpoint *ep, struct lends *l, unsigned char *base, size_t bytes)
{
	struct rank *r = ep->r;
	uint64_t began = now_ns();
	unsigned int messages = 200;
	struct cadge_iov iov = {.bytes = bytes};
	int code, got;

	/* Never set back to 0: the other side may be a round ahead by a few messages. */
	l->expected += messages;
	for (unsigned int i = 0; rank_starts(r) && i < messages; i++) {
		iov.base = base + (i % 8) * bytes;
		if (i >= 8 && endpoint_drain(ep) < 0)
			return -1;
		pattern_fill(iov.base, bytes, l->seed, i);
		if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0)
			return -1;
	}
	while (rank_answers(r) && l->arrived < l->expected) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (got)
			began = now_ns();
		if (!(ep->limits.caps & CADGE_CAP_RELIABLE) && now_ns() - began > NS_PER_S / 2)
			break;
		if (now_ns() - began > 8 * NS_PER_S)
			return fail(r, "%u of %u messages arrived while %u were kept", l->arrived,
				    l->expected, l->kept_count);
	}
	if (rank_answers(r) && lends_judge(ep, l) < 0)
		return -1;
	return endpoint_drain(ep) < 0 ? -1 : oob_barrier(r);
}

void test_lend_as_claimed(struct rank *r)
{
	struct lends l = {.seed = 36};
	struct endpoint *ep;
	unsigned char *base;
	size_t bytes;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_LEND)) {
		endpoint_stop(ep);
		skip(r, "LEND is not granted");
		return;
	}
	bytes = (size_t)(ep->limits.message_bytes_max < 20000 ? ep->limits.message_bytes_max : 20000);
	base = buffer_new(ep, 8 * bytes);
	if (!base)
		return;
	ep->arg = &l;
	ep->on_recv = lends_recv;
	if (oob_barrier(r) < 0)
		return;
	/* Twice short and once long messages: after release the layer must have its buffers back. */
	if (lends_round(ep, &l, base, 64) < 0 || lends_round(ep, &l, base, 64) < 0 ||
	    lends_round(ep, &l, base, bytes) < 0)
		return;
	if (rank_answers(r) && !l.kept_ever)
		fail(r, "LEND is granted, but no message came with a lend handle");
	buffer_free(ep, base, 8 * bytes);
	endpoint_stop(ep);
}
