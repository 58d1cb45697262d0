/* SPDX-License-Identifier: BSD-3-Clause */
/* Single messages: sizes, gathering, limits, and every byte of many. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cadge/check.h"
#include "conformance.h"

#define MESSAGE_MAX_TRIED (UINT64_C(16) << 20)

static void echo_test(struct rank *r, const struct wishes *w, uint64_t seed, const size_t *sizes,
		      size_t count)
{
	struct endpoint *ep;

	if (endpoint_start(r, w, &ep) == 0 && echo_run(ep, 0, seed, sizes, count) == 0)
		endpoint_stop(ep);
}

void test_message_empty(struct rank *r)
{
	static const size_t sizes[] = {0, 0, 0, 5, 0};

	echo_test(r, &wishes_default, 11, sizes, 5);
}

void test_message_one_byte(struct rank *r)
{
	static const size_t sizes[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	echo_test(r, &wishes_default, 12, sizes, 16);
}

static size_t sizes_add(size_t *sizes, size_t count, uint64_t bytes, uint64_t bytes_max)
{
	if (bytes > bytes_max)
		return count;
	sizes[count] = (size_t)bytes;
	return count + 1;
}

void test_message_odd_sizes(struct rank *r)
{
	static const uint16_t primes[] = {137,  149,  163,  179,  211,  241,  307,  359,
					  401,  499,  577,  701,  809,  1009, 1201, 1409,
					  1601, 1907, 2203, 2503, 2903, 3203, 3607, 4001};
	size_t sizes[256], count = 0;
	struct endpoint *ep;
	uint64_t max;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	max = ep->limits.message_bytes_max;
	for (uint64_t bytes = 1; bytes <= 130; bytes += bytes < 34 ? 1 : 3)
		count = sizes_add(sizes, count, bytes, max);
	for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); i++)
		count = sizes_add(sizes, count, primes[i], max);
	for (uint64_t bytes = 128; bytes <= 65536; bytes *= 2)
		for (uint64_t off = 0; off < 3; off++)
			count = sizes_add(sizes, count, bytes - 1 + off, max);
	count = sizes_add(sizes, count, 4099, max);
	if (ep->limits.short_bytes_max > 1 && ep->limits.short_bytes_max <= MESSAGE_MAX_TRIED)
		for (uint64_t off = 0; off < 3; off++)
			count = sizes_add(sizes, count, ep->limits.short_bytes_max - 1 + off, max);
	/* Big, small, big: a short message must not overtake or spoil a long one. */
	for (uint64_t bytes = 100000; bytes < 100008; bytes++) {
		count = sizes_add(sizes, count, bytes, max);
		count = sizes_add(sizes, count, bytes - 99999, max);
	}
	if (echo_run(ep, 0, 13, sizes, count) == 0)
		endpoint_stop(ep);
}

void test_message_max(struct rank *r)
{
	const struct wishes w = {.depth_max = 4, .message_bytes_max = 4 << 20, .region_bytes_max = 0};
	size_t sizes[5] = {0};
	struct endpoint *ep;
	uint64_t max;

	if (endpoint_start(r, &w, &ep) < 0)
		return;
	max = ep->limits.message_bytes_max;
	if (max > MESSAGE_MAX_TRIED)
		max = MESSAGE_MAX_TRIED;
	sizes[0] = (size_t)max;
	sizes[1] = 1;
	sizes[2] = (size_t)max;
	sizes[3] = (size_t)max - 1;
	sizes[4] = 0;
	if (echo_run(ep, 0, 14, sizes, 5) == 0)
		endpoint_stop(ep);
}

static enum cadge_keep count_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)peer;
	(void)data;
	(void)lend;
	(void)bytes;
	++*(unsigned int *)ep->arg;
	return CADGE_TAKEN;
}

void test_message_over_max_refused(struct rank *r)
{
	static const size_t after[] = {64, 64};
	unsigned int arrived = 0;
	struct cadge_iov iov[2];
	struct endpoint *ep;
	uint64_t token, until;
	size_t bytes;
	void *base;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (ep->limits.message_bytes_max >= UINT64_C(1) << 40) {
		endpoint_stop(ep);
		skip(r, "message_bytes_max is %llu", (unsigned long long)ep->limits.message_bytes_max);
		return;
	}
	bytes = (size_t)ep->limits.message_bytes_max + 1;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		fail(r, "the suite cannot map %zu bytes", bytes);
		return;
	}
	ep->arg = &arrived;
	ep->on_recv = count_recv;
	if (rank_starts(r)) {
		for (unsigned int parts = 1; parts <= 2; parts++) {
			iov[0] = (struct cadge_iov){.base = base, .bytes = parts == 1 ? bytes : bytes - 1};
			iov[1] = (struct cadge_iov){.base = base, .bytes = 1};
			token = token_new(ep, NULL);
			rc = ep->layer->post(ep->peer[0].chan, iov, parts, 0, token);
			if (rc != CADGE_QUEUED)
				token_drop(ep, token);
			if (rc != CADGE_E_TOO_LARGE) {
				fail(r,
				     "post of message_bytes_max + 1 = %zu bytes in %u parts returned %d "
				     "(%s), not "
				     "'too large'",
				     bytes, parts, rc, cadge_code_name(rc));
				return;
			}
		}
	}
	for (until = now_ns() + 50 * NS_PER_MS; now_ns() < until;) {
		rc = endpoint_poll(ep);
		if (rc < 0)
			return;
		if (!rc)
			endpoint_idle(ep);
	}
	if (oob_barrier(r) < 0)
		return;
	if (arrived) {
		fail(r, "messages arrived although post had refused them: %u", arrived);
		return;
	}
	munmap(base, bytes);
	/* The channel goes on. */
	if (echo_run(ep, 0, 15, after, 2) == 0)
		endpoint_stop(ep);
}

