/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that leaves: posts, calls, replies, one-sided operations, and the queue behind a full socket. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base.h"

/* 1: out; 0: the socket is full; -1: the peer is gone. */
static int packet_send(struct cadge_chan *chan, const struct packet_head *head, const struct cadge_iov *iov,
		       uint32_t count)
{
	struct packet_head copy = *head;
	struct iovec parts[IOV_MAX_ENTRIES + 1] = {{.iov_base = &copy, .iov_len = sizeof(copy)}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};

	for (uint32_t i = 0; i < count; i++)
		if (iov[i].bytes)
			parts[message.msg_iovlen++] =
				(struct iovec){.iov_base = iov[i].base, .iov_len = iov[i].bytes};
	if (sendmsg(chan->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR)
		return 0;
	chan->down = true;
	return -1;
}

static int enqueue(struct cadge_chan *chan, const struct packet_head *head, const struct cadge_iov *iov,
		   uint32_t count, uint64_t token, bool event, void *owned)
{
	struct queued *q;

	if (chan->queue_count == QUEUE_ROOM)
		return CADGE_BUSY;
	q = &chan->queue[(chan->queue_first + chan->queue_count) % QUEUE_ROOM];
	q->head = *head;
	memcpy(q->iov, iov, count * sizeof(*iov));
	q->count = count;
	q->token = token;
	q->event = event;
	q->owned = owned;
	chan->queue_count++;
	chan->user_count += event;
	return CADGE_QUEUED;
}

/*
 * Sends or queues. DONE: out; QUEUED: sink.sent follows if `event`, else it leaves by itself and the caller's
 * buffers must stay, so without `event` the payload must live as long as the operation does.
 */
int packet_post(struct cadge_chan *chan, const struct packet_head *head, const struct cadge_iov *iov,
		uint32_t count, uint64_t token, bool event, bool hold)
{
	if (chan->down)
		return CADGE_E_DOWN;
	if (chan->fd < 0 || !chan->up_reported)
		return CADGE_BUSY;
	if (!chan->queue_count && !hold) {
		int rc = packet_send(chan, head, iov, count);

		if (rc)
			return rc > 0 ? CADGE_DONE : CADGE_E_DOWN;
	}
	if (event && chan->user_count >= QUEUE_ENTRIES)
		return CADGE_BUSY;
	if (hold)
		chan->held = true;
	return enqueue(chan, head, iov, count, token, event, NULL);
}

/* An answer of our own making: its payload is copied when it cannot leave at once. */
int packet_owned(struct cadge_chan *chan, const struct packet_head *head, const void *payload, size_t bytes)
{
	struct cadge_iov iov = {.base = (void *)(uintptr_t)payload, .bytes = bytes};
	int rc = CADGE_BUSY;

	if (chan->down || chan->fd < 0)
		return CADGE_E_DOWN;
	if (!chan->queue_count && packet_send(chan, head, &iov, 1) > 0)
		return CADGE_DONE;
	iov.base = malloc(bytes ? bytes : 1);
	if (!iov.base)
		return CADGE_E_MEMORY;
	if (bytes)
		memcpy(iov.base, payload, bytes);
	rc = enqueue(chan, head, &iov, 1, 0, false, iov.base);
	if (rc == CADGE_BUSY)
		free(iov.base);
	return rc;
}

int queue_run(struct cadge_chan *chan, struct cadge_sink *sink)
{
	int events = 0;

	while (chan->queue_count && chan->fd >= 0 && !chan->held) {
		struct queued q = chan->queue[chan->queue_first];
		int rc = chan->down ? -1 : packet_send(chan, &q.head, q.iov, q.count);

		if (rc == 0)
			break;
		chan->queue_first = (chan->queue_first + 1) % QUEUE_ROOM;
		chan->queue_count--;
		chan->user_count -= q.event;
		free(q.owned);
		if (q.event) {
			sink->sent(sink, chan->peer, q.token, rc > 0 ? CADGE_DONE : CADGE_E_DOWN);
			events++;
		}
	}
	return events;
}

void queue_drop(struct cadge_chan *chan)
{
	for (; chan->queue_count; chan->queue_count--) {
		free(chan->queue[chan->queue_first].owned);
		chan->queue_first = (chan->queue_first + 1) % QUEUE_ROOM;
	}
}

static int total(const struct cadge_iov *iov, uint32_t count, uint64_t bytes_max, uint64_t *bytes_out)
{
	*bytes_out = 0;
	if (count > IOV_MAX_ENTRIES)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++)
		*bytes_out += iov[i].bytes;
	return *bytes_out > bytes_max ? CADGE_E_TOO_LARGE : 0;
}

