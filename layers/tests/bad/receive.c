/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that arrives: packets, new connections, the end of a connection; and sleeping until one comes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

static struct cadge_lend *lend_new(struct cadge_ctx *ctx)
{
	struct cadge_lend *lend = ctx->free;

	if (!lend)
		return malloc(sizeof(*lend));
	ctx->free = lend->next;
	return lend;
}

void base_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	lend->next = ctx->free;
	ctx->free = lend;
}

static int deliver(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend)
{
	if (sink->recv(sink, chan->peer, lend->payload, (size_t)lend->head.payload_bytes, lend) ==
	    CADGE_TAKEN)
		base_release(chan->ctx, lend);
	return 1;
}

static int on_message(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend)
{
	chan->arrivals++;
#ifdef FLAW_FLIP_EVERY
	if (chan->arrivals % FLAW_FLIP_EVERY == 0 && lend->head.payload_bytes > 16)
		lend->payload[lend->head.payload_bytes - 1] ^= 0x10;
#endif
#ifdef FLAW_REPEAT_EVERY
	if (chan->arrivals % FLAW_REPEAT_EVERY == 0) {
		struct cadge_lend *twin = lend_new(chan->ctx);

		if (twin) {
			memcpy(twin, lend, sizeof(*twin));
			return deliver(chan, sink, lend) + deliver(chan, sink, twin);
		}
	}
#endif
#ifdef FLAW_SWAP_EVERY
	if (chan->arrivals % FLAW_SWAP_EVERY == 0) {
		chan->late = lend;
		return 0;
	}
	if (chan->late) {
		struct cadge_lend *late = chan->late;

		chan->late = NULL;
		return deliver(chan, sink, lend) + deliver(chan, sink, late);
	}
#endif
	return deliver(chan, sink, lend);
}

static int on_call(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend)
{
	struct cadge_reply_to reply_to = {.word = {lend->head.b, lend->head.a}};

	sink->call(sink, chan->peer, (uint32_t)lend->head.code, lend->payload,
		   (size_t)lend->head.payload_bytes, &reply_to);
	base_release(chan->ctx, lend);
	return 1;
}

static int on_reply(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend)
{
	size_t at = 0, bytes = (size_t)lend->head.payload_bytes;
	struct pending p;

	if (lend->head.a >= PENDING_MAX || !chan->ctx->pending[lend->head.a].used ||
	    !chan->ctx->pending[lend->head.a].is_call) {
		base_release(chan->ctx, lend);
		return 0;
	}
	p = chan->ctx->pending[lend->head.a];
	chan->ctx->pending[lend->head.a].used = false;
	if (p.out_count && lend->head.code == CADGE_DONE) {
		for (uint32_t i = 0; i < p.out_count && at < bytes; i++) {
			size_t piece = p.out[i].bytes < bytes - at ? p.out[i].bytes : bytes - at;

			memcpy(p.out[i].base, lend->payload + at, piece);
			at += piece;
		}
		chan->ctx->copies++;
		sink->replied(sink, p.peer, p.token, CADGE_DONE, CADGE_PLACED, NULL, bytes, NULL);
		base_release(chan->ctx, lend);
	} else if (sink->replied(sink, p.peer, p.token, lend->head.code, CADGE_LENT, lend->payload, bytes,
				 lend) == CADGE_TAKEN) {
		base_release(chan->ctx, lend);
	}
	return 1;
}

static int on_result(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend)
{
	struct pending p = {0};

	if (lend->head.a < PENDING_MAX)
		p = chan->ctx->pending[lend->head.a];
	if (!p.used || p.is_call || lend->head.payload_bytes != p.local_bytes) {
		base_release(chan->ctx, lend);
		return 0;
	}
	chan->ctx->pending[lend->head.a].used = false;
	if (p.local_bytes)
		memcpy(p.local, lend->payload, p.local_bytes);
	base_release(chan->ctx, lend);
	sink->sent(sink, p.peer, p.token, CADGE_DONE);
	return 1;
}

