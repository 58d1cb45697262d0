/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric messages as they are: fi_inject and fi_send on one FI_EP_RDM endpoint, received into buffers that
 * were posted before.
 *
 * Who sent a message stands in the 32 low bits of libfabric's immediate data, so the payload travels without
 * any header of ours: the slot number that the receiver put into its address, a generation that makes
 * messages of an earlier life of a slot recognisable, and the kind of message. Two kinds beside data make
 * `up`: HELLO says "you can reach me and I know you", WELCOME answers it.
 *
 * Receive buffers hold the longest message each. Only a few are posted at a time and free ones are a stack,
 * so that a ping-pong runs in the same warm lines whatever the depth; a message that finds none posted waits
 * inside libfabric, which stops its sender in the end (FI_EAGAIN). The pool is address space that is touched
 * only when it is needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kit/bytes.h"
#include "native/ofi_flow.h"

static void ofi_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->lends && i < ctx->lends_count; i++)
		cadge_ofi_take_back(&ctx->ofi, &ctx->lends[i].context);
	cadge_ofi_close(&ctx->ofi);
	if (ctx->pool)
		munmap(ctx->pool, ctx->pool_bytes);
	free(ctx->lends);
	free(ctx->sends);
	free(ctx->chan);
	free(ctx);
}

/* Buffers do not begin at the same offset of a page, so that their first lines do not fight for one cache
 * set. */
static int ofi_make_buffers(struct cadge_ctx *ctx, uint32_t count, size_t stride_bytes)
{
	uint32_t i;

	ctx->lends = calloc(count, sizeof(*ctx->lends));
	ctx->lends_count = count;
	ctx->pool_bytes = count * stride_bytes;
	ctx->pool = mmap(NULL, ctx->pool_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ctx->pool == MAP_FAILED)
		ctx->pool = NULL;
	if (!ctx->lends || !ctx->pool)
		return CADGE_E_MEMORY;
	for (i = count; i-- > 0;) {
		ctx->lends[i].data = (char *)ctx->pool + i * stride_bytes;
		CADGE_POOL_GIVE(ctx->free_lend, &ctx->lends[i]);
	}
	ctx->posted_wanted = CADGE_POSTED_MOST;
	return native_ofi_repost(ctx, CADGE_POSTED_MOST);
}

static int ofi_make_sends(struct cadge_ctx *ctx)
{
	size_t i;

	ctx->sends_count = (size_t)ctx->depth * ctx->peers;
	ctx->sends = calloc(ctx->sends_count, sizeof(*ctx->sends));
	if (!ctx->sends)
		return CADGE_E_MEMORY;
	for (i = 0; i < ctx->sends_count; i++)
		CADGE_POOL_GIVE(ctx->free_send, &ctx->sends[i]);
	return CADGE_DONE;
}

static const struct cadge_layer ofi_layer;

