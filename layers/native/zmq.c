/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native-zmq: ZeroMQ's messages as they are, over ipc within a host and tcp between two. A channel is one ZMQ_PAIR
 * on each side: exactly one peer, both directions, never a message dropped; DEALER would take a stranger in as a
 * second peer and share messages out among both. That PAIR does not reconnect, its manual's warning, is what a
 * channel wants: each life has a new socket, and the monitor of a socket tells when its peer is gone.
 *
 * Both sides listen; the one with the smaller nonce connects instead. The first message is the receiver's nonce: who
 * comes to another's address is found out. Messages are received in ZeroMQ's memory and lent from it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>
#include "kit/adapter.h"
#include "kit/bytes.h"

/* Three of the 1023 sockets, and five of the 1024 descriptors, that are the default, for each peer. */
enum { PEERS_MAX = 128, IOV_ENTRIES = 16, CHECK_EVERY = 64, ENDPOINT_BYTES = 128 };

#define CAPS                                                                                                 \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |  \
	 CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_OWN_THREADS |                  \
	 CADGE_CAP_RESERVE)

struct cadge_lend {
	struct cadge_lend *next, *next_of_all;
	zmq_msg_t message;
};

struct name {
	unsigned char nonce[8];
	char endpoint[ENDPOINT_BYTES];
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_state state;
	uint32_t peer, polls; /* since the monitor was looked at */
	int fd;               /* ZeroMQ's connection, as its monitor told; -1 before */
	void *socket, *monitor;
	struct name mine, theirs; /* theirs: connect was called */
	bool full, lost;          /* a post was BUSY; the monitor told of the end */
	bool reserved;            /* `message` is the caller's to fill */
	zmq_msg_t message;
};

struct cadge_ctx {
	void *zmq;
	uint64_t lives;                        /* of channels: each has a monitor of its own name */
	struct cadge_lend *free, *all, *spare; /* spare: what is received next */
	struct cadge_limits limits;
	enum cadge_place place;
	uint32_t peers;
	uint16_t port_first, port_last;
	char device[64], address[64];
	struct cadge_chan chans[];
};

static int pair_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->reserved)
		zmq_msg_close(&chan->message);
	if (chan->socket) {
		zmq_socket_monitor(chan->socket, NULL, 0);
		zmq_close(chan->socket);
	}
	if (chan->monitor)
		zmq_close(chan->monitor);
	*chan = (struct cadge_chan){.ctx = ctx, .peer = chan->peer, .fd = -1};
	return CADGE_DONE;
}

static void pair_close(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; ctx && i < ctx->peers; i++)
		pair_disconnect(ctx, &ctx->chans[i]);
	for (struct cadge_lend *next, *lend = ctx ? ctx->all : NULL; lend; lend = next) {
		next = lend->next_of_all;
		zmq_msg_close(&lend->message);
		free(lend);
	}
	while (ctx && zmq_ctx_term(ctx->zmq) < 0 && errno == EINTR)
		;
	free(ctx);
}

static int pair_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	int code = cadge_open_check(args, CAPS, NULL, PEERS_MAX), fd = -1;
	struct cadge_ctx *ctx;

	if (code == CADGE_DONE && args->place == CADGE_PLACE_NET)
		code = cadge_device_check(args);
	if (code == CADGE_DONE && args->place == CADGE_PLACE_NET)
		code = cadge_bind_in_range(args, SOCK_STREAM, &fd); /* is there a port at all? */
	if (fd >= 0)
		close(fd);
	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx || !(ctx->zmq = zmq_ctx_new())) {
		free(ctx);
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory for %u peers", args->peers_max);
	}
	ctx->limits = cadge_limits_default(args, CAPS, INT32_MAX, IOV_ENTRIES, "one frame");
	ctx->limits.wire_overhead_bytes = 2; /* flags and length */
	snprintf(ctx->device, sizeof(ctx->device), "%s", args->device);
	snprintf(ctx->address, sizeof(ctx->address), "%s", args->address);
	ctx->place = args->place;
	ctx->peers = args->peers_max;
	ctx->port_first = args->port_first, ctx->port_last = args->port_last;
	for (uint32_t i = 0; i < args->peers_max; i++)
		ctx->chans[i] = (struct cadge_chan){.ctx = ctx, .peer = i, .fd = -1};
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void pair_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	cadge_fill(limits_out, &ctx->limits, sizeof(ctx->limits));
}

