/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's one-sided operations (wire/ofi/rma.h) on one FI_EP_RDM endpoint; messages through the mailbox
 * of wire/, that is, over the same writes. In block mode each write of a message is followed by a small
 * message of libfabric's, the notification, because a write alone wakes nobody.
 *
 * Memory: one arena a context with a part for each peer: the area of its mailbox, staging for our own writes,
 * a word that the peer reads in its quiet and a word that our reads go to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "kit/bytes.h"
#include "rdma/ofi_flow.h"

static void rdma_close(struct cadge_ctx *ctx)
{
	uint32_t peer;

	if (!ctx)
		return;
	cadge_ofi_rma_drain(&ctx->rma);
	for (uint32_t i = 0; ctx->notes && i < RDMA_NOTES; i++)
		cadge_ofi_take_back(&ctx->ofi, &ctx->notes[i].context);
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++)
		cadge_mailbox_destroy(ctx->chan[peer].mailbox);
	cadge_ofi_close_endpoint(&ctx->ofi);
	cadge_ofi_unexpose(ctx->mr);
	while (ctx->regions)
		rdma_ofi_unexpose(ctx, ctx->regions);
	cadge_ofi_close(&ctx->ofi);
	cadge_ofi_rma_destroy(&ctx->rma);
	if (ctx->arena)
		munmap(ctx->arena, ctx->part_bytes * ctx->peers);
	free(ctx->notes);
	free(ctx->chan);
	free(ctx);
}

/* The word that the peer reads in its quiet. It holds a number that tells this memory from any other. */
static uint64_t *rdma_word(const struct cadge_ctx *ctx, const struct cadge_chan *chan)
{
	return (uint64_t *)(void *)(chan->part + ctx->part_bytes - 2 * RDMA_WORD_BYTES);
}

static int rdma_make_channels(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	size_t arena_bytes = ctx->part_bytes * ctx->peers;
	struct cadge_mailbox_config config = {
		.shape = ctx->shape,
		.ops = args->wait_mode == CADGE_WAIT_BLOCK ? &rdma_ofi_blocking_ops : &rdma_ofi_polling_ops,
		.put_anywhere = true,
		.depth_max = ctx->depth,
		.message_bytes_max = ctx->message_bytes_max,
	};
	uint32_t peer;
	int code;

	ctx->arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->arena == MAP_FAILED)
		ctx->arena = NULL;
	if (!ctx->arena)
		return CADGE_E_MEMORY;
	code = cadge_ofi_expose(&ctx->rma, ctx->arena, arena_bytes, CADGE_MAY_ALL, &ctx->mr, &ctx->arena_far);
	for (peer = 0; !code && peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		chan->part = ctx->arena + peer * ctx->part_bytes;
		config.area = chan->part;
		config.staging = chan->part + ctx->area_bytes;
		config.peer = peer;
		if (getrandom(&config.key, sizeof(config.key), 0) != (ssize_t)sizeof(config.key))
			return CADGE_E_LIBRARY;
		*rdma_word(ctx, chan) = config.key;
		code = cadge_mailbox_create(&config, &chan->mailbox);
	}
	return code;
}

static const struct cadge_layer rdma_layer;

