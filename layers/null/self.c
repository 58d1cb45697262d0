/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The null layer: a context connected to itself. What is posted comes back at the next poll. It measures the
 * driver and the contract, and it is the adapter to read first.
 *
 * Everything in flight is a cell: the payload is copied into it once and lent from it, so that post is always
 * DONE and a receiver can keep the cell. Free cells are a stack, so that at depth 1 the same warm cell serves
 * every message; cells on their way are a queue. A request (message or call) needs at most two: its own, and
 * that of its answer.
 */
#include <stdlib.h>
#include <string.h>

#include "kit/adapter.h"
#include "null/null.h"

static void null_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->cell && i < ctx->cells; i++)
		free(ctx->cell[i].data);
	while (ctx->regions)
		null_unexpose(ctx, ctx->regions);
	free(ctx->cell);
	free(ctx->free_stack);
	free(ctx->queue);
	free(ctx->chan);
	free(ctx);
}

static const uint64_t null_caps =
	CADGE_CAP_SELF | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND |
	CADGE_CAP_POST_IN_SINK | CADGE_CAP_RPC | CADGE_CAP_DELEGATE | CADGE_CAP_REPLY_IN_SINK |
	CADGE_CAP_REPLY_LATER | CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP |
	CADGE_CAP_RIGHTS | CADGE_CAP_NOTIFY | CADGE_CAP_RESERVE | CADGE_CAP_WHY;

static int null_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	const int code = cadge_open_check(args, null_caps, NULL, NULL_PEERS_MAX);
	struct cadge_ctx *ctx;

	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->depth = (uint32_t)cadge_least(args->depth_max, NULL_DEPTH_MAX);
	ctx->peers = args->peers_max;
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, NULL_BYTES_MAX);
	ctx->cells = 2 * ctx->depth * ctx->peers;
	ctx->cell = calloc(ctx->cells, sizeof(*ctx->cell));
	ctx->free_stack = calloc(ctx->cells, sizeof(struct cadge_lend *));
	ctx->queue = calloc(ctx->cells, sizeof(struct cadge_lend *));
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	if (!ctx->cell || !ctx->free_stack || !ctx->queue || !ctx->chan) {
		null_close(ctx);
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	}
	for (uint32_t i = 0; i < ctx->cells; i++)
		ctx->free_stack[ctx->free_cells++] = &ctx->cell[i];
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void null_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = null_caps,
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = NULL_BYTES_MAX,
		.depth_max = ctx->depth,
		.iov_max = NULL_IOV_MAX,
		.token_bytes = sizeof(struct cadge_reply_to),
		.short_bytes_max = ctx->message_bytes_max,
		.short_path = "one copy",
		.long_path = "one copy",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int null_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	if (peer >= ctx->peers || *bytes_inout < sizeof(struct cadge_ctx *))
		return CADGE_E_ARGUMENT;
	memcpy(blob, &ctx, sizeof(ctx));
	*bytes_inout = sizeof(ctx);
	return CADGE_DONE;
}

static int null_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_chan *chan;

	if (peer >= ctx->peers || ctx->chan[peer].connected || bytes != sizeof(ctx) ||
	    memcmp(blob, &ctx, bytes) != 0)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	*chan = (struct cadge_chan){.ctx = ctx, .peer = peer, .connected = true};
	ctx->unannounced++;
	*chan_out = chan;
	return CADGE_DONE;
}

/* A free cell with room for `bytes`; NULL when memory ran out. */
struct cadge_lend *null_cell_take(struct cadge_ctx *ctx, enum null_kind kind, uint32_t peer, size_t bytes)
{
	struct cadge_lend *cell = ctx->free_stack[ctx->free_cells - 1];

	if (cell->room_bytes < bytes || !cell->data) {
		size_t room_bytes = (bytes + 64) & ~(size_t)63;
		unsigned char *data = aligned_alloc(64, room_bytes);

		if (!data)
			return NULL;
		free(cell->data);
		cell->data = data;
		cell->room_bytes = room_bytes;
	}
	ctx->free_cells--;
	cell->kind = kind;
	cell->peer = peer;
	cell->bytes = bytes;
	cell->code = CADGE_DONE;
	cell->serial = 0;
	return cell;
}

