/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract on VMMC: messages, channels and life. Messages are made of updates: each peer writes into a mailbox that is exported to
 * it alone (wire/mail.h). In block mode each of these updates notifies, since an update alone wakes nobody.
 */
#include "vmmc/adapter.h"
#include "substrate.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTES_MAX     (UINT64_C(1) << 30)
#define DEPTH_MAX     4096u
#define NOTES         128u
#define CACHE_PAGES   4096u
#define POLLS_SKIPPED 16u

/* ---- the mailbox on top ---- */

static int mailbox_put(void *at, const void *local, size_t bytes, uint64_t offset_bytes,
		       struct cadge_mailbox_op *op)
{
	const struct cadge_box *box = at;
	const struct cadge_chan *chan = box->link;

	return vmmc_send(box->outbox, offset_bytes, local, bytes, chan->ctx->update_flags,
			 (struct vmmc_token){.owner = op});
}

static int mailbox_quiet(void *at, struct cadge_mailbox_op *op)
{
	const struct cadge_box *box = at;
	const struct cadge_chan *chan = box->link;

	return vmmc_quiet(chan->ctx->vmmc, box->peer, (struct vmmc_token){.owner = op});
}

/* Where puts are in order. */
static int mailbox_fence(void *at)
{
	(void)at;
	return CADGE_DONE;
}

static int mail_expose(struct cadge_box *box, size_t bytes, struct cadge_blob_out *key)
{
	const struct cadge_ctx *ctx = box->mail->user;
	struct vmmc_export *export = NULL;
	const int code =
		vmmc_export(ctx->vmmc, box->area, bytes, CADGE_MAY_WRITE, box->peer, 0, key, &export);

	box->inbox = export;
	return code;
}

static void mail_unexpose(struct cadge_box *box)
{
	vmmc_unexport(box->inbox);
}

static int mail_attach(struct cadge_box *box, struct cadge_blob_in *key)
{
	const struct cadge_ctx *ctx = box->mail->user;
	struct vmmc_import *import = NULL;
	const int code = vmmc_import(ctx->vmmc, box->peer, key, CADGE_MAY_WRITE, &import);

	box->outbox = import;
	return code;
}

/* ---- messages ---- */

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	(void)flags;
	return cadge_mailbox_post(chan->box->mailbox, iov, count, token);
}

/* What lies in a mailbox needs no library: that looks when they are empty, or every 16th time. */
int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int code = 0;

	ctx->sink = sink;
	ctx->events = 0;
	cadge_mail_poll(&ctx->mail, &ctx->sink, &ctx->events);
	if (!ctx->events || ++ctx->skipped >= POLLS_SKIPPED) {
		ctx->skipped = 0;
		code = vmmc_progress(ctx->vmmc, 1);
		if (code > 0)
			cadge_mail_poll(&ctx->mail, &ctx->sink, &ctx->events);
	}
	return code < 0 ? code : ctx->events;
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	const bool busy = ctx->asked.wait_mode == CADGE_WAIT_BLOCK &&
			  !(vmmc_may_sleep(ctx->vmmc) && cadge_mail_may_sleep(&ctx->mail));

	return busy ? NULL : vmmc_wire(ctx->vmmc);
}

/* ---- what VMMC tells ---- */

static void on_sent(void *arg, uint32_t peer, struct vmmc_token token, int code)
{
	struct cadge_ctx *ctx = arg;

	if (token.owner) {
		cadge_mailbox_done(token.owner, code);
		return;
	}
	ctx->chans[peer].outstanding--;
	ctx->events++;
	ctx->sink->sent(ctx->sink, peer, token.number, code);
}

static void on_notified(void *arg, uint32_t peer, struct vmmc_export *export, uint64_t offset_bytes,
			uint64_t bytes)
{
	struct cadge_ctx *ctx = arg;

	if (export == ctx->mail.boxes[peer].inbox)
		return; /* it was for waking up: poll looks there now */
	ctx->events++;
	ctx->sink->notified(ctx->sink, peer, (struct cadge_region *)(void *)export, offset_bytes, bytes);
}

/* ---- channels ---- */

