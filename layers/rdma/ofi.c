/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's one-sided operations (common/ofi_rma.h) on one FI_EP_RDM endpoint; messages through the mailbox of common/,
 * that is, over the same writes. In block mode each write of a message is followed by a small message of libfabric's, the
 * notification, because a write alone wakes nobody.
 *
 * Memory: one arena a context with a part for each peer: the area of its mailbox, staging for our own writes, a word that
 * the peer reads in its quiet and a word that our reads go to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/mailbox.h"
#include "common/ofi_rma.h"
#include "common/wire.h"

enum {
	RDMA_EVENTS = 16, /* most completions in one poll */
	RDMA_NOTES = 64,  /* receive buffers for notifications, block mode */
	RDMA_DEPTH_MAX = 1024,
	RDMA_PEERS_MAX = 0xffff,
	RDMA_SPARE_OPS = 64,
	RDMA_WORD_BYTES = 64,
	RDMA_GENERATION_SHIFT = 16,
	RDMA_GENERATION_MASK = 0xffff,
};

struct rdma_note {
	struct fi_context2 context;
	uint8_t data[CADGE_MAILBOX_NOTE_BYTES];
};

struct cadge_region {
	struct fid_mr *mr;
	struct cadge_region *next;
};

struct cadge_remote {
	struct cadge_ofi_far far;
	uint64_t bytes;
};

struct cadge_chan {
	struct cadge_ofi_link link; /* first, so that a link is a channel */
	struct cadge_ctx *ctx;
	struct cadge_mailbox *mailbox;
	uint32_t peer, generation, peer_stamp;
	bool connected;
	struct cadge_ofi_far area; /* of the peer's mailbox */
	char *part;		   /* of the arena */
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	struct cadge_ofi_rma rma;
	uint32_t peers, depth;
	uint64_t message_bytes_max;
	size_t area_bytes, part_bytes;
	struct cadge_mailbox_shape shape;
	struct fid_mr *mr;
	struct cadge_ofi_far arena_far;
	char *arena;
	struct cadge_region *regions; /* exposed by the caller */
	struct cadge_chan *chan;
	struct rdma_note *notes;
	struct cadge_sink *sink; /* while poll runs */
};

static struct cadge_ofi_far rdma_offset(struct cadge_ofi_far far, uint64_t offset_bytes)
{
	far.addr += offset_bytes;
	return far;
}

static int rdma_mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
			    struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return cadge_ofi_write(&chan->link, local, bytes, rdma_offset(chan->area, offset_bytes), 0, op);
}

static int rdma_mailbox_quiet(void *link, struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return cadge_ofi_quiet(&chan->link, 0, op);
}

static int rdma_mailbox_fence(void *link)
{
	const struct cadge_chan *chan = link;

	return cadge_ofi_fence(&chan->link);
}

static int rdma_mailbox_notify(void *link, const void *note)
{
	const struct cadge_chan *chan = link;
	ssize_t ret = fi_injectdata(chan->ctx->ofi.ep, note, CADGE_MAILBOX_NOTE_BYTES, chan->peer_stamp, chan->link.addr);

	if (!ret)
		return CADGE_DONE;
	return ret == -FI_EAGAIN ? CADGE_BUSY : CADGE_E_DOWN;
}

static const struct cadge_mailbox_ops rdma_polling_ops = {
	.put = rdma_mailbox_put,
	.quiet = rdma_mailbox_quiet,
	.fence = rdma_mailbox_fence,
};
static const struct cadge_mailbox_ops rdma_blocking_ops = {
	.put = rdma_mailbox_put,
	.quiet = rdma_mailbox_quiet,
	.fence = rdma_mailbox_fence,
	.notify = rdma_mailbox_notify,
};

/* An operation is finished: the mailbox owns it, or the caller. */
static int rdma_done(void *arg, struct cadge_ofi_link *link, uint64_t token, void *owner, int code)
{
	struct cadge_ctx *ctx = arg;
	struct cadge_chan *chan = (struct cadge_chan *)link;

	if (owner) {
		cadge_mailbox_done(owner, code);
		return 0;
	}
	ctx->sink->sent(ctx->sink, chan->peer, token, code);
	return 1;
}

static void rdma_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	struct cadge_region **at = &ctx->regions;

	while (*at && *at != region)
		at = &(*at)->next;
	if (*at)
		*at = region->next;
	cadge_ofi_unexpose(region->mr);
	free(region);
}

