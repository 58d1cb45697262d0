/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See adapter.h. A substrate's file includes this last: `substrate` is the constant that it has defined. `flatten` puts the wire's
 * part of an operation into the slot, so that no call lies between slot and library.
 */
#include "rdma/adapter.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTES_MAX     (UINT64_C(1) << 30)
#define POLLS_SKIPPED 16u
#define FLATTEN       __attribute__((flatten))
/* A token of the wire's is the address of an operation: of ours, or, with this, of the mailbox's. */
#define OF_MAILBOX UINT64_C(1)

/* ---- the mailbox on top ---- */

/* A mailbox stays within the area, and puts while the link is up; that it broke is told to it by the next progress only. */
static FLATTEN int mailbox_put(void *at, const void *local, size_t bytes, uint64_t offset_bytes,
			       struct cadge_mailbox_op *op)
{
	const struct cadge_box *box = at;
	struct cadge_link *link = box->link;

	if (UNLIKELY(link->state.broken))
		return CADGE_E_DOWN;
	return put_unchecked(link, local, bytes, box->outbox, offset_bytes, (uintptr_t)op | OF_MAILBOX);
}

static FLATTEN int mailbox_quiet(void *at, struct cadge_mailbox_op *op)
{
	const struct cadge_box *box = at;

	return cadge_wire_quiet(box->link, (uintptr_t)op | OF_MAILBOX);
}

static int mailbox_notify(void *at, const void *note)
{
	const struct cadge_box *box = at;
	const struct cadge_link *link = box->link;

	return UNLIKELY(link->state.broken) ? CADGE_E_DOWN : cadge_wire_note(box->link, note);
}

static int mail_expose(struct cadge_box *box, size_t bytes, struct cadge_blob_out *key)
{
	struct cadge_ctx *ctx = box->mail->user;
	struct cadge_region *region = NULL;
	const int code = cadge_wire_expose(ctx->wire, box->area, bytes, CADGE_MAY_ALL, key, &region);

	box->inbox = region;
	return code;
}

static int mail_attach(struct cadge_box *box, struct cadge_blob_in *key)
{
	struct cadge_remote *remote = NULL;
	const int code = cadge_wire_attach(box->link, key, &remote);

	box->outbox = remote;
	return code;
}

/* ---- what the wire tells ---- */

static void rdma_up(void *arg, uint32_t peer)
{
	struct cadge_ctx *ctx = arg;

	cadge_mail_begin(ctx->chans[peer].box); /* the mailbox greets, and says `up` to the sink */
}

static void rdma_down(void *arg, uint32_t peer, int code)
{
	struct cadge_ctx *ctx = arg;

	(void)code;
	cadge_mailbox_fail(ctx->chans[peer].box->mailbox);
	cadge_mail_begin(ctx->chans[peer].box);
}

static enum cadge_keep rdma_noted(void *arg, uint32_t peer, void *data, size_t bytes)
{
	struct cadge_ctx *ctx = arg;

	if (bytes == CADGE_MAILBOX_NOTE_BYTES)
		cadge_mailbox_notified(ctx->chans[peer].box->mailbox, data);
	return CADGE_TAKEN;
}

static void rdma_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct cadge_ctx *ctx = arg;
	struct rdma_operation *operation = (void *)(uintptr_t)token;

	if (token & OF_MAILBOX) {
		cadge_mailbox_done((void *)(uintptr_t)(token - OF_MAILBOX), code);
		return;
	}
	CADGE_POOL_GIVE(operation->chan->idle, operation);
	ctx->events++;
	ctx->sink->sent(ctx->sink, peer, operation->token, code);
}

static const struct cadge_wire_calls calls = {
	.up = rdma_up, .down = rdma_down, .packet = rdma_noted, .ended = rdma_ended};
_Static_assert(CADGE_MAILBOX_NOTE_BYTES == CADGE_WIRE_NOTE_BYTES, "what a mailbox notifies of is one note");

/* ---- messages ---- */

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	return cadge_mailbox_post(chan->box->mailbox, iov, count, token);
}

static inline void poll_mail(struct cadge_ctx *ctx)
{
	cadge_mail_poll(&ctx->mail, &ctx->sink, &ctx->events);
}

FLATTEN int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	if (substrate.mapped_poll) {
		poll_mail(ctx);
		if (ctx->events && ++ctx->skipped < POLLS_SKIPPED)
			return ctx->events;
		ctx->skipped = 0;
		if (!substrate.mapped_poll(ctx->wire))
			return ctx->events;
	} else {
		code = cadge_wire_progress(ctx->wire, 1);
		if (code < 0)
			return code;
	}
	poll_mail(ctx);
	return ctx->events;
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	return ctx->asked.wait_mode != CADGE_WAIT_BLOCK || cadge_mail_may_sleep(&ctx->mail) ? ctx->wire
											    : NULL;
}

