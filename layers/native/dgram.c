/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's datagrams: FI_EP_DGRAM on the provider udp, one frame a message, nothing retransmitted and nobody held back.
 *
 * Such an endpoint has no immediate data, so the sender stands in 4 bytes before the payload: the slot number that the
 * receiver put into its address, a generation that makes datagrams of an earlier life of the slot recognisable, and the
 * kind. HELLO goes out until WELCOME answers it, or data, which only a peer sends that knows us.
 */
#include "kit/bytes.h"
#include "native/fabric.h"

enum {
	DGRAM_POSTED = 64, /* receive buffers; what finds none waits in the socket */
	DGRAM_HEAD_BYTES = 4,
};

/* ---- flow ---- */

static int dgram_send(struct cadge_chan *chan, enum cadge_stamp_kind kind, const struct cadge_iov *iov,
		      uint32_t count)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint8_t head[DGRAM_HEAD_BYTES];
	struct iovec parts[FABRIC_PARTS] = {{.iov_base = head, .iov_len = sizeof(head)}};
	const struct fi_msg msg = {.msg_iov = parts, .iov_count = count + 1, .addr = chan->addr};
	ssize_t ret;

	cadge_store32(head, cadge_stamp(&chan->greeting, kind));
	for (uint32_t i = 0; i < count; i++)
		parts[i + 1] = (struct iovec){.iov_base = iov[i].base, .iov_len = iov[i].bytes};
	ret = fi_sendmsg(ctx->ofi.ep, &msg, FI_INJECT);
	return ret ? fabric_refused(ctx, ret) : CADGE_DONE;
}

static int dgram_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	size_t bytes;
	int code = cadge_iov_check(iov, count, chan->ctx->iov_max, chan->ctx->message_bytes_max, &bytes);

	(void)flags, (void)token; /* a datagram has left when it was accepted */
	if (code == CADGE_DONE)
		code = cadge_usable(&chan->state);
	return code == CADGE_DONE ? dgram_send(chan, CADGE_STAMP_DATA, iov, count) : code;
}

static bool dgram_greet(void *chan, enum cadge_stamp_kind kind)
{
	return dgram_send(chan, kind, NULL, 0) == CADGE_DONE;
}

static int dgram_received(struct cadge_ctx *ctx, const uint8_t *data, size_t bytes, struct cadge_sink *sink)
{
	const uint32_t stamp = bytes >= DGRAM_HEAD_BYTES ? cadge_load32(data) : UINT32_MAX;
	struct cadge_chan *chan = fabric_sender(ctx, stamp);
	int events = 0;

	if (!chan)
		return 0;
	if (!chan->connected) {
		ctx->stale++;
		return 0;
	}
	switch (cadge_stamp_kind(stamp)) {
	case CADGE_STAMP_HELLO:
		/* lost, or BUSY: the hello will come again */
		if (!dgram_greet(chan, CADGE_STAMP_WELCOME))
			ctx->busy_posts++;
		break;
	case CADGE_STAMP_WELCOME: events = fabric_report_up(chan, sink); break;
	case CADGE_STAMP_DATA:
		events = fabric_report_up(chan, sink) + 1;
		sink->recv(sink, chan->peer, data + DGRAM_HEAD_BYTES, bytes - DGRAM_HEAD_BYTES, NULL);
		break;
	}
	return events;
}

static void dgram_greet_all(struct cadge_ctx *ctx)
{
	const uint64_t now_ns = cadge_greeting_now_ns();

	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (chan->connected && !chan->state.up)
			cadge_greet_again(&chan->greeting, now_ns, dgram_greet, chan);
	}
}

/* A buffer that could not be posted again: poll tries it later. */
static __attribute__((noinline)) int dgram_later(struct cadge_ctx *ctx, struct cadge_lend *lend, ssize_t ret)
{
	ctx->posted--;
	CADGE_POOL_GIVE(ctx->free_lend, lend);
	return ret == -FI_EAGAIN ? CADGE_DONE : cadge_ofi_code(ret);
}

static inline int dgram_repost(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	const ssize_t ret =
		fi_recv(ctx->ofi.ep, lend->data, ctx->receive_bytes, NULL, FI_ADDR_UNSPEC, &lend->context);

	return __builtin_expect(ret != 0, 0) ? dgram_later(ctx, lend, ret) : CADGE_DONE;
}

static int dgram_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_data_entry entry[FABRIC_EVENTS];
	const ssize_t count = fi_cq_read(ctx->ofi.cq, entry, FABRIC_EVENTS);
	struct fi_cq_err_entry error = {0};
	int events = 0;

	for (ssize_t i = 0; i < count; i++) {
		struct cadge_lend *lend = entry[i].op_context;

		if (!(entry[i].flags & FI_RECV)) /* udp reports sends that asked for no completion */
			continue;
		events += dgram_received(ctx, lend->data, entry[i].len, sink);
		if (dgram_repost(ctx, lend) < 0)
			return CADGE_E_LIBRARY;
	}
	/* a datagram that was no good is as good as lost */
	if (count == -FI_EAVAIL && cadge_ofi_read_error(&ctx->ofi, &error) > 0 && error.op_context &&
	    dgram_repost(ctx, error.op_context) < 0)
		return CADGE_E_LIBRARY;
	if (count < 0 && count != -FI_EAGAIN && count != -FI_EAVAIL)
		return CADGE_E_LIBRARY;
	if (ctx->free_lend && fabric_repost(ctx, ctx->posted_wanted) < 0)
		return CADGE_E_LIBRARY;
	if (ctx->handshakes)
		dgram_greet_all(ctx);
	return events;
}

/* ---- limits, traits, the table ---- */

static const struct cadge_layer dgram_layer;

static void dgram_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(dgram_layer.caps, ctx->ofi.place, ctx->ofi.wait_mode),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = ctx->iov_max,
		.wire_overhead_bytes = DGRAM_HEAD_BYTES,
		.short_bytes_max = ctx->message_bytes_max,
		.short_path = "one datagram",
		.long_path = "one datagram",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

/* Into the socket's buffer, and out of it into the buffer that was posted. */
static void dgram_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_KERNEL_OR_NIC,
		.control_transfer = CADGE_CONTROL_POLL,
		.waker = ctx->ofi.wait_fd < 0 ? CADGE_WAKER_NONE : CADGE_WAKER_KERNEL,
		.granule_bytes = (uint32_t)ctx->receive_bytes,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const struct cadge_layer dgram_layer = {
	FABRIC_SLOTS,
	.name = "native-dgram",
	.substrate = "dgram",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
		CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY,
	.limits = dgram_limits,
	.traits = dgram_traits,
	.post = dgram_post,
	.poll = dgram_poll,
};

const struct fabric_type fabric_type = {
	.layer = &dgram_layer,
	.needs = {.caps = FI_MSG, .provider = "udp", .datagrams = true, .completions = 2 * DGRAM_POSTED},
	.depth_max = 1024,
	.receives = DGRAM_POSTED,
	.head_bytes = DGRAM_HEAD_BYTES,
	.greeting_period_ns = CADGE_HELLO_PERIOD_NS,
	.stale_counter = "strangers",
};
