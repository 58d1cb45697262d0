/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many messages with a window, one direction or both. Gathers facts and judges nothing but what no layer may
 * do, so that each test can judge one property: a layer that drops messages fails the test of that name and
 * no other.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* How long an expected message may be late after the sender said that all are out. */
#define GRACE_NS (150 * NS_PER_MS)

struct flow_buffer {
	struct flow_buffer *next;
	void *base;
	size_t bytes;
};

struct flow_state {
	struct flow *f;
	uint64_t seed_in, seed_out;
	unsigned char *seen; /* a bit a message */
	uint64_t unique, newest, arrived_ns;
	struct flow_buffer *buffers, *free;
	unsigned int buffers_count;
};

size_t flow_size(const struct flow *f, uint64_t sequence)
{
	size_t range = f->bytes_max - f->bytes_min + 1;

	return f->bytes_min + (size_t)(mix64(f->seed ^ (sequence << 20)) % range);
}

static enum cadge_keep flow_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				 struct cadge_lend *lend)
{
	struct flow_state *st = ep->arg;
	struct flow *f = st->f;
	uint64_t sequence;
	size_t wrong = 0;

	(void)peer;
	(void)lend;
	f->received++;
	st->arrived_ns = now_ns();
	if (!pattern_sequence(data, bytes, st->seed_in, &sequence) || sequence >= f->messages) {
		f->foreign++;
		return CADGE_TAKEN;
	}
	if (bytes != flow_size(f, sequence))
		f->wrong_length++;
	else if (!pattern_check(data, bytes, st->seed_in, sequence, &wrong) && !f->corrupt++) {
		f->first_bad_sequence = sequence;
		f->first_bad_offset = wrong;
	}
	if (st->seen[sequence / 8] & (1u << (sequence % 8))) {
		f->repeated++;
		return CADGE_TAKEN;
	}
	st->seen[sequence / 8] |= (unsigned char)(1u << (sequence % 8));
	if (st->unique && sequence < st->newest)
		f->backwards++;
	else
		st->newest = sequence;
	st->unique++;
	return CADGE_TAKEN;
}

static void buffer_back(struct flow_state *st, struct flow_buffer *buffer)
{
	/* It is ours again: whatever the layer still reads from it now is wrong at the other end. */
	memset(buffer->base, 0xee, buffer->bytes);
	buffer->next = st->free;
	st->free = buffer;
}

static void flow_sent(struct endpoint *ep, void *token_arg, int code)
{
	struct flow_state *st = ep->arg;

	(void)code;
	if (token_arg)
		buffer_back(st, token_arg);
}

static int flow_buffers(struct endpoint *ep, struct flow_state *st)
{
	st->buffers = calloc(st->buffers_count, sizeof(*st->buffers));
	if (!st->buffers)
		return fail(ep->r, "the suite is out of memory");
	for (unsigned int i = 0; i < st->buffers_count; i++) {
		struct flow_buffer *buffer = &st->buffers[i];

		buffer->bytes = st->f->bytes_max;
		buffer->base = st->f->layer_memory ? buffer_new(ep, buffer->bytes) : malloc(buffer->bytes);
		if (!buffer->base)
			return fail(ep->r, "no memory for a buffer of %zu bytes", buffer->bytes);
		buffer_back(st, buffer);
	}
	return 0;
}

/* Posts the next message. 1: posted; 0: BUSY or no buffer; -1 after fail(). */
static int flow_post(struct endpoint *ep, uint32_t peer, struct flow_state *st, uint64_t sequence)
{
	struct flow_buffer *buffer = st->free;
	struct cadge_iov iov;
	uint64_t token;
	int rc, busy;

	if (!buffer)
		return 0;
	st->free = buffer->next;
	iov.base = buffer->base;
	iov.bytes = flow_size(st->f, sequence);
	pattern_fill(iov.base, iov.bytes, st->seed_out, sequence);
	token = token_new(ep, buffer);
	if (token == UINT64_MAX)
		return -1;
	rc = ep->layer->post(ep->peer[peer].chan, &iov, 1, 0, token);
	busy = endpoint_account(ep, rc, token, "post");
	if (rc != CADGE_QUEUED)
		buffer_back(st, buffer);
	if (busy > 0)
		st->f->busy++;
	return busy < 0 ? -1 : !busy;
}

