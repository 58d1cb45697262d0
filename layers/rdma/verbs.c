/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma-verbs: libibverbs alone; see verbs.h. In block mode each write of a message is followed by a small message, the
 * notification, because a write alone wakes nobody.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma/verbs.h"

#define DEPTH_MAX 1024u
#define CAPS                                                                                                 \
	(CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |                   \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_PUT | CADGE_CAP_GET |      \
	 CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_MEM_REG | CADGE_CAP_COUNTERS |             \
	 CADGE_CAP_WHY)

static void rdma_close(struct cadge_ctx *ctx)
{
	struct verbs_registered *one;

	if (!ctx)
		return;
	for (uint32_t peer = 0; ctx->arena && peer < ctx->verbs.peers; peer++) {
		verbs_queue_free(&ctx->chans[peer].queue);
		cadge_mailbox_destroy(ctx->chans[peer].mailbox);
	}
	while ((one = ctx->verbs.registered)) {
		verbs_deregister(&ctx->verbs, one);
		if (one != &ctx->verbs.own)
			free(one); /* a region's first member, or one of mem_reg */
	}
	if (ctx->arena)
		munmap(ctx->arena, ctx->part_bytes * ctx->verbs.peers);
	verbs_close(&ctx->verbs);
	free(ctx->chans);
	free(ctx);
}

static int make_arena(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	const size_t lines = 1 + ctx->verbs.receives; /* credit and notes */
	size_t arena_bytes;
	int code;

	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	ctx->area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	ctx->staging_bytes = cadge_mailbox_staging_bytes(&ctx->shape, true);
	ctx->part_bytes = (ctx->area_bytes + ctx->staging_bytes + verbs_own_bytes(&ctx->verbs) +
			   lines * VERBS_LINE_BYTES + 4095) /
			  4096 * 4096;
	arena_bytes = ctx->part_bytes * ctx->verbs.peers;
	ctx->arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->arena == MAP_FAILED) {
		ctx->arena = NULL;
		return cadge_refuse(args, CADGE_E_MEMORY, "no %zu bytes for mailboxes of %u peers",
				    arena_bytes, ctx->verbs.peers);
	}
	for (uint32_t peer = 0; peer < ctx->verbs.peers; peer++) {
		struct cadge_chan *chan = &ctx->chans[peer];

		chan->ctx = ctx;
		chan->part = ctx->arena + peer * ctx->part_bytes;
		chan->queue.word = chan->part + ctx->area_bytes + ctx->staging_bytes;
	}
	code = verbs_register(&ctx->verbs, &ctx->verbs.own, ctx->arena, arena_bytes,
			      verbs_access(&ctx->verbs, CADGE_MAY_ALL));
	return code == CADGE_DONE
		       ? code
		       : cadge_refuse(args, code,
				      "%zu bytes for mailboxes of %u peers could not be registered: %s",
				      arena_bytes, ctx->verbs.peers, ctx->verbs.why);
}

static int make_chan(struct cadge_ctx *ctx, const struct cadge_open_args *args, uint32_t peer)
{
	struct cadge_chan *chan = &ctx->chans[peer];
	struct cadge_mailbox_config config = {
		.shape = ctx->shape,
		.ops = ctx->notes ? &rdma_verbs_blocking_ops : &rdma_verbs_polling_ops,
		.area = chan->part,
		.staging = chan->part + ctx->area_bytes,
		.put_anywhere = true,
		.peer = peer,
		.depth_max = ctx->depth,
		.message_bytes_max = ctx->message_bytes_max,
	};
	int code;

	if (cadge_nonce(&config.key) != CADGE_DONE)
		return cadge_refuse(args, CADGE_E_LIBRARY, "the kernel has no random number");
	if (cadge_mailbox_create(&config, &chan->mailbox) != CADGE_DONE)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", ctx->verbs.peers);
	/* Here, so that a device with too few of them says so in open. */
	code = verbs_queue_make(&chan->queue);
	return code == CADGE_DONE ? code
				  : cadge_refuse(args, code, "for peer %u of %u: %s", peer + 1,
						 ctx->verbs.peers, ctx->verbs.why);
}

