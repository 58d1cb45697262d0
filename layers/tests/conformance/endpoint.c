/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One opened context with its channels, its outstanding operations, and the checks that hold in every test.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadge/check.h"
#include "conformance.h"

const struct wishes wishes_default = {
	.depth_max = 64, .message_bytes_max = 256 * 1024, .region_bytes_max = 1024 * 1024};

static struct endpoint *endpoint_of(struct cadge_sink *self, const char *callback)
{
	struct endpoint *ep = (struct endpoint *)(void *)self;

	if (!ep->in_poll)
		fail(ep->r, "sink.%s was called outside poll", callback);
	ep->delivered++;
	return ep;
}

static bool peer_known(struct endpoint *ep, uint32_t peer, const char *callback)
{
	if (peer < ep->peers)
		return true;
	fail(ep->r, "sink.%s named peer %u, but only numbers below %u were connected", callback, peer,
	     ep->peers);
	return false;
}

static void sink_up(struct cadge_sink *self, uint32_t peer)
{
	struct endpoint *ep = endpoint_of(self, "up");

	if (peer_known(ep, peer, "up") && ++ep->peer[peer].ups > 1)
		fail(ep->r, "sink.up came twice for peer %u", peer);
}

/* What the layer's library said, to be put behind a code; "" where it says nothing. */
static const char *why_of(const struct endpoint *ep)
{
	const char *why = ep->limits.caps & CADGE_CAP_WHY ? ep->layer->why(ep->ctx) : NULL;

	return why ? why : "";
}

static void sink_down(struct cadge_sink *self, uint32_t peer, int code)
{
	struct endpoint *ep = endpoint_of(self, "down");

	if (!peer_known(ep, peer, "down"))
		return;
	ep->peer[peer].down_code = code;
	if (++ep->peer[peer].downs > 1)
		fail(ep->r, "sink.down came twice for peer %u", peer);
	if (!ep->may_lose_peer)
		fail(ep->r, "the channel went down (%s) although the peer is alive; why says '%s'",
		     cadge_code_name(code), why_of(ep));
}

/* Whether this message came among the last ones. From 16 bytes on the suite's messages name themselves. */
static bool seen_before(struct endpoint *ep, const void *data, size_t bytes)
{
	unsigned int at = ep->recent_count++ % RECENT_MAX;
	bool again = false;

	if (bytes < sizeof(ep->recent[0].head)) {
		ep->recent[at].bytes = 0;
		return false;
	}
	for (unsigned int i = 0; i < RECENT_MAX; i++)
		again |= ep->recent[i].bytes == bytes &&
			 memcmp(ep->recent[i].head, data, sizeof(ep->recent[i].head)) == 0;
	memcpy(ep->recent[at].head, data, sizeof(ep->recent[at].head));
	ep->recent[at].bytes = bytes;
	return again;
}

static enum cadge_keep sink_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
				 struct cadge_lend *lend)
{
	struct endpoint *ep = endpoint_of(self, "recv");

	bool again;

	if (!peer_known(ep, peer, "recv"))
		return CADGE_TAKEN;
	if (bytes && !data) {
		fail(ep->r, "sink.recv brought %zu bytes at NULL", bytes);
		return CADGE_TAKEN;
	}
	again = seen_before(ep, data, bytes);
	if (lend && !(ep->limits.caps & CADGE_CAP_LEND))
		fail(ep->r, "sink.recv gave a lend handle although LEND is not granted");
	if (!ep->on_recv) {
		fail(ep->r,
		     again ? "a message of %zu bytes was delivered twice"
			   : "unexpected message of %zu bytes: nobody sent it",
		     bytes);
		return CADGE_TAKEN;
	}
	return ep->on_recv(ep, peer, data, bytes, lend);
}

/* Ends an outstanding operation; false when there is none of that token. */
static bool token_end(struct endpoint *ep, uint64_t token, const char *callback, void **arg_out)
{
	struct token_slot *slot = &ep->tokens[token % TOKENS_MAX];

	if (!slot->used || slot->token != token) {
		fail(ep->r,
		     "sink.%s named a token that is not outstanding (0x%llx): a second event, or one after "
		     "DONE",
		     callback, (unsigned long long)token);
		return false;
	}
	slot->used = false;
	ep->outstanding--;
	*arg_out = slot->arg;
	return true;
}