/* A socket, and the one that its monitor reports to. */
static bool make_sockets(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const int events =
		ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
	const int at_once = 0, never = -1, ipv6 = strchr(ctx->address, ':') != NULL;
	char name[48];

	snprintf(name, sizeof(name), "inproc://monitor-%" PRIu64, ctx->lives++);
	chan->socket = zmq_socket(ctx->zmq, ZMQ_PAIR);
	chan->monitor = zmq_socket(ctx->zmq, ZMQ_PAIR);
	return chan->socket && chan->monitor &&
	       zmq_setsockopt(chan->socket, ZMQ_LINGER, &at_once, sizeof(at_once)) == 0 &&
	       zmq_setsockopt(chan->socket, ZMQ_RECONNECT_IVL, &never, sizeof(never)) == 0 &&
	       zmq_setsockopt(chan->socket, ZMQ_IPV6, &ipv6, sizeof(ipv6)) == 0 &&
	       zmq_socket_monitor(chan->socket, name, events) == 0 && zmq_connect(chan->monitor, name) == 0;
}

/* Reads what the monitor told of our connection: that it is there, or gone. An event is two frames. */
static void read_monitor(struct cadge_chan *chan)
{
	unsigned char event[6];
	uint16_t what;
	int fd;

	chan->polls = 0;
	while (zmq_recv(chan->monitor, event, sizeof(event), ZMQ_DONTWAIT) == (int)sizeof(event)) {
		zmq_recv(chan->monitor, NULL, 0, ZMQ_DONTWAIT);
		memcpy(&what, event, sizeof(what));
		memcpy(&fd, event + sizeof(what), sizeof(fd));
		if (!(what & (ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED)))
			chan->fd = chan->fd < 0 ? fd : chan->fd;
		else if (chan->fd < 0 || chan->fd == fd) /* not a stranger's, whom PAIR sent away */
			chan->lost = true;
	}
}

static int try_port(void *arg, uint16_t port)
{
	struct cadge_chan *chan = arg;
	const char *format = strchr(chan->ctx->address, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u";

	snprintf(chan->mine.endpoint, ENDPOINT_BYTES, format, chan->ctx->address, port);
	return zmq_bind(chan->socket, chan->mine.endpoint) < 0 ? cadge_errno_code(errno) : CADGE_DONE;
}

static int pair_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_chan *chan = &ctx->chans[peer];
	size_t bytes = ENDPOINT_BYTES;
	uint64_t nonce;
	int code;

	if (peer >= ctx->peers || chan->theirs.endpoint[0] || *bytes_inout < sizeof(chan->mine))
		return CADGE_E_ARGUMENT;
	pair_disconnect(ctx, chan);
	if (cadge_nonce(&nonce) < 0 || !make_sockets(ctx, chan))
		return CADGE_E_LIBRARY;
	cadge_store64(chan->mine.nonce, nonce);
	if (ctx->place == CADGE_PLACE_NET) {
		code = cadge_try_ports(ctx->port_first, ctx->port_last, try_port, chan);
	} else { /* '@': no file */
		snprintf(chan->mine.endpoint, ENDPOINT_BYTES, "ipc://@cadge-%" PRIx64, nonce);
		code = zmq_bind(chan->socket, chan->mine.endpoint) < 0 ? CADGE_E_LIBRARY : CADGE_DONE;
	}
	if (code < 0 || zmq_getsockopt(chan->socket, ZMQ_LAST_ENDPOINT, chan->mine.endpoint, &bytes) < 0)
		return code < 0 ? code : CADGE_E_LIBRARY;
	read_monitor(chan); /* a port that was taken: the monitor told of a socket that was closed again */
	chan->lost = false;
	memcpy(blob, &chan->mine, sizeof(chan->mine));
	*bytes_inout = sizeof(chan->mine);
	return code;
}

/* The greeting of one that listens leaves when somebody is there. */
static void greet(struct cadge_chan *chan)
{
	if (!chan->state.greeted)
		chan->state.greeted = zmq_send(chan->socket, chan->theirs.nonce, sizeof(chan->theirs.nonce),
					       ZMQ_DONTWAIT) >= 0;
}

static int pair_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_chan *chan = &ctx->chans[peer];
	struct name mine, theirs;

	if (peer >= ctx->peers || !chan->socket || chan->theirs.endpoint[0] || bytes != sizeof(theirs))
		return CADGE_E_ARGUMENT;
	memcpy(&theirs, blob, sizeof(theirs));
	if (!memchr(theirs.endpoint, 0, sizeof(theirs.endpoint)) || !theirs.endpoint[0])
		return CADGE_E_ARGUMENT;
	mine = chan->mine;
	if (memcmp(mine.nonce, theirs.nonce, sizeof(mine.nonce)) < 0) {
		pair_disconnect(ctx, chan);
		if (!make_sockets(ctx, chan) || zmq_connect(chan->socket, theirs.endpoint) < 0)
			return CADGE_E_LIBRARY;
	}
	chan->mine = mine, chan->theirs = theirs;
	greet(chan);
	*chan_out = chan;
	return CADGE_DONE;
}

