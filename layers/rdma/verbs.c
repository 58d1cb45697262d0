/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma-verbs: libibverbs alone; see verbs.h. In block mode each write of a message is followed by a small message, the
 * notification, because a write alone wakes nobody.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bytes.h"
#include "rdma/verbs.h"

#define CAPS                                                                                                 \
	(CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |                   \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_PUT | CADGE_CAP_GET |      \
	 CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_MEM_REG | CADGE_CAP_COUNTERS |             \
	 CADGE_CAP_WHY)

static void verbs_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t peer = 0; ctx->arena && peer < ctx->peers; peer++) {
		verbs_queue_free(&ctx->chans[peer]);
		cadge_mailbox_destroy(ctx->chans[peer].mailbox);
	}
	for (uint32_t peer = 0; ctx->chans && peer < ctx->peers; peer++)
		free(ctx->chans[peer].ops);
	verbs_arena_free(ctx);
	verbs_queues_free(ctx);
	if (ctx->pd && ibv_dealloc_pd(ctx->pd))
		fprintf(stderr, "cadge: libibverbs could not end a protection domain\n");
	verbs_device_close(&ctx->device);
	free(ctx->chans);
	free(ctx);
}

static int make_chans(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	int code;

	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		ctx->chans[peer].ctx = ctx;
		ctx->chans[peer].peer = peer;
		ctx->chans[peer].ops = calloc(ctx->send_room, sizeof(*ctx->chans[peer].ops));
		if (!ctx->chans[peer].ops)
			return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", ctx->peers);
	}
	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	code = verbs_arena_make(ctx, args);
	/* Here, so that a device with too few of them says so in open. */
	for (uint32_t peer = 0; code == CADGE_DONE && peer < ctx->peers; peer++) {
		code = verbs_queue_make(&ctx->chans[peer]);
		if (code != CADGE_DONE)
			cadge_refuse(args, code, "for peer %u of %u: %s", peer + 1, ctx->peers, ctx->why);
	}
	return code;
}

static int verbs_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
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
	ctx->peers = args->peers_max;
	ctx->wait_mode = args->wait_mode;
	ctx->notes = args->wait_mode == CADGE_WAIT_BLOCK ? VERBS_NOTES : 0;
	ctx->depth = (uint32_t)cadge_least(args->depth_max, VERBS_DEPTH_MAX);
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, VERBS_BYTES_MAX);
	snprintf(ctx->interface, sizeof(ctx->interface), "%s", args->device);
	code = verbs_device_open(args, &ctx->device);
	if (code == CADGE_DONE) {
		ctx->reads =
			(uint32_t)cadge_least((uint64_t)ctx->device.attr.max_qp_rd_atom, VERBS_READS_MAX);
		ctx->rma_bytes_max = cadge_least(ctx->device.port.max_msg_sz, VERBS_BYTES_MAX);
		ctx->pd = ibv_alloc_pd(ctx->device.context);
		if (!ctx->pd)
			code = cadge_refuse(args, CADGE_E_LIBRARY, "no protection domain: %s",
					    strerror(errno));
	}
	if (code == CADGE_DONE)
		code = verbs_queues_make(ctx, args);
	if (code == CADGE_DONE)
		code = make_chans(ctx, args);
	if (code != CADGE_DONE) {
		verbs_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static uint64_t caps_of(const struct cadge_ctx *ctx)
{
	return cadge_caps_granted(CAPS, CADGE_PLACE_NET, ctx->wait_mode) &
	       ~(ctx->device.attr.atomic_cap == IBV_ATOMIC_NONE ? CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP
								: 0);
}

static void verbs_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = caps_of(ctx),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = ctx->rma_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "mailbox, one write",
		.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static void put_far(struct cadge_blob_out *out, const struct cadge_ctx *ctx, const uint8_t *at)
{
	cadge_blob_u64(out, (uintptr_t)at);
	cadge_blob_u32(out, ctx->arena_registered.mr->rkey);
}

static struct verbs_far take_far(struct cadge_blob_in *in)
{
	struct verbs_far far;

	far.addr = cadge_blob_take_u64(in);
	far.rkey = cadge_blob_take_u32(in);
	return far;
}

static int verbs_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	code = verbs_queue_make(chan);
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(chan->mailbox, card);
	cadge_blob_raw(&out, ctx->device.gid.raw, sizeof(ctx->device.gid.raw));
	cadge_blob_u32(&out, chan->qp->qp_num);
	cadge_blob_u32(&out, chan->psn);
	cadge_blob_u32(&out, (uint32_t)ctx->device.port.active_mtu);
	cadge_blob_u32(&out, ctx->reads);
	cadge_blob_u32(&out, ctx->notes);
	put_far(&out, ctx, chan->part);
	put_far(&out, ctx, verbs_word(chan));
	put_far(&out, ctx, verbs_credit(chan));
	cadge_blob_raw(&out, card, sizeof(card));
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int verbs_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const void *gid = cadge_blob_take(&in, sizeof(union ibv_gid)), *card;
	struct verbs_end end = {0};
	struct cadge_chan *chan;
	int code;

	end.queue = cadge_blob_take_u32(&in);
	end.psn = cadge_blob_take_u32(&in);
	end.mtu = cadge_blob_take_u32(&in);
	end.reads = cadge_blob_take_u32(&in);
	end.notes = cadge_blob_take_u32(&in);
	end.area = take_far(&in);
	end.word = take_far(&in);
	end.credit = take_far(&in);
	card = cadge_blob_take(&in, CADGE_MAILBOX_CARD_BYTES);
	if (!in.ok || in.left_bytes || end.mtu < IBV_MTU_256 || peer >= ctx->peers ||
	    ctx->chans[peer].connected)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	memcpy(end.gid.raw, gid, sizeof(end.gid.raw));
	chan->peer_end = end;
	code = verbs_queue_make(chan);
	if (code == CADGE_DONE)
		code = cadge_mailbox_attach(chan->mailbox, card, CADGE_MAILBOX_CARD_BYTES, chan);
	if (code != CADGE_DONE)
		return code;
	code = verbs_queue_connect(chan);
	if (code != CADGE_DONE) {
		verbs_queue_free(chan);
		cadge_mailbox_detach(chan->mailbox);
		return code;
	}
	chan->connected = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int verbs_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->ctx != ctx || !chan->connected)
		return CADGE_E_ARGUMENT;
	verbs_queue_free(chan);
	cadge_mailbox_detach(chan->mailbox);
	return CADGE_DONE;
}