static void sink_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	struct endpoint *ep = endpoint_of(self, "sent");
	void *arg = NULL;

	if (!peer_known(ep, peer, "sent") || !token_end(ep, token, "sent", &arg))
		return;
	if (code == CADGE_E_REFUSED && ep->may_be_refused)
		ep->refused++;
	else if (code > 0 || (code < 0 && !ep->may_lose_peer &&
			      (code != CADGE_E_LOST || (ep->limits.caps & CADGE_CAP_RELIABLE))))
		fail(ep->r, "an operation ended with %d (%s) although the peer is alive; why says '%s'", code,
		     cadge_code_name(code), why_of(ep));
	if (ep->on_sent)
		ep->on_sent(ep, arg, code);
}

static void sink_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		      const struct cadge_reply_to *reply_to)
{
	struct endpoint *ep = endpoint_of(self, "call");

	if (!peer_known(ep, peer, "call"))
		return;
	if (!ep->on_call)
		fail(ep->r, "unexpected call of procedure %u: nobody made it", op);
	else
		ep->on_call(ep, peer, op, args, bytes, reply_to);
}

static enum cadge_keep sink_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				    enum cadge_placement placement, const void *data, size_t bytes,
				    struct cadge_lend *lend)
{
	struct endpoint *ep = endpoint_of(self, "replied");
	void *arg = NULL;

	if (!peer_known(ep, peer, "replied") || !token_end(ep, token, "replied", &arg) || !ep->on_replied)
		return CADGE_TAKEN;
	return ep->on_replied(ep, arg, code, placement, data, bytes, lend);
}

static void sink_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
			  uint64_t offset_bytes, uint64_t bytes)
{
	struct endpoint *ep = endpoint_of(self, "notified");

	if (!peer_known(ep, peer, "notified"))
		return;
	if (!ep->on_notified)
		fail(ep->r, "unexpected notification: no put asked for one");
	else
		ep->on_notified(ep, peer, region, offset_bytes, bytes);
}

void endpoint_args(const struct rank *r, const struct wishes *w, char *error, size_t error_bytes,
		   struct cadge_open_args *args_out)
{
	memset(error, 0, error_bytes);
	*args_out = (struct cadge_open_args){
		.bytes = sizeof(*args_out),
		.place = r->opt->place,
		.wait_mode = r->opt->wait_mode,
		.device = r->opt->device,
		.address = r->opt->address,
		.peers_max = r->count > 1 ? r->count - 1 : 1,
		.depth_max = w->depth_max,
		.message_bytes_max = w->message_bytes_max,
		.region_bytes_max = w->region_bytes_max,
		.settings = r->opt->settings,
		.settings_count = r->opt->settings_count,
		.inner = r->inner,
		.error = error,
		.error_bytes = error_bytes,
	};
}

int endpoint_open(struct rank *r, const struct wishes *w, struct endpoint **ep_out)
{
	struct endpoint *ep = calloc(1, sizeof(*ep));
	struct cadge_open_args args;
	char error[256];
	int rc;

	if (!ep)
		return fail(r, "the suite is out of memory");
	ep->sink = (struct cadge_sink){.bytes = sizeof(ep->sink),
				       .up = sink_up,
				       .down = sink_down,
				       .recv = sink_recv,
				       .sent = sink_sent,
				       .call = sink_call,
				       .replied = sink_replied,
				       .notified = sink_notified};
	ep->r = r;
	ep->layer = r->layer;
	/* Everybody is connected to everybody else. */
	ep->peers = r->count > 1 ? r->count - 1 : 1;
	for (unsigned int p = 0; p < ep->peers && r->count > 1; p++)
		ep->peer[p].rank = p < r->number ? p : p + 1;
	ep->token_serial = mix64((uint64_t)getpid() ^ now_ns());
	endpoint_args(r, w, error, sizeof(error), &args);
	rc = ep->layer->open(&args, &ep->ctx);
	if (rc != CADGE_DONE) {
		free(ep);
		return fail(r, "open failed with %d (%s): %s", rc, cadge_code_name(rc),
			    error[0] ? error : "no reason");
	}
	ep->limits.bytes = sizeof(ep->limits);
	ep->layer->limits(ep->ctx, &ep->limits);
	*ep_out = ep;
	return 0;
}

