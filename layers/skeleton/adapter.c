/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skeleton-unix: what a message layer needs, and no more. Its library is UNIX sockets: a channel is one on each
 * side. The kernel keeps datagrams whole, in order, and says EAGAIN when there is no room.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "kit/adapter.h"
#include "kit/bytes.h"

enum { PEERS_MAX = 256, IOV_ENTRIES = 8, MESSAGE_BYTES = 65536 };

/* Claim what is true, and no more: conformance tries each of these, and that all others are refused. */
#define CAPS                                                                                                 \
	(CADGE_CAP_HOST | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |                  \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT)

/* The contract leaves these two types to the adapter; they never leave it. */
struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_state state; /* greeted: it is connected */
	uint32_t peer;            /* the caller's number for it */
	int fd;                   /* -1: no address was asked for */
	bool full;                /* a post was BUSY */
};

struct cadge_ctx {
	uint32_t peers;
	struct cadge_limits limits;
	unsigned char message[MESSAGE_BYTES]; /* the one that the sink looks at */
	struct cadge_chan chans[];
};

/* May block. All that can be refused is refused here, with a sentence, not later in the path. */
static int skeleton_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	const int code = cadge_open_check(args, CAPS, NULL, PEERS_MAX);
	struct cadge_ctx *ctx;

	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory for %u peers", args->peers_max);
	ctx->peers = args->peers_max;
	ctx->limits = cadge_limits_default(args, CAPS, MESSAGE_BYTES, IOV_ENTRIES, "one datagram");
	for (uint32_t i = 0; i < ctx->peers; i++)
		ctx->chans[i] = (struct cadge_chan){.ctx = ctx, .peer = i, .fd = -1};
	*ctx_out = ctx;
	return CADGE_DONE;
}

static int skeleton_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->fd >= 0)
		close(chan->fd);
	*chan = (struct cadge_chan){.ctx = ctx, .peer = chan->peer, .fd = -1};
	return CADGE_DONE;
}

/* Legal at any time, and for NULL. It never waits for a peer, which may be dead. */
static void skeleton_close(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; ctx && i < ctx->peers; i++)
		skeleton_disconnect(ctx, &ctx->chans[i]);
	free(ctx);
}

static void skeleton_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	cadge_fill(limits_out, &ctx->limits, sizeof(ctx->limits));
}

/* What the caller carries to the peer, whose connect reads it: the name of a new socket for that peer alone. */
static int skeleton_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX}; /* no file: its path begins with a zero byte */
	struct cadge_chan *chan = &ctx->chans[peer];
	uint64_t nonce; /* another name for each life of a channel: what comes late finds nobody */

	if (peer >= ctx->peers || chan->state.greeted || *bytes_inout < sizeof(name))
		return CADGE_E_ARGUMENT;
	skeleton_disconnect(ctx, chan);
	chan->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (chan->fd < 0 || cadge_nonce(&nonce) < 0)
		return CADGE_E_LIBRARY;
	memcpy(name.sun_path + 1, &nonce, sizeof(nonce));
	memcpy(blob, &name, sizeof(name));
	*bytes_inout = sizeof(name);
	return bind(chan->fd, blob, sizeof(name)) < 0 ? CADGE_E_LIBRARY : CADGE_DONE;
}

/* Both sides call it, in any order, and it waits for nobody. An empty datagram says that we are there. */
static int skeleton_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			    struct cadge_chan **chan_out)
{
	struct cadge_chan *chan = &ctx->chans[peer];

	if (peer >= ctx->peers || chan->fd < 0 || chan->state.greeted || bytes != sizeof(struct sockaddr_un))
		return CADGE_E_ARGUMENT;
	if (connect(chan->fd, blob, (socklen_t)bytes) < 0 || send(chan->fd, NULL, 0, MSG_NOSIGNAL) < 0)
		return CADGE_E_DOWN;
	chan->state.greeted = true;
	*chan_out = chan;
	return CADGE_DONE;
}

