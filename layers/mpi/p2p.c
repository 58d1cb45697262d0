/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI point-to-point messages: MPI_Isend against MPI_Irecv from the named rank, posted before.
 *
 * MPI starts once a process and cannot start again, so the first open starts it and the end of the process
 * ends it (world.c). Channels are distinguished by tag: each connection of each context takes a new one and
 * writes it into its address. All use MPI_COMM_WORLD: nobody else speaks MPI in this process, a communicator
 * of one's own has to be agreed on by all ranks, and making one leaves a hook in Open MPI 4.1 that slows
 * every later progress by 5 %. The first two messages of a channel each way are greetings without payload:
 * with the second both know that both ways work.
 *
 * Receives complete in the order of their posting because only the oldest is tested. Each holds the longest
 * message; a few are posted, and a message that finds none waits inside MPI, which has no flow control of its
 * own.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kit/bytes.h"
#include "mpi/p2p_flow.h"
#include "wire/mpi/path.h"
#include "wire/mpi/which.h"

/*
 * Address space for `count` buffers, touched only where it is used; each begins at another offset of a
 * page.
 */
static void *p2p_pool(uint32_t *count_inout, uint64_t buffer_bytes, size_t *stride_out, size_t *bytes_out)
{
	uint64_t stride_bytes = ((buffer_bytes + 127) / 128 * 2 + 1) * 64;
	void *pool;

	if (*count_inout * stride_bytes > P2P_POOL_BYTES)
		*count_inout = P2P_POOL_BYTES / stride_bytes > P2P_SPARE
				       ? (uint32_t)(P2P_POOL_BYTES / stride_bytes)
				       : P2P_SPARE;
	*stride_out = stride_bytes;
	*bytes_out = *count_inout * stride_bytes;
	pool = mmap(NULL, *bytes_out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	return pool == MAP_FAILED ? NULL : pool;
}

static int p2p_make_buffers(struct cadge_ctx *ctx)
{
	uint32_t receives = ctx->depth * ctx->peers + P2P_SPARE * ctx->peers, sends = ctx->depth * ctx->peers,
		 i;
	size_t stride_bytes;

	ctx->receive_pool =
		p2p_pool(&receives, ctx->message_bytes_max, &stride_bytes, &ctx->receive_pool_bytes);
	ctx->posted_most = (uint32_t)cadge_least(P2P_SPARE, receives / ctx->peers);
	ctx->lend_count = receives;
	ctx->lends = calloc(receives, sizeof(*ctx->lends));
	if (!ctx->receive_pool || !ctx->lends)
		return CADGE_E_MEMORY;
	for (i = receives; i-- > 0;) {
		ctx->lends[i].data = (char *)ctx->receive_pool + i * stride_bytes;
		CADGE_POOL_GIVE(ctx->free_lend, &ctx->lends[i]);
	}
	/* Two more a peer for greetings. */
	sends += P2P_GREETINGS * ctx->peers;
	ctx->send_pool = p2p_pool(&sends, ctx->message_bytes_max, &stride_bytes, &ctx->send_pool_bytes);
	ctx->sends = calloc(sends, sizeof(*ctx->sends));
	if (!ctx->send_pool || !ctx->sends)
		return CADGE_E_MEMORY;
	for (i = sends; i-- > 0;) {
		ctx->sends[i].staging = (char *)ctx->send_pool + i * stride_bytes;
		CADGE_POOL_GIVE(ctx->free_send, &ctx->sends[i]);
	}
	return CADGE_DONE;
}

static int p2p_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);

static void p2p_close(struct cadge_ctx *ctx)
{
	uint32_t peer;

	if (!ctx)
		return;
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected && p2p_disconnect(ctx, &ctx->chan[peer]))
			mpi_world_mark_unclean();
	/* What MPI may still write to stays mapped until the process ends. */
	if (!mpi_world_is_unclean()) {
		if (ctx->receive_pool)
			munmap(ctx->receive_pool, ctx->receive_pool_bytes);
		if (ctx->send_pool)
			munmap(ctx->send_pool, ctx->send_pool_bytes);
	}
	mpi_world_leave();
	free(ctx->lends);
	free(ctx->sends);
	free(ctx->chan);
	free(ctx);
}

static const struct cadge_layer p2p_layer;