/* ---- one-sided operations ---- */

/* What the wire answered to an operation that was given the first idle record as its token. */
static inline int begun(struct cadge_chan *chan, uint64_t token, int code)
{
	if (code == CADGE_QUEUED) {
		chan->idle->token = token;
		chan->idle = chan->idle->next;
	}
	return code == CADGE_E_REFUSED ? CADGE_E_ARGUMENT
				       : code; /* without RIGHTS that is the caller's fault */
}

/* Why no operation can begin: too many are under way. */
static __attribute__((noinline)) int full(const struct cadge_chan *chan)
{
	const int code = cadge_usable(&chan->link->state);

	return code == CADGE_DONE ? CADGE_BUSY : code;
}

FLATTEN int cadge_slot_put(struct cadge_chan *chan, const void *local, size_t bytes,
			   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (!chan->idle)
		return full(chan);
	return begun(chan, token,
		     cadge_wire_put(chan->link, local, bytes, remote, offset_bytes, (uintptr_t)chan->idle));
}

FLATTEN int cadge_slot_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
			   uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (!chan->idle)
		return full(chan);
	return begun(chan, token,
		     cadge_wire_get(chan->link, local, bytes, remote, offset_bytes, (uintptr_t)chan->idle));
}

FLATTEN int cadge_slot_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
				 struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags,
				 uint64_t token)
{
	(void)flags;
	if (!chan->idle)
		return full(chan);
	return begun(chan, token,
		     cadge_wire_fetch_add(chan->link, addend, before_out, remote, offset_bytes,
					  (uintptr_t)chan->idle));
}

FLATTEN int cadge_slot_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
				    uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
				    uint32_t flags, uint64_t token)
{
	(void)flags;
	if (!chan->idle)
		return full(chan);
	return begun(chan, token,
		     cadge_wire_compare_swap(chan->link, expected, desired, before_out, remote, offset_bytes,
					     (uintptr_t)chan->idle));
}

FLATTEN int cadge_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (!chan->idle)
		return full(chan);
	return begun(chan, token, cadge_wire_quiet(chan->link, (uintptr_t)chan->idle));
}

/* ---- memory ---- */

void *cadge_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return cadge_wire_alloc(ctx->wire, bytes);
}

void cadge_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	cadge_wire_free(ctx->wire, base, bytes);
}

int cadge_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = cadge_blob_open(key, *key_bytes_inout);

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: see the notes of the layers */
	return cadge_blob_close(&out, cadge_wire_expose(ctx->wire, base, bytes, rights, &out, region_out),
				key_bytes_inout);
}

void cadge_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	cadge_wire_unexpose(ctx->wire, region);
}

int cadge_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	int code;

	(void)intent, (void)flags;
	code = cadge_wire_attach(chan->link, &in, remote_out);
	if (code != CADGE_DONE || !in.left_bytes)
		return code;
	cadge_wire_detach(*remote_out);
	return CADGE_E_ARGUMENT;
}

void cadge_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	cadge_wire_detach(remote);
}

/* ---- channels ---- */

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);
	int code =
		peer < ctx->mail.peers ? cadge_mail_address(&ctx->mail.boxes[peer], &out) : CADGE_E_ARGUMENT;

	if (code == CADGE_DONE)
		code = cadge_wire_address(ctx->wire, peer, &out);
	return cadge_blob_close(&out, code, bytes_inout);
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const int code =
		chan->ctx == ctx && chan->link ? cadge_wire_disconnect(chan->link) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	cadge_mail_end(chan->box);
	chan->link = NULL;
	return CADGE_DONE;
}

/* What a peer's memory shows; the first peer ends what was expected. */
static void prove(struct cadge_ctx *ctx, const struct cadge_remote *area)
{
	const enum cadge_progress copy = cadge_wire_reach(area, CADGE_MAY_WRITE);
	const enum cadge_progress atomic = cadge_wire_reach(area, CADGE_MAY_ATOMIC);

	if (!ctx->proved || copy != CADGE_PROGRESS_DIRECT)
		ctx->copy = copy;
	if (!ctx->proved || atomic != CADGE_PROGRESS_DIRECT)
		ctx->atomic = atomic;
	ctx->proved = true;
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	struct cadge_mail_peer mail;
	struct cadge_chan *chan;
	struct cadge_link *link;
	int code = cadge_mail_take(&in, &mail) ? cadge_wire_connect(ctx->wire, peer, &in, &link)
					       : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	chan = &ctx->chans[peer];
	code = in.left_bytes ? CADGE_E_ARGUMENT : cadge_mail_connect(chan->box, link, &mail);
	if (code != CADGE_DONE) {
		cadge_wire_disconnect(link);
		return code;
	}
	chan->link = link;
	chan->idle = NULL;
	for (uint32_t i = ctx->asked.depth; i-- > 0;) {
		chan->operations[i].chan = chan;
		CADGE_POOL_GIVE(chan->idle, &chan->operations[i]);
	}
	prove(ctx, chan->box->outbox);
	*chan_out = chan;
	return CADGE_DONE;
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = cadge_wire_describe(chan->link, &path);

	if (code != CADGE_DONE)
		return code;
	if (!*path.note)
		substrate.note(chan, path.note, sizeof(path.note));
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	cadge_wire_close(ctx->wire);
	cadge_mail_destroy(&ctx->mail);
	free(ctx->operations);
	free(ctx);
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = BYTES_MAX,
	.depth_max = UINT32_MAX,
};