int base_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
	      uint64_t token)
{
	struct packet_head head = {.kind = PACKET_MESSAGE};
	int rc = total(iov, count, PAYLOAD_MAX, &head.payload_bytes);
	bool hold = flags & CADGE_MORE;

	if (rc < 0)
		return rc;
	if (chan->held && !hold)
		chan->held = false; /* the first post without MORE takes the others along */
#ifdef FLAW_DROP_EVERY
	if (chan->up_reported && !chan->down && chan->posts % FLAW_DROP_EVERY == FLAW_DROP_EVERY - 1) {
		chan->posts++;
		return CADGE_DONE;
	}
#endif
	rc = packet_post(chan, &head, iov, count, token, true, hold);
	chan->posts += rc == CADGE_DONE || rc == CADGE_QUEUED;
	return rc;
}

int base_flush(struct cadge_chan *chan)
{
#ifdef FLAW_FLUSH_CRASH
	abort();
#endif
#ifdef FLAW_FLUSH_HANG
	for (;;)
		sched_yield();
#endif
#ifndef FLAW_FLUSH_LIES
	chan->held = false;
#endif
	return chan->down ? CADGE_E_DOWN : CADGE_DONE;
}

enum { RESERVED_MAX = 16 };

int base_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out)
{
	struct reserved *reserved;

	(void)flags;
	if (bytes > PAYLOAD_MAX)
		return CADGE_E_TOO_LARGE;
	if (chan->down)
		return CADGE_E_DOWN;
	if (chan->reserved_count == RESERVED_MAX || !chan->up_reported)
		return CADGE_BUSY;
	reserved = malloc(sizeof(*reserved) + bytes);
	if (!reserved)
		return CADGE_E_MEMORY;
	reserved->bytes = bytes;
	reserved->next = chan->reserved;
	chan->reserved = reserved;
	chan->reserved_count++;
	*base_out = reserved->data;
	return CADGE_DONE;
}

static struct reserved **reserved_at(struct cadge_chan *chan, const void *base)
{
	struct reserved **at = &chan->reserved;

	while (*at && (*at)->data != base)
		at = &(*at)->next;
	return at;
}

static struct reserved *reserved_take(struct cadge_chan *chan, struct reserved **at)
{
	struct reserved *reserved = *at;

	*at = reserved->next;
	chan->reserved_count--;
	return reserved;
}

int base_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	const struct packet_head head = {.kind = PACKET_MESSAGE, .payload_bytes = bytes};
	const struct cadge_iov iov = {.base = base, .bytes = bytes};
	struct reserved **at = reserved_at(chan, base);
	int rc;

	(void)flags;
	if (!*at || bytes > (*at)->bytes)
		return CADGE_E_ARGUMENT;
	rc = chan->down ? -1 : chan->queue_count ? 0 : packet_send(chan, &head, &iov, 1);
	if (rc == 0 && chan->user_count >= QUEUE_ENTRIES)
		return CADGE_BUSY;
	if (rc == 0)
		return enqueue(chan, &head, &iov, 1, token, true, reserved_take(chan, at));
	free(reserved_take(chan, at));
	return rc > 0 ? CADGE_DONE : CADGE_E_DOWN;
}

void base_cancel(struct cadge_chan *chan, void *base)
{
	struct reserved **at = reserved_at(chan, base);

	if (*at)
		free(reserved_take(chan, at));
}

void reserved_drop(struct cadge_chan *chan)
{
	while (chan->reserved)
		free(reserved_take(chan, &chan->reserved));
}

static struct pending *pending_new(struct cadge_chan *chan, uint64_t token, uint64_t *number_out)
{
	for (unsigned int i = 0; i < PENDING_MAX; i++)
		if (!chan->ctx->pending[i].used) {
			struct pending *p = &chan->ctx->pending[i];

			memset(p, 0, sizeof(*p));
			p->used = true;
			p->peer = chan->peer;
			p->token = token;
			*number_out = i;
			return p;
		}
	return NULL;
}

/* Posts the request of a pending operation. */
static int pending_post(struct cadge_chan *chan, struct pending *p, const struct packet_head *head,
			const struct cadge_iov *iov, uint32_t count)
{
	int rc = packet_post(chan, head, iov, count, 0, false, false);

	if (rc == CADGE_DONE || rc == CADGE_QUEUED)
		return CADGE_QUEUED;
	p->used = false;
	return rc;
}

int base_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
	      const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token)
{
	struct packet_head head = {.kind = PACKET_CALL, .code = (int32_t)op, .b = chan->ctx->id};
	int rc = total(in_iov, in_count, PAYLOAD_MAX, &head.payload_bytes);
	struct pending *p;

	(void)flags;
	if (rc < 0)
		return rc;
	if (out_count > IOV_MAX_ENTRIES)
		return CADGE_E_ARGUMENT;
	p = pending_new(chan, token, &head.a);
	if (!p)
		return CADGE_BUSY;
	p->is_call = true;
	memcpy(p->out, out_iov, out_count * sizeof(*out_iov));
	p->out_count = out_count;
	return pending_post(chan, p, &head, in_iov, in_count);
}

