/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's datagrams: FI_EP_DGRAM on the provider udp, one frame a message, nothing retransmitted and nobody held back.
 *
 * Such an endpoint has no immediate data, so the sender stands in 4 bytes before the payload: the slot number that the
 * receiver put into its address, a generation that makes datagrams of an earlier life of the slot recognisable, and the
 * kind. HELLO goes out until WELCOME answers it, or data, which only a peer sends that knows us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bytes.h"
#include "kit/greeting.h"
#include "wire/ofi/ofi.h"

enum {
	DGRAM_POSTED = 64, /* receive buffers; what finds none waits in the socket */
	DGRAM_EVENTS = 16, /* most datagrams in one poll */
	DGRAM_PEERS_MAX = CADGE_STAMP_SLOTS,
	DGRAM_DEPTH_MAX = 1024,
	DGRAM_HEAD_BYTES = 4,
};

/* A receive buffer. The first member is libfabric's. */
struct dgram_buffer {
	struct fi_context2 context;
	uint8_t data[] __attribute__((aligned(64)));
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	fi_addr_t addr;
	uint32_t peer;
	struct cadge_greeting greeting;
	bool connected;
	struct cadge_state state;
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	uint32_t peers, depth;
	uint32_t meeting; /* channels that are connected and not up */
	size_t datagram_bytes, buffer_bytes;
	uint32_t iov_max;
	uint8_t *buffers;
	struct cadge_chan *chan;
	uint64_t strangers, busy_posts;
};

/* ---- flow ---- */

static int dgram_send(struct cadge_chan *chan, enum cadge_stamp_kind kind, const struct cadge_iov *iov,
		      uint32_t count)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint8_t head[DGRAM_HEAD_BYTES];
	struct iovec parts[8] = {{.iov_base = head, .iov_len = sizeof(head)}};
	const struct fi_msg msg = {.msg_iov = parts, .iov_count = count + 1, .addr = chan->addr};
	ssize_t ret;

	cadge_store32(head, cadge_stamp(&chan->greeting, kind));
	for (uint32_t i = 0; i < count; i++)
		parts[i + 1] = (struct iovec){.iov_base = iov[i].base, .iov_len = iov[i].bytes};
	ret = fi_sendmsg(ctx->ofi.ep, &msg, FI_INJECT);
	if (!ret)
		return CADGE_DONE;
	if (ret != -FI_EAGAIN)
		return cadge_ofi_refused(&ctx->ofi, ret);
	ctx->busy_posts++;
	return CADGE_BUSY;
}

static int dgram_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	size_t bytes = DGRAM_HEAD_BYTES;
	int code;

	(void)flags, (void)token; /* a datagram has left when it was accepted */
	if (count > chan->ctx->iov_max)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++)
		bytes += iov[i].bytes;
	if (bytes > chan->ctx->datagram_bytes)
		return CADGE_E_TOO_LARGE;
	code = cadge_usable(&chan->state);
	return code == CADGE_DONE ? dgram_send(chan, CADGE_STAMP_DATA, iov, count) : code;
}

static int dgram_repost(struct cadge_ctx *ctx, struct dgram_buffer *buffer)
{
	const ssize_t ret = fi_recv(ctx->ofi.ep, buffer->data, ctx->datagram_bytes, NULL, FI_ADDR_UNSPEC,
				    &buffer->context);

	return ret ? cadge_ofi_code(ret) : CADGE_DONE;
}

static int dgram_up(struct cadge_chan *chan, struct cadge_sink *sink)
{
	const int events = cadge_tell_up(&chan->state, sink, chan->peer);

	chan->ctx->meeting -= (uint32_t)events;
	return events;
}

static bool dgram_greet(void *chan, enum cadge_stamp_kind kind)
{
	return dgram_send(chan, kind, NULL, 0) == CADGE_DONE;
}