static int ofi_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ofi_needs needs = {.caps = FI_MSG, .msg_order = FI_ORDER_SAS};
	/* An odd number of lines more than the message: see ofi_make_buffers. */
	uint64_t stride_bytes = ((args->message_bytes_max + 127) / 128 * 2 + 1) * 64;
	struct cadge_ctx *ctx;
	uint64_t buffers;
	int code;

	code = cadge_open_check(args, ofi_layer.caps, cadge_ofi_options, OFI_PEERS_MAX);
	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CADGE_E_MEMORY;
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, OFI_DEPTH_MAX);
	ctx->message_bytes_max = args->message_bytes_max;
	buffers = (uint64_t)ctx->depth * ctx->peers + OFI_SPARE;
	if (buffers * stride_bytes > OFI_POOL_BYTES)
		buffers =
			OFI_POOL_BYTES / stride_bytes > OFI_SPARE ? OFI_POOL_BYTES / stride_bytes : OFI_SPARE;
	needs.completions = (size_t)ctx->depth * ctx->peers + CADGE_POSTED_MOST;
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code) {
		free(ctx);
		return code;
	}
	ctx->message_bytes_max = cadge_ofi_longest(&ctx->ofi, ctx->message_bytes_max);
	ctx->iov_max = (uint32_t)ctx->ofi.info->tx_attr->iov_limit;
	ctx->inject_bytes = ctx->ofi.info->tx_attr->inject_size;
	ctx->eager_bytes = cadge_ofi_eager_bytes();
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	code = ctx->chan ? ofi_make_sends(ctx) : CADGE_E_MEMORY;
	if (!code)
		code = ofi_make_buffers(ctx, (uint32_t)buffers, stride_bytes);
	if (code) {
		snprintf(args->error, args->error_bytes, "no memory for %llu receive buffers of %llu bytes",
			 (unsigned long long)buffers, (unsigned long long)args->message_bytes_max);
		ofi_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

/*
 * Messages are matched in the order of their posts, but ofi_rxm completes a short one before a long one that
 * it still fetches. So order is granted where no message can be long, and by shm always.
 */
static bool ofi_ordered(const struct cadge_ctx *ctx)
{
	return !ctx->ofi.network || ctx->message_bytes_max <= ctx->eager_bytes;
}

static void ofi_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(ofi_layer.caps, ctx->ofi.place, ctx->ofi.wait_mode) &
			~(ofi_ordered(ctx) ? 0 : CADGE_CAP_ORDERED),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = ctx->iov_max,
		.short_bytes_max = ctx->inject_bytes,
		.short_path = "inject",
		.long_path = ctx->ofi.network ? "send: eager, segments or rendezvous, as the provider decides"
					      : "send: as the provider decides",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int ofi_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	char name[CADGE_OFI_NAME_BYTES];
	size_t name_bytes = sizeof(name);
	int code;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_name(&ctx->ofi, name, &name_bytes);
	if (code)
		return code;
	cadge_blob_u32(&out, cadge_stamp_given(&ctx->chan[peer].greeting, peer));
	cadge_blob_bytes(&out, name, name_bytes);
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int ofi_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t stamp = cadge_blob_take_u32(&in);
	size_t name_bytes;
	const void *name = cadge_blob_take_bytes(&in, &name_bytes);
	struct cadge_chan *chan;
	int code;

	if (!in.ok || peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	if (chan->connected || cadge_stamp_take(&chan->greeting, stamp) < 0)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_insert(&ctx->ofi, name, name_bytes, &chan->addr);
	if (code)
		return code;
	chan->ctx = ctx;
	chan->peer = peer;
	chan->connected = true;
	ctx->pending++;
	*chan_out = chan;
	return CADGE_DONE;
}

static int ofi_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const struct cadge_greeting next = cadge_greeting_next(&chan->greeting);
	size_t i;

	for (i = 0; i < ctx->sends_count; i++)
		if (ctx->sends[i].chan == chan)
			ctx->sends[i].chan = NULL;
	if (!chan->announced)
		ctx->pending--;
	cadge_ofi_remove(&ctx->ofi, chan->addr);
	memset(chan, 0, sizeof(*chan));
	chan->greeting = next;
	return CADGE_DONE;
}

/* A greeting that found no connection yet is tried again by poll. */
#define OFI_GREET_PERIOD_NS UINT64_C(1000000)

static int ofi_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	if (ctx->pending && timeout_ns > OFI_GREET_PERIOD_NS)
		timeout_ns = OFI_GREET_PERIOD_NS;
	return cadge_ofi_wait(&ctx->ofi, timeout_ns);
}

static int ofi_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	const int code = cadge_ofi_event(&ctx->ofi, fd_out);

	if (code == CADGE_DONE)
		*due_ns_out = ctx->pending ? OFI_GREET_PERIOD_NS : UINT64_MAX;
	return code;
}

static int ofi_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};

	cadge_ofi_describe(&chan->ctx->ofi, &path);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* Short messages: into the command or the socket, out of it into the posted buffer. */
static void ofi_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.flow = CADGE_FLOW_LIBRARY,
		.order = ofi_ordered(ctx) ? CADGE_ORDER_CHANNEL : CADGE_ORDER_NONE,
		.waker = ctx->ofi.wait_fd < 0 ? CADGE_WAKER_NONE : CADGE_WAKER_KERNEL,
		.copies_on_send = 1,
		.copies_on_receive = 1,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *ofi_why(const struct cadge_ctx *ctx)
{
	return ctx->ofi.why;
}

static void ofi_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "stale_messages", ctx->stale_messages);
	each(arg, "busy_posts", ctx->busy_posts);
}

static const struct cadge_layer ofi_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "native-ofi",
	.style = "native",
	.substrate = "ofi",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
		CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
		CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY,
	.options = cadge_ofi_options,
	.open = ofi_open,
	.close = ofi_close,
	.limits = ofi_limits,
	.address = ofi_address,
	.connect = ofi_connect,
	.disconnect = ofi_disconnect,
	.post = native_ofi_post,
	.poll = native_ofi_poll,
	.describe_path = ofi_describe_path,
	.library = cadge_ofi_library,
	.semantics = cadge_semantics_of_messages,
	.traits = ofi_traits,
	.wait = ofi_wait,
	.event = ofi_event,
	.release = native_ofi_release,
	.counters = ofi_counters,
	.why = ofi_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &ofi_layer;
}