/* The channel to the first caller: word 0 is its context, word 1 the number of the call there. */
static struct cadge_chan *caller(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to)
{
	for (unsigned int i = 0; i < PEERS_MAX; i++)
		if (ctx->chans[i].used && ctx->chans[i].remote_id == reply_to->word[0])
			return &ctx->chans[i];
	return NULL;
}

int base_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
	       uint32_t count, uint32_t flags, uint64_t token)
{
	struct packet_head head = {.kind = PACKET_REPLY, .a = reply_to->word[1]};
	struct cadge_chan *chan = caller(ctx, reply_to);
	int rc = total(iov, count, PAYLOAD_MAX, &head.payload_bytes);

	(void)flags; /* replies are never held back */
	if (rc < 0)
		return rc;
	return chan ? packet_post(chan, &head, iov, count, token, true, false) : CADGE_E_DOWN;
}

int base_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags)
{
	struct packet_head head = {.kind = PACKET_REPLY, .a = reply_to->word[1], .code = code};
	struct cadge_chan *chan = caller(ctx, reply_to);
	int rc;

	(void)flags;
	if (!chan)
		return CADGE_E_DOWN;
	rc = packet_owned(chan, &head, NULL, 0);
	return rc == CADGE_QUEUED ? CADGE_DONE : rc;
}

int base_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
		  const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	struct packet_head head = {
		.kind = PACKET_CALL, .code = (int32_t)op, .a = reply_to->word[1], .b = reply_to->word[0]};
	int rc = total(iov, count, PAYLOAD_MAX, &head.payload_bytes);

	(void)flags;
	return rc < 0 ? rc : packet_post(to, &head, iov, count, token, true, false);
}

static int outside(const struct cadge_remote *remote, uint64_t bytes, uint64_t offset_bytes, uint32_t what)
{
	if (!(remote->rights & what))
		return CADGE_E_REFUSED;
	if (bytes > RMA_MAX)
		return CADGE_E_TOO_LARGE;
	return offset_bytes > remote->bytes || bytes > remote->bytes - offset_bytes ? CADGE_E_ARGUMENT : 0;
}

int base_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct packet_head head = {
		.kind = PACKET_PUT, .a = remote->region, .b = offset_bytes, .payload_bytes = bytes};
	struct cadge_iov iov = {.base = (void *)(uintptr_t)local, .bytes = bytes};
	int rc = outside(remote, bytes, offset_bytes, CADGE_MAY_WRITE);

	head.code = flags & CADGE_NOTIFY ? 1 : 0;
	return rc < 0 ? rc : packet_post(chan, &head, &iov, 1, token, true, false);
}

int base_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct packet_head head = {
		.kind = PACKET_GET, .code = (int32_t)bytes, .b = remote->region << 48 | offset_bytes};
	int rc = outside(remote, bytes, offset_bytes, CADGE_MAY_READ);
	struct pending *p;

	(void)flags;
	if (rc < 0)
		return rc;
	p = pending_new(chan, token, &head.a);
	if (!p)
		return CADGE_BUSY;
	p->local = local;
	p->local_bytes = bytes;
	return pending_post(chan, p, &head, NULL, 0);
}

int base_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct packet_head head = {.kind = PACKET_FETCH_ADD, .b = remote->region << 48 | offset_bytes};
	struct cadge_iov iov = {.bytes = 0};
	int rc = outside(remote, 8, offset_bytes, CADGE_MAY_ATOMIC);
	struct pending *p;

	(void)flags;
	if (rc < 0 || offset_bytes % 8)
		return rc < 0 ? rc : CADGE_E_ARGUMENT;
	p = pending_new(chan, token, &head.a);
	if (!p)
		return CADGE_BUSY;
	p->local = before_out;
	p->local_bytes = 8;
	/* The addend travels in the field that names the payload's length: a request has no payload. */
	head.payload_bytes = addend;
	return pending_post(chan, p, &head, &iov, 0);
}

int base_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		      struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct packet_head head = {
		.kind = PACKET_SWAP, .b = remote->region << 48 | offset_bytes, .payload_bytes = 16};
	const uint64_t values[2] = {expected, desired};
	int rc = outside(remote, 8, offset_bytes, CADGE_MAY_ATOMIC);
	struct pending *p;

	(void)flags;
	if (rc < 0 || offset_bytes % 8)
		return rc < 0 ? rc : CADGE_E_ARGUMENT;
	if (!chan->up_reported)
		return CADGE_BUSY;
	p = pending_new(chan, token, &head.a);
	if (!p)
		return CADGE_BUSY;
	p->local = before_out;
	p->local_bytes = 8;
	rc = packet_owned(chan, &head, values, sizeof(values));
	if (rc == CADGE_DONE || rc == CADGE_QUEUED)
		return CADGE_QUEUED;
	p->used = false;
	return rc;
}

int base_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	struct packet_head head = {.kind = PACKET_QUIET};
	struct pending *p = pending_new(chan, token, &head.a);

	(void)flags;
	return p ? pending_post(chan, p, &head, NULL, 0) : CADGE_BUSY;
}
