/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric messages as they are: fi_inject and fi_send on one FI_EP_RDM endpoint, received into buffers that were posted
 * before.
 *
 * Who sent a message stands in the 32 low bits of libfabric's immediate data, so the payload travels without any header of
 * ours: the slot number that the receiver put into its address, a generation that makes messages of an earlier life of a
 * slot recognisable, and the kind of message. Two kinds beside data make `up`: HELLO says "you can reach me and I know
 * you", WELCOME answers it.
 *
 * Receive buffers hold the longest message each. Only a few are posted at a time and free ones are a stack, so that a
 * ping-pong runs in the same warm lines whatever the depth; a message that finds none posted waits inside libfabric,
 * which stops its sender in the end (FI_EAGAIN). The pool is address space that is touched only when it is needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/ofi.h"
#include "common/wire.h"

enum {
	OFI_POSTED = 8,		 /* receive buffers posted at a time */
	OFI_POSTED_LOW = 4,	 /* below this they are posted at once, else when nothing else is to do */
	OFI_SPARE = 16,		 /* buffers beyond those that a caller may keep */
	OFI_EVENTS = 16,	 /* most events in one poll */
	OFI_PEERS_MAX = 0xffff,	 /* slots that fit into the immediate data */
	OFI_DEPTH_MAX = 1024,	 /* sends in flight a channel */
};
#define OFI_POOL_BYTES (UINT64_C(1) << 30) /* most address space for receive buffers */
#define OFI_RXM_EAGER_BYTES 16384u	   /* above it ofi_rxm lets a message wait for the receiver */

enum ofi_kind { OFI_DATA = 0, OFI_HELLO = 1, OFI_WELCOME = 2 };
enum { OFI_KIND_SHIFT = 30, OFI_GENERATION_SHIFT = 16, OFI_GENERATION_MASK = 0x3fff, OFI_SLOT_MASK = 0xffff };

/* A send in flight. The first member is libfabric's. */
struct ofi_send {
	struct fi_context2 context;
	struct cadge_chan *chan; /* NULL after disconnect: no event */
	uint64_t token;
	struct ofi_send *next;
};

/* A receive buffer; what a caller keeps of a message is this. The first member is libfabric's. */
struct cadge_lend {
	struct fi_context2 context;
	void *data;
	struct cadge_lend *next;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	fi_addr_t addr;
	uint32_t peer;
	uint32_t generation;	  /* of our slot for this peer */
	uint32_t peer_stamp;	  /* slot and generation that the peer wants to see */
	bool connected, up, down, announced;
	bool hello_sent, hello_seen, welcome_sent, welcome_seen;
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	uint32_t peers, depth;
	uint32_t pending;	  /* channels that are connected and not yet announced */
	uint32_t posted;
	uint64_t message_bytes_max;
	size_t inject_bytes, pool_bytes;
	uint32_t iov_max;
	struct cadge_chan *chan;
	struct ofi_send *sends, *free_send;
	size_t sends_count;
	struct cadge_lend *lends, *free_lend;
	void *pool;
	uint64_t stale_messages, busy_posts;
};

static uint32_t ofi_stamp(enum ofi_kind kind, uint32_t stamp)
{
	return (uint32_t)kind << OFI_KIND_SHIFT | stamp;
}

/* Posts free buffers until so many are posted. A full receive queue is no error: the next poll tries again. */
static int ofi_repost(struct cadge_ctx *ctx, uint32_t wanted)
{
	while (ctx->posted < wanted && ctx->free_lend) {
		struct cadge_lend *lend = ctx->free_lend;
		ssize_t ret = fi_recv(ctx->ofi.ep, lend->data, ctx->message_bytes_max, NULL, FI_ADDR_UNSPEC,
				      &lend->context);

		if (ret)
			return ret == -FI_EAGAIN ? CADGE_DONE : cadge_ofi_code(ret);
		ctx->free_lend = lend->next;
		ctx->posted++;
	}
	return CADGE_DONE;
}

static void ofi_free_lend(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	lend->next = ctx->free_lend;
	ctx->free_lend = lend;
}

static void ofi_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	cadge_ofi_close(&ctx->ofi);
	if (ctx->pool)
		munmap(ctx->pool, ctx->pool_bytes);
	free(ctx->lends);
	free(ctx->sends);
	free(ctx->chan);
	free(ctx);
}

/* Buffers do not begin at the same offset of a page, so that their first lines do not fight for one cache set. */
static int ofi_make_buffers(struct cadge_ctx *ctx, uint32_t count, size_t stride_bytes)
{
	uint32_t i;

	ctx->lends = calloc(count, sizeof(*ctx->lends));
	ctx->pool_bytes = count * stride_bytes;
	ctx->pool = mmap(NULL, ctx->pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ctx->pool == MAP_FAILED)
		ctx->pool = NULL;
	if (!ctx->lends || !ctx->pool)
		return CADGE_E_MEMORY;
	for (i = count; i-- > 0;) {
		ctx->lends[i].data = (char *)ctx->pool + i * stride_bytes;
		ofi_free_lend(ctx, &ctx->lends[i]);
	}
	return ofi_repost(ctx, OFI_POSTED);
}

