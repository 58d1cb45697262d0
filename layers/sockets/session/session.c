/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "sockets/session/state.h"

enum {
	FEW_PEERS = 4, /* up to here each socket is tried; above, poll(2) picks those that have something */
	MESSAGES_A_POLL = 64, /* of one peer */
};

void sock_session_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->slots && i < ctx->peers; i++)
		if (ctx->slots[i].chan)
			sock_session_disconnect(ctx, ctx->slots[i].chan);
	while (ctx->accepted_count)
		close(ctx->accepted[--ctx->accepted_count].fd);
	if (ctx->listen_fd >= 0)
		close(ctx->listen_fd);
	sock_blocks_free(&ctx->blocks);
	cadge_watch_close(&ctx->watch);
	free(ctx->accepted);
	free(ctx->pollfds);
	free(ctx->up);
	free(ctx->slots);
	free(ctx);
}

int sock_session_open(const struct sock_family *family, const struct cadge_open_args *args,
		      struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	struct sockaddr_storage bound;
	socklen_t bound_bytes = sizeof(bound);
	int code = cadge_open_check(args, family->caps, family->options, SOCK_PEERS_MAX);

	if (code < 0)
		return code;
	ctx = calloc(1, family->ctx_bytes);
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->family = family;
	ctx->listen_fd = ctx->watch.fd = -1;
	ctx->place = args->place;
	ctx->wait_mode = args->wait_mode;
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, SOCK_DEPTH_MAX);
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, SOCK_MESSAGE_BYTES_MAX);
	snprintf(ctx->device, sizeof(ctx->device), "%s", args->device);
	code = sock_settings_read(args, &ctx->settings);
	if (code < 0)
		goto close_ctx;
	ctx->slots = calloc(ctx->peers, sizeof(*ctx->slots));
	ctx->up = calloc(ctx->peers, sizeof(struct cadge_chan *));
	ctx->accepted = calloc(sock_accepted_max(ctx), sizeof(*ctx->accepted));
	ctx->pollfds = calloc(sock_pollfds_max(ctx), sizeof(*ctx->pollfds));
	if (!ctx->slots || !ctx->up || !ctx->accepted || !ctx->pollfds) {
		code = cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
		goto close_ctx;
	}
	code = family->listen(args, &ctx->listen_fd);
	if (code < 0)
		goto close_ctx;
	if (getsockname(ctx->listen_fd, (struct sockaddr *)&bound, &bound_bytes) < 0 ||
	    sock_endpoint_write(&bound, bound_bytes, ctx->endpoint) < 0) {
		code = cadge_refuse(args, CADGE_E_LIBRARY, "the listening socket has no usable name");
		goto close_ctx;
	}
	if (bound.ss_family != AF_UNIX) {
		code = cadge_parse_address(args, &ctx->bind_address, &ctx->bind_address_bytes);
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
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(ctx->family->caps, ctx->place, ctx->wait_mode),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = SOCK_IOV_MAX,
		.wire_overhead_bytes = SOCK_LENGTH_BYTES,
		.short_bytes_max = cadge_least(ctx->message_bytes_max, SOCK_SHORT_BYTES_MAX),
		.short_path = "shared receive block",
		.long_path = "receive block of its own",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

int sock_session_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct sock_blob mine = {.slot = peer};

	if (peer >= ctx->peers || *bytes_inout < SOCK_BLOB_BYTES)
		return CADGE_E_ARGUMENT;
	if (cadge_nonce(&mine.nonce) < 0)
		return CADGE_E_LIBRARY;
	memcpy(mine.endpoint, ctx->endpoint, SOCK_ENDPOINT_BYTES);
	ctx->slots[peer].given = true;
	ctx->slots[peer].nonce = mine.nonce;
	sock_blob_write(&mine, blob);
	*bytes_inout = SOCK_BLOB_BYTES;
	return CADGE_DONE;
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
	chan = calloc(1, ctx->family->chan_bytes);
	if (!chan)
		return CADGE_E_MEMORY;
	*chan = (struct cadge_chan){
		.ctx = ctx, .peer = peer, .fd = -1, .theirs = theirs, .state = CHAN_EXPECTING};
	if (order < 0) {
		code = sock_handshake_dial(chan);
		if (code < 0 && code != CADGE_E_DOWN) {
			free(chan);
			return code;
		}
		chan->state = code == CADGE_E_DOWN ? CHAN_FAILED : CHAN_DIALLING;
	}
	ctx->slots[peer].chan = chan;
	ctx->unsettled++;
	ctx->epoch++;
	*chan_out = chan;
	return CADGE_DONE;
}

int sock_session_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->state == CHAN_UP)
		sock_handshake_leave(ctx, chan);
	else if (chan->state != CHAN_DOWN)
		ctx->unsettled--;
	ctx->family->stop(chan, NULL);
	if (chan->fd >= 0)
		close(chan->fd);
	ctx->slots[chan->peer].chan = NULL;
	ctx->slots[chan->peer].given = false;
	free(chan);
	return CADGE_DONE;
}