static int p2p_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	struct mpi_limits limits;
	uint32_t peer;
	int code;

	if (args->settings_count)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "this layer has no settings");
	if (args->wait_mode == CADGE_WAIT_BLOCK)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "MPI has no wait that sleeps: MPI_Wait polls, at best it yields");
	code = cadge_open_check(args, p2p_layer.caps, NULL, P2P_PEERS_MAX);
	if (code < 0)
		return code;
	if (args->message_bytes_max > INT_MAX)
		return cadge_refuse(args, CADGE_E_TOO_LARGE, "MPI counts bytes in an int");
	code = mpi_world_enter(args, NULL);
	if (code)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx) {
		mpi_world_leave();
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory");
	}
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, P2P_DEPTH_MAX);
	ctx->place = args->place;
	ctx->message_bytes_max = args->message_bytes_max;
	snprintf(ctx->interface, sizeof(ctx->interface), "%s", mpi_which_interface());
	limits = mpi_path_limits(ctx->place == CADGE_PLACE_HOST ? "vader" : "tcp");
	if (ctx->place == CADGE_PLACE_HOST && !limits.eager_bytes)
		limits = mpi_path_limits("sm"); /* as vader is called from version 5 */
	ctx->eager_bytes = limits.eager_bytes;
	ctx->rendezvous_eager_bytes = limits.rendezvous_eager_bytes;
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	code = ctx->chan ? p2p_make_buffers(ctx) : CADGE_E_MEMORY;
	if (code) {
		snprintf(args->error, args->error_bytes, "no memory for messages of %llu bytes",
			 (unsigned long long)args->message_bytes_max);
		p2p_close(ctx);
		return code;
	}
	for (peer = 0; peer < ctx->peers; peer++)
		ctx->chan[peer].tag_in = mpi_world_new_tag();
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void p2p_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(p2p_layer.caps, ctx->place, CADGE_WAIT_POLL),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = P2P_IOV_MAX,
		.short_bytes_max = ctx->eager_bytes,
		.short_path = "eager",
		.long_path = "rendezvous",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int p2p_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	int rank;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	cadge_blob_u32(&out, (uint32_t)rank);
	cadge_blob_u32(&out, (uint32_t)ctx->chan[peer].tag_in);
	cadge_blob_u32(&out, (uint32_t)getpid());
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int p2p_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t rank = cadge_blob_take_u32(&in), tag = cadge_blob_take_u32(&in);
	uint32_t pid = cadge_blob_take_u32(&in);
	struct cadge_chan *chan;
	int ranks, own_rank;

	if (MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS ||
	    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	if (!in.ok || in.left_bytes || peer >= ctx->peers || ctx->chan[peer].connected ||
	    rank >= (uint32_t)ranks || tag >= MPI_WORLD_TAGS || !pid || pid > INT_MAX)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	chan->ctx = ctx;
	chan->peer = peer;
	chan->rank = (int)rank;
	chan->tag_out = (int)tag;
	chan->pid = (pid_t)pid;
	chan->oldest[P2P_RECEIVE] = MPI_REQUEST_NULL;
	chan->oldest[P2P_SEND] = MPI_REQUEST_NULL;
	chan->begins = own_rank < chan->rank;
	chan->connected = true;
	chan->posted_wanted = CADGE_POSTED_MOST;
	chan->gone_bytes = (size_t)ctx->eager_bytes;
	*chan_out = chan;
	return CADGE_DONE;
}

/* The buffer is of no channel from here on; `free`: and the caller does not keep it. */
static void p2p_unbind(struct cadge_ctx *ctx, struct cadge_lend *lend, bool free)
{
	if (MPI_Request_free(&lend->request) != MPI_SUCCESS)
		mpi_world_mark_unclean();
	lend->chan = NULL;
	if (free)
		CADGE_POOL_GIVE(ctx->free_lend, lend);
}

/* Ends the receives of a channel. One that MPI does not take back is left to it together with its buffer. */
static void p2p_take_back(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct cadge_lend *lend, *next;

	for (lend = chan->receive_head; lend; lend = next) {
		int done = 0;

		next = lend->next;
		if (MPI_Cancel(&lend->request) == MPI_SUCCESS &&
		    MPI_Test(&lend->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) {
			p2p_unbind(ctx, lend, true);
		} else {
			mpi_world_mark_unclean();
			lend->chan = NULL;
		}
	}
	for (lend = chan->free_lend; lend; lend = next) {
		next = lend->next;
		p2p_unbind(ctx, lend, true);
	}
	for (lend = ctx->lends; lend < ctx->lends + ctx->lend_count; lend++)
		if (lend->chan == chan)
			p2p_unbind(ctx, lend, false);
}

static int p2p_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct p2p_send *send, *next_send;

	p2p_take_back(ctx, chan);
	for (send = chan->send_head; send; send = next_send) {
		MPI_Request *request = send == chan->send_head ? &chan->oldest[P2P_SEND] : &send->request;
		int done = 0;

		next_send = send->next;
		if (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done)
			CADGE_POOL_GIVE(ctx->free_send, send);
		else
			mpi_world_mark_unclean();
	}
	memset(chan, 0, sizeof(*chan));
	chan->tag_in = mpi_world_new_tag();
	return CADGE_DONE;
}

