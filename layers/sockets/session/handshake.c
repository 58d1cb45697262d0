/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of two peers of a session. On the wire: hello, from the dialler, is magic (4 bytes), the slot and the
 * nonce of the listener's blob (4 and 8); welcome, from the listener, the same of the dialler's blob.
 * Messages follow at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit/bytes.h"
#include "sockets/session/state.h"

static const uint32_t hello_magic = 0x314f4c48, welcome_magic = 0x31434c57;

int sock_handshake_dial(struct cadge_chan *chan)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct sockaddr_storage to;
	socklen_t to_bytes;
	int code = sock_endpoint_read(chan->theirs.endpoint, &to, &to_bytes);

	if (code < 0)
		return code;
	chan->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (chan->fd < 0) {
		chan->stream.error = errno;
		return cadge_errno_code(errno);
	}
	code = ctx->family->tune(&ctx->settings, chan->fd);
	if (code == CADGE_DONE && ctx->bind_address_bytes &&
	    bind(chan->fd, (const struct sockaddr *)&ctx->bind_address, ctx->bind_address_bytes) < 0)
		code = cadge_errno_code(errno);
	if (code == CADGE_DONE && connect(chan->fd, (const struct sockaddr *)&to, to_bytes) < 0 &&
	    errno != EINPROGRESS)
		code = errno == EAGAIN ? CADGE_BUSY : CADGE_E_DOWN;
	if (code != CADGE_DONE) {
		close(chan->fd);
		chan->fd = -1;
	}
	return code;
}

void sock_handshake_leave(struct cadge_ctx *ctx, const struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < ctx->up_count; i++)
		if (ctx->up[i] == chan)
			ctx->up[i] = ctx->up[--ctx->up_count];
}

int sock_handshake_end(struct cadge_chan *chan, struct cadge_sink *sink, int code)
{
	struct cadge_ctx *ctx = chan->ctx;
	int events = 1;

	if (chan->state == CHAN_UP)
		sock_handshake_leave(ctx, chan);
	else
		ctx->unsettled--;
	snprintf(ctx->why, sizeof(ctx->why), "peer %u: %s", chan->peer,
		 chan->stream.error ? strerror(chan->stream.error) : "the connection was closed or refused");
	chan->state = CHAN_DOWN;
	chan->stream.broken = true;
	events += ctx->family->stop(chan, sink);
	if (chan->fd >= 0)
		close(chan->fd);
	chan->fd = -1;
	sink->down(sink, chan->peer, code);
	return events;
}

static int go_up(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_ctx *ctx = chan->ctx;
	const int code = ctx->family->start(chan);

	if (code < 0)
		return sock_handshake_end(chan, sink, code);
	chan->state = CHAN_UP;
	ctx->unsettled--;
	ctx->epoch++;
	ctx->up[ctx->up_count++] = chan;
	sink->up(sink, chan->peer);
	return 1;
}

static void write_hello(unsigned char hello[SOCK_HELLO_BYTES], uint32_t magic, const struct sock_blob *theirs)
{
	cadge_store32(hello, magic);
	cadge_store32(hello + 4, theirs->slot);
	cadge_store64(hello + 8, theirs->nonce);
}