static void rdma_close(struct cadge_ctx *ctx)
{
	uint32_t peer;

	if (!ctx)
		return;
	cadge_ofi_rma_drain(&ctx->rma);
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++)
		cadge_mailbox_destroy(ctx->chan[peer].mailbox);
	cadge_ofi_close_endpoint(&ctx->ofi);
	cadge_ofi_unexpose(ctx->mr);
	while (ctx->regions)
		rdma_unexpose(ctx, ctx->regions);
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
		.ops = args->wait_mode == CADGE_WAIT_BLOCK ? &rdma_blocking_ops : &rdma_polling_ops,
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
	code = cadge_ofi_expose(&ctx->rma, ctx->arena, arena_bytes, &ctx->mr, &ctx->arena_far);
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

static int rdma_post_note(struct cadge_ctx *ctx, struct rdma_note *note)
{
	ssize_t ret = fi_recv(ctx->ofi.ep, note->data, sizeof(note->data), NULL, FI_ADDR_UNSPEC, &note->context);

	return ret ? cadge_ofi_code(ret) : CADGE_DONE;
}

static int rdma_make_notes(struct cadge_ctx *ctx)
{
	int code = CADGE_DONE, i;

	ctx->notes = calloc(RDMA_NOTES, sizeof(*ctx->notes));
	if (!ctx->notes)
		return CADGE_E_MEMORY;
	for (i = 0; i < RDMA_NOTES && !code; i++)
		code = rdma_post_note(ctx, &ctx->notes[i]);
	return code;
}

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

	if (args->place == CADGE_PLACE_SELF || args->peers_max > RDMA_PEERS_MAX) {
		snprintf(args->error, args->error_bytes, "one-sided libfabric connects two processes, at most %d a context",
			 RDMA_PEERS_MAX);
		return CADGE_E_UNSUPPORTED;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CADGE_E_MEMORY;
	ctx->peers = args->peers_max;
	ctx->depth = args->depth_max < RDMA_DEPTH_MAX ? args->depth_max : RDMA_DEPTH_MAX;
	ctx->message_bytes_max = args->message_bytes_max < CADGE_OFI_RMA_BYTES_MAX ? args->message_bytes_max :
										     CADGE_OFI_RMA_BYTES_MAX;
	operations = (size_t)(2 * ctx->depth + RDMA_SPARE_OPS) * ctx->peers;
	needs.completions = operations + RDMA_NOTES;
	code = cadge_ofi_open(&ctx->ofi, args, &needs);
	if (code) {
		free(ctx);
		return code;
	}
	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	ctx->area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	ctx->part_bytes = (ctx->area_bytes + cadge_mailbox_staging_bytes(&ctx->shape, true) + 2 * RDMA_WORD_BYTES + 4095) /
			  4096 * 4096;
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	code = cadge_ofi_rma_create(&ctx->rma, &ctx->ofi, operations, rdma_done, ctx);
	if (!code)
		code = ctx->chan ? rdma_make_channels(ctx, args) : CADGE_E_MEMORY;
	if (!code && args->wait_mode == CADGE_WAIT_BLOCK)
		code = rdma_make_notes(ctx);
	if (code) {
		snprintf(args->error, args->error_bytes, "no mailbox of %zu bytes for each of %u peers", ctx->part_bytes,
			 ctx->peers);
		rdma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static const struct cadge_layer rdma_layer;

static void rdma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	uint64_t without = ctx->ofi.place == CADGE_PLACE_HOST ? CADGE_CAP_NET : CADGE_CAP_HOST;

	if (ctx->ofi.wait_fd < 0)
		without |= CADGE_CAP_WAIT;
	if (!ctx->rma.fetches)
		without |= CADGE_CAP_FETCH_ADD;
	limits_out->caps = rdma_layer.caps & ~without;
	limits_out->message_bytes_max = ctx->message_bytes_max;
	limits_out->rma_bytes_max = CADGE_OFI_RMA_BYTES_MAX;
	limits_out->depth_max = ctx->depth;
	limits_out->iov_max = CADGE_MAILBOX_IOV_MAX;
	limits_out->token_bytes = 0;
	limits_out->wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes();
	limits_out->short_bytes_max = ctx->shape.short_bytes;
	limits_out->short_path = "one write";
	limits_out->long_path = "mailbox chunks";
}

static int rdma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	char name[512];
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

static int rdma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes, struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t stamp = cadge_blob_take_u32(&in), pid;
	size_t name_bytes, card_bytes;
	const void *name = cadge_blob_take_bytes(&in, &name_bytes);
	const void *card = cadge_blob_take_bytes(&in, &card_bytes);
	struct cadge_ofi_far area, word;
	uint64_t part_bytes, nonce;
	struct cadge_chan *chan;
	char copy[512] = {0};
	fi_addr_t addr;
	int code;

	area.addr = cadge_blob_take_u64(&in);
	area.key = cadge_blob_take_u64(&in);
	part_bytes = cadge_blob_take_u64(&in);
	pid = cadge_blob_take_u32(&in);
	nonce = cadge_blob_take_u64(&in);
	if (!in.ok || in.left_bytes || !name_bytes || name_bytes >= sizeof(copy) || part_bytes < 2 * RDMA_WORD_BYTES ||
	    peer >= ctx->peers || ctx->chan[peer].connected)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	memcpy(copy, name, name_bytes);
	code = cadge_ofi_insert(&ctx->ofi, copy, &addr);
	if (code)
		return code;
	code = cadge_mailbox_attach(chan->mailbox, card, card_bytes, chan);
	if (code) {
		cadge_ofi_remove(&ctx->ofi, addr);
		return code;
	}
	word = rdma_offset(area, part_bytes - 2 * RDMA_WORD_BYTES);
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

static int rdma_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

static int rdma_noted(struct cadge_ctx *ctx, const struct fi_cq_data_entry *entry)
{
	struct rdma_note *note = entry->op_context;
	uint32_t slot = (uint32_t)entry->data & RDMA_PEERS_MAX;
	uint32_t generation = (uint32_t)entry->data >> RDMA_GENERATION_SHIFT;

	if (slot < ctx->peers && ctx->chan[slot].connected && generation == ctx->chan[slot].generation &&
	    entry->len == CADGE_MAILBOX_NOTE_BYTES)
		cadge_mailbox_notified(ctx->chan[slot].mailbox, note->data);
	return rdma_post_note(ctx, note);
}

static int rdma_failed(struct cadge_ctx *ctx)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_readerr(ctx->ofi.cq, &error, 0);
	struct cadge_ofi_link *link;

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return CADGE_E_LIBRARY;
	if (cadge_ofi_rma_owns(&ctx->rma, error.op_context)) {
		link = cadge_ofi_rma_link(error.op_context);
		if (link)
			cadge_mailbox_fail(((struct cadge_chan *)link)->mailbox);
		return cadge_ofi_rma_completed(&ctx->rma, error.op_context, CADGE_E_DOWN);
	}
	/* With one peer it is clear whose connection broke. */
	if (ctx->peers != 1)
		return CADGE_E_LIBRARY;
	cadge_mailbox_fail(ctx->chan[0].mailbox);
	return 0;
}