static int ofi_make_sends(struct cadge_ctx *ctx)
{
	size_t i;

	ctx->sends_count = (size_t)ctx->depth * ctx->peers;
	ctx->sends = calloc(ctx->sends_count, sizeof(*ctx->sends));
	if (!ctx->sends)
		return CADGE_E_MEMORY;
	for (i = 0; i < ctx->sends_count; i++) {
		ctx->sends[i].next = ctx->free_send;
		ctx->free_send = &ctx->sends[i];
	}
	return CADGE_DONE;
}

static int ofi_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ofi_needs needs = {.caps = FI_MSG, .msg_order = FI_ORDER_SAS};
	/* An odd number of lines more than the message: see ofi_make_buffers. */
	uint64_t stride_bytes = ((args->message_bytes_max + 127) / 128 * 2 + 1) * 64;
	struct cadge_ctx *ctx;
	uint64_t buffers;
	int code;

	if (args->place == CADGE_PLACE_SELF || args->peers_max > OFI_PEERS_MAX) {
		snprintf(args->error, args->error_bytes, "libfabric messages connect two processes, at most %d a context",
			 OFI_PEERS_MAX);
		return CADGE_E_UNSUPPORTED;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CADGE_E_MEMORY;
	ctx->peers = args->peers_max;
	ctx->depth = args->depth_max < OFI_DEPTH_MAX ? args->depth_max : OFI_DEPTH_MAX;
	ctx->message_bytes_max = args->message_bytes_max;
	buffers = (uint64_t)ctx->depth * ctx->peers + OFI_SPARE;
	if (buffers * stride_bytes > OFI_POOL_BYTES)
		buffers = OFI_POOL_BYTES / stride_bytes > OFI_SPARE ? OFI_POOL_BYTES / stride_bytes : OFI_SPARE;
	needs.completions = (size_t)ctx->depth * ctx->peers + OFI_POSTED;
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code) {
		free(ctx);
		return code;
	}
	ctx->iov_max = (uint32_t)ctx->ofi.info->tx_attr->iov_limit;
	ctx->inject_bytes = ctx->ofi.info->tx_attr->inject_size;
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
 * Messages are matched in the order of their posts, but ofi_rxm completes a short one before a long one that it still
 * fetches. So order is granted where no message can be long, and by shm always.
 */
static bool ofi_ordered(const struct cadge_ctx *ctx)
{
	return !ctx->ofi.network || ctx->message_bytes_max <= OFI_RXM_EAGER_BYTES;
}

static const struct cadge_layer ofi_layer;

static void ofi_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	uint64_t without = 0;

	if (ctx->ofi.wait_fd < 0)
		without |= CADGE_CAP_WAIT;
	if (!ofi_ordered(ctx))
		without |= CADGE_CAP_ORDERED;
	without |= ctx->ofi.place == CADGE_PLACE_HOST ? CADGE_CAP_NET : CADGE_CAP_HOST;
	limits_out->caps = ofi_layer.caps & ~without;
	limits_out->message_bytes_max = ctx->message_bytes_max;
	limits_out->rma_bytes_max = 0;
	limits_out->depth_max = ctx->depth;
	limits_out->iov_max = ctx->iov_max;
	limits_out->token_bytes = 0;
	limits_out->wire_overhead_bytes = 0;
	limits_out->short_bytes_max = ctx->inject_bytes;
	limits_out->short_path = "inject";
	limits_out->long_path = ctx->ofi.network ? "send: eager to 16 KiB, then rendezvous" : "send: one copy between processes";
}

static int ofi_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	char name[512];
	size_t name_bytes = sizeof(name);
	int code;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_name(&ctx->ofi, name, &name_bytes);
	if (code)
		return code;
	cadge_blob_u32(&out, ctx->chan[peer].generation << OFI_GENERATION_SHIFT | peer);
	cadge_blob_bytes(&out, name, name_bytes);
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int ofi_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes, struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t stamp = cadge_blob_take_u32(&in);
	size_t name_bytes;
	const void *name = cadge_blob_take_bytes(&in, &name_bytes);
	struct cadge_chan *chan;
	char copy[512] = {0};
	int code;

	if (!in.ok || !name_bytes || name_bytes >= sizeof(copy) || peer >= ctx->peers || stamp >> OFI_KIND_SHIFT)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	if (chan->connected)
		return CADGE_E_ARGUMENT;
	memcpy(copy, name, name_bytes);
	code = cadge_ofi_insert(&ctx->ofi, copy, &chan->addr);
	if (code)
		return code;
	chan->ctx = ctx;
	chan->peer = peer;
	chan->peer_stamp = stamp;
	chan->connected = true;
	ctx->pending++;
	*chan_out = chan;
	return CADGE_DONE;
}

