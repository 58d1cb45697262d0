/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets-uring: the messages of sockets-tcp, byte for byte, with io_uring in place of send, recv and poll. Completions
 * are looked for in memory; the kernel is called where something is to be handed over, or where it says that it has work.
 */
#include <errno.h>
#include <stdio.h>

#include "sockets/tcp_family.h"
#include "sockets/io_uring/flow.h"

enum { EVENTS_A_POLL = 64 }; /* about: a buffer that is begun is finished */
/* An early return from wait is legal, and the kernel adds this to its clock. */
#define WAIT_NS_MAX UINT64_C(3600000000000)

static struct uring_ctx *of_session(struct cadge_ctx *ctx)
{
	return (struct uring_ctx *)ctx;
}

static int uring_describe(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out)
{
	const int code = sock_tcp_describe(fd, place, device, path_out);

	if (code == CADGE_DONE && !*path_out->note)
		snprintf(path_out->note, sizeof(path_out->note), "through io_uring");
	return code;
}

static const uint64_t uring_caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
				   CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				   CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_WHY | CADGE_CAP_COUNTERS;

static const struct sock_family uring_family = {
	.caps = uring_caps,
	.options = sock_tcp_options,
	.ctx_bytes = sizeof(struct uring_ctx),
	.chan_bytes = sizeof(struct uring_chan),
	.listen = sock_tcp_listen,
	.tune = sock_tcp_tune,
	.describe = uring_describe,
	.start = uring_flow_start,
	.stop = uring_flow_stop,
};

static void uring_close(struct cadge_ctx *session)
{
	struct sock_ring ring;

	if (!session)
		return;
	/* The channels that end now need the ring, and are gone with their context. */
	ring = of_session(session)->ring;
	sock_session_close(session);
	sock_ring_close(&ring);
}

static int uring_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *session;
	int code = sock_session_open(&uring_family, args, &session);

	if (code < 0)
		return code;
	code = sock_ring_open(&of_session(session)->ring, args, session->peers, &session->blocks);
	if (code < 0)
		sock_session_close(session);
	else
		*ctx_out = session;
	return code;
}

static void uring_limits(const struct cadge_ctx *session, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	sock_session_limits(session, &limits);
	limits.short_path = "multishot receive";
	limits.long_path = "receive of its own";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

/* Hands over what is prepared and, with `look`, lets the kernel do what it has put off. DONE or E_LIBRARY. */
static int enter(struct uring_ctx *ctx, bool look)
{
	struct io_uring *io = &ctx->ring.io;
	int code;

	if (ctx->pending)
		uring_flow_prepare(ctx);
	if (look && sock_ring_lags(&ctx->ring))
		code = io_uring_submit_and_get_events(io);
	else
		code = io_uring_sq_ready(io) ? io_uring_submit(io) : 0;
	return code >= 0 || code == -EINTR || code == -EAGAIN || code == -EBUSY ? CADGE_DONE
										: CADGE_E_LIBRARY;
}

static int uring_poll(struct cadge_ctx *session, struct cadge_sink *sink)
{
	struct uring_ctx *ctx = of_session(session);
	struct io_uring_cqe completion;
	int events = session->unsettled ? sock_handshake_settle(session, sink) : 0;
	int code = enter(ctx, true);

	/* Taken out before it is looked at: the end of a channel looks through those that are left. */
	while (code == CADGE_DONE && events < EVENTS_A_POLL && sock_ring_take(&ctx->ring, &completion))
		events += uring_flow_take(&completion, sink);
	/* Answers of the sink leave now, not when somebody polls again. */
	if (code == CADGE_DONE && ctx->pending)
		code = enter(ctx, false);
	return code < 0 ? code : events;
}

static int uring_wait(struct cadge_ctx *session, uint64_t timeout_ns)
{
	struct uring_ctx *ctx = of_session(session);
	struct __kernel_timespec timeout;
	struct io_uring_cqe *first;
	uint64_t due_ns = cadge_least(timeout_ns, WAIT_NS_MAX);
	nfds_t count = 1;
	int code;

	if (ctx->pending)
		uring_flow_prepare(ctx);
	if (!session->unsettled) {
		timeout = (struct __kernel_timespec){.tv_sec = (int64_t)(due_ns / 1000000000),
						     .tv_nsec = (int64_t)(due_ns % 1000000000)};
		code = io_uring_submit_and_wait_timeout(&ctx->ring.io, &first, 1, &timeout, NULL);
		return code >= 0 || code == -ETIME || code == -EINTR || code == -EAGAIN || code == -EBUSY
			       ? CADGE_DONE
			       : CADGE_E_LIBRARY;
	}
	code = enter(ctx, false);
	if (code < 0)
		return code;
	sock_ring_arm(&ctx->ring, true);
	if (!sock_ring_has_work(&ctx->ring)) {
		session->pollfds[0] = (struct pollfd){.fd = ctx->ring.event_fd, .events = POLLIN};
		count = sock_handshake_watch(session, count, &due_ns);
		code = cadge_sleep(session->pollfds, count, due_ns);
	}
	sock_ring_arm(&ctx->ring, false);
	return code;
}

static int uring_event(struct cadge_ctx *session, int *fd_out, uint64_t *due_ns_out)
{
	struct uring_ctx *ctx = of_session(session);
	uint64_t due_ns = UINT64_MAX;
	nfds_t count = 1;
	int code;

	if (session->wait_mode != CADGE_WAIT_BLOCK)
		return CADGE_E_UNSUPPORTED;
	code = enter(ctx, false);
	if (code < 0)
		return code;
	sock_ring_arm(&ctx->ring, true);
	session->pollfds[0] = (struct pollfd){.fd = ctx->ring.event_fd, .events = POLLIN};
	if (session->unsettled) {
		count = sock_handshake_watch(session, count, &due_ns);
		session->epoch++; /* who connects now comes and goes in poll */
	}
	if (!due_ns || sock_ring_has_work(&ctx->ring))
		return CADGE_BUSY;
	if (session->watch.fd < 0)
		code = cadge_watch_open(&session->watch, sock_pollfds_max(session));
	if (code == CADGE_DONE)
		code = cadge_watch_set(&session->watch, session->pollfds, count, session->epoch);
	if (code < 0)
		return code;
	*fd_out = session->watch.fd;
	*due_ns_out = due_ns;
	return CADGE_DONE;
}

static void uring_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "Linux io_uring",
					      .stated_version = cadge_kernel_release()};

	cadge_fill(library_out, &library, sizeof(library));
}

static void uring_counters(const struct cadge_ctx *session,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "receives_out_of_buffers", ((const struct uring_ctx *)session)->out_of_buffers);
}

static const struct cadge_layer uring_layer = {
	.name = "sockets-uring",
	.substrate = "uring",
	.caps = uring_caps,
	.options = sock_tcp_options,
	.open = uring_open,
	.close = uring_close,
	.limits = uring_limits,
	.post = uring_flow_post,
	.poll = uring_poll,
	.library = uring_library,
	.wait = uring_wait,
	.event = uring_event,
	.counters = uring_counters,
	SOCK_SESSION_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &uring_layer;
}