static int rdma_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct fi_cq_data_entry entry[RDMA_EVENTS];
	ssize_t count = fi_cq_read(ctx->ofi.cq, entry, RDMA_EVENTS), i;
	int events = 0, code;
	uint32_t peer;

	ctx->sink = sink;
	if (count > 0) {
		for (i = 0; i < count; i++) {
			if (!(entry[i].flags & FI_RECV)) {
				events += cadge_ofi_rma_completed(&ctx->rma, entry[i].op_context, CADGE_DONE);
				continue;
			}
			code = rdma_noted(ctx, &entry[i]);
			if (code)
				return code;
		}
	} else if (count == -FI_EAVAIL) {
		events = rdma_failed(ctx);
		if (events < 0)
			return events;
	} else if (count != -FI_EAGAIN) {
		return CADGE_E_LIBRARY;
	}
	for (peer = 0; peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected)
			events += cadge_mailbox_poll(ctx->chan[peer].mailbox, sink);
	return events;
}

static int rdma_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected && !cadge_mailbox_may_sleep(ctx->chan[peer].mailbox))
			return CADGE_DONE;
	return cadge_ofi_wait(&ctx->ofi, timeout_ns);
}

static int rdma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const char *note = "";

	cadge_ofi_describe(&ctx->ofi, path_out);
	if (ctx->ofi.wait_fd >= 0)
		note = "notification after each write of a message (block)";
	else if (ctx->rma.direct)
		note = "process_vm_writev; each write also takes one of 1024 slots that the target's library has to clear";
	else if (!ctx->ofi.network)
		note = "process_vm_writev is not usable: the target's library copies";
	snprintf(path_out->note, sizeof(path_out->note), "%s", note);
	return CADGE_DONE;
}