static bool ready(void *socket, int event)
{
	int events = 0;
	size_t bytes = sizeof(events);

	return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &bytes) == 0 && events & event;
}

/* ZeroMQ takes the message, or it stays as it was. */
static int hand_over(struct cadge_chan *chan, zmq_msg_t *message)
{
	const bool taken = zmq_msg_send(message, chan->socket, ZMQ_DONTWAIT) >= 0;

	chan->full = !taken && (errno == EAGAIN || errno == EINTR);
	chan->state.broken = !taken && !chan->full;
	return taken ? CADGE_DONE : chan->full ? CADGE_BUSY : CADGE_E_DOWN;
}

/* A message that would not be taken is not made. */
static int make_message(struct cadge_chan *chan, zmq_msg_t *message, size_t bytes)
{
	if (bytes > chan->ctx->limits.message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (!chan->state.up || chan->state.broken)
		return cadge_usable(&chan->state);
	if (chan->full && !ready(chan->socket, ZMQ_POLLOUT))
		return CADGE_BUSY;
	return zmq_msg_init_size(message, bytes) < 0 ? CADGE_E_MEMORY : CADGE_DONE;
}

static int pair_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	zmq_msg_t message;
	int code = count > IOV_ENTRIES ? CADGE_E_ARGUMENT
				       : make_message(chan, &message, cadge_iov_bytes(iov, count));

	(void)flags, (void)token;
	if (code != CADGE_DONE)
		return code;
	cadge_iov_gather(iov, count, zmq_msg_data(&message));
	code = hand_over(chan, &message);
	if (code != CADGE_DONE)
		zmq_msg_close(&message);
	return code;
}

static int pair_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out)
{
	const int code = chan->reserved ? CADGE_BUSY : make_message(chan, &chan->message, bytes);

	(void)flags;
	if (code == CADGE_DONE)
		chan->reserved = true, *base_out = zmq_msg_data(&chan->message);
	return code;
}

static void pair_cancel(struct cadge_chan *chan, void *base)
{
	(void)base;
	zmq_msg_close(&chan->message);
	chan->reserved = false;
}

/* No message of ZeroMQ's can be made shorter: it is sent as it is, or copied. */
static int pair_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	const struct cadge_iov iov = {base, bytes};
	int code = CADGE_E_ARGUMENT;

	if (!chan->reserved || base != zmq_msg_data(&chan->message))
		return CADGE_E_ARGUMENT;
	if (bytes < zmq_msg_size(&chan->message))
		code = pair_post(chan, &iov, 1, flags, token);
	else if (bytes == zmq_msg_size(&chan->message))
		code = chan->state.broken ? CADGE_E_DOWN : hand_over(chan, &chan->message);
	if (code != CADGE_BUSY)
		pair_cancel(chan, base);
	return code;
}

static bool have_spare(struct cadge_ctx *ctx)
{
	if (!ctx->spare)
		ctx->spare = CADGE_POOL_TAKE(ctx->free);
	if (!ctx->spare && (ctx->spare = calloc(1, sizeof(*ctx->spare)))) {
		zmq_msg_init(&ctx->spare->message);
		ctx->spare->next_of_all = ctx->all;
		ctx->all = ctx->spare;
	}
	return ctx->spare;
}

static void pair_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	zmq_msg_close(&lend->message);
	zmq_msg_init(&lend->message);
	CADGE_POOL_GIVE(ctx->free, lend);
}

/* A message has come: the peer's greeting, or one for the sink. */
static int receive(struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_lend *lend = ctx->spare;
	const void *data = zmq_msg_data(&lend->message);
	const size_t bytes = zmq_msg_size(&lend->message);
	int events = 1;

	ctx->spare = NULL;
	if (chan->state.up) {
		if (sink->recv(sink, chan->peer, data, bytes, lend) == CADGE_KEEP)
			return events;
	} else {
		chan->state.broken =
			bytes != sizeof(chan->mine.nonce) || memcmp(data, chan->mine.nonce, bytes) != 0;
		greet(chan);
		read_monitor(chan); /* the monitor told of the connection before */
		events = cadge_report_up(&chan->state, sink, chan->peer);
	}
	pair_release(ctx, lend);
	return events;
}