/* Reads on at a hello or welcome: 1 it is whole, 0 not yet, -1 the peer is gone. */
static int read_hello(int fd, unsigned char hello[SOCK_HELLO_BYTES], size_t *bytes_inout)
{
	ssize_t got = recv(fd, hello + *bytes_inout, SOCK_HELLO_BYTES - *bytes_inout, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	*bytes_inout += (size_t)got;
	return got == 0 ? -1 : *bytes_inout == SOCK_HELLO_BYTES;
}

static int settle_dialling(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct pollfd pollfd = {.fd = chan->fd, .events = POLLOUT};
	unsigned char hello[SOCK_HELLO_BYTES];
	int error = 0, code;
	socklen_t error_bytes = sizeof(error);

	if (chan->fd < 0) {
		code = sock_handshake_dial(chan);
		return code < 0 ? sock_handshake_end(chan, sink, code) : 0;
	}
	if (poll(&pollfd, 1, 0) <= 0)
		return 0;
	if (getsockopt(chan->fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) < 0 || error)
		return sock_handshake_end(chan, sink, CADGE_E_DOWN);
	write_hello(hello, hello_magic, &chan->theirs);
	if (send(chan->fd, hello, SOCK_HELLO_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) != SOCK_HELLO_BYTES)
		return sock_handshake_end(chan, sink, CADGE_E_DOWN);
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
		return sock_handshake_end(chan, sink, CADGE_E_DOWN);
	return go_up(chan, sink);
}

/* The channel whose peer sent this hello; *unknown_out when no address of ours was given to it. */
static struct cadge_chan *find_sender(struct cadge_ctx *ctx, const struct accepted_peer *accepted_peer,
				      bool *unknown_out)
{
	const uint32_t peer = cadge_load32(accepted_peer->hello + 4);

	*unknown_out = cadge_load32(accepted_peer->hello) != hello_magic || peer >= ctx->peers ||
		       !ctx->slots[peer].given ||
		       cadge_load64(accepted_peer->hello + 8) != ctx->slots[peer].nonce;
	if (*unknown_out || !ctx->slots[peer].chan || ctx->slots[peer].chan->state != CHAN_EXPECTING)
		return NULL;
	return ctx->slots[peer].chan;
}

static void drop_accepted(struct cadge_ctx *ctx, uint32_t at, bool close_too)
{
	if (close_too)
		close(ctx->accepted[at].fd);
	memmove(&ctx->accepted[at], &ctx->accepted[at + 1],
		(--ctx->accepted_count - at) * sizeof(*ctx->accepted));
}

/*
 * Somebody is there who cannot be taken for want of descriptors or memory. Whoever sleeps until somebody comes would be
 * woken at once, again and again, so the channels that expect a peer end here, with that as the reason.
 */
static int reject_all(struct cadge_ctx *ctx, struct cadge_sink *sink, int error)
{
	struct pollfd pollfd = {.fd = ctx->listen_fd, .events = POLLIN};
	int events = 0;

	/* accept says so without anybody there as well */
	if (cadge_errno_code(error) != CADGE_E_MEMORY || poll(&pollfd, 1, 0) <= 0)
		return 0;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = ctx->slots[i].chan;

		if (!chan || chan->state != CHAN_EXPECTING)
			continue;
		chan->stream.error = error;
		events += sock_handshake_end(chan, sink, CADGE_E_MEMORY);
	}
	return events;
}

static int handle_accepted(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	unsigned char welcome[SOCK_HELLO_BYTES];
	int events = 0, fd, whole, error;

	while ((fd = accept4(ctx->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (ctx->accepted_count == sock_accepted_max(ctx))
			drop_accepted(ctx, 0, true);
		ctx->accepted[ctx->accepted_count++] = (struct accepted_peer){.fd = fd};
	}
	error = errno;
	for (uint32_t i = 0; i < ctx->accepted_count;) {
		struct accepted_peer *accepted_peer = &ctx->accepted[i];
		struct cadge_chan *chan;
		bool unknown;

		whole = accepted_peer->hello_bytes == SOCK_HELLO_BYTES
				? 1
				: read_hello(accepted_peer->fd, accepted_peer->hello,
					     &accepted_peer->hello_bytes);
		chan = whole > 0 ? find_sender(ctx, accepted_peer, &unknown) : NULL;
		if (whole < 0 || (whole > 0 && unknown)) {
			drop_accepted(ctx, i, true);
			continue;
		}
		if (!chan) {
			i++;
			continue;
		}
		chan->fd = accepted_peer->fd;
		drop_accepted(ctx, i, false);
		write_hello(welcome, welcome_magic, &chan->theirs);
		if (ctx->family->tune(&ctx->settings, chan->fd) < 0 ||
		    send(chan->fd, welcome, SOCK_HELLO_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			    SOCK_HELLO_BYTES)
			events += sock_handshake_end(chan, sink, CADGE_E_DOWN);
		else
			events += go_up(chan, sink);
	}
	return events + reject_all(ctx, sink, error);
}

int sock_handshake_settle(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	bool expecting = false;
	int events = 0;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = ctx->slots[i].chan;

		if (!chan)
			continue;
		if (chan->state == CHAN_FAILED)
			events += sock_handshake_end(chan, sink, CADGE_E_DOWN);
		else if (chan->state == CHAN_DIALLING)
			events += settle_dialling(chan, sink);
		else if (chan->state == CHAN_GREETING)
			events += settle_greeting(chan, sink);
		expecting |= chan->state == CHAN_EXPECTING;
	}
	return expecting ? events + handle_accepted(ctx, sink) : events;
}

nfds_t sock_handshake_watch(struct cadge_ctx *ctx, nfds_t count, uint64_t *timeout_ns_inout)
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
	for (uint32_t i = 0; i < ctx->accepted_count; i++)
		if (ctx->accepted[i].hello_bytes < SOCK_HELLO_BYTES)
			ctx->pollfds[count++] = (struct pollfd){.fd = ctx->accepted[i].fd, .events = POLLIN};
	return count;
}
