/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of rdma-verbs that move bytes; see verbs.h. */
#include <errno.h>

#include "rdma/verbs.h"

/* ---- the mailbox's ---- */

static int mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
		       struct cadge_mailbox_op *mailbox_op)
{
	struct cadge_chan *chan = link;
	struct verbs_op op = {.kind = VERBS_WORK, .owner = mailbox_op};

	return verbs_transfer(&chan->queue, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)local, bytes,
			      verbs_far_at(chan->area, offset_bytes), &op);
}

static int mailbox_quiet(void *link, struct cadge_mailbox_op *mailbox_op)
{
	struct verbs_op op = {.owner = mailbox_op};

	return verbs_flush(link, &op); /* a channel is its queue */
}

/* How many notifications the peer has taken, as it tells it: a number and its complement, or the one before. */
static uint32_t credit_of(const struct cadge_chan *chan)
{
	const uint64_t told =
		__atomic_load_n((const uint64_t *)(const void *)rdma_credit(chan), __ATOMIC_ACQUIRE);

	return (uint32_t)told == (uint32_t)~(told >> 32) ? (uint32_t)told : chan->notes_told;
}

static int mailbox_notify(void *link, const void *note)
{
	struct cadge_chan *chan = link;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct verbs_op op = {.kind = VERBS_SILENT};
	int code;

	if (!chan->peer_notes)
		return CADGE_DONE; /* it does not sleep */
	chan->notes_told = credit_of(chan);
	if (chan->notes_sent - chan->notes_told >= chan->peer_notes)
		return CADGE_BUSY; /* and the peer, who has so many to take, is awake */
	code = verbs_issue_copy(&chan->queue, &wr, note, CADGE_MAILBOX_NOTE_BYTES, &op);
	chan->notes_sent += code == CADGE_DONE;
	return code;
}

const struct cadge_mailbox_ops rdma_verbs_polling_ops = {.put = mailbox_put, .quiet = mailbox_quiet};
const struct cadge_mailbox_ops rdma_verbs_blocking_ops = {
	.put = mailbox_put, .quiet = mailbox_quiet, .notify = mailbox_notify};

/* Tells the peer how many notifications were taken, when half of its room is used. */
static bool owes_credit(const struct cadge_chan *chan)
{
	return verbs_met(&chan->queue) && !chan->queue.broken &&
	       chan->notes_taken - chan->notes_credited >= chan->ctx->notes / 2 && chan->ctx->notes;
}

static void give_credit(struct cadge_chan *chan)
{
	const uint64_t told = (uint64_t)~chan->notes_taken << 32 | chan->notes_taken;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {.remote_addr = chan->credit.addr, .rkey = chan->credit.rkey}};
	const struct verbs_op op = {.kind = VERBS_SILENT};

	if (verbs_issue_copy(&chan->queue, &wr, &told, sizeof(told), &op) == CADGE_DONE)
		chan->notes_credited = chan->notes_taken;
}

/* ---- what the queue pair tells ---- */

static struct cadge_chan *chan_of(struct verbs_queue *queue)
{
	return (struct cadge_chan *)(void *)queue;
}

static bool post_note(struct cadge_chan *chan, uint32_t slot)
{
	return !verbs_post_receive(&chan->queue, slot, rdma_note(chan, slot), VERBS_LINE_BYTES,
				   chan->ctx->verbs.own.mr->lkey);
}

static int post_receives(struct verbs_queue *queue)
{
	for (uint32_t slot = 0; slot < queue->verbs->receives; slot++)
		if (!post_note(chan_of(queue), slot))
			return EIO;
	return 0;
}

static void heard(struct verbs_queue *queue, uint32_t slot)
{
	if (!post_note(chan_of(queue), slot))
		verbs_broke(queue, "ibv_post_recv", "refused");
}

static bool received(struct verbs_queue *queue, uint32_t slot, uint32_t bytes)
{
	struct cadge_chan *chan = chan_of(queue);

	chan->notes_taken++;
	if (bytes == CADGE_MAILBOX_NOTE_BYTES)
		cadge_mailbox_notified(chan->mailbox, rdma_note(chan, slot));
	return post_note(chan, slot);
}

static int ended(struct verbs_queue *queue, const struct verbs_op *op, int code)
{
	struct cadge_chan *chan = chan_of(queue);
	struct cadge_sink *sink = chan->ctx->sink;

	if (op->owner) {
		cadge_mailbox_done(op->owner, code);
		return 0;
	}
	chan->outstanding--;
	sink->sent(sink, queue->peer, op->token, code);
	return 1;
}

static void broke(struct verbs_queue *queue)
{
	cadge_mailbox_fail(chan_of(queue)->mailbox);
}

const struct verbs_calls rdma_verbs_calls = {ended, received, post_receives, heard, broke};

/* ---- the slots ---- */

