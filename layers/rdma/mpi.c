/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI one-sided with passive targets: one window (wire/mpi/window.c), opened to all by MPI_Win_lock_all, MPI_Rput and MPI_Rget, and
 * MPI_Win_flush for quiet. Messages go through the mailbox of wire/, that is, over the same puts.
 *
 * Whether a target's library must run depends on the component that serves the window, which is read back, and was found
 * by stopping targets. Where it must, MPI_Win_flush waits for it, and MPI has no other way to learn that a put is visible:
 * quiet puts it off until a get has come back from the target (rma_quiet). Compare-and-swap has no request to wait for, and
 * is granted only where the target need not run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bytes.h"
#include "wire/mpi/path.h"
#include "rdma/mpi_flow.h"
#include "wire/mpi/which.h"
#include "wire/mpi/window.h"
#include "wire/mpi/world.h"

enum { RMA_LINE_BYTES = 64 };

static void rma_close(struct cadge_ctx *ctx)
{
	bool clean;
	uint32_t peer;

	if (!ctx)
		return;
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++)
		rdma_mpi_forget(ctx, &ctx->chan[peer]);
	clean = rdma_mpi_drain(ctx);
	if (!clean)
		mpi_world_spoil();
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++) {
		cadge_mailbox_destroy(ctx->chan[peer].mailbox);
		if (ctx->chan[peer].area)
			mpi_window_free(ctx->chan[peer].area, ctx->area_bytes);
	}
	mpi_world_leave();
	if (clean) {
		free(ctx->staging);
		free(ctx->pool);
	} else {
		mpi_world_keep(ctx->staging);
		mpi_world_keep(ctx->pool);
	}
	free(ctx->requests);
	free(ctx->ops);
	free(ctx->chan);
	free(ctx);
}

static int rma_make_ops(struct cadge_ctx *ctx)
{
	const size_t count = (size_t)(2 * ctx->depth + RMA_SPARE_OPS) * ctx->peers;

	ctx->pool = calloc(count, sizeof(*ctx->pool));
	ctx->requests = calloc(count, sizeof(*ctx->requests));
	ctx->ops = calloc(count, sizeof(*ctx->ops));
	if (!ctx->pool || !ctx->requests || !ctx->ops)
		return CADGE_E_MEMORY;
	for (size_t i = count; i-- > 0;)
		CADGE_POOL_GIVE(ctx->free, &ctx->pool[i]);
	return CADGE_DONE;
}

static int rma_make_channels(struct cadge_ctx *ctx)
{
	const size_t staging_bytes = cadge_mailbox_staging_bytes(&ctx->shape, ctx->direct);
	struct cadge_mailbox_config config = {
		.shape = ctx->shape,
		.ops = &rdma_mpi_mailbox_ops,
		.put_anywhere = ctx->direct, /* else MPI may read a message after its channel ended */
		.depth_max = ctx->depth,
		.message_bytes_max = ctx->message_bytes_max,
	};
	int code = CADGE_DONE;

	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	if (!ctx->chan || posix_memalign(&ctx->staging, RMA_LINE_BYTES, staging_bytes * ctx->peers))
		return CADGE_E_MEMORY;
	for (config.peer = 0; !code && config.peer < ctx->peers; config.peer++) {
		struct cadge_chan *chan = &ctx->chan[config.peer];

		chan->ctx = ctx;
		chan->peer = config.peer;
		chan->quiets_end = &chan->quiets;
		chan->area = mpi_window_alloc(ctx->area_bytes);
		if (!chan->area)
			return CADGE_E_MEMORY;
		config.area = chan->area;
		config.staging = (char *)ctx->staging + config.peer * staging_bytes;
		code = cadge_nonce(&config.key);
		if (!code)
			code = cadge_mailbox_create(&config, &chan->mailbox);
	}
	return code;
}

static const struct cadge_layer rma_layer;

