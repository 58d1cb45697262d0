/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/wire.h"
#include "sockets/endpoint.h"
#include "sockets/stream.h"

enum {
	PEERS_MAX = 1024,
	GUESTS_MAX = 16,     /* accepted connections that have not said who they are */
	HELLO_BYTES = 16,    /* magic, slot, nonce */
	FEW_PEERS = 4,	     /* up to here each socket is tried; above, poll(2) picks those that have something */
	MESSAGES_A_POLL = 64, /* of one peer */
};
#define RECEIVE_TIMEOUT_NS UINT64_C(50000000)

static const uint32_t hello_magic = 0x314f4c48, welcome_magic = 0x31434c57;

enum chan_state {
	CHAN_DIALLING,	/* the kernel connects */
	CHAN_GREETING,	/* hello is sent, the welcome is not here yet */
	CHAN_EXPECTING, /* the peer will dial */
	CHAN_UP,
	CHAN_FAILED, /* the next poll tells */
	CHAN_DOWN,
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	enum chan_state state;
	int fd;
	struct sock_blob theirs;
	unsigned char welcome[HELLO_BYTES];
	size_t welcome_bytes;
	struct sock_stream stream; /* from UP on */
};

/* An accepted connection whose hello has not come whole. */
struct guest {
	int fd;
	size_t hello_bytes;
	unsigned char hello[HELLO_BYTES];
};

/* What we told a peer that it needs to reach us. */
struct slot {
	bool given;
	uint64_t nonce;
	uint32_t number;
	struct cadge_chan *chan;
};

struct cadge_ctx {
	const struct sock_family *family;
	struct sock_settings settings;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	char device[64];
	struct sockaddr_storage bind_address; /* of dialling sockets; bytes 0: none */
	socklen_t bind_address_bytes;
	uint64_t message_bytes_max;
	uint32_t depth, peers;
	int listen_fd;
	unsigned char endpoint[SOCK_ENDPOINT_BYTES];
	struct slot *slots;	     /* by peer */
	struct cadge_chan **up;	     /* channels that are up, in any order */
	uint32_t up_count, unsettled; /* unsettled: neither up nor down */
	struct guest guests[GUESTS_MAX];
	uint32_t guest_count;
	struct pollfd *pollfds; /* peers + guests + the listening socket */
	struct sock_blocks blocks;
};

void sock_session_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->slots && i < ctx->peers; i++)
		if (ctx->slots[i].chan)
			sock_session_disconnect(ctx, ctx->slots[i].chan);
	while (ctx->guest_count)
		close(ctx->guests[--ctx->guest_count].fd);
	if (ctx->listen_fd >= 0)
		close(ctx->listen_fd);
	sock_blocks_free(&ctx->blocks);
	free(ctx->pollfds);
	free(ctx->up);
	free(ctx->slots);
	free(ctx);
}

int sock_session_open(const struct sock_family *family, const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	struct sockaddr_storage bound;
	socklen_t bound_bytes = sizeof(bound);
	int code;

	if (args->place == CADGE_PLACE_SELF || (args->place == CADGE_PLACE_NET && !(family->caps & CADGE_CAP_NET)))
		return sock_refuse(args, CADGE_E_UNSUPPORTED, "these sockets do not reach that place");
	if (!args->peers_max || args->peers_max > PEERS_MAX || !args->depth_max)
		return sock_refuse(args, CADGE_E_ARGUMENT, "peers must be 1 to %d and depth at least 1", PEERS_MAX);
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return sock_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->family = family;
	ctx->listen_fd = -1;
	ctx->place = args->place;
	ctx->wait_mode = args->wait_mode;
	ctx->peers = args->peers_max;
	ctx->depth = args->depth_max < SOCK_DEPTH_MAX ? args->depth_max : SOCK_DEPTH_MAX;
	ctx->message_bytes_max =
		args->message_bytes_max < SOCK_MESSAGE_BYTES_MAX ? args->message_bytes_max : SOCK_MESSAGE_BYTES_MAX;
	snprintf(ctx->device, sizeof(ctx->device), "%s", args->device);
	code = sock_settings_read(args, family->options, &ctx->settings);
	if (code < 0)
		goto close_ctx;
	ctx->slots = calloc(ctx->peers, sizeof(*ctx->slots));
	ctx->up = calloc(ctx->peers, sizeof(struct cadge_chan *));
	ctx->pollfds = calloc(ctx->peers + GUESTS_MAX + 1, sizeof(*ctx->pollfds));
	if (!ctx->slots || !ctx->up || !ctx->pollfds) {
		code = sock_refuse(args, CADGE_E_MEMORY, "out of memory");
		goto close_ctx;
	}
	code = family->listen(args, &ctx->listen_fd);
	if (code < 0)
		goto close_ctx;
	if (getsockname(ctx->listen_fd, (struct sockaddr *)&bound, &bound_bytes) < 0 ||
	    sock_endpoint_write(&bound, bound_bytes, ctx->endpoint) < 0) {
		code = sock_refuse(args, CADGE_E_LIBRARY, "the listening socket has no usable name");
		goto close_ctx;
	}
	if (bound.ss_family != AF_UNIX) {
		code = sock_parse_address(args, &ctx->bind_address, &ctx->bind_address_bytes);
		if (code < 0)
			goto close_ctx;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
close_ctx:
	sock_session_close(ctx);
	return code;
}

void sock_session_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const bool net = ctx->place == CADGE_PLACE_NET;

	*limits_out = (struct cadge_limits){
		.bytes = sizeof(*limits_out),
		.caps = ctx->family->caps & ~(net ? CADGE_CAP_HOST : CADGE_CAP_NET),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = SOCK_IOV_MAX,
		.wire_overhead_bytes = SOCK_HEADER_BYTES,
		.short_bytes_max = SOCK_SHORT_BYTES_MAX < ctx->message_bytes_max ? SOCK_SHORT_BYTES_MAX
										   : ctx->message_bytes_max,
		.short_path = "shared receive block",
		.long_path = "receive block of its own",
	};
}