/*
 * The path that is measured: the adapter allocates nothing, reads no clock, logs nothing and never blocks. What the library
 * allocates there for itself is measured with it.
 */
static int skeleton_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
			 uint64_t token)
{
	const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count};
	size_t bytes;
	const int code =
		cadge_iov_check(iov, count, IOV_ENTRIES, chan->ctx->limits.message_bytes_max, &bytes);

	(void)flags, (void)token; /* MORE means nothing without BATCH; nothing is ever QUEUED, so no event */
	if (code != CADGE_DONE)
		return code;
	if (!chan->state.up || chan->state.broken)
		return cadge_usable(&chan->state);
	if (sendmsg(chan->fd, &message, MSG_NOSIGNAL) >= 0)
		return CADGE_DONE; /* the kernel has a copy: the buffers are the caller's again */
	chan->full = errno == EAGAIN;
	chan->state.broken = !chan->full; /* the next poll reports it */
	return chan->full ? CADGE_BUSY : CADGE_E_DOWN;
}

/* Serves all channels, one message each. The number of events counts: a caller sleeps where it is 0. */
static int skeleton_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];
		ssize_t bytes = chan->state.greeted ? recv(chan->fd, ctx->message, MESSAGE_BYTES, 0) : -1;

		if (bytes >= 0 && chan->state.up && ++events)
			sink->recv(sink, i, ctx->message, (size_t)bytes, NULL);
		else if (bytes >= 0) /* the peer's greeting */
			events += cadge_report_up(&chan->state, sink, i);
		events += cadge_report_down(&chan->state, sink, i);
	}
	return events;
}

/* The only slot that may sleep. What makes poll, or a post that was BUSY, worth another try has to end it. */
static int skeleton_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct pollfd pollfds[PEERS_MAX];

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		pollfds[i] = (struct pollfd){chan->fd, chan->full ? POLLIN | POLLOUT : POLLIN, 0};
		chan->full = false; /* whoever still wants to post finds out anew */
		timeout_ns = chan->state.broken && !chan->state.reported ? 0 : timeout_ns;
	}
	return cadge_sleep(pollfds, ctx->peers, timeout_ns);
}

/* What is really used: not what was asked for. */
static int skeleton_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	static const struct cadge_path used = {0, CADGE_MEDIUM_LOOPBACK, 1, "this host", "datagrams", "", ""};

	cadge_fill(path_out, &used, sizeof(used));
	return cadge_usable(&chan->state);
}

/* Legal before open. A library says its version itself, and `symbol` is one of its functions; the kernel has neither. */
static void skeleton_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {0, "UNIX sockets", cadge_kernel_release(), NULL};

	cadge_fill(library_out, &library, sizeof(library));
}

/* How this context works: as found by test, not as a manual claims. */
static void skeleton_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits how = cadge_traits_default(ctx->limits.caps, CADGE_PROTECT_KERNEL_OR_NIC);

	cadge_fill(traits_out, &how, sizeof(how));
}

/* clang-format off */
static const struct cadge_layer skeleton_layer = {
	.abi = CADGE_ABI, .bytes = sizeof(skeleton_layer), .caps = CAPS,
	.name = "skeleton-unix", .style = "skeleton", .substrate = "unix",
	.open = skeleton_open, .close = skeleton_close, .limits = skeleton_limits, .traits = skeleton_traits,
	.address = skeleton_address, .connect = skeleton_connect, .disconnect = skeleton_disconnect,
	.post = skeleton_post, .poll = skeleton_poll, .wait = skeleton_wait, .library = skeleton_library,
	.describe_path = skeleton_describe_path, .semantics = cadge_semantics_of_messages,
};
/* clang-format on */
/* The one symbol that the module exports. */
const struct cadge_layer *cadge_layer_entry(void)
{
	return &skeleton_layer;
}