static void rdma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	semantics_out->message = CADGE_PROGRESS_CADGE;
	semantics_out->put = ctx->rma.direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
	semantics_out->get = semantics_out->put;
	semantics_out->fetch_add = ctx->rma.fetches ? CADGE_PROGRESS_LIBRARY : CADGE_PROGRESS_NONE;
}

static int rdma_expose(struct cadge_ctx *ctx, void *base, size_t bytes, void *key, size_t *key_bytes_inout,
		       struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region = calloc(1, sizeof(*region));
	struct cadge_ofi_far far;
	int code;

	if (!region)
		return CADGE_E_MEMORY;
	code = cadge_ofi_expose(&ctx->rma, base, bytes, &region->mr, &far);
	if (code) {
		free(region);
		return code;
	}
	cadge_blob_u64(&out, far.addr);
	cadge_blob_u64(&out, far.key);
	cadge_blob_u64(&out, bytes);
	if (!out.ok) {
		cadge_ofi_unexpose(region->mr);
		free(region);
		return CADGE_E_ARGUMENT;
	}
	region->next = ctx->regions;
	ctx->regions = region;
	*key_bytes_inout = out.used_bytes;
	*region_out = region;
	return CADGE_DONE;
}

static int rdma_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	struct cadge_remote remote, *copy;

	(void)chan;
	remote.far.addr = cadge_blob_take_u64(&in);
	remote.far.key = cadge_blob_take_u64(&in);
	remote.bytes = cadge_blob_take_u64(&in);
	if (!in.ok || in.left_bytes)
		return CADGE_E_ARGUMENT;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CADGE_E_MEMORY;
	*copy = remote;
	*remote_out = copy;
	return CADGE_DONE;
}

static void rdma_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static bool rdma_inside(const struct cadge_remote *remote, size_t bytes, uint64_t offset_bytes)
{
	return bytes <= remote->bytes && offset_bytes <= remote->bytes - bytes;
}

static int rdma_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	if (bytes > CADGE_OFI_RMA_BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (!rdma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	return bytes ? cadge_ofi_write(&chan->link, local, bytes, rdma_offset(remote->far, offset_bytes), token, NULL) :
		       CADGE_DONE;
}

static int rdma_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote, uint64_t offset_bytes,
		    uint64_t token)
{
	if (bytes > CADGE_OFI_RMA_BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (!rdma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	return bytes ? cadge_ofi_read(&chan->link, local, bytes, rdma_offset(remote->far, offset_bytes), token) : CADGE_DONE;
}

static int rdma_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out, struct cadge_remote *remote,
			  uint64_t offset_bytes, uint64_t token)
{
	if (!chan->ctx->rma.fetches)
		return CADGE_E_UNSUPPORTED;
	if (!rdma_inside(remote, sizeof(uint64_t), offset_bytes) || offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	return cadge_ofi_fetch_add(&chan->link, addend, before_out, rdma_offset(remote->far, offset_bytes), token);
}

static int rdma_quiet(struct cadge_chan *chan, uint64_t token)
{
	return cadge_ofi_quiet(&chan->link, token, NULL);
}

static void rdma_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
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
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |
		CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD |
		CADGE_CAP_COUNTERS,
	.traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_NONE,
		.copies_on_send = 1,
		.copies_on_receive = 0,
		.multiprogramming = 1,
	},
	.options = cadge_ofi_options,
	.open = rdma_open,
	.close = rdma_close,
	.limits = rdma_limits,
	.address = rdma_address,
	.connect = rdma_connect,
	.disconnect = rdma_disconnect,
	.post = rdma_post,
	.poll = rdma_poll,
	.describe_path = rdma_describe_path,
	.library = cadge_ofi_library,
	.semantics = rdma_semantics,
	.wait = rdma_wait,
	.expose = rdma_expose,
	.unexpose = rdma_unexpose,
	.attach = rdma_attach,
	.detach = rdma_detach,
	.put = rdma_put,
	.get = rdma_get,
	.fetch_add = rdma_fetch_add,
	.quiet = rdma_quiet,
	.counters = rdma_counters,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rdma_layer;
}
