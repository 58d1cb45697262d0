/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of rdma-ofi that move bytes; see ofi.c. */
#include "rdma/ofi_flow.h"

#include <stdlib.h>

#include "kit/bytes.h"

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
	struct cadge_chan *chan = link;
	ssize_t ret = fi_injectdata(chan->ctx->ofi.ep, note, CADGE_MAILBOX_NOTE_BYTES, chan->peer_stamp,
				    chan->link.addr);

	if (!ret)
		return CADGE_DONE;
	return ret == -FI_EAGAIN ? CADGE_BUSY : cadge_ofi_refused(&chan->ctx->ofi, ret);
}

const struct cadge_mailbox_ops rdma_ofi_polling_ops = {
	.put = rdma_mailbox_put,
	.quiet = rdma_mailbox_quiet,
	.fence = rdma_mailbox_fence,
};
const struct cadge_mailbox_ops rdma_ofi_blocking_ops = {
	.put = rdma_mailbox_put,
	.quiet = rdma_mailbox_quiet,
	.fence = rdma_mailbox_fence,
	.notify = rdma_mailbox_notify,
};

/* An operation is finished: the mailbox owns it, or the caller. */
int rdma_ofi_done(void *arg, struct cadge_ofi_link *link, uint64_t token, void *owner, int code)
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

static int rdma_post_note(struct cadge_ctx *ctx, struct rdma_note *note)
{
	ssize_t ret =
		fi_recv(ctx->ofi.ep, note->data, sizeof(note->data), NULL, FI_ADDR_UNSPEC, &note->context);

	return ret ? cadge_ofi_code(ret) : CADGE_DONE;
}

int rdma_ofi_make_notes(struct cadge_ctx *ctx)
{
	int code = CADGE_DONE, i;

	ctx->notes = calloc(RDMA_NOTES, sizeof(*ctx->notes));
	if (!ctx->notes)
		return CADGE_E_MEMORY;
	for (i = 0; i < RDMA_NOTES && !code; i++)
		code = rdma_post_note(ctx, &ctx->notes[i]);
	return code;
}

int rdma_ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		  uint64_t token)
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
	ssize_t ret = cadge_ofi_read_error(&ctx->ofi, &error);
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

int rdma_ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
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

static bool rdma_may_sleep(struct cadge_ctx *ctx)
{
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected && !cadge_mailbox_may_sleep(ctx->chan[peer].mailbox))
			return false;
	return true;
}

int rdma_ofi_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return rdma_may_sleep(ctx) ? cadge_ofi_wait(&ctx->ofi, timeout_ns) : CADGE_DONE;
}

int rdma_ofi_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	const int code =
		ctx->ofi.wait_fd < 0 || rdma_may_sleep(ctx) ? cadge_ofi_event(&ctx->ofi, fd_out) : CADGE_BUSY;

	if (code == CADGE_DONE)
		*due_ns_out = UINT64_MAX;
	return code;
}

void rdma_ofi_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	struct cadge_region **at = &ctx->regions;

	while (*at && *at != region)
		at = &(*at)->next;
	if (*at)
		*at = region->next;
	cadge_ofi_unexpose(region->mr);
	free(region);
}

int rdma_ofi_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		    uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region;
	struct cadge_ofi_far far;
	int code;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: shm copies without a look at the key */
	region = calloc(1, sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	code = cadge_ofi_expose(&ctx->rma, base, bytes, CADGE_MAY_ALL, &region->mr, &far);
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

int rdma_ofi_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		    uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	struct cadge_remote remote, *copy;

	(void)chan, (void)intent, (void)flags;
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

void rdma_ofi_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static bool rdma_inside(const struct cadge_remote *remote, size_t bytes, uint64_t offset_bytes)
{
	return bytes <= remote->bytes && offset_bytes <= remote->bytes - bytes;
}

int rdma_ofi_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (bytes > cadge_ofi_longest(&chan->ctx->ofi, CADGE_OFI_RMA_BYTES_MAX))
		return CADGE_E_TOO_LARGE;
	if (!rdma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	return bytes ? cadge_ofi_write(&chan->link, local, bytes, rdma_offset(remote->far, offset_bytes),
				       token, NULL)
		     : CADGE_DONE;
}

int rdma_ofi_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (bytes > cadge_ofi_longest(&chan->ctx->ofi, CADGE_OFI_RMA_BYTES_MAX))
		return CADGE_E_TOO_LARGE;
	if (!rdma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	return bytes ? cadge_ofi_read(&chan->link, local, bytes, rdma_offset(remote->far, offset_bytes),
				      token)
		     : CADGE_DONE;
}

int rdma_ofi_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (!chan->ctx->rma.fetches)
		return CADGE_E_UNSUPPORTED;
	if (!rdma_inside(remote, sizeof(uint64_t), offset_bytes) || offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	return cadge_ofi_fetch_add(&chan->link, addend, before_out, rdma_offset(remote->far, offset_bytes),
				   token);
}

int rdma_ofi_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (!chan->ctx->rma.swaps)
		return CADGE_E_UNSUPPORTED;
	if (!rdma_inside(remote, sizeof(uint64_t), offset_bytes) || offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	return cadge_ofi_compare_swap(&chan->link, expected, desired, before_out,
				      rdma_offset(remote->far, offset_bytes), token);
}

int rdma_ofi_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)flags;
	return cadge_ofi_quiet(&chan->link, token, NULL);
}