static int verbs_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const struct verbs_device *device = &ctx->device;
	struct cadge_path path = {.bytes = sizeof(path), .medium = CADGE_MEDIUM_NETWORK, .as_asked = 1};
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	char gid[INET6_ADDRSTRLEN] = "?";

	if (!chan->qp || ibv_query_qp(chan->qp, &attr, IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_PORT, &init))
		return CADGE_E_DOWN;
	inet_ntop(AF_INET6, attr.ah_attr.grh.dgid.raw, gid, sizeof(gid));
	snprintf(path.asked, sizeof(path.asked), "device %s", ctx->interface);
	snprintf(path.used, sizeof(path.used),
		 "RC queue pair on %s port %u, to GID %s, MTU %d, %u bytes inline", device->rdma.name,
		 attr.port_num, gid, 128 << attr.path_mtu, ctx->inline_bytes);
	snprintf(path.device, sizeof(path.device), "%s", ctx->interface);
	snprintf(path.note, sizeof(path.note), "put, get and atomics: carried out by the device%s%s",
		 device->attr.atomic_cap == IBV_ATOMIC_HCA ? ", atomics only against others of its own" : "",
		 ctx->notes ? "; notification after each write of a message (block)" : "");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void verbs_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress atomics =
		ctx->device.attr.atomic_cap == IBV_ATOMIC_NONE ? CADGE_PROGRESS_NONE : CADGE_PROGRESS_DIRECT;
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = CADGE_PROGRESS_DIRECT,
		.get = CADGE_PROGRESS_DIRECT,
		.fetch_add = atomics,
		.compare_swap = atomics,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void verbs_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
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

static const char *verbs_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

static void verbs_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "queue_busies", ctx->busies);
	each(arg, "registered_once", ctx->registered_once);
	for (uint32_t peer = 0; peer < ctx->peers; peer++)
		cadge_mailbox_counters(ctx->chans[peer].mailbox, each, arg);
}

static const struct cadge_layer verbs_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-verbs",
	.style = "rdma",
	.substrate = "verbs",
	.caps = CAPS,
	.open = verbs_open,
	.close = verbs_close,
	.limits = verbs_limits,
	.address = verbs_address,
	.connect = verbs_connect,
	.disconnect = verbs_disconnect,
	.post = verbs_post,
	.poll = verbs_poll,
	.describe_path = verbs_describe_path,
	.library = verbs_library,
	.semantics = verbs_semantics,
	.traits = verbs_traits,
	.wait = verbs_wait,
	.event = verbs_event,
	.expose = verbs_expose,
	.unexpose = verbs_unexpose,
	.attach = verbs_attach,
	.detach = verbs_detach,
	.put = verbs_put,
	.get = verbs_get,
	.fetch_add = verbs_fetch_add,
	.compare_swap = verbs_compare_swap,
	.quiet = verbs_quiet,
	.mem_reg = verbs_mem_reg,
	.mem_dereg = verbs_mem_dereg,
	.counters = verbs_counters,
	.why = verbs_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &verbs_layer;
}