static int ofi_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	uint32_t generation = (chan->generation + 1) & OFI_GENERATION_MASK;
	size_t i;

	for (i = 0; i < ctx->sends_count; i++)
		if (ctx->sends[i].chan == chan)
			ctx->sends[i].chan = NULL;
	if (!chan->announced)
		ctx->pending--;
	cadge_ofi_remove(&ctx->ofi, chan->addr);
	memset(chan, 0, sizeof(*chan));
	chan->generation = generation;
	return CADGE_DONE;
}

static int ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint64_t stamp = ofi_stamp(OFI_DATA, chan->peer_stamp);
	struct iovec parts[8];
	struct fi_msg msg = {.msg_iov = parts, .iov_count = count, .addr = chan->addr, .data = stamp};
	struct ofi_send *send;
	size_t bytes = 0;
	ssize_t ret;
	uint32_t i;

	(void)flags; /* MORE needs capability BATCH */
	if (count > ctx->iov_max || count > sizeof(parts) / sizeof(parts[0]))
		return CADGE_E_ARGUMENT;
	for (i = 0; i < count; i++)
		bytes += iov[i].bytes;
	if (bytes > ctx->message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (!chan->up)
		return chan->down ? CADGE_E_DOWN : CADGE_BUSY;
	for (i = 0; count != 1 && i < count; i++)
		parts[i] = (struct iovec){.iov_base = iov[i].base, .iov_len = iov[i].bytes};
	if (bytes <= ctx->inject_bytes) {
		if (count == 1 || !bytes)
			ret = fi_injectdata(ctx->ofi.ep, bytes ? iov->base : NULL, bytes, stamp, chan->addr);
		else
			ret = fi_sendmsg(ctx->ofi.ep, &msg, FI_INJECT | FI_REMOTE_CQ_DATA);
		if (!ret)
			return CADGE_DONE;
		goto refused;
	}
	send = ctx->free_send;
	if (!send)
		return CADGE_BUSY;
	if (count == 1) {
		ret = fi_senddata(ctx->ofi.ep, iov->base, bytes, NULL, stamp, chan->addr, &send->context);
	} else {
		msg.context = &send->context;
		ret = fi_sendmsg(ctx->ofi.ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA);
	}
	if (!ret) {
		ctx->free_send = send->next;
		send->chan = chan;
		send->token = token;
		return CADGE_QUEUED;
	}
refused:
	if (ret != -FI_EAGAIN)
		return CADGE_E_DOWN;
	ctx->busy_posts++;
	return CADGE_BUSY;
}

/* Sends what the handshake of a channel still lacks; true once both sides know that both directions work. */
static bool ofi_greet(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (!chan->hello_sent)
		chan->hello_sent = !fi_injectdata(ctx->ofi.ep, NULL, 0, ofi_stamp(OFI_HELLO, chan->peer_stamp), chan->addr);
	if (chan->hello_seen && !chan->welcome_sent)
		chan->welcome_sent = !fi_injectdata(ctx->ofi.ep, NULL, 0, ofi_stamp(OFI_WELCOME, chan->peer_stamp),
						    chan->addr);
	return chan->welcome_sent && chan->welcome_seen;
}

static int ofi_greet_all(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (!chan->connected || chan->announced || !ofi_greet(ctx, chan))
			continue;
		chan->announced = true;
		chan->up = true;
		ctx->pending--;
		sink->up(sink, peer);
		events++;
	}
	return events;
}

static int ofi_down(struct cadge_ctx *ctx, struct cadge_chan *chan, struct cadge_sink *sink)
{
	if (chan->down || !chan->connected)
		return 0;
	if (!chan->announced)
		ctx->pending--;
	chan->announced = true;
	chan->up = false;
	chan->down = true;
	sink->down(sink, chan->peer, CADGE_E_DOWN);
	return 1;
}

static int ofi_sent(struct cadge_ctx *ctx, struct ofi_send *send, struct cadge_sink *sink, int code)
{
	struct cadge_chan *chan = send->chan;
	int events = 0;

	send->chan = NULL;
	send->next = ctx->free_send;
	ctx->free_send = send;
	if (chan) {
		sink->sent(sink, chan->peer, send->token, code);
		events++;
		if (code)
			events += ofi_down(ctx, chan, sink);
	}
	return events;
}