int endpoint_poll(struct endpoint *ep)
{
	int rc;

	ep->delivered = 0;
	ep->in_poll = true;
	rc = ep->layer->poll(ep->ctx, &ep->sink);
	ep->in_poll = false;
	ep->polls++;
	if (rc < 0 && !ep->may_lose_peer)
		return fail(ep->r, "poll failed with %d (%s)", rc, cadge_code_name(rc));
	if (rc >= 0 && (unsigned int)rc != ep->delivered) {
		ep->miscounted++;
		if (rc == 0)
			return fail(ep->r,
				    "poll delivered %u events and returned 0: a caller that sleeps on 0 "
				    "would hang",
				    ep->delivered);
	}
	return ep->r->verdict == VERDICT_NONE ? (int)ep->delivered : -1;
}

/* Called after a poll that found nothing: gives the processor away, in the way of the wait mode. */
void endpoint_idle(struct endpoint *ep)
{
	if (ep->r->opt->wait_mode == CADGE_WAIT_BLOCK && ep->layer->wait) {
		int rc = ep->layer->wait(ep->ctx, ep->sleeps_long ? LONG_WAIT_NS : NS_PER_MS);

		if (rc != CADGE_DONE && !ep->may_lose_peer)
			fail(ep->r, "wait returned %d (%s)", rc, cadge_code_name(rc));
		return;
	}
	sched_yield(); /* the peer may have no core of its own */
}

uint64_t token_new(struct endpoint *ep, void *arg)
{
	for (unsigned int tries = 0; tries < TOKENS_MAX; tries++) {
		unsigned int i = ep->token_cursor++ % TOKENS_MAX;
		struct token_slot *slot = &ep->tokens[i];

		if (slot->used)
			continue;
		ep->token_serial += TOKENS_MAX;
		slot->used = true;
		slot->token = ep->token_serial - ep->token_serial % TOKENS_MAX + i;
		slot->arg = arg;
		ep->outstanding++;
		return slot->token;
	}
	fail(ep->r, "more than %u operations are outstanding on one context", TOKENS_MAX);
	return UINT64_MAX;
}

void token_drop(struct endpoint *ep, uint64_t token)
{
	struct token_slot *slot = &ep->tokens[token % TOKENS_MAX];

	if (slot->used && slot->token == token) {
		slot->used = false;
		ep->outstanding--;
	}
}

int endpoint_account(struct endpoint *ep, int code, uint64_t token, const char *what)
{
	switch (code) {
	case CADGE_QUEUED: return 0;
	case CADGE_DONE: token_drop(ep, token); return 0;
	case CADGE_BUSY: token_drop(ep, token); return 1;
	default:
		token_drop(ep, token);
		return fail(ep->r, "%s returned %d (%s)", what, code, cadge_code_name(code));
	}
}

int endpoint_post(struct endpoint *ep, uint32_t peer, const struct cadge_iov *iov, uint32_t count,
		  uint32_t flags, void *arg, int *code_out)
{
	uint64_t began = 0, token;
	int busy, got;

	for (;;) {
		token = token_new(ep, arg);
		if (token == UINT64_MAX)
			return -1;
		*code_out = ep->layer->post(ep->peer[peer].chan, iov, count, flags, token);
		busy = endpoint_account(ep, *code_out, token, "post");
		if (busy <= 0)
			return busy;
		if (!began)
			began = now_ns();
		else if (now_ns() - began > 8 * NS_PER_S * ep->r->opt->scale)
			return fail(ep->r, "post stayed BUSY for seconds while both sides polled");
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
	}
}

int endpoint_drain(struct endpoint *ep)
{
	uint64_t began = now_ns();
	int got;

	while (ep->outstanding) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 10 * NS_PER_S * ep->r->opt->scale)
			return fail(ep->r, "%u operations were QUEUED, but their events never came",
				    ep->outstanding);
	}
	return 0;
}