static int rma_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	int code;

	if (args->wait_mode == CADGE_WAIT_BLOCK)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "MPI has no wait that sleeps: MPI_Wait polls, at best it yields");
	code = cadge_open_check(args, rma_layer.caps, NULL, RMA_PEERS_MAX);
	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory");
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, RMA_DEPTH_MAX);
	ctx->place = args->place;
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, RMA_BYTES_MAX);
	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	ctx->area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	/* regions of both sorts that a caller has at a time: what is exposed, and what goes there */
	code = mpi_window_enter(args, ctx->area_bytes * ctx->peers + 2 * args->region_bytes_max +
					      MPI_WINDOW_BYTES_LEAST);
	if (code) {
		free(ctx);
		return code;
	}
	ctx->direct = mpi_window_direct(ctx->place);
	ctx->swaps = mpi_window_swaps(ctx->place);
	code = rma_make_ops(ctx);
	if (!code)
		code = rma_make_channels(ctx);
	if (code) {
		snprintf(
			args->error, args->error_bytes,
			"no mailbox of %zu bytes for each of %u peers in the window that the first open made",
			ctx->area_bytes, ctx->peers);
		rma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void rma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(rma_layer.caps, ctx->place, CADGE_WAIT_POLL) &
			~(ctx->swaps ? 0 : CADGE_CAP_COMPARE_SWAP),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = RMA_BYTES_MAX,
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "one write",
		.long_path = "mailbox chunks",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int rma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	uint64_t offset_bytes;
	int rank;

	if (peer >= ctx->peers || !mpi_window_holds(ctx->chan[peer].area, ctx->area_bytes, &offset_bytes))
		return CADGE_E_ARGUMENT;
	if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	cadge_mailbox_card(ctx->chan[peer].mailbox, card);
	cadge_blob_u32(&out, (uint32_t)rank);
	cadge_blob_u64(&out, offset_bytes);
	cadge_blob_bytes(&out, card, sizeof(card));
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int rma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const uint32_t rank = cadge_blob_take_u32(&in);
	const uint64_t offset_bytes = cadge_blob_take_u64(&in);
	size_t card_bytes;
	const void *card = cadge_blob_take_bytes(&in, &card_bytes);
	struct cadge_chan *chan;
	int ranks, code;

	if (MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	if (!in.ok || in.left_bytes || peer >= ctx->peers || ctx->chan[peer].connected ||
	    rank >= (uint32_t)ranks)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	code = cadge_mailbox_attach(chan->mailbox, card, card_bytes, chan);
	if (code)
		return code;
	chan->rank = (int)rank;
	chan->area_offset_bytes = offset_bytes;
	chan->connected = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int rma_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	rdma_mpi_forget(ctx, chan);
	cadge_mailbox_detach(chan->mailbox);
	chan->connected = false;
	return CADGE_DONE;
}

static int rma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const char *component = mpi_window_component(), *asked = getenv("OMPI_MCA_osc");
	const bool within = ctx->place == CADGE_PLACE_HOST;
	struct cadge_path path = {.bytes = sizeof(path)};
	struct mpi_path beside;

	mpi_path_read(MPI_COMM_WORLD, chan->rank, &beside);
	if (beside.not_read) {
		mpi_path_not_read(&beside, ctx->place, path_out);
		return CADGE_DONE;
	}
	path.medium = ctx->direct ? CADGE_MEDIUM_MEMORY
		      : within    ? CADGE_MEDIUM_UNKNOWN
				  : CADGE_MEDIUM_NETWORK;
	path.as_asked = component[0] && (!asked || strcmp(asked, component) == 0);
	if (within)
		path.as_asked &= ctx->direct;
	else
		path.as_asked &= strncmp(beside.btl, "tcp", 3) == 0 && !strchr(beside.btl, ',');
	snprintf(path.asked, sizeof(path.asked), "osc %s, %s", asked ? asked : "of Open MPI's choice",
		 within ? "shared memory" : "tcp");
	snprintf(path.used, sizeof(path.used), "osc %s; pml %s; btl %s", component[0] ? component : "unknown",
		 beside.pml[0] ? beside.pml : "unknown", beside.btl[0] ? beside.btl : "none");
	if (!within)
		snprintf(path.device, sizeof(path.device), "%s", mpi_which_interface());
	snprintf(path.note, sizeof(path.note), "%s%s",
		 ctx->direct ? "" : "a get after each write pushes it and tells when to flush",
		 !within && mpi_which_is_open_mpi_before(5)
			 ? "; osc pt2pt is set by Cadge: Open MPI's choice ends with MPI_ERR_WIN"
			 : "");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void rma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress by = ctx->direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = by,
		.get = by,
		.fetch_add = by,
		.compare_swap = ctx->swaps ? by : CADGE_PROGRESS_NONE,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void rma_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_NONE,
		.control_transfer = CADGE_CONTROL_NONE,
		.flow = CADGE_FLOW_CREDITS,
		.order = CADGE_ORDER_CHANNEL,
		.granule_bytes = ctx->shape.chunk_bytes,
		.copies_on_send = 1,
		.multiprogramming = 1,
		.thread_role = CADGE_THREADS_HOUSEKEEPING,
		.threads_max = RMA_THREADS_MAX,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static void *rma_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	(void)ctx;
	return mpi_window_alloc(bytes);
}