int sock_session_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct sock_blob mine = {.slot = peer};

	if (peer >= ctx->peers || *bytes_inout < SOCK_BLOB_BYTES)
		return CADGE_E_ARGUMENT;
	if (sock_nonce(&mine.nonce) < 0)
		return CADGE_E_LIBRARY;
	memcpy(mine.endpoint, ctx->endpoint, SOCK_ENDPOINT_BYTES);
	ctx->slots[peer].given = true;
	ctx->slots[peer].nonce = mine.nonce;
	sock_blob_write(&mine, blob);
	*bytes_inout = SOCK_BLOB_BYTES;
	return CADGE_DONE;
}

/* A socket on its way to the peer. DONE: connected or connecting; BUSY: the peer's backlog is full now. */
static int dial(struct cadge_chan *chan)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct sockaddr_storage to;
	socklen_t to_bytes;
	int code = sock_endpoint_read(chan->theirs.endpoint, &to, &to_bytes);

	if (code < 0)
		return code;
	chan->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (chan->fd < 0)
		return sock_code(errno);
	code = ctx->family->tune(&ctx->settings, chan->fd);
	if (code == CADGE_DONE && ctx->bind_address_bytes &&
	    bind(chan->fd, (const struct sockaddr *)&ctx->bind_address, ctx->bind_address_bytes) < 0)
		code = sock_code(errno);
	if (code == CADGE_DONE && connect(chan->fd, (const struct sockaddr *)&to, to_bytes) < 0 && errno != EINPROGRESS)
		code = errno == EAGAIN ? CADGE_BUSY : CADGE_E_DOWN;
	if (code != CADGE_DONE) {
		close(chan->fd);
		chan->fd = -1;
	}
	return code;
}

int sock_session_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	struct cadge_chan *chan;
	struct sock_blob theirs;
	int order, code;

	if (peer >= ctx->peers || !ctx->slots[peer].given || ctx->slots[peer].chan ||
	    sock_blob_read(blob, bytes, &theirs) < 0)
		return CADGE_E_ARGUMENT;
	order = memcmp(ctx->endpoint, theirs.endpoint, SOCK_ENDPOINT_BYTES);
	if (order == 0)
		return CADGE_E_UNSUPPORTED;
	chan = calloc(1, sizeof(*chan));
	if (!chan)
		return CADGE_E_MEMORY;
	*chan = (struct cadge_chan){.ctx = ctx, .peer = peer, .fd = -1, .theirs = theirs, .state = CHAN_EXPECTING};
	if (order < 0) {
		code = dial(chan);
		if (code < 0 && code != CADGE_E_DOWN) {
			free(chan);
			return code;
		}
		chan->state = code == CADGE_E_DOWN ? CHAN_FAILED : CHAN_DIALLING;
	}
	ctx->slots[peer].chan = chan;
	ctx->unsettled++;
	*chan_out = chan;
	return CADGE_DONE;
}