int sock_session_start(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;
	const struct timeval timeout = {.tv_usec = (suseconds_t)(SOCK_RECEIVE_TIMEOUT_NS / 1000)};
	int flags;

	/* Blocking contexts sleep in recv itself, see wait; every other call says MSG_DONTWAIT. */
	if (ctx->wait_mode == CADGE_WAIT_BLOCK) {
		flags = fcntl(chan->fd, F_GETFL);
		if (flags < 0 || fcntl(chan->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
		    setsockopt(chan->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
			return CADGE_E_DOWN;
	}
	return sock_stream_init(&chan->stream, chan->fd, chan->peer, ctx->depth, ctx->message_bytes_max,
				&ctx->blocks);
}

int sock_session_stop(struct cadge_chan *chan, struct cadge_sink *sink)
{
	if (sink)
		return sock_stream_abandon(&chan->stream, sink);
	sock_stream_free(&chan->stream);
	return 0;
}

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
			return events + sock_handshake_end(chan, sink, CADGE_E_MEMORY);
		if (code == 0 && stream->broken)
			return events + sock_handshake_end(chan, sink, CADGE_E_DOWN);
		if (code == 0)
			return events;
	}
	code = sock_stream_deliver(stream, sink, MESSAGES_A_POLL);
	return code < 0 ? events + sock_handshake_end(chan, sink, CADGE_E_DOWN) : events + code;
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
		if (ctx->pollfds[i].revents || ctx->up[i]->stream.broken ||
		    sock_stream_ready(&ctx->up[i]->stream))
			events += poll_chan(ctx->up[i], sink);
	return events;
}

int sock_session_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = ctx->unsettled ? sock_handshake_settle(ctx, sink) : 0;

	if (ctx->up_count > FEW_PEERS) {
		int code = poll_many(ctx, sink);

		return code < 0 ? code : events + code;
	}
	for (uint32_t i = ctx->up_count; i-- > 0;)
		events += poll_chan(ctx->up[i], sink);
	return events;
}

static bool has_work(const struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->up_count; i++)
		if (sock_stream_ready(&ctx->up[i]->stream) || ctx->up[i]->stream.broken)
			return true;
	return false;
}

int sock_session_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	uint64_t due_ns = UINT64_MAX;
	nfds_t count = ctx->up_count;
	int code = CADGE_DONE;

	if (ctx->wait_mode != CADGE_WAIT_BLOCK)
		return CADGE_E_UNSUPPORTED;
	if (has_work(ctx))
		return CADGE_BUSY;
	watch_up(ctx);
	if (ctx->unsettled) {
		count = sock_handshake_watch(ctx, count, &due_ns);
		ctx->epoch++; /* who connects now comes and goes in poll */
	}
	if (!due_ns)
		return CADGE_BUSY;
	if (ctx->watch.fd < 0)
		code = cadge_watch_open(&ctx->watch, sock_pollfds_max(ctx));
	if (code == CADGE_DONE)
		code = cadge_watch_set(&ctx->watch, ctx->pollfds, count, ctx->epoch);
	if (code < 0)
		return code;
	*fd_out = ctx->watch.fd;
	*due_ns_out = due_ns;
	return CADGE_DONE;
}

/*
 * With one peer and nothing else to look for, sleeps in recv itself: a message then costs one system call and
 * not two. Its timeout counts in the scheduler's ticks, so the last part of a wait is left to ppoll.
 */
int sock_session_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	nfds_t count = ctx->up_count;

	if (has_work(ctx))
		return CADGE_DONE;
	while (timeout_ns >= 2 * SOCK_RECEIVE_TIMEOUT_NS && count == 1 && !ctx->unsettled &&
	       ctx->wait_mode == CADGE_WAIT_BLOCK && !ctx->up[0]->stream.unsent_count) {
		const int code = sock_stream_fill(&ctx->up[0]->stream, 0);

		if (code || ctx->up[0]->stream.broken)
			return code < 0 ? code : CADGE_DONE;
		timeout_ns -= SOCK_RECEIVE_TIMEOUT_NS;
	}
	watch_up(ctx);
	if (ctx->unsettled)
		count = sock_handshake_watch(ctx, count, &timeout_ns);
	return cadge_sleep(ctx->pollfds, count, timeout_ns);
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
		cadge_fill(path_out, &path, sizeof(path));
	return code;
}

void sock_session_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "Linux sockets",
					      .stated_version = cadge_kernel_release()};

	cadge_fill(library_out, &library, sizeof(library));
}

void sock_session_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const bool block = ctx->wait_mode == CADGE_WAIT_BLOCK;
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_KERNEL_OR_NIC,
		.control_transfer = block ? CADGE_CONTROL_INTERRUPT : CADGE_CONTROL_POLL,
		.flow = CADGE_FLOW_LIBRARY,
		.order = CADGE_ORDER_CHANNEL,
		.waker = block ? CADGE_WAKER_KERNEL : CADGE_WAKER_NONE,
		.granule_bytes = 1,
		.copies_on_send = 1,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

const char *sock_session_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}
