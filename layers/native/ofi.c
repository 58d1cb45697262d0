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
 * inside libfabric, which stops its sender in the end (FI_EAGAIN).
 */
#include "native/fabric.h"
#include "kit/bytes.h"
#include "wire/ofi/params.h"

/* ---- flow ---- */

static int ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint64_t stamp = cadge_stamp(&chan->greeting, CADGE_STAMP_DATA);
	struct iovec parts[FABRIC_PARTS];
	struct fi_msg msg = {.msg_iov = parts, .iov_count = count, .addr = chan->addr, .data = stamp};
	struct fabric_send *send;
	size_t bytes;
	ssize_t ret;
	const int code = cadge_iov_check(iov, count, ctx->iov_max, ctx->message_bytes_max, &bytes);

	(void)flags; /* MORE needs capability BATCH */
	if (code != CADGE_DONE)
		return code;
	if (!chan->state.up)
		return cadge_usable(&chan->state);
	for (uint32_t i = 0; count != 1 && i < count; i++)
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
	return fabric_refused(ctx, ret);
}

static bool ofi_send_greeting(void *arg, enum cadge_stamp_kind kind)
{
	const struct cadge_chan *chan = arg;

	return !fi_injectdata(chan->ctx->ofi.ep, NULL, 0, cadge_stamp(&chan->greeting, kind), chan->addr);
}

static int ofi_greet_all(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (chan->connected && !chan->state.up && !chan->state.broken &&
		    cadge_greet(&chan->greeting, ofi_send_greeting, chan))
			events += fabric_report_up(chan, sink);
	}
	return events;
}

static int ofi_down(struct cadge_chan *chan, struct cadge_sink *sink)
{
	if (!chan->connected || chan->state.broken)
		return 0;
	chan->ctx->handshakes -= !chan->state.up;
	chan->state.broken = true;
	return cadge_report_down(&chan->state, sink, chan->peer);
}

static int ofi_sent(struct cadge_ctx *ctx, struct fabric_send *send, struct cadge_sink *sink, int code)
{
	struct cadge_chan *chan = send->chan;
	int events = 0;

	send->chan = NULL;
	CADGE_POOL_GIVE(ctx->free_send, send);
	if (chan) {
		sink->sent(sink, chan->peer, send->token, code);
		events++;
		if (code)
			events += ofi_down(chan, sink);
	}
	return events;
}

static int ofi_received(struct cadge_ctx *ctx, const struct fi_cq_data_entry *entry, struct cadge_sink *sink)
{
	struct cadge_lend *lend = entry->op_context;
	struct cadge_chan *chan = NULL;
	enum cadge_keep keep = CADGE_TAKEN;
	int events = 0;

	ctx->posted--;
	ctx->posted_wanted = cadge_posted_after(entry->len);
	if (entry->flags & FI_REMOTE_CQ_DATA)
		chan = fabric_sender(ctx, (uint32_t)entry->data);
	else
		ctx->stale++;
	if (chan) {
		switch (cadge_stamp_kind((uint32_t)entry->data)) {
		case CADGE_STAMP_DATA:
			/* The peer was up before us: its WELCOME came earlier, but ours is announced now. */
			if (!chan->state.up)
				events += ofi_greet_all(ctx, sink);
			keep = sink->recv(sink, chan->peer, lend->data, entry->len, lend);
			events++;
			break;
		case CADGE_STAMP_HELLO: chan->greeting.hello_received = true; break;
		case CADGE_STAMP_WELCOME: chan->greeting.welcome_received = true; break;
		}
	}
	if (keep == CADGE_TAKEN)
		CADGE_POOL_GIVE(ctx->free_lend, lend);
	return events;
}

/* A failed operation. Receives fail when we cancel or the library gives up; what cannot be distinguished breaks
 * the context. */
static int ofi_failed_entry(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = cadge_ofi_read_error(&ctx->ofi, &error);
	const char *at = error.op_context;
	struct cadge_lend *lend;

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return CADGE_E_LIBRARY;
	if (at >= (const char *)ctx->sends && at < (const char *)(ctx->sends + ctx->sends_count))
		return ofi_sent(ctx, error.op_context, sink, CADGE_E_DOWN);
	if (at >= (const char *)ctx->lends && error.flags & FI_RECV) {
		ctx->posted--;
		lend = error.op_context;
		CADGE_POOL_GIVE(ctx->free_lend, lend);
	}
	/* With one peer it is clear whose connection broke. */
	return ctx->peers == 1 ? ofi_down(&ctx->chan[0], sink) : CADGE_E_LIBRARY;
}

static int ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_data_entry entry[FABRIC_EVENTS];
	ssize_t count = fi_cq_read(ctx->ofi.cq, entry, FABRIC_EVENTS), i;
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
	if (ctx->posted < ctx->posted_wanted) {
		/* One buffer more when there is time to spare, so that posting it delays no reply. */
		code = fabric_repost(ctx, count == -FI_EAGAIN ? ctx->posted + 1 : ctx->posted_wanted / 2);
		if (code)
			return code;
	}
	return ctx->handshakes ? events + ofi_greet_all(ctx, sink) : events;
}

static void ofi_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	CADGE_POOL_GIVE(ctx->free_lend, lend);
}

/* ---- limits, traits, the table ---- */

static const struct cadge_layer ofi_layer;

/*
 * Messages are matched in the order of their posts, but ofi_rxm completes a short one before a long one that
 * it still fetches. So order is granted where no message can be long, and by shm always.
 */
static bool ofi_ordered(const struct cadge_ctx *ctx)
{
	return !ctx->ofi.network || ctx->message_bytes_max <= cadge_ofi_eager_bytes();
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

static const struct cadge_layer ofi_layer = {
	FABRIC_SLOTS,
	.name = "native-ofi",
	.substrate = "ofi",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
		CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
		CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY,
	.options = cadge_ofi_options,
	.limits = ofi_limits,
	.traits = ofi_traits,
	.post = ofi_post,
	.poll = ofi_poll,
	.release = ofi_release,
};

const struct fabric_type fabric_type = {
	.layer = &ofi_layer,
	.needs = {.caps = FI_MSG, .msg_order = FI_ORDER_SAS, .completions = CADGE_POSTED_MOST},
	.depth_max = 1024,
	.greeting_period_ns = UINT64_C(1000000), /* of one that found no connection yet */
	.stale_counter = "stale_messages",
};
