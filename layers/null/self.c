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

#include "null/null.h"

static void null_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; ctx->cell && i < ctx->cells; i++)
		free(ctx->cell[i].data);
	free(ctx->cell);
	free(ctx->free_stack);
	free(ctx->queue);
	free(ctx->chan);
	free(ctx);
}

static int refuse(const struct cadge_open_args *args, int code, const char *reason)
{
	if (args->error_bytes) {
		size_t bytes = strlen(reason) < args->error_bytes ? strlen(reason) : args->error_bytes - 1;

		memcpy(args->error, reason, bytes);
		args->error[bytes] = '\0';
	}
	return code;
}

static int null_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;

	if (args->place != CADGE_PLACE_SELF || args->wait_mode != CADGE_WAIT_POLL)
		return refuse(args, CADGE_E_UNSUPPORTED,
			      "the null layer joins a context to itself, and only polls");
	if (args->settings_count)
		return refuse(args, CADGE_E_ARGUMENT, "the null layer has no settings");
	if (!args->peers_max || args->peers_max > NULL_PEERS_MAX || !args->depth_max)
		return refuse(args, CADGE_E_ARGUMENT,
			      "the null layer takes 1 to 64 peers and a depth of at least 1");
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->depth = args->depth_max < NULL_DEPTH_MAX ? args->depth_max : NULL_DEPTH_MAX;
	ctx->peers = args->peers_max;
	ctx->message_bytes_max =
		args->message_bytes_max < NULL_BYTES_MAX ? args->message_bytes_max : NULL_BYTES_MAX;
	ctx->cells = 2 * ctx->depth * ctx->peers;
	ctx->cell = calloc(ctx->cells, sizeof(*ctx->cell));
	ctx->free_stack = calloc(ctx->cells, sizeof(struct cadge_lend *));
	ctx->queue = calloc(ctx->cells, sizeof(struct cadge_lend *));
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	if (!ctx->cell || !ctx->free_stack || !ctx->queue || !ctx->chan) {
		null_close(ctx);
		return refuse(args, CADGE_E_MEMORY, "out of memory");
	}
	for (uint32_t i = 0; i < ctx->cells; i++)
		ctx->free_stack[ctx->free_cells++] = &ctx->cell[i];
	*ctx_out = ctx;
	return CADGE_DONE;
}

static const uint64_t null_caps = CADGE_CAP_SELF | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
				  CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				  CADGE_CAP_RPC | CADGE_CAP_DELEGATE | CADGE_CAP_PUT | CADGE_CAP_GET |
				  CADGE_CAP_FETCH_ADD;

static void null_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	*limits_out = (struct cadge_limits){
		.bytes = sizeof(*limits_out),
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

int null_iov_bytes(const struct cadge_ctx *ctx, const struct cadge_iov *iov, uint32_t count,
		   size_t *bytes_out)
{
	size_t bytes = 0;

	if (count > NULL_IOV_MAX)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes > ctx->message_bytes_max - bytes)
			return CADGE_E_TOO_LARGE;
		bytes += iov[i].bytes;
	}
	*bytes_out = bytes;
	return CADGE_DONE;
}

void null_iov_gather(unsigned char *to, const struct cadge_iov *iov, uint32_t count)
{
	for (uint32_t i = 0; i < count; to += iov[i].bytes, i++)
		if (iov[i].bytes)
			memcpy(to, iov[i].base, iov[i].bytes);
}

/* Starts a request, or (call_cell given) passes on the one that this cell carries. */
int null_send(struct cadge_chan *chan, enum null_kind kind, const struct cadge_iov *iov, uint32_t count,
	      bool inherits, struct cadge_lend **cell_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	size_t bytes;
	int code = null_iov_bytes(ctx, iov, count, &bytes);

	if (code < 0)
		return code;
	if (!chan->announced || (!inherits && ctx->requests == ctx->depth * ctx->peers))
		return CADGE_BUSY;
	*cell_out = null_cell_take(ctx, kind, chan->peer, bytes);
	if (!*cell_out)
		return CADGE_E_MEMORY;
	ctx->requests += !inherits;
	null_iov_gather((*cell_out)->data, iov, count);
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
	ctx->unannounced -= !chan->announced;
	chan->connected = chan->announced = false;
	return CADGE_DONE;
}

static int null_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	(void)chan;
	*path_out = (struct cadge_path){.bytes = sizeof(*path_out),
					.medium = CADGE_MEDIUM_PROCESS,
					.as_asked = 1,
					.asked = "this process",
					.used = "a queue within one context"};
	return CADGE_DONE;
}

static void null_library(struct cadge_library *library_out)
{
	*library_out = (struct cadge_library){.name = "none", .stated_version = "1", .symbol = NULL};
}

static void null_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	(void)ctx;
	*semantics_out = (struct cadge_semantics){
		.bytes = sizeof(*semantics_out),
		.message = CADGE_PROGRESS_LIBRARY,
		.put = CADGE_PROGRESS_DIRECT,
		.get = CADGE_PROGRESS_DIRECT,
		.fetch_add = CADGE_PROGRESS_DIRECT,
	};
}

static const struct cadge_layer null_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(null_layer),
	.name = "null-self",
	.style = "null",
	.substrate = "self",
	.caps = null_caps,
	.traits = {.protection = CADGE_PROTECT_NONE,
		   .control_transfer = CADGE_CONTROL_POLL,
		   .copies_on_send = 1,
		   .copies_on_receive = 0,
		   .multiprogramming = 1},
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
	.release = null_release,
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
	.quiet = null_quiet,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &null_layer;
}