/* Memory of region `index` when [offset, offset + bytes) lies in it. */
static unsigned char *region_at(struct cadge_ctx *ctx, uint64_t index, uint64_t offset, uint64_t bytes)
{
	if (index >= REGIONS_MAX || !ctx->regions[index].base || offset > ctx->regions[index].bytes ||
	    bytes > ctx->regions[index].bytes - offset)
		return NULL;
	return ctx->regions[index].base + offset;
}

static int on_swap(struct cadge_chan *chan, const struct cadge_lend *lend, uint64_t *word)
{
	const struct packet_head head = {.kind = PACKET_RESULT, .a = lend->head.a, .payload_bytes = 8};
	uint64_t values[2];

	memcpy(values, lend->payload, sizeof(values)); /* expected, which becomes what was there; desired */
	__atomic_compare_exchange_n(word, &values[0], values[1], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return packet_owned(chan, &head, &values[0], 8);
}

static int on_one_sided(struct cadge_chan *chan, struct cadge_sink *sink, struct cadge_lend *lend,
			int *events_inout)
{
	struct packet_head head = {.kind = PACKET_RESULT, .a = lend->head.a};
	struct cadge_ctx *ctx = chan->ctx;
	uint64_t index = lend->head.b >> 48, offset = lend->head.b & ((UINT64_C(1) << 48) - 1), before;
	unsigned char *at = NULL;
	int rc = CADGE_DONE;

	switch (lend->head.kind) {
	case PACKET_PUT:
		at = region_at(ctx, lend->head.a, lend->head.b, lend->head.payload_bytes);
		if (at)
			memcpy(at, lend->payload, (size_t)lend->head.payload_bytes);
		if (at && lend->head.code) {
			sink->notified(sink, chan->peer, &ctx->regions[lend->head.a], lend->head.b,
				       lend->head.payload_bytes);
			++*events_inout;
		}
		break;
	case PACKET_GET:
		head.payload_bytes = (uint64_t)lend->head.code;
		at = region_at(ctx, index, offset, head.payload_bytes);
		if (at)
			rc = packet_owned(chan, &head, at, (size_t)head.payload_bytes);
		break;
	case PACKET_FETCH_ADD:
		at = region_at(ctx, index, offset, 8);
		if (!at)
			break;
		head.payload_bytes = 8;
		before = __atomic_fetch_add((uint64_t *)(void *)at, lend->head.payload_bytes,
					    __ATOMIC_SEQ_CST);
		rc = packet_owned(chan, &head, &before, 8);
		break;
	case PACKET_SWAP:
		at = region_at(ctx, index, offset, 8);
		if (at && lend->head.payload_bytes == 16)
			rc = on_swap(chan, lend, (uint64_t *)(void *)at);
		break;
	default: rc = packet_owned(chan, &head, NULL, 0); break;
	}
	base_release(ctx, lend);
	return rc < 0 ? rc : 0;
}

/* Reads one packet. 1: at *lend_out; 0: nothing there; -1: the connection is over. */
static int packet_read(struct cadge_ctx *ctx, int fd, struct cadge_lend **lend_out)
{
	struct cadge_lend *lend = lend_new(ctx);
	struct iovec parts[2];
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n;

	if (!lend)
		return 0;
	parts[0] = (struct iovec){.iov_base = &lend->head, .iov_len = sizeof(lend->head)};
	parts[1] = (struct iovec){.iov_base = lend->payload, .iov_len = sizeof(lend->payload)};
	n = recvmsg(fd, &message, MSG_DONTWAIT);
	if (n >= (ssize_t)sizeof(lend->head)) {
		*lend_out = lend;
		return 1;
	}
	base_release(ctx, lend);
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

static int chan_down(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_ctx *ctx = chan->ctx;
	int events = 0;

	chan->down = true;
	chan->held = false;
	if (chan->down_reported)
		return 0;
	chan->down_reported = true;
	snprintf(ctx->why, sizeof(ctx->why), "peer %u closed its socket", chan->peer);
	events += queue_run(chan, sink);
	for (unsigned int i = 0; i < PENDING_MAX; i++) {
		struct pending *p = &ctx->pending[i];

		if (!p->used || p->peer != chan->peer)
			continue;
		p->used = false;
		if (p->is_call)
			sink->replied(sink, p->peer, p->token, CADGE_E_DOWN, CADGE_LENT, NULL, 0, NULL);
		else
			sink->sent(sink, p->peer, p->token, CADGE_E_DOWN);
		events++;
	}
	sink->down(sink, chan->peer, CADGE_E_DOWN);
	return events + 1;
}

static int chan_poll(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_lend *lend;
	int events = 0, rc = 0;

	if (!chan->up_reported) {
		chan->up_reported = true;
		sink->up(sink, chan->peer);
		events++;
	}
	events += queue_run(chan, sink);
	for (unsigned int i = 0; i < 16 && !chan->down_reported; i++) {
		rc = packet_read(chan->ctx, chan->fd, &lend);
		if (rc <= 0)
			break;
		switch (lend->head.kind) {
		case PACKET_MESSAGE: events += on_message(chan, sink, lend); break;
		case PACKET_CALL: events += on_call(chan, sink, lend); break;
		case PACKET_REPLY: events += on_reply(chan, sink, lend); break;
		case PACKET_RESULT: events += on_result(chan, sink, lend); break;
		default: rc = on_one_sided(chan, sink, lend, &events); break;
		}
	}
	if (rc < 0 || (chan->down && !chan->down_reported))
		events += chan_down(chan, sink);
	return events;
}

/* A packet on a connection that we accepted says which of our channels it is. */
static void stranger_poll(struct cadge_ctx *ctx, unsigned int i)
{
	struct cadge_lend *lend;
	int rc = packet_read(ctx, ctx->strangers[i], &lend);

	if (!rc)
		return;
	if (rc > 0 && lend->head.kind == PACKET_HELLO && lend->head.a < PEERS_MAX) {
		struct cadge_chan *chan = &ctx->chans[lend->head.a];

		/* Not connected here yet: it waits among the strangers as what it is. */
		if (chan->used && chan->fd < 0 && chan->remote_id == lend->head.b) {
			chan->fd = ctx->strangers[i];
			ctx->strangers[i] = -1;
		}
	}
	if (rc > 0)
		base_release(ctx, lend);
	if (ctx->strangers[i] >= 0)
		close(ctx->strangers[i]);
	ctx->strangers[i] = -1;
}

static void accept_strangers(struct cadge_ctx *ctx)
{
	for (unsigned int i = 0; i < PEERS_MAX; i++) {
		if (ctx->strangers[i] < 0)
			ctx->strangers[i] = accept4(ctx->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (ctx->strangers[i] >= 0)
			stranger_poll(ctx, i);
	}
}

/* Whoever has the smaller id dials; it does so here until the other side listens to it. */
static void chan_dial(struct cadge_chan *chan)
{
	struct packet_head head = {.kind = PACKET_HELLO, .a = chan->remote_slot, .b = chan->ctx->id};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (connect(fd, (const void *)&chan->remote, sizeof(chan->remote)) < 0 ||
	    send(fd, &head, sizeof(head), MSG_NOSIGNAL) != (ssize_t)sizeof(head)) {
		close(fd);
		return;
	}
	chan->fd = fd;
}

#ifdef FLAW_POLL_HANG
#ifdef FLAW_SILENT_THREADS
static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* As a library's own threads: none takes a signal. */
static void start_silent_threads(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned int i = 0; i < FLAW_SILENT_THREADS; i++)
		pthread_create(&thread, NULL, wait_for_ever, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
#endif

static void spin_for_ever(void)
{
#ifdef FLAW_SILENT_THREADS
	start_silent_threads();
#endif
	for (;;)
		sched_yield();
}
#endif

int base_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	bool missing = false;
	int events = 0;

	for (unsigned int i = 0; i < PEERS_MAX; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		if (!chan->used)
			continue;
		if (chan->fd < 0 && chan->dials)
			chan_dial(chan);
		if (chan->fd < 0)
			missing = true;
		else
			events += chan_poll(chan, sink);
	}
	if (missing)
		accept_strangers(ctx);
#ifdef FLAW_POLL_HANG
	if (events)
		spin_for_ever();
#endif
#ifdef FLAW_SLEEP_NS
	if (!events)
		nanosleep(&(struct timespec){.tv_nsec = FLAW_SLEEP_NS}, NULL);
#endif
	return events;
}

/* Whether a connection has ended, told or not. */
#ifdef FLAW_NO_END_WAKE
static bool ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
#endif

/* What to look at while asleep. False where poll has something to do now. */
static bool watched(struct cadge_ctx *ctx, struct pollfd pfds[2 * PEERS_MAX + 1], nfds_t *count_out)
{
	nfds_t count = 0;

	for (unsigned int i = 0; i < PEERS_MAX; i++) {
		const struct cadge_chan *chan = &ctx->chans[i];
		short room = POLLOUT;

#ifdef FLAW_NO_ROOM_WAKE
		room = 0;
#endif
#ifndef FLAW_NO_CONNECTION_WAKE
		if (ctx->strangers[i] >= 0)
			pfds[count++] = (struct pollfd){.fd = ctx->strangers[i], .events = POLLIN};
#endif
		if (!chan->used)
			continue;
		if (chan->fd >= 0 && !chan->up_reported)
			return false;
		if (chan->fd < 0 && chan->dials)
			return false;
#ifdef FLAW_NO_END_WAKE
		if (chan->fd >= 0 && ended(chan->fd))
			continue;
#endif
		if (chan->fd >= 0 && !chan->down_reported)
			pfds[count++] = (struct pollfd){
				.fd = chan->fd,
				.events = (short)(POLLIN | (chan->queue_count && !chan->held ? room : 0))};
	}
#ifndef FLAW_NO_CONNECTION_WAKE
	pfds[count++] = (struct pollfd){.fd = ctx->listener, .events = POLLIN};
#endif
	*count_out = count;
	return true;
}

int base_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
				   .tv_nsec = (long)(timeout_ns % 1000000000u)};
	struct pollfd pfds[2 * PEERS_MAX + 1];
	nfds_t count;

	if (!watched(ctx, pfds, &count))
		return CADGE_DONE;
	if (ppoll(pfds, count, &timeout, NULL) < 0 && errno != EINTR)
		return CADGE_E_LIBRARY;
	return CADGE_DONE;
}

/* What was closed meanwhile has left the epoll by itself. */
int base_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	struct pollfd pfds[2 * PEERS_MAX + 1];
	nfds_t count;

	if (!ctx->block)
		return CADGE_E_UNSUPPORTED;
	if (!watched(ctx, pfds, &count))
		return CADGE_BUSY;
	if (ctx->epoll < 0)
		ctx->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ctx->epoll < 0)
		return CADGE_E_MEMORY;
	for (nfds_t i = 0; i < count; i++) {
		struct epoll_event event = {.events = EPOLLIN | (pfds[i].events & POLLOUT ? EPOLLOUT : 0)};

		if (epoll_ctl(ctx->epoll, EPOLL_CTL_MOD, pfds[i].fd, &event) < 0 &&
		    (errno != ENOENT || epoll_ctl(ctx->epoll, EPOLL_CTL_ADD, pfds[i].fd, &event) < 0))
			return CADGE_E_LIBRARY;
	}
	*fd_out = ctx->epoll;
	*due_ns_out = UINT64_MAX;
	return CADGE_DONE;
}
