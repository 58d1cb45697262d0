/* SPDX-License-Identifier: BSD-3-Clause */
#include "native/fabric.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "kit/bytes.h"

#define SPARE          16u                 /* buffers beyond those that a caller may keep */
#define POOL_BYTES_MAX (UINT64_C(1) << 30) /* most address space for receive buffers */

int fabric_repost(struct cadge_ctx *ctx, uint32_t wanted)
{
	while (ctx->posted < wanted && ctx->free_lend) {
		struct cadge_lend *lend = ctx->free_lend;
		ssize_t ret = fi_recv(ctx->ofi.ep, lend->data, ctx->receive_bytes, NULL, FI_ADDR_UNSPEC,
				      &lend->context);

		if (ret)
			return ret == -FI_EAGAIN ? CADGE_DONE : cadge_ofi_code(ret);
		ctx->free_lend = lend->next;
		ctx->posted++;
	}
	return CADGE_DONE;
}

/* ---- life ---- */

void fabric_close(struct cadge_ctx *ctx)
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

/*
 * The pool is address space that is touched only when it is needed. Buffers are an odd number of lines apart, so that their
 * first lines do not fight for one cache set.
 */
static int make_receives(struct cadge_ctx *ctx)
{
	const uint64_t stride_bytes = (((uint64_t)ctx->receive_bytes + 127) / 128 * 2 + 1) * 64;
	const uint64_t most = POOL_BYTES_MAX / stride_bytes, held = (uint64_t)ctx->depth * ctx->peers + SPARE;

	ctx->lends_count = (uint32_t)cadge_least(held, most > SPARE ? most : SPARE);
	if (fabric_type.receives)
		ctx->lends_count = fabric_type.receives;
	ctx->lends = calloc(ctx->lends_count, sizeof(*ctx->lends));
	ctx->pool_bytes = ctx->lends_count * stride_bytes;
	ctx->pool = mmap(NULL, ctx->pool_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ctx->pool == MAP_FAILED)
		ctx->pool = NULL;
	if (!ctx->lends || !ctx->pool)
		return CADGE_E_MEMORY;
	for (uint32_t i = ctx->lends_count; i-- > 0;) {
		ctx->lends[i].data = (char *)ctx->pool + i * stride_bytes;
		CADGE_POOL_GIVE(ctx->free_lend, &ctx->lends[i]);
	}
	ctx->posted_wanted = fabric_type.receives ? fabric_type.receives : CADGE_POSTED_MOST;
	return fabric_repost(ctx, ctx->posted_wanted);
}

static int make(struct cadge_ctx *ctx)
{
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	ctx->sends_count = fabric_type.needs.datagrams ? 0 : (size_t)ctx->depth * ctx->peers;
	ctx->sends = calloc(ctx->sends_count + 1, sizeof(*ctx->sends));
	if (!ctx->chan || !ctx->sends)
		return CADGE_E_MEMORY;
	for (size_t i = 0; i < ctx->sends_count; i++)
		CADGE_POOL_GIVE(ctx->free_send, &ctx->sends[i]);
	return make_receives(ctx);
}

/* A datagram leaves at once: it holds no more than can be injected. */
static void read_granted(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	const struct fi_tx_attr *tx = ctx->ofi.info->tx_attr;
	const bool datagrams = fabric_type.needs.datagrams;

	ctx->receive_bytes =
		(size_t)cadge_ofi_longest(&ctx->ofi, datagrams ? tx->inject_size : args->message_bytes_max);
	ctx->message_bytes_max = ctx->receive_bytes - fabric_type.head_bytes;
	ctx->inject_bytes = datagrams ? (size_t)ctx->message_bytes_max : tx->inject_size;
	ctx->iov_max = (uint32_t)cadge_least(tx->iov_limit, FABRIC_PARTS) - (fabric_type.head_bytes > 0);
}

int fabric_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ofi_needs needs = fabric_type.needs;
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, fabric_type.layer->caps, fabric_type.layer->options,
				    CADGE_STAMP_SLOTS);

	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, fabric_type.depth_max);
	if (!needs.datagrams)
		needs.completions += (size_t)ctx->depth * ctx->peers;
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code != CADGE_DONE) {
		free(ctx);
		return code;
	}
	read_granted(ctx, args);
	code = make(ctx);
	if (code != CADGE_DONE) {
		cadge_refuse(args, code, "no memory for %u receive buffers of %zu bytes", ctx->lends_count,
			     ctx->receive_bytes);
		fabric_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

/* ---- channels ---- */

int fabric_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
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

int fabric_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
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
	ctx->handshakes++;
	*chan_out = chan;
	return CADGE_DONE;
}

int fabric_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const struct cadge_greeting next = cadge_greeting_next(&chan->greeting);

	for (size_t i = 0; i < ctx->sends_count; i++)
		if (ctx->sends[i].chan == chan)
			ctx->sends[i].chan = NULL;
	ctx->handshakes -= !chan->state.up && !chan->state.broken;
	cadge_ofi_remove(&ctx->ofi, chan->addr);
	*chan = (struct cadge_chan){.greeting = next};
	return CADGE_DONE;
}

int fabric_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return cadge_ofi_wait(&ctx->ofi, ctx->handshakes
						 ? cadge_least(timeout_ns, fabric_type.greeting_period_ns)
						 : timeout_ns);
}

int fabric_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	const int code = cadge_ofi_event(&ctx->ofi, fd_out);

	if (code == CADGE_DONE)
		*due_ns_out = ctx->handshakes ? fabric_type.greeting_period_ns : UINT64_MAX;
	return code;
}

int fabric_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};

	cadge_ofi_describe(&chan->ctx->ofi, &path);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

void fabric_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		     void *arg)
{
	each(arg, fabric_type.stale_counter, ctx->stale);
	each(arg, "busy_posts", ctx->busy_posts);
}

const char *fabric_why(const struct cadge_ctx *ctx)
{
	return ctx->ofi.why;
}

const struct cadge_layer *cadge_layer_entry(void)
{
	return fabric_type.layer;
}