static int rdma_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, CAPS, NULL, VERBS_PEERS_MAX);

	if (code != CADGE_DONE)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (ctx)
		ctx->chans = calloc(args->peers_max, sizeof(*ctx->chans));
	if (!ctx || !ctx->chans) {
		free(ctx);
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	}
	ctx->wait_mode = args->wait_mode;
	ctx->notes = args->wait_mode == CADGE_WAIT_BLOCK ? RDMA_NOTES : 0;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, DEPTH_MAX);
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, VERBS_BYTES_MAX);
	ctx->verbs.calls = &rdma_verbs_calls;
	ctx->verbs.queues = (uint8_t *)ctx->chans;
	ctx->verbs.queue_bytes = sizeof(*ctx->chans);
	code = verbs_open(&ctx->verbs, args, ctx->notes + 1, RDMA_SPARE + 2, 2 * ctx->depth + RDMA_SPARE);
	if (code == CADGE_DONE) {
		ctx->depth = (ctx->verbs.send_room - RDMA_SPARE) / 2;
		code = make_arena(ctx, args);
	}
	for (uint32_t peer = 0; code == CADGE_DONE && peer < ctx->verbs.peers; peer++)
		code = make_chan(ctx, args, peer);
	if (code != CADGE_DONE) {
		rdma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static uint64_t caps_of(const struct cadge_ctx *ctx)
{
	return cadge_caps_granted(CAPS, CADGE_PLACE_NET, ctx->wait_mode) &
	       ~(verbs_has_atomics(&ctx->verbs) ? 0 : CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP);
}

static void rdma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = caps_of(ctx),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = ctx->verbs.bytes_max,
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "mailbox, one write",
		.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int rdma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	const uint32_t rkey = ctx->verbs.own.mr->rkey;
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->verbs.peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	code = verbs_queue_make(&chan->queue);
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(chan->mailbox, card);
	verbs_queue_address(&chan->queue, &out);
	cadge_blob_u32(&out, ctx->notes);
	verbs_far_put(&out, chan->part, rkey);
	verbs_far_put(&out, rdma_credit(chan), rkey);
	cadge_blob_raw(&out, card, sizeof(card));
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static void chan_end(struct cadge_chan *chan)
{
	verbs_queue_free(&chan->queue);
	cadge_mailbox_detach(chan->mailbox);
	chan->notes_sent = chan->notes_told = chan->notes_taken = chan->notes_credited = 0;
	chan->outstanding = 0;
	memset(rdma_credit(chan), 0, VERBS_LINE_BYTES);
	chan->connected = false;
}

static int rdma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	struct cadge_chan *chan;
	const void *card;
	int code;

	if (peer >= ctx->verbs.peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (chan->connected || !verbs_queue_take(&chan->queue, &in))
		return CADGE_E_ARGUMENT;
	chan->peer_notes = cadge_blob_take_u32(&in);
	chan->area = verbs_far_take(&in);
	chan->credit = verbs_far_take(&in);
	card = cadge_blob_take(&in, CADGE_MAILBOX_CARD_BYTES);
	if (!in.ok || in.left_bytes)
		return CADGE_E_ARGUMENT;
	code = verbs_queue_make(&chan->queue);
	if (code == CADGE_DONE)
		code = cadge_mailbox_attach(chan->mailbox, card, CADGE_MAILBOX_CARD_BYTES, chan);
	if (code != CADGE_DONE)
		return code;
	code = verbs_queue_connect(&chan->queue);
	if (code != CADGE_DONE) {
		chan_end(chan);
		return code;
	}
	chan->connected = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int rdma_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->ctx != ctx || !chan->connected)
		return CADGE_E_ARGUMENT;
	chan_end(chan);
	return CADGE_DONE;
}

/* ---- memory of the caller ---- */

static int rdma_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		       uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region;
	int code;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: what a device refuses breaks the connection */
	region = calloc(1, sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	code = verbs_register(&ctx->verbs, &region->registered, base, bytes,
			      verbs_access(&ctx->verbs, CADGE_MAY_ALL));
	if (code != CADGE_DONE) {
		free(region);
		return code;
	}
	region->registered.exposed = true;
	verbs_far_put(&out, base, region->registered.mr->rkey);
	cadge_blob_u64(&out, bytes);
	if (!out.ok) {
		verbs_deregister(&ctx->verbs, &region->registered);
		free(region);
		return CADGE_E_ARGUMENT;
	}
	*key_bytes_inout = out.used_bytes;
	*region_out = region;
	return CADGE_DONE;
}