static int rdma_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ofi_needs needs = {
		.caps = FI_MSG | FI_RMA,
		.caps_wanted = FI_ATOMIC,
		.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	};
	struct cadge_ctx *ctx;
	size_t operations;
	int code;

	code = cadge_open_check(args, rdma_layer.caps, cadge_ofi_options, RDMA_PEERS_MAX);
	if (code < 0)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CADGE_E_MEMORY;
	ctx->peers = args->peers_max;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, RDMA_DEPTH_MAX);
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, CADGE_OFI_RMA_BYTES_MAX);
	operations = (size_t)(2 * ctx->depth + RDMA_SPARE_OPS) * ctx->peers;
	needs.completions = operations + RDMA_NOTES;
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code) {
		free(ctx);
		return code;
	}
	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	ctx->area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	ctx->part_bytes = (ctx->area_bytes + cadge_mailbox_staging_bytes(&ctx->shape, true) +
			   2 * RDMA_WORD_BYTES + 4095) /
			  4096 * 4096;
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	code = cadge_ofi_rma_create(&ctx->rma, &ctx->ofi, operations, rdma_ofi_done, ctx);
	if (!code)
		code = ctx->chan ? rdma_make_channels(ctx, args) : CADGE_E_MEMORY;
	if (!code && args->wait_mode == CADGE_WAIT_BLOCK)
		code = rdma_ofi_make_notes(ctx);
	if (code) {
		snprintf(args->error, args->error_bytes, "no mailbox of %zu bytes for each of %u peers",
			 ctx->part_bytes, ctx->peers);
		rdma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void rdma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(rdma_layer.caps, ctx->ofi.place, ctx->ofi.wait_mode) &
			~(ctx->rma.fetches ? 0 : CADGE_CAP_FETCH_ADD) &
			~(ctx->rma.swaps ? 0 : CADGE_CAP_COMPARE_SWAP),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = cadge_ofi_longest(&ctx->ofi, CADGE_OFI_RMA_BYTES_MAX),
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "one write",
		.long_path = "mailbox chunks",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int rdma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	char name[CADGE_OFI_NAME_BYTES];
	size_t name_bytes = sizeof(name);
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_name(&ctx->ofi, name, &name_bytes);
	if (code)
		return code;
	chan = &ctx->chan[peer];
	cadge_mailbox_card(chan->mailbox, card);
	cadge_blob_u32(&out, chan->generation << RDMA_GENERATION_SHIFT | peer);
	cadge_blob_bytes(&out, name, name_bytes);
	cadge_blob_bytes(&out, card, sizeof(card));
	cadge_blob_u64(&out, ctx->arena_far.addr + (uint64_t)(chan->part - ctx->arena));
	cadge_blob_u64(&out, ctx->arena_far.key);
	cadge_blob_u64(&out, ctx->part_bytes);
	cadge_blob_u32(&out, (uint32_t)getpid());
	cadge_blob_u64(&out, *rdma_word(ctx, chan));
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int rdma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t stamp = cadge_blob_take_u32(&in), pid;
	size_t name_bytes, card_bytes;
	const void *name = cadge_blob_take_bytes(&in, &name_bytes);
	const void *card = cadge_blob_take_bytes(&in, &card_bytes);
	struct cadge_ofi_far area, word;
	uint64_t part_bytes, nonce;
	struct cadge_chan *chan;
	fi_addr_t addr;
	int code;

	area.addr = cadge_blob_take_u64(&in);
	area.key = cadge_blob_take_u64(&in);
	part_bytes = cadge_blob_take_u64(&in);
	pid = cadge_blob_take_u32(&in);
	nonce = cadge_blob_take_u64(&in);
	if (!in.ok || in.left_bytes || part_bytes < 2 * RDMA_WORD_BYTES || peer >= ctx->peers ||
	    ctx->chan[peer].connected)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	code = cadge_ofi_insert(&ctx->ofi, name, name_bytes, &addr);
	if (code)
		return code;
	code = cadge_mailbox_attach(chan->mailbox, card, card_bytes, chan);
	if (code) {
		cadge_ofi_remove(&ctx->ofi, addr);
		return code;
	}
	word.addr = area.addr + part_bytes - 2 * RDMA_WORD_BYTES;
	word.key = area.key;
	cadge_ofi_link_open(&chan->link, &ctx->rma, addr, word, (pid_t)pid, nonce,
			    chan->part + ctx->part_bytes - RDMA_WORD_BYTES);
	chan->ctx = ctx;
	chan->peer = peer;
	chan->peer_stamp = stamp;
	chan->area = area;
	chan->connected = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int rdma_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	cadge_ofi_link_close(&chan->link);
	cadge_mailbox_detach(chan->mailbox);
	cadge_ofi_remove(&ctx->ofi, chan->link.addr);
	chan->generation = (chan->generation + 1) & RDMA_GENERATION_MASK;
	chan->connected = false;
	return CADGE_DONE;
}

static int rdma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	const char *note = "";

	cadge_ofi_describe(&ctx->ofi, &path);
	if (ctx->ofi.wait_fd >= 0)
		note = "notification after each write of a message (block)";
	else if (ctx->rma.direct)
		note = "process_vm_writev; each write also takes one of 1024 slots that the target's library "
		       "has to clear";
	else if (!ctx->ofi.network)
		note = "process_vm_writev is not usable: the target's library copies";
	snprintf(path.note, sizeof(path.note), "%s", note);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void rdma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress copies =
		ctx->rma.direct || ctx->ofi.verbs ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = copies,
		.get = copies,
		.fetch_add = ctx->rma.fetches ? CADGE_PROGRESS_LIBRARY : CADGE_PROGRESS_NONE,
		.compare_swap = ctx->rma.swaps ? CADGE_PROGRESS_LIBRARY : CADGE_PROGRESS_NONE,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void rdma_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_NONE,
		.flow = CADGE_FLOW_CREDITS,
		.order = CADGE_ORDER_CHANNEL,
		.waker = ctx->ofi.wait_fd < 0 ? CADGE_WAKER_NONE : CADGE_WAKER_CADGE,
		.granule_bytes = ctx->shape.chunk_bytes,
		.copies_on_send = 1,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *rdma_why(const struct cadge_ctx *ctx)
{
	return ctx->ofi.why;
}

static void rdma_counters(const struct cadge_ctx *ctx,
			  void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	uint32_t peer;

	cadge_ofi_rma_counters(&ctx->rma, each, arg);
	for (peer = 0; peer < ctx->peers; peer++)
		cadge_mailbox_counters(ctx->chan[peer].mailbox, each, arg);
}

static const struct cadge_layer rdma_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-ofi",
	.style = "rdma",
	.substrate = "ofi",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
		CADGE_CAP_FLOW_CONTROL | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_PUT |
		CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_EVENT_FD |
		CADGE_CAP_COUNTERS | CADGE_CAP_WHY,
	.options = cadge_ofi_options,
	.open = rdma_open,
	.close = rdma_close,
	.limits = rdma_limits,
	.address = rdma_address,
	.connect = rdma_connect,
	.disconnect = rdma_disconnect,
	.post = rdma_ofi_post,
	.poll = rdma_ofi_poll,
	.describe_path = rdma_describe_path,
	.library = cadge_ofi_library,
	.semantics = rdma_semantics,
	.traits = rdma_traits,
	.wait = rdma_ofi_wait,
	.event = rdma_ofi_event,
	.expose = rdma_ofi_expose,
	.unexpose = rdma_ofi_unexpose,
	.attach = rdma_ofi_attach,
	.detach = rdma_ofi_detach,
	.put = rdma_ofi_put,
	.get = rdma_ofi_get,
	.fetch_add = rdma_ofi_fetch_add,
	.compare_swap = rdma_ofi_compare_swap,
	.quiet = rdma_ofi_quiet,
	.counters = rdma_counters,
	.why = rdma_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rdma_layer;
}
