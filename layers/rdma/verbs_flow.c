/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots that move bytes; see verbs.h. */
#include <string.h>

#include "kit/bytes.h"
#include "rdma/verbs.h"

static struct verbs_far at_offset(struct verbs_far far, uint64_t offset_bytes)
{
	far.addr += offset_bytes;
	return far;
}

/* Writes registered, inline or, where it is neither, for once registered memory. DONE, QUEUED, BUSY or E_DOWN. */
static int transfer(struct cadge_chan *chan, enum ibv_wr_opcode opcode, void *local, size_t bytes,
		    struct verbs_far far, struct verbs_op *op)
{
	struct cadge_ctx *ctx = chan->ctx;
	const bool travels_inside = opcode == IBV_WR_RDMA_WRITE && bytes <= ctx->inline_bytes;
	struct ibv_sge piece = {.addr = (uintptr_t)local, .length = (uint32_t)bytes};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &piece,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = far.addr, .rkey = far.rkey}};
	int code;

	if (chan->broken)
		return CADGE_E_DOWN;
	if (travels_inside) {
		op->kind = VERBS_SILENT;
	} else {
		struct ibv_mr *mr = verbs_registration_of(ctx, local, bytes);

		if (!mr)
			mr = op->once = verbs_register_once(ctx, local, bytes);
		if (!mr)
			return CADGE_BUSY; /* registered memory is used up: what ends gives some back */
		piece.lkey = mr->lkey;
	}
	code = verbs_issue(chan, &wr, travels_inside ? IBV_SEND_INLINE : 0, op);
	if (code != CADGE_DONE) {
		if (op->once)
			ibv_dereg_mr(op->once);
		return code;
	}
	chan->written += opcode == IBV_WR_RDMA_WRITE;
	return travels_inside ? CADGE_DONE : CADGE_QUEUED;
}

/*
 * A completed write is in the peer's device, and where its processor sees it is not said; a read behind it brings back what
 * stands in memory after it (InfiniBand Architecture Specification, volume 1, section 9.5, table 79: writes before reads).
 */
static int flush(struct cadge_chan *chan, struct verbs_op *op)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct ibv_sge piece = {.addr = (uintptr_t)verbs_landing(chan, chan->posted),
				.length = sizeof(uint64_t),
				.lkey = ctx->arena_registered.mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.sg_list = &piece,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = chan->peer_end.word.addr, .rkey = chan->peer_end.word.rkey}};
	int code;

	if (chan->broken)
		return CADGE_E_DOWN;
	if (chan->written == chan->flushed)
		return CADGE_DONE;
	op->kind = VERBS_QUIET;
	op->written = chan->written;
	code = verbs_issue(chan, &wr, 0, op);
	return code == CADGE_DONE ? CADGE_QUEUED : code;
}

/* ---- the mailbox's ---- */

static int mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
		       struct cadge_mailbox_op *mailbox_op)
{
	struct cadge_chan *chan = link;
	struct verbs_op op = {.kind = VERBS_WORK, .owner = mailbox_op};

	return transfer(chan, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)local, bytes,
			at_offset(chan->peer_end.area, offset_bytes), &op);
}

static int mailbox_quiet(void *link, struct cadge_mailbox_op *mailbox_op)
{
	struct verbs_op op = {.owner = mailbox_op};

	return flush(link, &op);
}

/* How many notifications the peer has taken, as it tells it: a number and its complement, or the one before. */
static uint32_t credit_of(const struct cadge_chan *chan)
{
	const uint64_t told =
		__atomic_load_n((const uint64_t *)(const void *)verbs_credit(chan), __ATOMIC_ACQUIRE);

	return (uint32_t)told == (uint32_t)~(told >> 32) ? (uint32_t)told : chan->notes_told;
}

static int mailbox_notify(void *link, const void *note)
{
	struct cadge_chan *chan = link;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct verbs_op op = {.kind = VERBS_SILENT};
	int code;

	if (!chan->peer_end.notes)
		return CADGE_DONE; /* it does not sleep */
	chan->notes_told = credit_of(chan);
	if (chan->notes_sent - chan->notes_told >= chan->peer_end.notes)
		return CADGE_BUSY; /* and the peer, who has so many to take, is awake */
	code = verbs_issue_copy(chan, &wr, note, CADGE_MAILBOX_NOTE_BYTES, &op);
	chan->notes_sent += code == CADGE_DONE;
	return code;
}

const struct cadge_mailbox_ops verbs_polling_ops = {.put = mailbox_put, .quiet = mailbox_quiet};
const struct cadge_mailbox_ops verbs_blocking_ops = {
	.put = mailbox_put, .quiet = mailbox_quiet, .notify = mailbox_notify};

/* Tells the peer how many notifications were taken, when half of its room is used. */
static bool owes_credit(const struct cadge_chan *chan)
{
	return verbs_met(chan) && !chan->broken &&
	       chan->notes_taken - chan->notes_credited >= chan->ctx->notes / 2 && chan->ctx->notes;
}

static void give_credit(struct cadge_chan *chan)
{
	const uint64_t told = (uint64_t)~chan->notes_taken << 32 | chan->notes_taken;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = chan->peer_end.credit.addr, .rkey = chan->peer_end.credit.rkey}};
	const struct verbs_op op = {.kind = VERBS_SILENT};

	if (verbs_issue_copy(chan, &wr, &told, sizeof(told), &op) == CADGE_DONE)
		chan->notes_credited = chan->notes_taken;
}