static void rdma_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	verbs_deregister(&ctx->verbs, &region->registered);
	free(region);
}

static int rdma_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		       uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	const struct verbs_far far = verbs_far_take(&in);
	const uint64_t bytes = cadge_blob_take_u64(&in);
	struct cadge_remote *remote;

	(void)chan, (void)intent, (void)flags;
	if (!in.ok || in.left_bytes)
		return CADGE_E_ARGUMENT;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	*remote = (struct cadge_remote){.far = far, .bytes = bytes};
	*remote_out = remote;
	return CADGE_DONE;
}

static void rdma_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static int rdma_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs_registered *one = calloc(1, sizeof(*one));
	int code;

	if (!one)
		return CADGE_E_MEMORY;
	code = verbs_register(&ctx->verbs, one, base, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (code != CADGE_DONE)
		free(one);
	return code;
}

static int rdma_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs_registered *one = ctx->verbs.registered;

	/* A region of the same bytes may be among them: that one peers may write, and it stays. */
	while (one &&
	       (one == &ctx->verbs.own || one->mr->addr != base || one->mr->length != bytes || one->exposed))
		one = one->next;
	if (!one)
		return CADGE_E_ARGUMENT;
	verbs_deregister(&ctx->verbs, one);
	free(one);
	return CADGE_DONE;
}

/* ---- what it says of itself ---- */

static int rdma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = verbs_queue_describe(&chan->queue, &path);

	if (code != CADGE_DONE)
		return code;
	snprintf(path.note, sizeof(path.note), "put, get and atomics: carried out by the device%s%s",
		 ctx->verbs.device.attr.atomic_cap == IBV_ATOMIC_HCA
			 ? ", atomics only against others of its own"
			 : "",
		 ctx->notes ? "; notification after each write of a message (block)" : "");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void rdma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress atomics =
		verbs_has_atomics(&ctx->verbs) ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_NONE;
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = CADGE_PROGRESS_DIRECT,
		.get = CADGE_PROGRESS_DIRECT,
		.fetch_add = atomics,
		.compare_swap = atomics,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void rdma_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_KERNEL_OR_NIC,
		.control_transfer = CADGE_CONTROL_POLL,
		.flow = CADGE_FLOW_CREDITS,
		.order = CADGE_ORDER_CHANNEL,
		.waker = ctx->notes ? CADGE_WAKER_CADGE : CADGE_WAKER_NONE,
		.granule_bytes = ctx->shape.chunk_bytes,
		.copies_on_send = 1,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *rdma_why(const struct cadge_ctx *ctx)
{
	return ctx->verbs.why;
}

static void rdma_counters(const struct cadge_ctx *ctx,
			  void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "queue_busies", ctx->verbs.busies);
	each(arg, "registered_once", ctx->verbs.registered_once);
	for (uint32_t peer = 0; peer < ctx->verbs.peers; peer++)
		cadge_mailbox_counters(ctx->chans[peer].mailbox, each, arg);
}

static const struct cadge_layer rdma_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-verbs",
	.style = "rdma",
	.substrate = "verbs",
	.caps = CAPS,
	.open = rdma_open,
	.close = rdma_close,
	.limits = rdma_limits,
	.address = rdma_address,
	.connect = rdma_connect,
	.disconnect = rdma_disconnect,
	.post = rdma_verbs_post,
	.poll = rdma_verbs_poll,
	.describe_path = rdma_describe_path,
	.library = verbs_library,
	.semantics = rdma_semantics,
	.traits = rdma_traits,
	.wait = rdma_verbs_wait,
	.event = rdma_verbs_event,
	.expose = rdma_expose,
	.unexpose = rdma_unexpose,
	.attach = rdma_attach,
	.detach = rdma_detach,
	.put = rdma_verbs_put,
	.get = rdma_verbs_get,
	.fetch_add = rdma_verbs_fetch_add,
	.compare_swap = rdma_verbs_compare_swap,
	.quiet = rdma_verbs_quiet,
	.mem_reg = rdma_mem_reg,
	.mem_dereg = rdma_mem_dereg,
	.counters = rdma_counters,
	.why = rdma_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rdma_layer;
}