static int dgram_received(struct cadge_ctx *ctx, const uint8_t *data, size_t bytes, struct cadge_sink *sink)
{
	const uint32_t stamp = bytes >= DGRAM_HEAD_BYTES ? cadge_load32(data) : UINT32_MAX;
	const uint32_t slot = cadge_stamp_slot(stamp);
	struct cadge_chan *chan = slot < ctx->peers ? &ctx->chan[slot] : NULL;
	int events = 0;

	if (!chan || !chan->connected || !cadge_stamp_fits(&chan->greeting, stamp)) {
		ctx->strangers++;
		return 0;
	}
	switch (cadge_stamp_kind(stamp)) {
	case CADGE_STAMP_HELLO:
		/* lost, or BUSY: the hello will come again */
		if (!dgram_greet(chan, CADGE_STAMP_WELCOME))
			ctx->busy_posts++;
		break;
	case CADGE_STAMP_WELCOME: events = dgram_up(chan, sink); break;
	case CADGE_STAMP_DATA:
		events = dgram_up(chan, sink) + 1;
		sink->recv(sink, slot, data + DGRAM_HEAD_BYTES, bytes - DGRAM_HEAD_BYTES, NULL);
		break;
	}
	return events;
}

static void dgram_meet(struct cadge_ctx *ctx)
{
	const uint64_t now_ns = cadge_greeting_now_ns();

	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (chan->connected && !chan->state.up)
			cadge_greet_again(&chan->greeting, now_ns, dgram_greet, chan);
	}
}

static int dgram_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_data_entry entry[DGRAM_EVENTS];
	const ssize_t count = fi_cq_read(ctx->ofi.cq, entry, DGRAM_EVENTS);
	struct fi_cq_err_entry error = {0};
	int events = 0;

	for (ssize_t i = 0; i < count; i++) {
		struct dgram_buffer *buffer = entry[i].op_context;

		if (!(entry[i].flags & FI_RECV)) /* udp tells of sends that asked for no completion */
			continue;
		events += dgram_received(ctx, buffer->data, entry[i].len, sink);
		if (dgram_repost(ctx, buffer) < 0)
			return CADGE_E_LIBRARY;
	}
	/* a datagram that was no good is as good as lost */
	if (count == -FI_EAVAIL && cadge_ofi_read_error(&ctx->ofi, &error) > 0 && error.op_context &&
	    dgram_repost(ctx, error.op_context) < 0)
		return CADGE_E_LIBRARY;
	if (count < 0 && count != -FI_EAGAIN && count != -FI_EAVAIL)
		return CADGE_E_LIBRARY;
	if (ctx->meeting)
		dgram_meet(ctx);
	return events;
}

static int dgram_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return cadge_ofi_wait(&ctx->ofi,
			      ctx->meeting ? cadge_least(timeout_ns, CADGE_HELLO_PERIOD_NS) : timeout_ns);
}

static int dgram_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	const int code = cadge_ofi_event(&ctx->ofi, fd_out);

	if (code == CADGE_DONE)
		*due_ns_out = ctx->meeting ? CADGE_HELLO_PERIOD_NS : UINT64_MAX;
	return code;
}

/* ---- life ---- */

static void dgram_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	cadge_ofi_close(&ctx->ofi);
	free(ctx->buffers);
	free(ctx->chan);
	free(ctx);
}

static int dgram_make_buffers(struct cadge_ctx *ctx)
{
	int code = CADGE_DONE;

	ctx->buffer_bytes = (sizeof(struct dgram_buffer) + ctx->datagram_bytes + 63) / 64 * 64;
	ctx->buffers = aligned_alloc(64, DGRAM_POSTED * ctx->buffer_bytes);
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	if (!ctx->buffers || !ctx->chan)
		return CADGE_E_MEMORY;
	for (uint32_t i = 0; i < DGRAM_POSTED && code == CADGE_DONE; i++)
		code = dgram_repost(ctx,
				    (struct dgram_buffer *)(void *)(ctx->buffers + i * ctx->buffer_bytes));
	return code;
}

static const struct cadge_layer dgram_layer;