/* The mailbox greets over the link, and says `up` to the sink. */
static void on_up(void *arg, uint32_t peer)
{
	struct cadge_ctx *ctx = arg;

	cadge_mail_begin(&ctx->mail.boxes[peer]);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct cadge_ctx *ctx = arg;

	(void)code;
	cadge_mailbox_fail(ctx->mail.boxes[peer].mailbox);
	cadge_mail_begin(&ctx->mail.boxes[peer]);
}

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);
	int code =
		peer < ctx->mail.peers ? cadge_mail_address(&ctx->mail.boxes[peer], &out) : CADGE_E_ARGUMENT;

	if (code == CADGE_DONE)
		code = vmmc_address(ctx->vmmc, peer, &out);
	return cadge_blob_close(&out, code, bytes_inout);
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	int code = vmmc_disconnect(ctx->vmmc, chan->peer);

	if (code == CADGE_DONE)
		cadge_mail_end(chan->box);
	return code;
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	struct cadge_mail_peer mail;
	struct cadge_chan *chan;
	int code = cadge_mail_take(&in, &mail) ? vmmc_connect(ctx->vmmc, peer, &in) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	chan = &ctx->chans[peer];
	*chan = (struct cadge_chan){.ctx = ctx, .box = &ctx->mail.boxes[peer], .peer = peer};
	code = in.left_bytes ? CADGE_E_ARGUMENT : cadge_mail_connect(chan->box, chan, &mail);
	if (code != CADGE_DONE) {
		vmmc_disconnect(ctx->vmmc, peer);
		return code;
	}
	ctx->direct = vmmc_reach(chan->box->outbox) == CADGE_PROGRESS_DIRECT && (ctx->direct || !ctx->proved);
	ctx->proved = true;
	*chan_out = chan;
	return CADGE_DONE;
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	int code = vmmc_describe(chan->ctx->vmmc, chan->peer, &path);

	if (code != CADGE_DONE)
		return code;
	snprintf(path.note, sizeof(path.note), "updates: %s%s",
		 chan->ctx->direct ? "without the target's doing" : "carried out by the target's library",
		 chan->ctx->asked.wait_mode == CADGE_WAIT_BLOCK ? "; notification after each write (block)"
								: "");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	vmmc_close(ctx->vmmc);
	cadge_mail_destroy(&ctx->mail);
	free(ctx);
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = BYTES_MAX,
	.depth_max = DEPTH_MAX,
	.separable = CADGE_PART_PROTECTION,
};

static int make_mail(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	struct cadge_wire *wire = vmmc_wire(ctx->vmmc);
	const struct cadge_wire_facts *facts = cadge_wire_facts(wire);

	ctx->update_flags = ctx->asked.wait_mode == CADGE_WAIT_BLOCK ? VMMC_NOTIFY : 0;
	ctx->mailbox_ops = (struct cadge_mailbox_ops){
		.put = mailbox_put,
		.quiet = mailbox_quiet,
		.fence = facts->puts_in_order ? mailbox_fence : NULL,
	};
	ctx->mail_style = (struct cadge_mail_style){
		.ops = &ctx->mailbox_ops,
		.expose = mail_expose,
		.unexpose = mail_unexpose,
		.attach = mail_attach,
		.maps = !facts->any_memory,
		.put_anywhere = true,
	};
	return cadge_mail_create(&ctx->mail, &ctx->mail_style, ctx, wire, args, &ctx->asked);
}

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	const struct vmmc_config config = {
		.operations = asked->depth + CADGE_MAIL_OPERATIONS,
		.notes = NOTES,
		.cache_pages = CACHE_PAGES,
		.trusting = asked->off & CADGE_PART_PROTECTION,
		.events =
			{.up = on_up, .down = on_down, .sent = on_sent, .notified = on_notified, .arg = ctx},
	};
	int code;

	ctx->asked = *asked;
	code = vmmc_open(args, &config, &ctx->vmmc);
	if (code != CADGE_DONE)
		return code;
	return make_mail(ctx, args);
}

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, vmmc_wire(ctx->vmmc));

	limits.rma_bytes_max = cadge_wire_facts(vmmc_wire(ctx->vmmc))->put_bytes_max;
	cadge_mail_limits(&ctx->mail, &limits);
	limits.short_path = "mailbox, one update";
	limits.long_path = "mailbox, updates with pieces, an update that describes each";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_CADGE,
		.put = ctx->direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, vmmc_wire(ctx->vmmc));

	traits.protection = cadge_wire_facts(vmmc_wire(ctx->vmmc))->device_guards == CADGE_WIRE_GUARDS_ALL
				    ? CADGE_PROTECT_KERNEL_OR_NIC
				    : CADGE_PROTECT_SENDER_LIBRARY;
	traits.control_transfer = CADGE_CONTROL_POLL;
	traits.copies_on_send++; /* a short message is gathered before it is put */
	cadge_mail_traits(&ctx->mail, &ctx->asked, &traits);
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	vmmc_counters(ctx->vmmc, each, arg);
	cadge_mail_counters(&ctx->mail, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return cadge_wire_why(vmmc_wire(ctx->vmmc));
}

const struct cadge_traits cadge_style_library_traits = {CADGE_SUBSTRATE_PUTS};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-" CADGE_SUBSTRATE,
	.style = "vmmc",
	.caps = CADGE_SUBSTRATE_CAPS(VMMC_CAPS),
	CADGE_SUBSTRATE_SLOTS,
	VMMC_SLOTS,
};
