/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, receiving and greeting of native-ofi; see ofi.c. */
#include "native/ofi_flow.h"

int native_ofi_repost(struct cadge_ctx *ctx, uint32_t wanted)
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

int native_ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint64_t stamp = cadge_stamp(&chan->greeting, CADGE_STAMP_DATA);
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
		return cadge_ofi_refused(&ctx->ofi, ret);
	ctx->busy_posts++;
	return CADGE_BUSY;
}

static bool ofi_send_greeting(void *arg, enum cadge_stamp_kind kind)
{
	const struct cadge_chan *chan = arg;

	return !fi_injectdata(chan->ctx->ofi.ep, NULL, 0, cadge_stamp(&chan->greeting, kind), chan->addr);
}

static int ofi_greet_all(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (!chan->connected || chan->announced ||
		    !cadge_greet(&chan->greeting, ofi_send_greeting, chan))
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
	CADGE_POOL_GIVE(ctx->free_send, send);
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
	const uint32_t stamp = (uint32_t)entry->data, slot = cadge_stamp_slot(stamp);
	struct cadge_chan *chan = slot < ctx->peers ? &ctx->chan[slot] : NULL;
	enum cadge_keep keep = CADGE_TAKEN;
	int events = 0;

	ctx->posted--;
	ctx->posted_wanted = cadge_posted_after(entry->len);
	if (!chan || !cadge_stamp_fits(&chan->greeting, stamp) || !(entry->flags & FI_REMOTE_CQ_DATA)) {
		ctx->stale_messages++;
	} else {
		switch (cadge_stamp_kind(stamp)) {
		case CADGE_STAMP_DATA:
			/* The peer was up before us: its WELCOME came earlier, but ours is announced now. */
			if (!chan->announced)
				events += ofi_greet_all(ctx, sink);
			keep = sink->recv(sink, slot, lend->data, entry->len, lend);
			events++;
			break;
		case CADGE_STAMP_HELLO: chan->greeting.hello_seen = true; break;
		case CADGE_STAMP_WELCOME: chan->greeting.welcome_seen = true; break;
		}
	}
	if (keep == CADGE_TAKEN)
		CADGE_POOL_GIVE(ctx->free_lend, lend);
	return events;
}

/* A failed operation. Receives fail when we cancel or the library gives up; what cannot be told apart breaks
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
	return ctx->peers == 1 ? ofi_down(ctx, &ctx->chan[0], sink) : CADGE_E_LIBRARY;
}

int native_ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
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
	if (ctx->posted < ctx->posted_wanted) {
		/* One buffer more when there is time to spare, so that posting it delays no reply. */
		code = native_ofi_repost(ctx, count == -FI_EAGAIN ? ctx->posted + 1 : ctx->posted_wanted / 2);
		if (code)
			return code;
	}
	return ctx->pending ? events + ofi_greet_all(ctx, sink) : events;
}

void native_ofi_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	CADGE_POOL_GIVE(ctx->free_lend, lend);
}