static int dgram_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	const struct cadge_ofi_needs needs = {
		.caps = FI_MSG, .provider = "udp", .datagrams = true, .completions = 2 * DGRAM_POSTED};
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, dgram_layer.caps, NULL, DGRAM_PEERS_MAX);

	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, DGRAM_DEPTH_MAX);
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code != CADGE_DONE) {
		free(ctx);
		return code;
	}
	/* what goes at once: all that one datagram holds */
	ctx->datagram_bytes = (size_t)cadge_least(ctx->ofi.info->ep_attr->max_msg_size,
						  ctx->ofi.info->tx_attr->inject_size);
	ctx->iov_max = (uint32_t)cadge_least(ctx->ofi.info->tx_attr->iov_limit, 8) - 1;
	code = dgram_make_buffers(ctx);
	if (code != CADGE_DONE) {
		dgram_close(ctx);
		return cadge_refuse(args, code, "no receive buffers for datagrams");
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void dgram_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const uint64_t bytes = ctx->datagram_bytes - DGRAM_HEAD_BYTES;
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(dgram_layer.caps, ctx->ofi.place, ctx->ofi.wait_mode),
		.message_bytes_max = bytes,
		.depth_max = ctx->depth,
		.iov_max = ctx->iov_max,
		.wire_overhead_bytes = DGRAM_HEAD_BYTES,
		.short_bytes_max = bytes,
		.short_path = "one datagram",
		.long_path = "one datagram",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int dgram_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	char name[CADGE_OFI_NAME_BYTES];
	size_t name_bytes = sizeof(name);
	int code;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_name(&ctx->ofi, name, &name_bytes);
	if (code != CADGE_DONE)
		return code;
	cadge_blob_u32(&out, cadge_stamp_given(&ctx->chan[peer].greeting, peer));
	cadge_blob_bytes(&out, name, name_bytes);
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int dgram_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const uint32_t stamp = cadge_blob_take_u32(&in);
	size_t name_bytes;
	const void *name = cadge_blob_take_bytes(&in, &name_bytes);
	struct cadge_chan *chan;
	int code;

	if (!in.ok || in.left_bytes || peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	if (chan->connected || cadge_stamp_take(&chan->greeting, stamp) < 0)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_insert(&ctx->ofi, name, name_bytes, &chan->addr);
	if (code != CADGE_DONE)
		return code;
	chan->ctx = ctx;
	chan->peer = peer;
	chan->connected = true;
	ctx->meeting++;
	*chan_out = chan;
	return CADGE_DONE;
}

static int dgram_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const struct cadge_greeting next = cadge_greeting_next(&chan->greeting);

	ctx->meeting -= !chan->state.up;
	cadge_ofi_remove(&ctx->ofi, chan->addr);
	*chan = (struct cadge_chan){.greeting = next};
	return CADGE_DONE;
}

static int dgram_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};

	cadge_ofi_describe(&chan->ctx->ofi, &path);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* Into the socket's buffer, and out of it into the buffer that was posted. */
static void dgram_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_KERNEL_OR_NIC,
		.control_transfer = CADGE_CONTROL_POLL,
		.waker = ctx->ofi.wait_fd < 0 ? CADGE_WAKER_NONE : CADGE_WAKER_KERNEL,
		.granule_bytes = (uint32_t)ctx->datagram_bytes,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *dgram_why(const struct cadge_ctx *ctx)
{
	return ctx->ofi.why;
}

static void dgram_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "strangers", ctx->strangers);
	each(arg, "busy_posts", ctx->busy_posts);
}

static const struct cadge_layer dgram_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "native-dgram",
	.style = "native",
	.substrate = "dgram",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
		CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY,
	.open = dgram_open,
	.close = dgram_close,
	.limits = dgram_limits,
	.address = dgram_address,
	.connect = dgram_connect,
	.disconnect = dgram_disconnect,
	.post = dgram_post,
	.poll = dgram_poll,
	.describe_path = dgram_describe_path,
	.library = cadge_ofi_library,
	.semantics = cadge_semantics_of_messages,
	.traits = dgram_traits,
	.wait = dgram_wait,
	.event = dgram_event,
	.counters = dgram_counters,
	.why = dgram_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &dgram_layer;
}
