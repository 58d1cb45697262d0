/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets-udp: each message is one datagram, as unreliable as UDP is. Nothing is sent again: what is lost is
 * lost, and the caller's deadlines find out. Only the handshake repeats itself.
 *
 * Each peer has a socket of its own, connected to the peer's, so that the kernel drops what others send.
 * Eight bytes stand before each message: the kind (4) and a tag (4), half of the nonce that our address blob
 * gave to the peer; what arrived before the socket was connected, or comes from a stranger on the peer's own
 * port, does not know it.
 *
 * Handshake: each side sends hello until a welcome comes; who gets a hello answers welcome. A welcome proves
 * both ways.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <net/if.h>
#include <unistd.h>

#include "cadge/layer.h"
#include "kit/bytes.h"
#include "kit/greeting.h"
#include "sockets/blocks.h"
#include "sockets/endpoint.h"
#include "sockets/settings.h"

enum {
	UDP_HEADER_BYTES = 8,
	UDP_MESSAGE_BYTES_MAX = 65507 - UDP_HEADER_BYTES, /* the largest datagram of IPv4 */
	UDP_HEADERS_BELOW = 28 + UDP_HEADER_BYTES,        /* IPv4, UDP and ours, in one frame */
	UDP_IOV_MAX = 8,
	UDP_PEERS_MAX = 1024,
	UDP_MESSAGES_A_POLL = 16,
	UDP_COPY_BYTES_MAX = 1024, /* as in stream.c: up to here a copy is cheaper than sendmsg */
	UDP_DATAGRAM_ROOM = 65536,
};
/* How long a blocking recv sleeps at a time, see wait. */
#define UDP_RECEIVE_TIMEOUT_NS UINT64_C(50000000)

/* Header kinds, little-endian letters "data", "helo", "welc". */
static const uint32_t kind_data = 0x61746164, kind_hello = 0x6f6c6568, kind_welcome = 0x636c6577;

enum udp_state { UDP_UNUSED, UDP_NAMED, UDP_HANDSHAKE, UDP_UP, UDP_FAILED, UDP_DOWN };

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	enum udp_state state;
	int fd;
	uint32_t my_tag, their_tag;
	bool refused_room;              /* a post was BUSY: the next wait is for room as well */
	struct cadge_greeting greeting; /* its hellos alone: tags are of 32 random bits */
};

struct cadge_ctx {
	struct sock_settings settings;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	char device[64], address[64];
	uint16_t port_first, port_last;
	uint64_t short_bytes_max;
	uint32_t peers, depth, connected, unsettled;
	struct cadge_chan *chans;   /* by peer */
	struct cadge_chan **active; /* connected ones, in any order */
	struct pollfd *pollfds;
	struct cadge_watch watch; /* for event; made when it is first called */
	uint64_t epoch;           /* of the sockets: changes when one is connected */
	char why[128];            /* what ended the last channel that broke */
	struct sock_blocks blocks;
	struct cadge_lend *block;      /* the next datagram goes here */
	struct cadge_chan *early_chan; /* wait has read a datagram of this one into the block */
	size_t early_bytes;
	uint64_t strangers, lost_controls;
};

static const struct cadge_option udp_options[] = {
	{"send_buffer_bytes", "", "SO_SNDBUF; empty: the kernel's default."},
	{"receive_buffer_bytes", "", "SO_RCVBUF; empty: the kernel's default."},
	{0},
};

static const uint64_t udp_caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				 CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY;

static void udp_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->chans && i < ctx->peers; i++)
		if (ctx->chans[i].fd >= 0)
			close(ctx->chans[i].fd);
	sock_blocks_free(&ctx->blocks);
	cadge_watch_close(&ctx->watch);
	free(ctx->pollfds);
	free(ctx->active);
	free(ctx->chans);
	free(ctx);
}

/* The payload that still goes out in one frame, from the interface that the datagrams will leave by. */
static uint64_t one_frame_bytes(const struct cadge_ctx *ctx, int fd)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s",
		 ctx->place == CADGE_PLACE_NET ? ctx->device : "lo");
	if (ioctl(fd, SIOCGIFMTU, &request) < 0 || request.ifr_mtu <= UDP_HEADERS_BELOW)
		return 0;
	return request.ifr_mtu - UDP_HEADERS_BELOW < UDP_MESSAGE_BYTES_MAX
		       ? (uint64_t)(request.ifr_mtu - UDP_HEADERS_BELOW)
		       : UDP_MESSAGE_BYTES_MAX;
}