static int pair_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		if (!chan->theirs.endpoint[0] || chan->state.reported)
			continue;
		if (!have_spare(ctx))
			return CADGE_E_MEMORY;
		if (chan->state.broken || zmq_msg_recv(&ctx->spare->message, chan->socket, ZMQ_DONTWAIT) < 0)
			chan->state.broken |= chan->lost; /* what came before the end has been received */
		else
			events += receive(chan, sink);
		/* To look is a system call: not each time. */
		if (!chan->state.up || ++chan->polls >= CHECK_EVERY)
			read_monitor(chan);
		events += cadge_report_down(&chan->state, sink, i);
	}
	return events;
}

static int pair_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct pollfd pollfds[2 * PEERS_MAX];
	size_t bytes = sizeof(pollfds[0].fd);
	int code;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];
		struct pollfd *pollfd = &pollfds[2 * i];

		pollfd[0] = pollfd[1] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (!chan->theirs.endpoint[0] || chan->state.reported)
			continue;
		/* The descriptors report what comes; ZMQ_EVENTS knows what is there. Monitors use theirs alone. */
		if (chan->lost || chan->state.broken ||
		    ready(chan->socket, ZMQ_POLLIN | (chan->full ? ZMQ_POLLOUT : 0))) {
			chan->full = false;
			return CADGE_DONE;
		}
		if (zmq_getsockopt(chan->socket, ZMQ_FD, &pollfd[0].fd, &bytes) < 0 ||
		    zmq_getsockopt(chan->monitor, ZMQ_FD, &pollfd[1].fd, &bytes) < 0)
			return CADGE_E_LIBRARY;
	}
	code = cadge_sleep(pollfds, 2 * ctx->peers, timeout_ns);
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (pollfds[2 * i + 1].revents)
			ctx->chans[i].polls = CHECK_EVERY; /* at once */
	return code;
}

/* From ZeroMQ's own connection: what its monitor told. */
static int pair_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.medium = CADGE_MEDIUM_LOOPBACK, .asked = "ipc"};
	int family = AF_UNSPEC, code = cadge_usable(&chan->state);
	socklen_t bytes = sizeof(family);

	if (code == CADGE_DONE && getsockopt(chan->fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes) < 0)
		code = CADGE_E_LIBRARY;
	if (code == CADGE_DONE && ctx->place == CADGE_PLACE_NET)
		code = cadge_describe_route(chan->fd, ctx->place, ctx->device, &path);
	else
		path.as_asked = family == AF_UNIX;
	if (code != CADGE_DONE)
		return code;
	snprintf(path.used, sizeof(path.used), "PAIR over %s", family == AF_UNIX ? "ipc" : "tcp");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void pair_library(struct cadge_library *library_out)
{
	static char version[32];
	const struct cadge_library library = {0, "ZeroMQ", version, (const void *)(uintptr_t)zmq_version};
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(version, sizeof(version), "%d.%d.%d", major, minor, patch);
	cadge_fill(library_out, &library, sizeof(library));
}

/*
 * Copies: caller, message, queue, its thread, buffer of the connection; there buffer, message, queue, adapter. From
 * 34 bytes on a queue carries a pointer: 2 copies on send (1 of what was reserved), and on receive 0, or 1 where the
 * message does not lie in the buffer whole.
 */
static void pair_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits how = cadge_traits_default(ctx->limits.caps, CADGE_PROTECT_KERNEL_OR_NIC);

	how.waker = ctx->limits.caps & CADGE_CAP_WAIT ? CADGE_WAKER_LIBRARY : CADGE_WAKER_NONE;
	how.granule_bytes = 1;
	how.copies_on_send = 4;
	how.copies_on_receive = 3;
	how.thread_role = CADGE_THREADS_PROGRESS;
	how.threads_max = 2; /* one moves messages, one closes sockets */
	cadge_fill(traits_out, &how, sizeof(how));
}

/* clang-format off */
static const struct cadge_layer pair_layer = {
	.abi = CADGE_ABI, .bytes = sizeof(pair_layer), .caps = CAPS,
	.name = "native-zmq", .style = "native", .substrate = "zmq",
	.open = pair_open, .close = pair_close, .limits = pair_limits, .traits = pair_traits,
	.address = pair_address, .connect = pair_connect, .disconnect = pair_disconnect,
	.post = pair_post, .poll = pair_poll, .wait = pair_wait, .library = pair_library,
	.describe_path = pair_describe_path, .semantics = cadge_semantics_of_messages,
	.release = pair_release, .reserve = pair_reserve, .commit = pair_commit, .cancel = pair_cancel,
};
/* clang-format on */
const struct cadge_layer *cadge_layer_entry(void)
{
	return &pair_layer;
}