void null_cell_queue(struct cadge_ctx *ctx, struct cadge_lend *cell)
{
	uint32_t at = ctx->head + ctx->queued++;

	ctx->queue[at < ctx->cells ? at : at - ctx->cells] = cell;
}

/* A call's place among the requests goes over to its answer, so only messages and replies give one back. */
void null_cell_give(struct cadge_ctx *ctx, struct cadge_lend *cell)
{
	if (cell->kind != NULL_CALL)
		ctx->requests--;
	ctx->free_stack[ctx->free_cells++] = cell;
}

/* Starts a request, or (call_cell given) passes on the one that this cell carries. */
int null_send(struct cadge_chan *chan, enum null_kind kind, const struct cadge_iov *iov, uint32_t count,
	      bool inherits, struct cadge_lend **cell_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	size_t bytes;
	int code = cadge_iov_check(iov, count, NULL_IOV_MAX, ctx->message_bytes_max, &bytes);

	if (code < 0)
		return code;
	if (!chan->announced || (!inherits && ctx->requests == ctx->depth * ctx->peers))
		return CADGE_BUSY;
	*cell_out = null_cell_take(ctx, kind, chan->peer, bytes);
	if (!*cell_out)
		return CADGE_E_MEMORY;
	ctx->requests += !inherits;
	cadge_iov_gather(iov, count, (*cell_out)->data);
	null_cell_queue(ctx, *cell_out);
	return CADGE_DONE;
}

static int null_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	struct cadge_lend *cell;

	(void)flags, (void)token;
	return null_send(chan, NULL_MESSAGE, iov, count, false, &cell);
}

/*
 * A message that is built in its cell. The cell counts as a request from now on, so that commit always finds
 * its place; what carries it is found again by its payload.
 */
static int null_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_lend *cell;

	(void)flags;
	if (bytes > ctx->message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (!chan->announced || ctx->requests == ctx->depth * ctx->peers)
		return CADGE_BUSY;
	cell = null_cell_take(ctx, NULL_RESERVED, chan->peer, bytes);
	if (!cell)
		return CADGE_E_MEMORY;
	ctx->requests++;
	ctx->reserved = (uint32_t)(cell - ctx->cell);
	*base_out = cell->data;
	return CADGE_DONE;
}

/* As a rule it is the one that was reserved last. */
static struct cadge_lend *reserved_at(const struct cadge_chan *chan, const void *base)
{
	struct cadge_ctx *ctx = chan->ctx;
	uint32_t at = ctx->reserved;

	for (uint32_t left = ctx->cells; left; left--, at = at + 1 < ctx->cells ? at + 1 : 0) {
		struct cadge_lend *cell = &ctx->cell[at];

		if (cell->kind == NULL_RESERVED && cell->data == base && cell->peer == chan->peer)
			return cell;
	}
	return NULL;
}

static void reserved_end(struct cadge_ctx *ctx, struct cadge_lend *cell)
{
	cell->kind = NULL_MESSAGE;
	null_cell_give(ctx, cell);
}

static int null_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	struct cadge_lend *cell = reserved_at(chan, base);

	(void)flags, (void)token;
	if (!cell || bytes > cell->bytes)
		return CADGE_E_ARGUMENT;
	cell->kind = NULL_MESSAGE;
	cell->bytes = bytes;
	null_cell_queue(chan->ctx, cell);
	return CADGE_DONE;
}

static void null_cancel(struct cadge_chan *chan, void *base)
{
	struct cadge_lend *cell = reserved_at(chan, base);

	if (cell)
		reserved_end(chan->ctx, cell);
}