static int udp_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, udp_caps, udp_options, UDP_PEERS_MAX), fd;

	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->watch.fd = -1;
	ctx->place = args->place;
	ctx->wait_mode = args->wait_mode;
	ctx->peers = args->peers_max;
	ctx->depth = args->depth_max;
	ctx->port_first = args->port_first;
	ctx->port_last = args->port_last;
	snprintf(ctx->device, sizeof(ctx->device), "%s", args->device);
	snprintf(ctx->address, sizeof(ctx->address), "%s", args->address);
	code = sock_settings_read(args, &ctx->settings);
	if (code < 0)
		goto close_ctx;
	ctx->chans = calloc(ctx->peers, sizeof(*ctx->chans));
	for (uint32_t i = 0; ctx->chans && i < ctx->peers; i++)
		ctx->chans[i] = (struct cadge_chan){.ctx = ctx, .peer = i, .fd = -1};
	ctx->active = calloc(ctx->peers, sizeof(struct cadge_chan *));
	ctx->pollfds = calloc(ctx->peers, sizeof(*ctx->pollfds));
	ctx->block = sock_block_take(&ctx->blocks, UDP_DATAGRAM_ROOM);
	if (!ctx->chans || !ctx->active || !ctx->pollfds || !ctx->block) {
		code = cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
		goto close_ctx;
	}
	/*
	 * The first peer's socket is opened now, so that a wrong address or a full port range is found now.
	 */
	code = cadge_bind_in_range(args, SOCK_DGRAM, &fd);
	if (code < 0)
		goto close_ctx;
	ctx->chans[0].fd = fd;
	ctx->short_bytes_max = one_frame_bytes(ctx, fd);
	*ctx_out = ctx;
	return CADGE_DONE;
close_ctx:
	udp_close(ctx);
	return code;
}

static void udp_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(udp_caps, ctx->place, ctx->wait_mode),
		.message_bytes_max = UDP_MESSAGE_BYTES_MAX,
		.depth_max = ctx->depth,
		.iov_max = UDP_IOV_MAX,
		.wire_overhead_bytes = UDP_HEADER_BYTES,
		.short_bytes_max = ctx->short_bytes_max,
		.short_path = "one frame",
		.long_path = "IP fragments, made by the kernel",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int udp_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct sock_blob mine = {.slot = peer};
	struct sockaddr_storage bound;
	socklen_t bound_bytes = sizeof(bound);
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->peers || *bytes_inout < SOCK_BLOB_BYTES || ctx->chans[peer].state > UDP_NAMED)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (cadge_nonce(&mine.nonce) < 0)
		return CADGE_E_LIBRARY;
	code = chan->fd >= 0 ? CADGE_DONE
			     : cadge_bind_port(ctx->port_first, ctx->port_last, ctx->address, SOCK_DGRAM,
					       &chan->fd);
	if (code < 0)
		return code;
	code = sock_settings_apply(&ctx->settings, chan->fd);
	if (code < 0)
		return code;
	if (getsockname(chan->fd, (struct sockaddr *)&bound, &bound_bytes) < 0 ||
	    sock_endpoint_write(&bound, bound_bytes, mine.endpoint) < 0)
		return CADGE_E_LIBRARY;
	chan->state = UDP_NAMED;
	chan->my_tag = (uint32_t)mine.nonce;
	sock_blob_write(&mine, blob);
	*bytes_inout = SOCK_BLOB_BYTES;
	return CADGE_DONE;
}

static int udp_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct sock_blob theirs;
	struct sockaddr_storage to;
	socklen_t to_bytes;
	struct cadge_chan *chan;

	if (peer >= ctx->peers || ctx->chans[peer].state != UDP_NAMED ||
	    sock_blob_read(blob, bytes, &theirs) < 0 ||
	    sock_endpoint_read(theirs.endpoint, &to, &to_bytes) < 0)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (connect(chan->fd, (const struct sockaddr *)&to, to_bytes) < 0)
		return cadge_errno_code(errno);
	chan->their_tag = (uint32_t)theirs.nonce;
	chan->state = UDP_HANDSHAKE;
	chan->greeting = (struct cadge_greeting){0};
	ctx->active[ctx->connected++] = chan;
	ctx->epoch++;
	ctx->unsettled++;
	*chan_out = chan;
	return CADGE_DONE;
}