static void rma_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)ctx;
	mpi_window_free(base, bytes);
}

static int rma_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region;
	uint64_t offset_bytes;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: a window is open to all ranks as a whole */
	if (!mpi_window_holds(base, bytes, &offset_bytes)) {
		snprintf(ctx->why, sizeof(ctx->why),
			 "only memory of mem_alloc, which lies in the window, can be exposed");
		return CADGE_E_ARGUMENT;
	}
	cadge_blob_u64(&out, offset_bytes);
	cadge_blob_u64(&out, bytes);
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	region = malloc(sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	region->offset_bytes = offset_bytes;
	*key_bytes_inout = out.used_bytes;
	*region_out = region;
	return CADGE_DONE;
}

static void rma_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	(void)ctx;
	free(region);
}

static int rma_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	const uint64_t offset_bytes = cadge_blob_take_u64(&in), bytes = cadge_blob_take_u64(&in);
	struct cadge_remote *remote;

	(void)chan, (void)intent, (void)flags;
	if (!in.ok || in.left_bytes)
		return CADGE_E_ARGUMENT;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	*remote = (struct cadge_remote){.offset_bytes = offset_bytes, .bytes = bytes};
	*remote_out = remote;
	return CADGE_DONE;
}

static void rma_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static const char *rma_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

static void rma_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "flushes", ctx->flushes);
	for (uint32_t peer = 0; peer < ctx->peers; peer++)
		cadge_mailbox_counters(ctx->chan[peer].mailbox, each, arg);
}

static const struct cadge_layer rma_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-mpi",
	.style = "rdma",
	.substrate = "mpi",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
		CADGE_CAP_FLOW_CONTROL | CADGE_CAP_POST_IN_SINK | CADGE_CAP_PUT | CADGE_CAP_GET |
		CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_MEM_ALLOC | CADGE_CAP_COUNTERS |
		CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT | CADGE_CAP_WHY,
	.open = rma_open,
	.close = rma_close,
	.limits = rma_limits,
	.address = rma_address,
	.connect = rma_connect,
	.disconnect = rma_disconnect,
	.post = rdma_mpi_post,
	.poll = rdma_mpi_poll,
	.describe_path = rma_describe_path,
	.library = mpi_world_library,
	.semantics = rma_semantics,
	.traits = rma_traits,
	.mem_alloc = rma_mem_alloc,
	.mem_free = rma_mem_free,
	.expose = rma_expose,
	.unexpose = rma_unexpose,
	.attach = rma_attach,
	.detach = rma_detach,
	.put = rdma_mpi_put,
	.get = rdma_mpi_get,
	.fetch_add = rdma_mpi_fetch_add,
	.compare_swap = rdma_mpi_compare_swap,
	.quiet = rdma_mpi_quiet,
	.counters = rma_counters,
	.why = rma_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rma_layer;
}