void verbs_noted(struct cadge_chan *chan, uint32_t slot, uint32_t bytes)
{
	if (!bytes) {
		chan->heard = true;
		return;
	}
	chan->notes_taken++;
	if (bytes == CADGE_MAILBOX_NOTE_BYTES)
		cadge_mailbox_notified(chan->mailbox, verbs_note(chan, slot));
}

int verbs_ended(struct cadge_chan *chan, const struct verbs_op *op, int code)
{
	struct cadge_sink *sink = chan->ctx->sink;

	chan->outstanding--;
	sink->sent(sink, chan->peer, op->token, code);
	return 1;
}

/* ---- the slots ---- */

int verbs_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
	       uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	if (chan->broken)
		return CADGE_E_DOWN;
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

int verbs_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events;

	ctx->sink = sink;
	events = verbs_completions(ctx);
	if (events < 0)
		return events;
	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chans[peer];

		if (verbs_met(chan) || chan->broken)
			events += cadge_mailbox_poll(chan->mailbox, sink);
		if (owes_credit(chan))
			give_credit(chan);
	}
	return events;
}

static bool may_sleep(struct cadge_ctx *ctx)
{
	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		const struct cadge_chan *chan = &ctx->chans[peer];

		if ((verbs_met(chan) || chan->broken) && !cadge_mailbox_may_sleep(chan->mailbox))
			return false;
		if (owes_credit(chan))
			return false;
	}
	return true;
}

/* A write may come while sleep is prepared: its notification is then on its way, or it is seen by the second look. */
static bool asleep(struct cadge_ctx *ctx)
{
	return may_sleep(ctx) && verbs_armed(ctx) && may_sleep(ctx);
}

int verbs_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct pollfd entry = {.events = POLLIN};

	if (!asleep(ctx))
		return CADGE_DONE;
	entry.fd = ctx->events->fd;
	return cadge_sleep(&entry, 1, timeout_ns);
}

int verbs_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	if (!ctx->events)
		return CADGE_E_UNSUPPORTED;
	if (!asleep(ctx))
		return CADGE_BUSY;
	*fd_out = ctx->events->fd;
	*due_ns_out = UINT64_MAX;
	return CADGE_DONE;
}

/* DONE where the channel takes an operation on these bytes. */
static int may_start(const struct cadge_chan *chan, const struct cadge_remote *remote, uint64_t offset_bytes,
		     uint64_t bytes)
{
	if (chan->broken)
		return CADGE_E_DOWN;
	if (remote && bytes > chan->ctx->rma_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (remote && (offset_bytes > remote->bytes || bytes > remote->bytes - offset_bytes))
		return CADGE_E_ARGUMENT;
	return verbs_met(chan) && chan->outstanding < chan->ctx->depth ? CADGE_DONE : CADGE_BUSY;
}

static int count(struct cadge_chan *chan, int code)
{
	chan->outstanding += code == CADGE_QUEUED;
	return code;
}

int verbs_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	      uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};
	const int code = may_start(chan, remote, offset_bytes, bytes);

	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (code != CADGE_DONE || !bytes)
		return code;
	return count(chan, transfer(chan, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)local, bytes,
				    at_offset(remote->far, offset_bytes), &op));
}

int verbs_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	      uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};
	const int code = may_start(chan, remote, offset_bytes, bytes);

	(void)flags;
	if (code != CADGE_DONE || !bytes)
		return code;
	return count(chan, transfer(chan, IBV_WR_RDMA_READ, local, bytes,
				    at_offset(remote->far, offset_bytes), &op));
}

/* Both atomic operations; the word that stood there comes to the operation's landing place. */
static int atomic(struct cadge_chan *chan, struct ibv_send_wr *wr, uint64_t *before_out,
		  struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	struct ibv_sge piece = {.addr = (uintptr_t)verbs_landing(chan, chan->posted),
				.length = sizeof(*before_out),
				.lkey = chan->ctx->arena_registered.mr->lkey};
	const struct verbs_op op = {.kind = VERBS_WORK, .token = token, .before_out = before_out};
	int code = may_start(chan, remote, offset_bytes, sizeof(*before_out));

	if (chan->ctx->device.attr.atomic_cap == IBV_ATOMIC_NONE)
		return CADGE_E_UNSUPPORTED;
	if (code != CADGE_DONE)
		return code;
	if ((remote->far.addr + offset_bytes) % sizeof(*before_out))
		return CADGE_E_ARGUMENT;
	wr->sg_list = &piece;
	wr->num_sge = 1;
	wr->wr.atomic.remote_addr = remote->far.addr + offset_bytes;
	wr->wr.atomic.rkey = remote->far.rkey;
	code = verbs_issue(chan, wr, 0, &op);
	return count(chan, code == CADGE_DONE ? CADGE_QUEUED : code);
}

int verbs_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		    struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic.compare_add = addend};

	(void)flags;
	return atomic(chan, &wr, before_out, remote, offset_bytes, token);
}

int verbs_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				 .wr.atomic = {.compare_add = expected, .swap = desired}};

	(void)flags;
	return atomic(chan, &wr, before_out, remote, offset_bytes, token);
}

int verbs_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.token = token};
	const int code = may_start(chan, NULL, 0, 0);

	(void)flags;
	return code == CADGE_DONE ? count(chan, flush(chan, &op)) : code;
}