static int udp_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < ctx->connected; i++)
		if (ctx->active[i] == chan)
			ctx->active[i] = ctx->active[--ctx->connected];
	if (chan->state == UDP_HANDSHAKE || chan->state == UDP_FAILED)
		ctx->unsettled--;
	if (ctx->early_chan == chan)
		ctx->early_chan = NULL;
	close(chan->fd);
	*chan = (struct cadge_chan){.ctx = ctx, .peer = chan->peer, .fd = -1};
	return CADGE_DONE;
}

/* The next poll reports it. A datagram that came back refused means that the peer's socket is gone. */
static void fail(struct cadge_chan *chan)
{
	if (chan->state == UDP_UP)
		chan->ctx->unsettled++;
	chan->state = UDP_FAILED;
	snprintf(chan->ctx->why, sizeof(chan->ctx->why), "peer %u: %s", chan->peer, strerror(errno));
}

static int udp_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	unsigned char packet[UDP_HEADER_BYTES + UDP_COPY_BYTES_MAX];
	struct iovec gather[UDP_IOV_MAX + 1];
	struct msghdr message = {.msg_iov = gather, .msg_iovlen = count + 1};
	size_t bytes = 0;
	ssize_t sent;

	(void)flags, (void)token;
	if (count > UDP_IOV_MAX)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes > UDP_MESSAGE_BYTES_MAX - bytes)
			return CADGE_E_TOO_LARGE;
		if (bytes + iov[i].bytes <= UDP_COPY_BYTES_MAX && iov[i].bytes)
			memcpy(packet + UDP_HEADER_BYTES + bytes, iov[i].base, iov[i].bytes);
		bytes += iov[i].bytes;
		gather[i + 1] = (struct iovec){.iov_base = iov[i].base, .iov_len = iov[i].bytes};
	}
	if (chan->state != UDP_UP)
		return chan->state == UDP_HANDSHAKE ? CADGE_BUSY : CADGE_E_DOWN;
	cadge_store32(packet, kind_data);
	cadge_store32(packet + 4, chan->their_tag);
	gather[0] = (struct iovec){.iov_base = packet, .iov_len = UDP_HEADER_BYTES};
	if (bytes <= UDP_COPY_BYTES_MAX)
		sent = send(chan->fd, packet, UDP_HEADER_BYTES + bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		sent = sendmsg(chan->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		return CADGE_DONE;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS ||
	    errno == ENOMEM) {
		chan->refused_room = true;
		return CADGE_BUSY;
	}
	if (errno == EMSGSIZE)
		return CADGE_E_TOO_LARGE;
	fail(chan);
	return CADGE_E_DOWN;
}

