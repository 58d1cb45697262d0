/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Beginnings and ends: closing with work outstanding, connecting again, growth, two peers, a peer that
 * dies.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "cadge/check.h"
#include "conformance.h"
#include "launchers.h"

static const size_t few[] = {64, 1, 1024}; /* a datagram of one frame holds them */

static enum cadge_keep forget_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	(void)ep;
	(void)peer;
	(void)data;
	(void)bytes;
	(void)lend;
	return CADGE_TAKEN;
}

/* Posts until BUSY, or `count`. All from one buffer, which nobody writes. */
static int post_some(struct endpoint *ep, unsigned int count, void *base, size_t bytes)
{
	struct cadge_iov iov = {.base = base, .bytes = bytes};

	for (unsigned int i = 0; i < count; i++) {
		uint64_t token = token_new(ep, NULL);
		int rc = ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token);

		if (rc < 0 && ep->may_lose_peer) {
			token_drop(ep, token);
			return 0;
		}
		rc = endpoint_account(ep, rc, token, "post");
		if (rc)
			return rc < 0 ? -1 : 0;
	}
	return 0;
}

void test_close_with_work_outstanding(struct rank *r)
{
	struct endpoint *ep;
	size_t bytes;
	void *base;

	for (unsigned int round = 0; round < 3; round++) {
		if (endpoint_start(r, &wishes_default, &ep) < 0)
			return;
		ep->on_recv = forget_recv;
		bytes = round == 0 ? 64 : 100000; /* short path; long path; both sides at once */
		if (bytes > ep->limits.message_bytes_max)
			bytes = (size_t)ep->limits.message_bytes_max;
		/* Not from the layer: that memory goes with the context, and this must outlive it. */
		base = calloc(1, bytes);
		if (!base) {
			fail(r, "the suite is out of memory");
			return;
		}
		r->polled = NULL;
		if (oob_barrier(r) < 0)
			return;
		ep->may_lose_peer = true;
		if ((rank_starts(r) || round == 2) && post_some(ep, 64, base, bytes) < 0)
			return;
		/* Nobody polls now; no disconnect. */
		if (oob_barrier(r) < 0 || endpoint_close(ep) < 0)
			return;
		free(base);
		if (oob_barrier(r) < 0)
			return;
	}
	/* And the library still works. */
	if (endpoint_start(r, &wishes_default, &ep) == 0 && echo_run(ep, 0, 91, few, 3) == 0)
		endpoint_stop(ep);
}

/* The receiver looks a few times at more than it can hold, then ends the channel and closes. */
void test_close_with_messages_unread(struct rank *r)
{
	struct endpoint *ep;
	size_t bytes = 20000;
	void *base;

	for (unsigned int round = 0; round < 3; round++) {
		if (endpoint_start(r, &wishes_default, &ep) < 0)
			return;
		ep->on_recv = forget_recv;
		if (bytes > ep->limits.message_bytes_max)
			bytes = (size_t)ep->limits.message_bytes_max;
		base = calloc(1, bytes);
		if (!base) {
			fail(r, "the suite is out of memory");
			return;
		}
		r->polled = NULL;
		if (oob_barrier(r) < 0)
			return;
		ep->may_lose_peer = true;
		if (rank_starts(r) && post_some(ep, 64, base, bytes) < 0)
			return;
		if (oob_barrier(r) < 0)
			return;
		for (unsigned int look = 0; !rank_starts(r) && look <= round; look++)
			if (endpoint_poll(ep) < 0)
				return;
		if (oob_barrier(r) < 0 || endpoint_disconnect(ep) < 0 || endpoint_close(ep) < 0)
			return;
		free(base);
		if (oob_barrier(r) < 0)
			return;
	}
	if (endpoint_start(r, &wishes_default, &ep) == 0 && echo_run(ep, 0, 91, few, 3) == 0)
		endpoint_stop(ep);
}

void test_disconnect_reconnect(struct rank *r)
{
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	for (unsigned int round = 0; round < 8; round++) {
		if (echo_run(ep, 0, 92 + round, few, 3) < 0 || endpoint_drain(ep) < 0)
			return;
		/*
		 * One of us is always a moment ahead: losing the peer is no fault from here to the next
		 * connect.
		 */
		ep->may_lose_peer = true;
		if (oob_barrier(r) < 0 || endpoint_disconnect(ep) < 0 || oob_barrier(r) < 0)
			return;
		ep->may_lose_peer = false;
		if (endpoint_connect(ep) < 0)
			return;
	}
	if (echo_run(ep, 0, 100, few, 3) == 0)
		endpoint_stop(ep);
}

/* As endpoint_stop, but who starts has closed before the other one does: nothing is left behind that waits for a peer. */
static int stop_in_turn(struct endpoint *ep)
{
	struct rank *r = ep->r;
	const bool first = rank_starts(r);

	ep->may_lose_peer = true;
	if (oob_barrier(r) < 0 || (first && (endpoint_disconnect(ep) < 0 || endpoint_close(ep) < 0)) ||
	    oob_barrier(r) < 0)
		return -1;
	return first ? 0 : endpoint_disconnect(ep) < 0 ? -1 : endpoint_close(ep);
}