int rdma_verbs_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	if (chan->queue.broken)
		return CADGE_E_DOWN;
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

int rdma_verbs_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events;

	ctx->sink = sink;
	events = verbs_completions(&ctx->verbs);
	if (events < 0)
		return events;
	for (uint32_t peer = 0; peer < ctx->verbs.peers; peer++) {
		struct cadge_chan *chan = &ctx->chans[peer];

		if (verbs_met(&chan->queue) || chan->queue.broken)
			events += cadge_mailbox_poll(chan->mailbox, sink);
		if (owes_credit(chan))
			give_credit(chan);
	}
	return events;
}

static bool may_sleep(struct cadge_ctx *ctx)
{
	for (uint32_t peer = 0; peer < ctx->verbs.peers; peer++) {
		const struct cadge_chan *chan = &ctx->chans[peer];

		if ((verbs_met(&chan->queue) || chan->queue.broken) &&
		    !cadge_mailbox_may_sleep(chan->mailbox))
			return false;
		if (owes_credit(chan))
			return false;
	}
	return true;
}

/* A write may come while sleep is prepared: its notification is then on its way, or it is seen by the second look. */
static bool asleep(struct cadge_ctx *ctx)
{
	return may_sleep(ctx) && verbs_armed(&ctx->verbs) && may_sleep(ctx);
}

int rdma_verbs_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct pollfd entry = {.events = POLLIN};

	if (!asleep(ctx))
		return CADGE_DONE;
	entry.fd = ctx->verbs.events->fd;
	return cadge_sleep(&entry, 1, timeout_ns);
}

int rdma_verbs_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	if (!ctx->verbs.events)
		return CADGE_E_UNSUPPORTED;
	if (!asleep(ctx))
		return CADGE_BUSY;
	*fd_out = ctx->verbs.events->fd;
	*due_ns_out = UINT64_MAX;
	return CADGE_DONE;
}

/* DONE where the channel takes an operation on these bytes. */
static int may_start(const struct cadge_chan *chan, const struct cadge_remote *remote, uint64_t offset_bytes,
		     uint64_t bytes)
{
	if (chan->queue.broken)
		return CADGE_E_DOWN;
	if (remote && bytes > chan->ctx->verbs.bytes_max)
		return CADGE_E_TOO_LARGE;
	if (remote && (offset_bytes > remote->bytes || bytes > remote->bytes - offset_bytes))
		return CADGE_E_ARGUMENT;
	return verbs_met(&chan->queue) && chan->outstanding < chan->ctx->depth ? CADGE_DONE : CADGE_BUSY;
}

static int count(struct cadge_chan *chan, int code)
{
	chan->outstanding += code == CADGE_QUEUED;
	return code;
}

int rdma_verbs_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};
	const int code = may_start(chan, remote, offset_bytes, bytes);

	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (code != CADGE_DONE || !bytes)
		return code;
	return count(chan, verbs_transfer(&chan->queue, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)local, bytes,
					  verbs_far_at(remote->far, offset_bytes), &op));
}

int rdma_verbs_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};
	const int code = may_start(chan, remote, offset_bytes, bytes);

	(void)flags;
	if (code != CADGE_DONE || !bytes)
		return code;
	return count(chan, verbs_transfer(&chan->queue, IBV_WR_RDMA_READ, local, bytes,
					  verbs_far_at(remote->far, offset_bytes), &op));
}

/* Both atomic operations; the word that stood there comes to the operation's landing place. */
static int atomic(struct cadge_chan *chan, struct ibv_send_wr *wr, uint64_t *before_out,
		  struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const struct verbs_op op = {.kind = VERBS_WORK, .token = token, .before_out = before_out};
	const int code = may_start(chan, remote, offset_bytes, sizeof(*before_out));

	if (!verbs_has_atomics(&chan->ctx->verbs))
		return CADGE_E_UNSUPPORTED;
	if (code != CADGE_DONE)
		return code;
	if ((remote->far.addr + offset_bytes) % sizeof(*before_out))
		return CADGE_E_ARGUMENT;
	return count(chan, verbs_atomic(&chan->queue, wr, verbs_far_at(remote->far, offset_bytes), &op));
}

int rdma_verbs_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			 struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic.compare_add = addend};

	(void)flags;
	return atomic(chan, &wr, before_out, remote, offset_bytes, token);
}

int rdma_verbs_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			    uint32_t flags, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				 .wr.atomic = {.compare_add = expected, .swap = desired}};

	(void)flags;
	return atomic(chan, &wr, before_out, remote, offset_bytes, token);
}

int rdma_verbs_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	struct verbs_op op = {.token = token};
	const int code = may_start(chan, NULL, 0, 0);

	(void)flags;
	return code == CADGE_DONE ? count(chan, verbs_flush(&chan->queue, &op)) : code;
}