static bool send_control(void *arg, enum cadge_stamp_kind kind)
{
	struct cadge_chan *chan = arg;
	unsigned char packet[UDP_HEADER_BYTES];

	cadge_store32(packet, kind == CADGE_STAMP_HELLO ? kind_hello : kind_welcome);
	cadge_store32(packet + 4, chan->their_tag);
	/* What is not sent now is as good as lost, and hellos are repeated until they are answered. */
	if (send(chan->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		chan->ctx->lost_controls++;
	return true;
}

static int go_up(struct cadge_chan *chan, struct cadge_sink *sink)
{
	const struct timeval timeout = {.tv_usec = (suseconds_t)(UDP_RECEIVE_TIMEOUT_NS / 1000)};
	int flags;

	if (chan->state != UDP_HANDSHAKE)
		return 0;
	/* Blocking contexts sleep in recv itself, see wait; every other call says MSG_DONTWAIT. */
	if (chan->ctx->wait_mode == CADGE_WAIT_BLOCK) {
		flags = fcntl(chan->fd, F_GETFL);
		if (flags < 0 || fcntl(chan->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
		    setsockopt(chan->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0) {
			fail(chan);
			return 0;
		}
	}
	chan->state = UDP_UP;
	chan->ctx->unsettled--;
	sink->up(sink, chan->peer);
	return 1;
}

/* What one datagram means. Returns the number of events, or E_MEMORY. */
static int take_datagram(struct cadge_chan *chan, struct cadge_sink *sink, size_t bytes)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_lend *block = ctx->block;
	uint32_t kind;
	int events = 0;

	if (bytes < UDP_HEADER_BYTES || cadge_load32(block->data + 4) != chan->my_tag) {
		ctx->strangers++;
		return 0;
	}
	kind = cadge_load32(block->data);
	if (kind == kind_hello) {
		send_control(chan, CADGE_STAMP_WELCOME);
		return 0;
	}
	/* Data proves as much as a welcome: its sender has had ours. */
	if (kind == kind_welcome || kind == kind_data)
		events += go_up(chan, sink);
	if (kind != kind_data)
		return events;
	if (sink->recv(sink, chan->peer, block->data + UDP_HEADER_BYTES, bytes - UDP_HEADER_BYTES, block) ==
	    CADGE_TAKEN)
		return events + 1;
	block->keeps++;
	sock_block_detach(&ctx->blocks, block);
	ctx->block = sock_block_take(&ctx->blocks, UDP_DATAGRAM_ROOM);
	return ctx->block ? events + 1 : CADGE_E_MEMORY;
}

/* Reads one datagram into the block, unless wait has done so. Returns as recv. */
static ssize_t receive(struct cadge_chan *chan, int flags)
{
	struct cadge_ctx *ctx = chan->ctx;

	if (ctx->early_chan == chan) {
		ctx->early_chan = NULL;
		return (ssize_t)ctx->early_bytes;
	}
	return recv(chan->fd, ctx->block->data, UDP_DATAGRAM_ROOM, flags);
}

static int poll_chan(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_ctx *ctx = chan->ctx;
	int events = 0, code;

	if (!ctx->block)
		ctx->block = sock_block_take(&ctx->blocks, UDP_DATAGRAM_ROOM);
	if (!ctx->block)
		return CADGE_E_MEMORY;
	for (int i = 0; i < UDP_MESSAGES_A_POLL; i++) {
		ssize_t got = receive(chan, MSG_DONTWAIT);

		if (got >= 0) {
			code = take_datagram(chan, sink, (size_t)got);
			if (code < 0)
				return code;
			events += code;
			/* one message a system call: looking again at once would cost the next reply */
			if (code > 0)
				break;
			continue;
		}
		/* During the handshake the peer's socket may not be connected to ours yet. */
		if (errno == ECONNREFUSED && chan->state == UDP_UP)
			fail(chan);
		break;
	}
	return events;
}

/* Repeats hellos and reports failures. The only user of a clock, and not once all peers are up. */
static int settle(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const uint64_t time_ns = cadge_greeting_now_ns();
	int events = 0;

	for (uint32_t i = ctx->connected; i-- > 0;) {
		struct cadge_chan *chan = ctx->active[i];

		if (chan->state == UDP_FAILED) {
			chan->state = UDP_DOWN;
			ctx->unsettled--;
			ctx->active[i] = ctx->active[--ctx->connected];
			events++;
			sink->down(sink, chan->peer, CADGE_E_DOWN);
		} else if (chan->state == UDP_HANDSHAKE) {
			cadge_greet_again(&chan->greeting, time_ns, send_control, chan);
		}
	}
	return events;
}

static int udp_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0, code;

	for (uint32_t i = ctx->connected; i-- > 0;) {
		code = poll_chan(ctx->active[i], sink);
		if (code < 0)
			return code;
		events += code;
	}
	return ctx->unsettled ? events + settle(ctx, sink) : events;
}

/*
 * With one peer and nothing else to look for, sleeps in recv itself: a message then costs one system call and
 * not two. True when poll has something to do; otherwise *timeout_ns_inout is what is left for ppoll.
 */
static bool wait_in_recv(struct cadge_ctx *ctx, uint64_t *timeout_ns_inout)
{
	struct cadge_chan *chan = ctx->active[0];

	while (*timeout_ns_inout >= 2 * UDP_RECEIVE_TIMEOUT_NS && ctx->block) {
		ssize_t got = receive(chan, 0);

		if (got >= 0) {
			ctx->early_chan = chan;
			ctx->early_bytes = (size_t)got;
			return true;
		}
		if (errno == ECONNREFUSED)
			fail(chan);
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return true;
		*timeout_ns_inout -= UDP_RECEIVE_TIMEOUT_NS;
	}
	return false;
}

/*
 * Fills pollfds, with room where a post was BUSY: whoever still wants to post then finds out anew. False where a
 * channel has failed, which poll has to tell.
 */
static bool watch_active(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->connected; i++) {
		if (ctx->active[i]->state == UDP_FAILED)
			return false;
		ctx->pollfds[i] = (struct pollfd){
			.fd = ctx->active[i]->fd,
			.events = (short)(POLLIN | (ctx->active[i]->refused_room ? POLLOUT : 0)),
		};
		ctx->active[i]->refused_room = false;
	}
	return true;
}

static int udp_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	int code = CADGE_DONE;

	if (ctx->wait_mode != CADGE_WAIT_BLOCK)
		return CADGE_E_UNSUPPORTED;
	if (ctx->early_chan || !watch_active(ctx))
		return CADGE_BUSY;
	if (ctx->watch.fd < 0)
		code = cadge_watch_open(&ctx->watch, ctx->peers);
	if (code == CADGE_DONE)
		code = cadge_watch_set(&ctx->watch, ctx->pollfds, ctx->connected, ctx->epoch);
	if (code < 0)
		return code;
	*fd_out = ctx->watch.fd;
	*due_ns_out = ctx->unsettled ? CADGE_HELLO_PERIOD_NS : UINT64_MAX;
	return CADGE_DONE;
}