static int ofi_received(struct cadge_ctx *ctx, const struct fi_cq_data_entry *entry, struct cadge_sink *sink)
{
	struct cadge_lend *lend = entry->op_context;
	uint32_t slot = (uint32_t)entry->data & OFI_SLOT_MASK;
	uint32_t generation = (uint32_t)entry->data >> OFI_GENERATION_SHIFT & OFI_GENERATION_MASK;
	struct cadge_chan *chan = slot < ctx->peers ? &ctx->chan[slot] : NULL;
	enum cadge_keep keep = CADGE_TAKEN;
	int events = 0;

	ctx->posted--;
	if (!chan || generation != chan->generation || !(entry->flags & FI_REMOTE_CQ_DATA)) {
		ctx->stale_messages++;
	} else {
		switch ((enum ofi_kind)(entry->data >> OFI_KIND_SHIFT & 3)) {
		case OFI_DATA:
			/* The peer was up before us: its WELCOME came earlier, but ours is announced now. */
			if (!chan->announced)
				events += ofi_greet_all(ctx, sink);
			keep = sink->recv(sink, slot, lend->data, entry->len, lend);
			events++;
			break;
		case OFI_HELLO:
			chan->hello_seen = true;
			break;
		case OFI_WELCOME:
			chan->welcome_seen = true;
			break;
		}
	}
	if (keep == CADGE_TAKEN)
		ofi_free_lend(ctx, lend);
	return events;
}

/* A failed operation. Receives fail when we cancel or the library gives up; what cannot be told apart breaks the context. */
static int ofi_failed_entry(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_readerr(ctx->ofi.cq, &error, 0);
	const char *at = error.op_context;

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return CADGE_E_LIBRARY;
	if (at >= (const char *)ctx->sends && at < (const char *)(ctx->sends + ctx->sends_count))
		return ofi_sent(ctx, error.op_context, sink, CADGE_E_DOWN);
	if (at >= (const char *)ctx->lends && error.flags & FI_RECV) {
		ctx->posted--;
		ofi_free_lend(ctx, error.op_context);
	}
	/* With one peer it is clear whose connection broke. */
	return ctx->peers == 1 ? ofi_down(ctx, &ctx->chan[0], sink) : CADGE_E_LIBRARY;
}

static int ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_data_entry entry[OFI_EVENTS];
	ssize_t count = fi_cq_read(ctx->ofi.cq, entry, OFI_EVENTS), i;
	int events = 0, code;

	if (count > 0) {
		for (i = 0; i < count; i++) {
			if (entry[i].flags & FI_RECV)
				events += ofi_received(ctx, &entry[i], sink);
			else if (entry[i].op_context)
				events += ofi_sent(ctx, entry[i].op_context, sink, CADGE_DONE);
		}
	} else if (count == -FI_EAVAIL) {
		events = ofi_failed_entry(ctx, sink);
		if (events < 0)
			return events;
	} else if (count != -FI_EAGAIN) {
		return CADGE_E_LIBRARY;
	}
	if (ctx->posted < OFI_POSTED) {
		/* One buffer more when there is time to spare, so that posting it delays no reply. */
		code = ofi_repost(ctx, count == -FI_EAGAIN ? ctx->posted + 1 : OFI_POSTED_LOW);
		if (code)
			return code;
	}
	return ctx->pending ? events + ofi_greet_all(ctx, sink) : events;
}

static int ofi_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	/* A greeting that found no connection yet is tried again by poll. */
	if (ctx->pending && timeout_ns > 1000000)
		timeout_ns = 1000000;
	return cadge_ofi_wait(&ctx->ofi, timeout_ns);
}

static void ofi_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	ofi_free_lend(ctx, lend);
}

static int ofi_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	cadge_ofi_describe(&chan->ctx->ofi, path_out);
	return CADGE_DONE;
}

static void ofi_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	(void)ctx;
	semantics_out->message = CADGE_PROGRESS_LIBRARY;
	semantics_out->put = CADGE_PROGRESS_NONE;
	semantics_out->get = CADGE_PROGRESS_NONE;
	semantics_out->fetch_add = CADGE_PROGRESS_NONE;
}

static void ofi_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
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
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |
		CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_COUNTERS,
	/* Short messages: into the command or the socket, out of it into the posted buffer. */
	.traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.copies_on_send = 1,
		.copies_on_receive = 1,
		.multiprogramming = 1,
	},
	.options = cadge_ofi_options,
	.open = ofi_open,
	.close = ofi_close,
	.limits = ofi_limits,
	.address = ofi_address,
	.connect = ofi_connect,
	.disconnect = ofi_disconnect,
	.post = ofi_post,
	.poll = ofi_poll,
	.describe_path = ofi_describe_path,
	.library = cadge_ofi_library,
	.semantics = ofi_semantics,
	.wait = ofi_wait,
	.release = ofi_release,
	.counters = ofi_counters,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &ofi_layer;
}