/* One cycle of no_growth: open and close; in every tenth also connect and exchange, in every tenth connect alone. */
static int open_close_cycle(struct rank *r, unsigned int i)
{
	struct endpoint *ep;

	if (i % 10 == 0) {
		if (endpoint_start(r, &wishes_default, &ep) < 0 || echo_run(ep, 0, 110, few, 3) < 0)
			return -1;
		return endpoint_stop(ep);
	}
	if (i % 10 == 5)
		return endpoint_start(r, &wishes_default, &ep) < 0 ? -1 : stop_in_turn(ep);
	if (endpoint_open(r, &wishes_default, &ep) < 0)
		return -1;
	r->polled = NULL;
	ep->layer->close(ep->ctx);
	free(ep);
	return 0;
}

/* The library starts once a process: the context stays, channels come and go. */
static int reconnect_cycle(struct endpoint *ep, unsigned int i)
{
	struct rank *r = ep->r;

	if (endpoint_connect(ep) < 0 || (i % 10 == 0 && echo_run(ep, 0, 111, few, 3) < 0))
		return -1;
	ep->may_lose_peer = true;
	if (oob_barrier(r) < 0 || endpoint_disconnect(ep) < 0 || oob_barrier(r) < 0)
		return -1;
	ep->may_lose_peer = false;
	return 0;
}

/* A leak repeats: what grew in the first half of the cycles and not again in the second is none. */
static void grown(struct rank *r, const char *what, unsigned int before, unsigned int between,
		  unsigned int after, unsigned int cycles)
{
	if (between > before && after > between)
		fail(r, "after %u cycles there are %u %s, before there were %u", cycles, after, what, before);
}

void test_no_growth(struct rank *r)
{
	unsigned int cycles = r->opt->cycles, warmup = cycles / 10 < 20 ? 20 : cycles / 10;
	bool one_init = r->caps & CADGE_CAP_ONE_INIT;
	struct footprint before = {0}, between = {0}, after;
	struct endpoint *ep = NULL;
	uint64_t allowed;

	/* The kernel may put a page of 2 MiB where a few of 4 KiB were, at any time: that is no growth of the layer's. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (one_init && endpoint_open(r, &wishes_default, &ep) < 0)
		return;
	for (unsigned int i = 0; i < warmup + cycles; i++) {
		if (i == warmup)
			footprint_take(&before);
		if (i == warmup + cycles / 2)
			footprint_take(&between);
		if ((one_init ? reconnect_cycle(ep, i) : open_close_cycle(r, i)) < 0)
			return;
	}
	if (oob_barrier(r) < 0) /* the other side's files in /dev/shm are gone too */
		return;
	footprint_take(&after);
	grown(r, "descriptors", before.descriptors, between.descriptors, after.descriptors, cycles);
	grown(r, "threads", before.threads, between.threads, after.threads, cycles);
	if (isolated()) {
		grown(r, "files in /dev/shm", before.shm_files, between.shm_files, after.shm_files, cycles);
		grown(r, "System V segments", before.sysv_segments, between.sysv_segments,
		      after.sysv_segments, cycles);
	}
	/* What an allocator may spread over, and no more than a quarter of a KiB a cycle. */
	allowed = 512 * 1024 + 256 * (uint64_t)cycles;
	if (!UNDER_SANITIZER && after.resident_bytes > before.resident_bytes + allowed)
		fail(r, "memory grew by %llu KiB in %u cycles, %llu KiB are allowed",
		     (unsigned long long)(after.resident_bytes - before.resident_bytes) / 1024, cycles,
		     (unsigned long long)allowed / 1024);
	if (ep && r->verdict == VERDICT_NONE)
		endpoint_close(ep);
}

struct two {
	uint64_t seed;
	unsigned int arrived[2], want;
};

static enum cadge_keep two_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	struct two *two = ep->arg;
	unsigned int from = ep->peer[peer].rank;
	uint64_t sequence;
	size_t wrong;

	(void)lend;
	if (!pattern_sequence(data, bytes, two->seed + from * 16 + ep->r->number, &sequence))
		fail(ep->r, "peer %u was named as the sender of a message that another one sent", peer);
	else if (!pattern_check(data, bytes, two->seed + from * 16 + ep->r->number, sequence, &wrong))
		fail(ep->r, "a message of peer %u is wrong at offset %zu", peer, wrong);
	two->arrived[peer]++;
	return CADGE_TAKEN;
}