static int udp_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	if (ctx->early_chan)
		return CADGE_DONE;
	if (ctx->unsettled && timeout_ns > CADGE_HELLO_PERIOD_NS)
		timeout_ns = CADGE_HELLO_PERIOD_NS;
	if (ctx->connected == 1 && !ctx->unsettled && ctx->wait_mode == CADGE_WAIT_BLOCK &&
	    !ctx->active[0]->refused_room && wait_in_recv(ctx, &timeout_ns))
		return CADGE_DONE;
	return watch_active(ctx) ? cadge_sleep(ctx->pollfds, ctx->connected, timeout_ns) : CADGE_DONE;
}

static void udp_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	sock_block_release(&ctx->blocks, lend);
}

static int udp_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	int send_bytes = 0, receive_bytes = 0, code;
	socklen_t bytes = sizeof(int);

	if (chan->state != UDP_UP)
		return chan->state == UDP_HANDSHAKE ? CADGE_BUSY : CADGE_E_DOWN;
	if (getsockopt(chan->fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, &bytes) < 0 ||
	    getsockopt(chan->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, &bytes) < 0)
		return CADGE_E_LIBRARY;
	snprintf(path.used, sizeof(path.used), "udp; send buffer %d B, receive buffer %d B", send_bytes,
		 receive_bytes);
	code = cadge_describe_route(chan->fd, chan->ctx->place, chan->ctx->device, &path);
	if (code == CADGE_DONE)
		cadge_fill(path_out, &path, sizeof(path));
	return code;
}

static void udp_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "Linux sockets",
					      .stated_version = cadge_kernel_release()};

	cadge_fill(library_out, &library, sizeof(library));
}

static void udp_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const bool block = ctx->wait_mode == CADGE_WAIT_BLOCK;
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_KERNEL_OR_NIC,
		.control_transfer = block ? CADGE_CONTROL_INTERRUPT : CADGE_CONTROL_POLL,
		.waker = block ? CADGE_WAKER_KERNEL : CADGE_WAKER_NONE,
		.granule_bytes = (uint32_t)ctx->short_bytes_max,
		.copies_on_send = 1,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *udp_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

static void udp_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "strangers_dropped_datagrams", ctx->strangers);
	each(arg, "controls_not_sent_datagrams", ctx->lost_controls);
}

static const struct cadge_layer udp_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(udp_layer),
	.name = "sockets-udp",
	.style = "sockets",
	.substrate = "udp",
	.caps = udp_caps,
	.options = udp_options,
	.open = udp_open,
	.close = udp_close,
	.limits = udp_limits,
	.address = udp_address,
	.connect = udp_connect,
	.disconnect = udp_disconnect,
	.post = udp_post,
	.poll = udp_poll,
	.describe_path = udp_describe_path,
	.library = udp_library,
	.semantics = cadge_semantics_of_messages,
	.traits = udp_traits,
	.wait = udp_wait,
	.event = udp_event,
	.release = udp_release,
	.counters = udp_counters,
	.why = udp_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &udp_layer;
}