int endpoint_connect(struct endpoint *ep)
{
	unsigned char blob[2048 + 16];
	struct rank *r = ep->r;
	uint64_t began;
	size_t bytes;
	int rc;

	note(r, "address");
	for (unsigned int p = 0; p < ep->peers; p++) {
		memset(blob, 0xa5, sizeof(blob));
		bytes = 2048;
		rc = ep->layer->address(ep->ctx, p, blob, &bytes);
		if (rc != CADGE_DONE)
			return fail(r, "address returned %d (%s)", rc, cadge_code_name(rc));
		if (bytes > 2048 || blob[2048] != 0xa5)
			return fail(r, "address wrote %zu bytes where 2048 were given", bytes);
		if (oob_send(r, ep->peer[p].rank, blob, bytes) < 0)
			return -1;
	}
	note(r, "connect");
	for (unsigned int p = 0; p < ep->peers; p++) {
		if (oob_recv(r, ep->peer[p].rank, blob, sizeof(blob), &bytes) < 0)
			return -1;
		ep->peer[p].ups = ep->peer[p].downs = 0;
		rc = ep->layer->connect(ep->ctx, p, blob, bytes, &ep->peer[p].chan);
		if (rc != CADGE_DONE || !ep->peer[p].chan)
			return fail(r, "connect returned %d (%s)", rc, cadge_code_name(rc));
		memset(blob, 0x5a, sizeof(blob)); /* the blob is the caller's again */
	}
	r->polled = ep;
	note(r, "waiting for up");
	began = now_ns();
	ep->sleeps_long = ep->long_waits;
	for (unsigned int p = 0; p < ep->peers; p++)
		while (!ep->peer[p].ups) {
			rc = endpoint_poll(ep);
			if (rc < 0)
				return -1;
			if (!rc)
				endpoint_idle(ep);
			if (now_ns() - began > 8 * NS_PER_S * r->opt->scale)
				return fail(r, "sink.up never came");
		}
	ep->sleeps_long = false;
	if (oob_barrier(r) < 0)
		return -1;
	note(r, "connected");
	return 0;
}

int endpoint_disconnect(struct endpoint *ep)
{
	int rc;

	note(ep->r, "disconnect");
	for (unsigned int p = 0; p < ep->peers; p++) {
		if (!ep->peer[p].chan)
			continue;
		rc = ep->layer->disconnect(ep->ctx, ep->peer[p].chan);
		ep->peer[p].chan = NULL;
		if (rc != CADGE_DONE)
			return fail(ep->r, "disconnect returned %d (%s)", rc, cadge_code_name(rc));
	}
	return 0;
}

int endpoint_start(struct rank *r, const struct wishes *w, struct endpoint **ep_out)
{
	note(r, "open");
	if (endpoint_open(r, w, ep_out) < 0)
		return -1;
	return endpoint_connect(*ep_out);
}

int endpoint_close(struct endpoint *ep)
{
	struct rank *r = ep->r;
	uint64_t began = now_ns(), took;

	note(r, "close");
	r->polled = NULL;
	ep->layer->close(ep->ctx);
	took = now_ns() - began;
	free(ep);
	if (took > CLOSE_LIMIT_NS * r->opt->scale)
		return fail(r, "close took %llu ms, the contract allows 1 s",
			    (unsigned long long)(took / NS_PER_MS));
	return 0;
}

int endpoint_stop(struct endpoint *ep)
{
	struct rank *r = ep->r;

	if (endpoint_drain(ep) < 0)
		return -1;
	/* Who leaves the barrier first is gone while the other one still polls in it. */
	ep->may_lose_peer = true;
	if (oob_barrier(r) < 0 || endpoint_disconnect(ep) < 0)
		return -1;
	return endpoint_close(ep);
}

void *buffer_new(struct endpoint *ep, size_t bytes)
{
	void *base = NULL;

	if (ep->limits.caps & CADGE_CAP_MEM_ALLOC)
		base = ep->layer->mem_alloc(ep->ctx, bytes ? bytes : 1);
	else if (posix_memalign(&base, 4096, bytes ? bytes : 1))
		base = NULL;
	if (!base)
		fail(ep->r, "no memory for a buffer of %zu bytes", bytes);
	return base;
}

void buffer_free(struct endpoint *ep, void *base, size_t bytes)
{
	if (!base)
		return;
	if (ep->limits.caps & CADGE_CAP_MEM_ALLOC)
		ep->layer->mem_free(ep->ctx, base, bytes ? bytes : 1);
	else
		free(base);
}