struct gathered {
	uint64_t seed;
	size_t bytes;
	unsigned int arrived;
};

static enum cadge_keep gathered_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				     struct cadge_lend *lend)
{
	struct gathered *g = ep->arg;
	size_t wrong;

	(void)peer;
	(void)lend;
	if (bytes != g->bytes)
		fail(ep->r, "a gathered message of %zu bytes arrived with %zu", g->bytes, bytes);
	else if (!pattern_check(data, bytes, g->seed, g->arrived, &wrong))
		fail(ep->r, "a gathered message is wrong at offset %zu of %zu", wrong, bytes);
	g->arrived++;
	return CADGE_TAKEN;
}

/*
 * Posts pattern (seed, i) cut in `parts` uneven pieces, one of them empty. The iov is overwritten after each
 * post.
 */
static int gathered_post(struct endpoint *ep, struct gathered *g, unsigned char *base, unsigned int parts,
			 unsigned int i)
{
	struct cadge_iov iov[8];
	size_t at = 0, piece;
	int code;

	pattern_fill(base, g->bytes, g->seed, i);
	for (unsigned int p = 0; p < parts; p++) {
		piece = p == parts - 1 ? g->bytes - at : p == 1 ? 0 : (g->bytes - at) / 3 + 1;
		if (piece > g->bytes - at)
			piece = g->bytes - at;
		iov[p].base = base + at;
		iov[p].bytes = piece;
		at += piece;
	}
	if (endpoint_post(ep, 0, iov, parts, 0, NULL, &code) < 0)
		return -1;
	memset(iov, 0xff, sizeof(iov));
	return endpoint_drain(ep);
}

void test_message_gathered(struct rank *r)
{
	struct gathered g = {.seed = 16};
	struct endpoint *ep;
	unsigned int parts_max, i = 0;
	unsigned char *base;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_RELIABLE)) {
		/*
		 * One message in flight at a time on a quiet loopback: a loss here would be a fault of its
		 * own.
		 */
		note(r, "gathering on an unreliable layer");
	}
	parts_max = ep->limits.iov_max < 8 ? ep->limits.iov_max : 8;
	base = buffer_new(ep, 70000);
	if (!base)
		return;
	ep->arg = &g;
	ep->on_recv = gathered_recv;
	for (unsigned int parts = 2; parts <= parts_max; parts += parts_max > 2 ? parts_max - 2 : 1) {
		for (size_t bytes = 24; bytes <= 66000; bytes = bytes * 7 + 1, i++) {
			uint64_t until = now_ns() + 8 * NS_PER_S;

			if (bytes > ep->limits.message_bytes_max)
				break;
			g.bytes = bytes;
			if (oob_barrier(r) < 0)
				return;
			if (rank_starts(r) && gathered_post(ep, &g, base, parts, i) < 0)
				return;
			while (rank_answers(r) && g.arrived <= i) {
				rc = endpoint_poll(ep);
				if (rc < 0)
					return;
				if (!rc)
					endpoint_idle(ep);
				if (now_ns() > until) {
					fail(r, "a message of %zu bytes in %u parts did not arrive in 8 s",
					     bytes, parts);
					return;
				}
			}
		}
	}
	if (oob_barrier(r) < 0)
		return;
	buffer_free(ep, base, 70000);
	endpoint_stop(ep);
}

void test_payload_intact(struct rank *r)
{
	struct flow f = {.seed = 17,
			 .messages = 2500,
			 .bytes_min = 16,
			 .bytes_max = 9000,
			 .window = 16,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct flow big = f;
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (f.bytes_max > ep->limits.message_bytes_max)
		f.bytes_max = (size_t)ep->limits.message_bytes_max;
	big.seed = 18;
	big.messages = 60;
	big.bytes_max =
		(size_t)(ep->limits.message_bytes_max < 200000 ? ep->limits.message_bytes_max : 200000);
	big.bytes_min = big.bytes_max / 2;
	if (big.bytes_min < PATTERN_HEAD_BYTES)
		big.bytes_min = PATTERN_HEAD_BYTES;
	big.window = 4;
	big.layer_memory = false; /* memory that the layer has never seen must do as well */
	if (flow_run(ep, 0, &f) < 0 || flow_run(ep, 0, &big) < 0)
		return;
	for (const struct flow *each = &f; each; each = each == &f ? &big : NULL) {
		if (each->foreign || each->wrong_length)
			fail(r,
			     "%llu messages had an unexpected first line, %llu another length than "
			     "posted",
			     (unsigned long long)each->foreign, (unsigned long long)each->wrong_length);
		if (each->corrupt)
			fail(r,
			     "%llu of %llu messages were not what was posted; the first is number %llu, at "
			     "offset %zu",
			     (unsigned long long)each->corrupt, (unsigned long long)each->messages,
			     (unsigned long long)each->first_bad_sequence, each->first_bad_offset);
		if (each->receive && !each->received)
			fail(r, "not one of %llu messages arrived", (unsigned long long)each->messages);
	}
	endpoint_stop(ep);
}