static int make_mail(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	ctx->mailbox_ops = (struct cadge_mailbox_ops){
		.put = mailbox_put,
		.quiet = mailbox_quiet,
		.fence = substrate.fence,
		.notify = ctx->asked.wait_mode == CADGE_WAIT_BLOCK ? mailbox_notify : NULL,
	};
	ctx->mail_style = (struct cadge_mail_style){
		.ops = &ctx->mailbox_ops,
		.expose = mail_expose,
		.attach = mail_attach,
		.maps = substrate.maps,
		.put_anywhere = !cadge_wire_facts(ctx->wire)->reads_late,
	};
	return cadge_mail_create(&ctx->mail, &ctx->mail_style, ctx, ctx->wire, args, &ctx->asked);
}

static int make_chans(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	ctx->operations = calloc((size_t)args->peers_max * ctx->asked.depth, sizeof(*ctx->operations));
	if (!ctx->operations)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	for (uint32_t i = 0; i < args->peers_max; i++)
		ctx->chans[i] = (struct cadge_chan){.ctx = ctx,
						    .peer = i,
						    .box = &ctx->mail.boxes[i],
						    .operations = ctx->operations + i * ctx->asked.depth};
	return CADGE_DONE;
}

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	const uint32_t depth = (uint32_t)cadge_least(asked->depth, substrate.depth_max);
	const struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_REMOTE | CADGE_WIRE_ATOMICS | CADGE_WIRE_FLUSH |
			    (asked->wait_mode == CADGE_WAIT_BLOCK ? CADGE_WIRE_NOTES : 0),
		.packet_bytes = CADGE_WIRE_NOTE_BYTES,
		.operations = depth * substrate.operations_each + substrate.operations_more,
		.options = substrate.options,
		.calls = &calls,
		.arg = ctx,
	};
	uint32_t operations;
	int code = cadge_wire_open(args, &needs, &ctx->wire);

	if (code != CADGE_DONE)
		return code;
	operations = cadge_wire_facts(ctx->wire)->operations;
	if (operations < substrate.operations_more + substrate.operations_each)
		return cadge_refuse(args, CADGE_E_MEMORY, "%u operations at a time are too few for %u peers",
				    operations, args->peers_max);
	ctx->asked = *asked;
	ctx->asked.depth = (operations - substrate.operations_more) / substrate.operations_each;
	ctx->copy = substrate.expected(ctx->wire, CADGE_MAY_WRITE);
	ctx->atomic = substrate.expected(ctx->wire, CADGE_MAY_ATOMIC);
	code = make_mail(ctx, args);
	return code == CADGE_DONE ? make_chans(ctx, args) : code;
}

/* ---- what is said of it ---- */

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_wire_facts *facts = cadge_wire_facts(ctx->wire);
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, ctx->wire);

	limits.caps &=
		~((facts->adds ? 0 : CADGE_CAP_FETCH_ADD) | (facts->swaps ? 0 : CADGE_CAP_COMPARE_SWAP));
	limits.rma_bytes_max = facts->put_bytes_max;
	cadge_mail_limits(&ctx->mail, &limits);
	limits.short_path = substrate.short_path;
	limits.long_path = substrate.long_path;
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_wire_facts *facts = cadge_wire_facts(ctx->wire);
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = ctx->copy,
		.get = ctx->copy,
		.fetch_add = facts->adds ? ctx->atomic : CADGE_PROGRESS_NONE,
		.compare_swap = facts->swaps ? ctx->atomic : CADGE_PROGRESS_NONE,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, ctx->wire);

	cadge_mail_traits(&ctx->mail, &ctx->asked, &traits);
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	cadge_wire_counters(ctx->wire, each, arg);
	cadge_mail_counters(&ctx->mail, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return cadge_wire_why(ctx->wire);
}