/* At most one round of the queue: what handlers post comes at the next poll. */
static int null_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t i = 0; ctx->unannounced && i < ctx->peers; i++) {
		if (!ctx->chan[i].connected || ctx->chan[i].announced)
			continue;
		ctx->chan[i].announced = true;
		ctx->unannounced--;
		events++;
		sink->up(sink, i);
	}
	for (uint32_t left = ctx->queued; left; left--, events++) {
		struct cadge_lend *cell = ctx->queue[ctx->head];

		ctx->head = ctx->head + 1 < ctx->cells ? ctx->head + 1 : 0;
		ctx->queued--;
		if (cell->kind == NULL_CALL)
			null_deliver_call(ctx, sink, cell);
		else if (cell->kind == NULL_NOTICE)
			null_deliver_notice(ctx, sink, cell);
		else if ((cell->kind == NULL_MESSAGE
				  ? sink->recv(sink, cell->peer, cell->data, cell->bytes, cell)
				  : null_deliver_reply(sink, cell)) == CADGE_TAKEN)
			null_cell_give(ctx, cell);
	}
	return events;
}

static void null_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	null_cell_give(ctx, lend);
}

/* Takes what is on its way to this peer out of the queue. */
static int null_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const uint32_t queued = ctx->queued;

	ctx->queued = 0;
	for (uint32_t i = 0; i < queued; i++) {
		struct cadge_lend *cell = ctx->queue[(ctx->head + i) % ctx->cells];

		if (cell->peer != chan->peer) {
			null_cell_queue(ctx, cell);
			continue;
		}
		if (cell->kind == NULL_CALL)
			ctx->requests--;
		null_cell_give(ctx, cell);
	}
	for (uint32_t i = 0; i < ctx->cells; i++)
		if (ctx->cell[i].kind == NULL_RESERVED && ctx->cell[i].peer == chan->peer)
			reserved_end(ctx, &ctx->cell[i]);
	ctx->unannounced -= !chan->announced;
	chan->connected = chan->announced = false;
	return CADGE_DONE;
}

static int null_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_path path = {.medium = CADGE_MEDIUM_PROCESS,
					.as_asked = 1,
					.asked = "this process",
					.used = "a queue within one context"};

	(void)chan;
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void null_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "none", .stated_version = "1"};

	cadge_fill(library_out, &library, sizeof(library));
}

static void null_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_LIBRARY,
		.put = CADGE_PROGRESS_DIRECT,
		.get = CADGE_PROGRESS_DIRECT,
		.fetch_add = CADGE_PROGRESS_DIRECT,
		.compare_swap = CADGE_PROGRESS_DIRECT,
	};

	(void)ctx;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void null_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_SENDER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.flow = CADGE_FLOW_CREDITS,
		.order = CADGE_ORDER_CHANNEL,
		.copies_on_send = 1,
		.multiprogramming = 1,
	};

	(void)ctx;
	cadge_fill(traits_out, &traits, sizeof(traits));
}

/* Nothing below can fail. */
static const char *null_why(const struct cadge_ctx *ctx)
{
	(void)ctx;
	return "";
}

static const struct cadge_layer null_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(null_layer),
	.name = "null-self",
	.style = "null",
	.substrate = "self",
	.caps = null_caps,
	.open = null_open,
	.close = null_close,
	.limits = null_limits,
	.address = null_address,
	.connect = null_connect,
	.disconnect = null_disconnect,
	.post = null_post,
	.poll = null_poll,
	.describe_path = null_describe_path,
	.library = null_library,
	.semantics = null_semantics,
	.traits = null_traits,
	.release = null_release,
	.reserve = null_reserve,
	.commit = null_commit,
	.cancel = null_cancel,
	.call = null_call,
	.reply = null_reply,
	.fail = null_fail,
	.delegate = null_delegate,
	.expose = null_expose,
	.unexpose = null_unexpose,
	.attach = null_attach,
	.detach = null_detach,
	.put = null_put,
	.get = null_get,
	.fetch_add = null_fetch_add,
	.compare_swap = null_compare_swap,
	.quiet = null_quiet,
	.why = null_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &null_layer;
}