static int flow_loop(struct endpoint *ep, uint32_t peer, struct flow_state *st)
{
	struct flow *f = st->f;
	bool all_out = !f->send, all_in = !f->receive, peer_is_out = false;
	uint64_t next = 0, peer_out_ns = 0, moved_ns = now_ns();
	unsigned int other = ep->peer[peer].rank;
	int got;

	while (!all_out || !all_in) {
		int posted = 0;

		if (f->send && next < f->messages) {
			posted = flow_post(ep, peer, st, next);
			if (posted < 0)
				return -1;
			next += (uint64_t)posted;
		}
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (got || posted) {
			moved_ns = now_ns();
		} else {
			endpoint_idle(ep);
			if (now_ns() - moved_ns > 8 * NS_PER_S)
				return fail(ep->r,
					    "nothing moved for 8 s (%llu of %llu posted, %u outstanding, "
					    "%llu received)",
					    (unsigned long long)next, (unsigned long long)f->messages,
					    ep->outstanding, (unsigned long long)f->received);
		}
		if (!all_out && next == f->messages && !ep->outstanding) {
			if (oob_send(ep->r, other, "sent", 4) < 0)
				return -1;
			all_out = true;
		}
		if (all_in || (got && st->unique < f->messages))
			continue;
		if (!peer_is_out) {
			char said[16];
			int rc = oob_try(ep->r, other, said, sizeof(said), NULL);

			if (rc < 0)
				return -1;
			peer_is_out = rc > 0;
			peer_out_ns = now_ns();
			if (peer_is_out)
				moved_ns = peer_out_ns;
		}
		if (peer_is_out) {
			uint64_t last = st->arrived_ns > peer_out_ns ? st->arrived_ns : peer_out_ns;

			all_in = st->unique == f->messages || now_ns() - last > GRACE_NS * ep->r->opt->scale;
		}
	}
	return 0;
}

int flow_run(struct endpoint *ep, uint32_t peer, struct flow *f)
{
	struct flow_state st = {.f = f};
	struct rank *r = ep->r;
	int rc = -1;

	st.seed_out = mix64(f->seed + r->number);
	st.seed_in = mix64(f->seed + ep->peer[peer].rank);
	st.buffers_count = f->window;
	if (st.buffers_count > ep->limits.depth_max)
		st.buffers_count = ep->limits.depth_max;
	if (f->bytes_min < PATTERN_HEAD_BYTES || f->bytes_max > ep->limits.message_bytes_max)
		return fail(r, "the suite chose a size outside 16..%llu",
			    (unsigned long long)ep->limits.message_bytes_max);
	st.seen = calloc(1, f->messages / 8 + 1);
	if (!st.seen)
		return fail(r, "the suite is out of memory");
	if (f->send && flow_buffers(ep, &st) < 0)
		goto out;
	ep->arg = &st;
	ep->on_recv = flow_recv;
	ep->on_sent = flow_sent;
	if (oob_barrier(r) < 0 || flow_loop(ep, peer, &st) < 0 || oob_barrier(r) < 0)
		goto out;
	f->missing = f->receive ? f->messages - st.unique : 0;
	ep->on_recv = NULL;
	ep->on_sent = NULL;
	for (unsigned int i = 0; f->send && i < st.buffers_count; i++)
		if (f->layer_memory)
			buffer_free(ep, st.buffers[i].base, st.buffers[i].bytes);
		else
			free(st.buffers[i].base);
	rc = 0;
out:
	/* After a failure the layer may still use the buffers: they stay, the process ends soon. */
	if (rc == 0)
		free(st.buffers);
	free(st.seen);
	return rc;
}