/*
 * How long messages are copied within a host. Open MPI does not notice when it connects that the kernel keeps it
 * from reading the peer's memory (seen with 4.1 and 5.0): it tries for each message, and sends it in fragments then.
 */
static const char *p2p_copy(const struct cadge_chan *chan, const struct mpi_path *path)
{
	if (!path->copy[0])
		return "not told";
	if (strcmp(path->copy, "cma") == 0 && mpi_path_memory_refused(chan->pid))
		return "not told (cma is chosen, but the kernel refuses process_vm_readv)";
	return path->copy;
}

static int p2p_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path described = {.bytes = sizeof(described)};
	struct mpi_path path;
	bool memory, tcp, within = ctx->place == CADGE_PLACE_HOST;
	size_t used_bytes;

	mpi_path_read(MPI_COMM_WORLD, chan->rank, &path);
	if (path.not_read) {
		mpi_path_not_read(&path, ctx->place, path_out);
		return CADGE_DONE;
	}
	memory = strcmp(path.btl, "vader") == 0 || strcmp(path.btl, "sm") == 0;
	tcp = strncmp(path.btl, "tcp", 3) == 0;
	described.medium = CADGE_MEDIUM_UNKNOWN;
	if (memory)
		described.medium = CADGE_MEDIUM_MEMORY;
	else if (tcp)
		described.medium = within ? CADGE_MEDIUM_LOOPBACK : CADGE_MEDIUM_NETWORK;
	snprintf(described.asked, sizeof(described.asked), "Open MPI's default%s%s",
		 within ? " within a host (shared memory)" : " between hosts, tcp on ",
		 within ? "" : ctx->interface);
	described.as_asked = within ? memory : tcp && !strchr(path.btl, ',');
	snprintf(described.used, sizeof(described.used), "pml %s; btl %s; mtl %s; osc none (no window)",
		 path.pml[0] ? path.pml : "unknown", path.btl[0] ? path.btl : "none",
		 path.mtl[0] ? path.mtl : "none");
	used_bytes = strlen(described.used);
	if (memory || tcp)
		snprintf(described.used + used_bytes, sizeof(described.used) - used_bytes,
			 "; %s %s; eager_limit %llu; rndv_eager_limit %llu",
			 memory ? "single copy" : "btl_tcp_if_include",
			 memory ? p2p_copy(chan, &path) : ctx->interface,
			 (unsigned long long)ctx->eager_bytes,
			 (unsigned long long)ctx->rendezvous_eager_bytes);
	snprintf(described.device, sizeof(described.device), "%s", tcp ? ctx->interface : "");
	snprintf(described.note, sizeof(described.note), "%s", path.method);
	cadge_fill(path_out, &described, sizeof(described));
	return CADGE_DONE;
}

/* Short messages: into a shared fragment or the socket, out of it into the posted buffer. */
static void p2p_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.order = CADGE_ORDER_CHANNEL,
		.copies_on_send = 1,
		.copies_on_receive = 1,
		.multiprogramming = 1,
		.thread_role = CADGE_THREADS_HOUSEKEEPING,
		.threads_max = P2P_THREADS_MAX,
	};

	(void)ctx;
	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *p2p_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

static void p2p_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "gathered_messages", ctx->gathered_messages);
}

static const struct cadge_layer p2p_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "mpi-p2p",
	.style = "mpi",
	.substrate = "p2p",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_LEND |
		CADGE_CAP_POST_IN_SINK | CADGE_CAP_COUNTERS | CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT |
		CADGE_CAP_WHY,
	.open = p2p_open,
	.close = p2p_close,
	.limits = p2p_limits,
	.address = p2p_address,
	.connect = p2p_connect,
	.disconnect = p2p_disconnect,
	.post = mpi_p2p_post,
	.poll = mpi_p2p_poll,
	.describe_path = p2p_describe_path,
	.library = cadge_wire_library,
	.semantics = cadge_semantics_of_messages,
	.traits = p2p_traits,
	.release = mpi_p2p_release,
	.counters = p2p_counters,
	.why = p2p_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &p2p_layer;
}