/* Everybody sends to everybody, mixed; one poll serves both channels. */
void test_two_peers(struct rank *r)
{
	struct two two = {.seed = 120, .want = 200};
	unsigned int sent[2] = {0, 0};
	unsigned char *base;
	struct cadge_iov iov;
	struct endpoint *ep;
	uint64_t moved_ns, bytes;
	int code, got;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	base = buffer_new(ep, 2 * 5000);
	if (!base)
		return;
	ep->arg = &two;
	ep->on_recv = two_recv;
	if (oob_barrier(r) < 0)
		return;
	moved_ns = now_ns();
	while (sent[0] < two.want || sent[1] < two.want || two.arrived[0] < two.want ||
	       two.arrived[1] < two.want) {
		for (uint32_t peer = 0; peer < 2; peer++) {
			if (sent[peer] == two.want)
				continue;
			bytes = 16 + mix64(sent[peer] * 2 + peer) % 4900;
			if (bytes > ep->limits.message_bytes_max)
				bytes = ep->limits.message_bytes_max;
			iov = (struct cadge_iov){.base = base + peer * 5000, .bytes = (size_t)bytes};
			pattern_fill(iov.base, iov.bytes, two.seed + r->number * 16 + ep->peer[peer].rank,
				     sent[peer]);
			if (endpoint_post(ep, peer, &iov, 1, 0, NULL, &code) < 0 || endpoint_drain(ep) < 0)
				return;
			sent[peer]++;
			moved_ns = now_ns();
		}
		got = endpoint_poll(ep);
		if (got < 0)
			return;
		if (got)
			moved_ns = now_ns();
		else
			endpoint_idle(ep);
		if (now_ns() - moved_ns >
		    (ep->limits.caps & CADGE_CAP_RELIABLE ? 8 * NS_PER_S : NS_PER_S / 2)) {
			if (!(ep->limits.caps & CADGE_CAP_RELIABLE) && two.arrived[0] && two.arrived[1])
				break;
			fail(r, "of %u messages each, %u came from one peer and %u from the other", two.want,
			     two.arrived[0], two.arrived[1]);
			return;
		}
	}
	if (oob_barrier(r) < 0)
		return;
	buffer_free(ep, base, 2 * 5000);
	endpoint_stop(ep);
}

/*
 * Rank 1 is killed with messages on the way in both directions; rank 0 must notice at leisure and close at
 * once.
 */
void test_peer_dies(struct rank *r)
{
	struct endpoint *ep;
	uint64_t until, began, took;
	size_t bytes;
	void *base;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	bytes = (size_t)(ep->limits.message_bytes_max < 50000 ? ep->limits.message_bytes_max : 50000);
	base = calloc(1, bytes);
	if (!base) {
		fail(r, "the suite is out of memory");
		return;
	}
	ep->on_recv = forget_recv;
	if ((ep->limits.caps & CADGE_CAP_WHY) && (!ep->layer->why(ep->ctx) || *ep->layer->why(ep->ctx))) {
		fail(r, "why says '%s' before anything failed", ep->layer->why(ep->ctx));
		return;
	}
	ep->may_lose_peer = true;
	if (oob_barrier(r) < 0)
		return;
	until = now_ns() + (rank_starts(r) ? 50 * NS_PER_MS : 20 * NS_PER_S);
	while (now_ns() < until)
		if (post_some(ep, 4, base, bytes) < 0 || endpoint_poll(ep) < 0)
			return;
	note(r, "killing the peer");
	if (kill(r->pids[1], SIGKILL) < 0 || !process_ends(r->pids[1], 5000)) {
		fail(r, "the suite cannot kill the peer");
		return;
	}
	note(r, "posting and polling after the peer's death");
	for (until = now_ns() + 400 * NS_PER_MS; now_ns() < until && !ep->peer[0].downs;) {
		if (post_some(ep, 2, base, 64) < 0)
			return;
		began = now_ns();
		ep->in_poll = true;
		rc = ep->layer->poll(ep->ctx, &ep->sink);
		ep->in_poll = false;
		took = now_ns() - began;
		if (r->verdict != VERDICT_NONE)
			return;
		if (took > NS_PER_S) {
			fail(r, "a poll after the peer's death took %llu ms",
			     (unsigned long long)(took / NS_PER_MS));
			return;
		}
		if (rc < 0)
			break;
	}
	if (ep->peer[0].downs && ep->peer[0].down_code >= 0)
		fail(r, "sink.down came with code %d", ep->peer[0].down_code);
	if (ep->peer[0].downs && (ep->limits.caps & CADGE_CAP_WHY)) {
		const char *why = ep->layer->why(ep->ctx);

		if (!why || !*why || strchr(why, '\n'))
			fail(r, "the channel went down, and why says '%s', not one line of the library's",
			     why ? why : "NULL");
	}
	began = now_ns();
	note(r, "disconnect after the peer's death");
	rc = ep->layer->disconnect(ep->ctx, ep->peer[0].chan);
	if (rc > 0)
		fail(r, "disconnect of a dead peer returned %d", rc);
	note(r, "close after the peer's death");
	r->polled = NULL;
	ep->layer->close(ep->ctx);
	took = now_ns() - began;
	free(ep);
	free(base);
	if (took > CLOSE_LIMIT_NS * r->opt->scale)
		fail(r, "after the peer's death, disconnect and close took %llu ms, the contract allows 1 s",
		     (unsigned long long)(took / NS_PER_MS));
}