static void leave_up(struct cadge_ctx *ctx, const struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < ctx->up_count; i++)
		if (ctx->up[i] == chan)
			ctx->up[i] = ctx->up[--ctx->up_count];
}

int sock_session_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->state == CHAN_UP)
		leave_up(ctx, chan);
	else if (chan->state != CHAN_DOWN)
		ctx->unsettled--;
	sock_stream_free(&chan->stream);
	if (chan->fd >= 0)
		close(chan->fd);
	ctx->slots[chan->peer].chan = NULL;
	ctx->slots[chan->peer].given = false;
	free(chan);
	return CADGE_DONE;
}

/* ---- the meeting of peers ---- */

static int go_down(struct cadge_chan *chan, struct cadge_sink *sink, int code)
{
	struct cadge_ctx *ctx = chan->ctx;
	int events = 1;

	if (chan->state == CHAN_UP)
		leave_up(ctx, chan);
	else
		ctx->unsettled--;
	chan->state = CHAN_DOWN;
	chan->stream.broken = true;
	events += sock_stream_abandon(&chan->stream, sink);
	if (chan->fd >= 0)
		close(chan->fd);
	chan->fd = -1;
	sink->down(sink, chan->peer, code);
	return events;
}

static int go_up(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_ctx *ctx = chan->ctx;
	const struct timeval timeout = {.tv_usec = (suseconds_t)(RECEIVE_TIMEOUT_NS / 1000)};
	int flags;

	/* Blocking contexts sleep in recv itself, see wait; every other call says MSG_DONTWAIT. */
	if (ctx->wait_mode == CADGE_WAIT_BLOCK) {
		flags = fcntl(chan->fd, F_GETFL);
		if (flags < 0 || fcntl(chan->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
		    setsockopt(chan->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
			return go_down(chan, sink, CADGE_E_DOWN);
	}
	if (sock_stream_init(&chan->stream, chan->fd, chan->peer, ctx->depth, ctx->message_bytes_max, &ctx->blocks) < 0)
		return go_down(chan, sink, CADGE_E_MEMORY);
	chan->state = CHAN_UP;
	ctx->unsettled--;
	ctx->up[ctx->up_count++] = chan;
	sink->up(sink, chan->peer);
	return 1;
}

static void write_hello(unsigned char hello[HELLO_BYTES], uint32_t magic, const struct sock_blob *theirs)
{
	cadge_store32(hello, magic);
	cadge_store32(hello + 4, theirs->slot);
	cadge_store64(hello + 8, theirs->nonce);
}

/* Reads on at a hello or welcome: 1 it is whole, 0 not yet, -1 the peer is gone. */
static int read_hello(int fd, unsigned char hello[HELLO_BYTES], size_t *bytes_inout)
{
	ssize_t got = recv(fd, hello + *bytes_inout, HELLO_BYTES - *bytes_inout, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	*bytes_inout += (size_t)got;
	return got == 0 ? -1 : *bytes_inout == HELLO_BYTES;
}

static int settle_dialling(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct pollfd pollfd = {.fd = chan->fd, .events = POLLOUT};
	unsigned char hello[HELLO_BYTES];
	int error = 0, code;
	socklen_t error_bytes = sizeof(error);

	if (chan->fd < 0) {
		code = dial(chan);
		return code < 0 ? go_down(chan, sink, code) : 0;
	}
	if (poll(&pollfd, 1, 0) <= 0)
		return 0;
	if (getsockopt(chan->fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) < 0 || error)
		return go_down(chan, sink, CADGE_E_DOWN);
	write_hello(hello, hello_magic, &chan->theirs);
	if (send(chan->fd, hello, HELLO_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) != HELLO_BYTES)
		return go_down(chan, sink, CADGE_E_DOWN);
	chan->state = CHAN_GREETING;
	return 0;
}

static int settle_greeting(struct cadge_chan *chan, struct cadge_sink *sink)
{
	int whole = read_hello(chan->fd, chan->welcome, &chan->welcome_bytes);

	if (whole == 0)
		return 0;
	if (whole < 0 || cadge_load32(chan->welcome) != welcome_magic ||
	    cadge_load64(chan->welcome + 8) != chan->ctx->slots[chan->peer].nonce)
		return go_down(chan, sink, CADGE_E_DOWN);
	return go_up(chan, sink);
}

/* The channel whose peer sent this hello; *stranger_out when no address of ours was given to it. */
static struct cadge_chan *find_guest(struct cadge_ctx *ctx, const struct guest *guest, bool *stranger_out)
{
	const uint32_t peer = cadge_load32(guest->hello + 4);

	*stranger_out = cadge_load32(guest->hello) != hello_magic || peer >= ctx->peers || !ctx->slots[peer].given ||
			cadge_load64(guest->hello + 8) != ctx->slots[peer].nonce;
	if (*stranger_out || !ctx->slots[peer].chan || ctx->slots[peer].chan->state != CHAN_EXPECTING)
		return NULL;
	return ctx->slots[peer].chan;
}

static void drop_guest(struct cadge_ctx *ctx, uint32_t at, bool close_too)
{
	if (close_too)
		close(ctx->guests[at].fd);
	memmove(&ctx->guests[at], &ctx->guests[at + 1], (--ctx->guest_count - at) * sizeof(*ctx->guests));
}

static int welcome_guests(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	unsigned char welcome[HELLO_BYTES];
	int events = 0, fd, whole;

	while ((fd = accept4(ctx->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (ctx->guest_count == GUESTS_MAX)
			drop_guest(ctx, 0, true);
		ctx->guests[ctx->guest_count++] = (struct guest){.fd = fd};
	}
	for (uint32_t i = 0; i < ctx->guest_count;) {
		struct guest *guest = &ctx->guests[i];
		struct cadge_chan *chan;
		bool stranger;

		whole = guest->hello_bytes == HELLO_BYTES ? 1 : read_hello(guest->fd, guest->hello, &guest->hello_bytes);
		chan = whole > 0 ? find_guest(ctx, guest, &stranger) : NULL;
		if (whole < 0 || (whole > 0 && stranger)) {
			drop_guest(ctx, i, true);
			continue;
		}
		if (!chan) {
			i++;
			continue;
		}
		chan->fd = guest->fd;
		drop_guest(ctx, i, false);
		write_hello(welcome, welcome_magic, &chan->theirs);
		if (ctx->family->tune(&ctx->settings, chan->fd) < 0 ||
		    send(chan->fd, welcome, HELLO_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) != HELLO_BYTES)
			events += go_down(chan, sink, CADGE_E_DOWN);
		else
			events += go_up(chan, sink);
	}
	return events;
}

static int settle(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	bool expecting = false;
	int events = 0;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = ctx->slots[i].chan;

		if (!chan)
			continue;
		if (chan->state == CHAN_FAILED)
			events += go_down(chan, sink, CADGE_E_DOWN);
		else if (chan->state == CHAN_DIALLING)
			events += settle_dialling(chan, sink);
		else if (chan->state == CHAN_GREETING)
			events += settle_greeting(chan, sink);
		expecting |= chan->state == CHAN_EXPECTING;
	}
	return expecting ? events + welcome_guests(ctx, sink) : events;
}

/* ---- operation ---- */

int sock_session_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	(void)flags;
	if (chan->state != CHAN_UP)
		return chan->state == CHAN_DOWN || chan->state == CHAN_FAILED ? CADGE_E_DOWN : CADGE_BUSY;
	return sock_stream_post(&chan->stream, iov, count, token);
}

/* One read at most, and none while whole messages lie in the block. */
static int poll_chan(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct sock_stream *stream = &chan->stream;
	int events = 0, code;

	if (stream->unsent_count)
		events += sock_stream_drain(stream, sink);
	if (!sock_stream_ready(stream)) {
		code = sock_stream_fill(stream, MSG_DONTWAIT);
		if (code < 0)
			return events + go_down(chan, sink, CADGE_E_MEMORY);
		if (code == 0 && stream->broken)
			return events + go_down(chan, sink, CADGE_E_DOWN);
		if (code == 0)
			return events;
	}
	code = sock_stream_deliver(stream, sink, MESSAGES_A_POLL);
	return code < 0 ? events + go_down(chan, sink, CADGE_E_DOWN) : events + code;
}

/* Fills pollfds with the channels that are up, in their order. */
static void watch_up(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->up_count; i++)
		ctx->pollfds[i] = (struct pollfd){
			.fd = ctx->up[i]->fd,
			.events = (short)(POLLIN | (ctx->up[i]->stream.unsent_count ? POLLOUT : 0)),
		};
}

static int poll_many(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;

	watch_up(ctx);
	if (poll(ctx->pollfds, ctx->up_count, 0) < 0 && errno != EINTR)
		return CADGE_E_LIBRARY;
	/* Backwards, since a channel that goes down takes the last one's place. */
	for (uint32_t i = ctx->up_count; i-- > 0;)
		if (ctx->pollfds[i].revents || ctx->up[i]->stream.broken || sock_stream_ready(&ctx->up[i]->stream))
			events += poll_chan(ctx->up[i], sink);
	return events;
}

int sock_session_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = ctx->unsettled ? settle(ctx, sink) : 0;

	if (ctx->up_count > FEW_PEERS) {
		int code = poll_many(ctx, sink);

		return code < 0 ? code : events + code;
	}
	for (uint32_t i = ctx->up_count; i-- > 0;)
		events += poll_chan(ctx->up[i], sink);
	return events;
}

static struct timespec to_timespec(uint64_t ns)
{
	const uint64_t most_ns = UINT64_C(3600) * 1000000000;

	if (ns > most_ns)
		ns = most_ns;
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

/* Adds what the channels that are not up wait for. Returns the new number of pollfds. */
static nfds_t watch_unsettled(struct cadge_ctx *ctx, nfds_t count, uint64_t *timeout_ns_inout)
{
	bool expecting = false;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		const struct cadge_chan *chan = ctx->slots[i].chan;

		if (!chan || chan->state == CHAN_UP || chan->state == CHAN_DOWN)
			continue;
		expecting |= chan->state == CHAN_EXPECTING;
		if (chan->state == CHAN_FAILED)
			*timeout_ns_inout = 0;
		else if (chan->state == CHAN_DIALLING && chan->fd < 0 && *timeout_ns_inout > 1000000)
			*timeout_ns_inout = 1000000; /* the peer's backlog is full: try again */
		else if (chan->fd >= 0)
			ctx->pollfds[count++] = (struct pollfd){
				.fd = chan->fd, .events = chan->state == CHAN_DIALLING ? POLLOUT : POLLIN};
	}
	if (!expecting)
		return count;
	ctx->pollfds[count++] = (struct pollfd){.fd = ctx->listen_fd, .events = POLLIN};
	for (uint32_t i = 0; i < ctx->guest_count; i++)
		if (ctx->guests[i].hello_bytes < HELLO_BYTES)
			ctx->pollfds[count++] = (struct pollfd){.fd = ctx->guests[i].fd, .events = POLLIN};
	return count;
}

/*
 * With one peer and nothing else to look for, sleeps in recv itself: a message then costs one system call and not two.
 * Its timeout counts in the scheduler's ticks, so the last part of a wait is left to ppoll.
 */
int sock_session_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	nfds_t count = ctx->up_count;
	struct timespec timeout;

	for (uint32_t i = 0; i < ctx->up_count; i++)
		if (sock_stream_ready(&ctx->up[i]->stream) || ctx->up[i]->stream.broken)
			return CADGE_DONE;
	while (timeout_ns >= 2 * RECEIVE_TIMEOUT_NS && count == 1 && !ctx->unsettled &&
	       ctx->wait_mode == CADGE_WAIT_BLOCK && !ctx->up[0]->stream.unsent_count) {
		const int code = sock_stream_fill(&ctx->up[0]->stream, 0);

		if (code || ctx->up[0]->stream.broken)
			return code < 0 ? code : CADGE_DONE;
		timeout_ns -= RECEIVE_TIMEOUT_NS;
	}
	watch_up(ctx);
	if (ctx->unsettled)
		count = watch_unsettled(ctx, count, &timeout_ns);
	timeout = to_timespec(timeout_ns);
	if (ppoll(ctx->pollfds, count, &timeout, NULL) < 0 && errno != EINTR)
		return CADGE_E_LIBRARY;
	return CADGE_DONE;
}

void sock_session_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	sock_block_release(&ctx->blocks, lend);
}

int sock_session_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	int code;

	if (chan->state != CHAN_UP)
		return chan->state == CHAN_DOWN ? CADGE_E_DOWN : CADGE_BUSY;
	code = chan->ctx->family->describe(chan->fd, chan->ctx->place, chan->ctx->device, &path);
	if (code == CADGE_DONE)
		*path_out = path;
	return code;
}

void sock_session_library(struct cadge_library *library_out)
{
	*library_out = (struct cadge_library){.name = "Linux sockets", .stated_version = sock_kernel_release()};
}

void sock_session_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	(void)ctx;
	*semantics_out = (struct cadge_semantics){.bytes = sizeof(*semantics_out), .message = CADGE_PROGRESS_LIBRARY};
}
