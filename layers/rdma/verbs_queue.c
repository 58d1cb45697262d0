/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs; see verbs.h.
 *
 * Their states are those of the InfiniBand Architecture Specification, volume 1, section 10.3.1: RESET, INIT (may post
 * receives), RTR (receives), RTS (sends), and error, from which only RESET leads on. A connected queue pair proves nothing of
 * the peer's, so each begins with an empty message, the hello, and nothing else is sent until both hellos have come over. Where
 * ours fails, the peer is not there yet, and the queue pair goes through its states again, with the numbers that the peer was
 * told; what the peer sends next is then its hello, or, where that came over before, whatever follows it. The completion of its
 * coming is in the queue before the one that tells of our failure, since nothing comes in after that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bytes.h"
#include "rdma/verbs.h"

enum {
	INLINE_WANTED = 512,
	RETRY_TIMEOUT = 14, /* 4.096 us times 2^14, that is 67 ms, */
	RETRIES = 6,        /* so often: half a second; with 7 soft RoCE never ends */
	RNR_FOR_EVER = 7,
	RNR_TIMER = 12, /* 0.64 ms */
	HOPS = 64,
	PSN_MASK = 0xffffff,
	NUMBER_BITS = 32,
	PEER_BITS = 15, /* and one for receives, and 16 for the life of a channel */
};

/* ---- the completion queue ---- */

int verbs_queues_make(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	const uint64_t cqe_max = (uint64_t)ctx->device.attr.max_cqe;
	const uint64_t send_max = cadge_least(cqe_max / ctx->peers, (uint64_t)ctx->device.attr.max_qp_wr);

	if (send_max < (uint64_t)VERBS_SPARE + 2 + verbs_receives(ctx))
		return cadge_refuse(args, CADGE_E_MEMORY,
				    "%s completes %llu operations at a time, too few for %u peers",
				    ctx->device.rdma.name, (unsigned long long)cqe_max, ctx->peers);
	ctx->depth = (uint32_t)cadge_least(ctx->depth, (send_max - verbs_receives(ctx) - VERBS_SPARE) / 2);
	ctx->send_room = 2 * ctx->depth + VERBS_SPARE;
	if (args->wait_mode == CADGE_WAIT_BLOCK) {
		ctx->events = ibv_create_comp_channel(ctx->device.context);
		if (!ctx->events || fcntl(ctx->events->fd, F_SETFL, O_NONBLOCK) < 0)
			return cadge_refuse(args, CADGE_E_LIBRARY, "no descriptor for completions: %s",
					    strerror(errno));
	}
	/* Twice what one life of each channel may complete: those of the life before may still be there. */
	ctx->cq = ibv_create_cq(
		ctx->device.context,
		(int)cadge_least(UINT64_C(2) * ctx->peers * (ctx->send_room + verbs_receives(ctx)), cqe_max),
		NULL, ctx->events, 0);
	return ctx->cq ? CADGE_DONE
		       : cadge_refuse(args, errno == ENOMEM ? CADGE_E_MEMORY : CADGE_E_LIBRARY,
				      "no completion queue for %u peers: %s", ctx->peers, strerror(errno));
}

void verbs_queues_free(struct cadge_ctx *ctx)
{
	if (ctx->cq && ibv_destroy_cq(ctx->cq))
		fprintf(stderr, "cadge: libibverbs could not end the completion queue\n");
	if (ctx->events && ibv_destroy_comp_channel(ctx->events))
		fprintf(stderr, "cadge: libibverbs could not end the completion channel\n");
	ctx->cq = NULL;
	ctx->events = NULL;
}

static bool take_events(struct cadge_ctx *ctx)
{
	struct ibv_cq *cq;
	void *arg;
	unsigned int count = 0;

	while (ibv_get_cq_event(ctx->events, &cq, &arg) == 0)
		count++;
	if (count)
		ibv_ack_cq_events(ctx->cq, count);
	return errno == EAGAIN || errno == EINTR;
}

bool verbs_armed(struct cadge_ctx *ctx)
{
	if (ctx->has_early || !take_events(ctx) || ibv_req_notify_cq(ctx->cq, 0))
		return false;
	/* What completed before it was armed tells nobody. */
	ctx->has_early = ibv_poll_cq(ctx->cq, 1, &ctx->early) == 1;
	return !ctx->has_early;
}

/* ---- states ---- */

int verbs_broke(struct cadge_chan *chan, const char *what, const char *words)
{
	snprintf(chan->ctx->why, sizeof(chan->ctx->why), "%s: %s", what, words);
	chan->broken = true;
	cadge_mailbox_fail(chan->mailbox);
	return CADGE_E_DOWN;
}

static uint64_t number_of(const struct cadge_chan *chan, bool receives, uint64_t number)
{
	return (uint64_t)chan->life << 48 | (uint64_t)receives << (NUMBER_BITS + PEER_BITS) |
	       (uint64_t)chan->peer << NUMBER_BITS | (uint32_t)number;
}

static int post_receive(struct cadge_chan *chan, uint32_t slot)
{
	struct ibv_sge piece = {.addr = (uintptr_t)verbs_note(chan, slot),
				.length = VERBS_LINE_BYTES,
				.lkey = chan->ctx->arena_registered.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = number_of(chan, true, slot), .sg_list = &piece, .num_sge = 1}, *bad;

	return ibv_post_recv(chan->qp, &wr, &bad);
}

static int to_init(struct cadge_chan *chan)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)ctx->device.rdma.port,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			(ctx->device.attr.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC),
	};
	int error = ibv_modify_qp(chan->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	for (uint32_t slot = 0; !error && slot < verbs_receives(ctx); slot++)
		error = post_receive(chan, slot);
	return error;
}

static int to_sending(struct cadge_chan *chan)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const struct verbs_end *end = &chan->peer_end;
	const uint32_t mtu = (uint32_t)ctx->device.port.active_mtu;
	struct ibv_qp_attr receiving = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(end->mtu < mtu ? end->mtu : mtu),
		.dest_qp_num = end->queue,
		.rq_psn = (end->psn + chan->heard) & PSN_MASK,
		.max_dest_rd_atomic = (uint8_t)ctx->reads,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)ctx->device.rdma.port,
			    .grh = {.dgid = end->gid,
				    .sgid_index = ctx->device.gid_index,
				    .hop_limit = HOPS}},
	};
	struct ibv_qp_attr sending = {
		.qp_state = IBV_QPS_RTS,
		.timeout = RETRY_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_FOR_EVER,
		.sq_psn = chan->psn,
		.max_rd_atomic = (uint8_t)cadge_least(end->reads, ctx->reads),
	};
	int error = ibv_modify_qp(chan->qp, &receiving,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	return error ? error
		     : ibv_modify_qp(chan->qp, &sending,
				     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_queue_make(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct ibv_qp_init_attr init = {
		.send_cq = ctx->cq,
		.recv_cq = ctx->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = ctx->send_room,
			.max_recv_wr = verbs_receives(ctx),
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_WANTED},
	};
	uint64_t random;
	int error;

	if (chan->qp)
		return CADGE_DONE;
	if (cadge_nonce(&random) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	/* Devices refuse what they cannot send inline, and say nowhere how much they can. */
	while (!(chan->qp = ibv_create_qp(ctx->pd, &init)) && init.cap.max_inline_data) {
		init.cap.max_inline_data /= 2;
		init.cap.max_send_wr = ctx->send_room;
	}
	error = chan->qp ? to_init(chan) : errno;
	if (error) {
		snprintf(ctx->why, sizeof(ctx->why), "no queue pair: %s", strerror(error));
		verbs_queue_free(chan);
		return error == ENOMEM ? CADGE_E_MEMORY : CADGE_E_LIBRARY;
	}
	ctx->inline_bytes = init.cap.max_inline_data;
	chan->psn = (uint32_t)random & PSN_MASK;
	return CADGE_DONE;
}

static void forget(struct cadge_chan *chan)
{
	for (; chan->finished < chan->posted; chan->finished++) {
		struct verbs_op *op = &chan->ops[chan->finished % chan->ctx->send_room];

		if (op->once)
			ibv_dereg_mr(op->once);
		op->once = NULL;
	}
}

void verbs_queue_free(struct cadge_chan *chan)
{
	if (chan->qp && ibv_destroy_qp(chan->qp))
		fprintf(stderr, "cadge: libibverbs could not end a queue pair\n");
	chan->qp = NULL;
	forget(chan);
	chan->posted = chan->finished = chan->signaled = chan->written = chan->flushed = 0;
	chan->notes_sent = chan->notes_told = chan->notes_taken = chan->notes_credited = 0;
	chan->outstanding = chan->hellos = 0;
	memset(verbs_credit(chan), 0, VERBS_LINE_BYTES);
	chan->life++;
	chan->connected = chan->broken = false;
	chan->reached = chan->heard = false;
}

static int say_hello(struct cadge_chan *chan)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct verbs_op op = {.kind = VERBS_HELLO};

	chan->hellos++;
	return verbs_issue(chan, &wr, 0, &op);
}

int verbs_queue_connect(struct cadge_chan *chan)
{
	const int error = to_sending(chan);

	return error ? verbs_broke(chan, "the queue pair cannot be connected", strerror(error))
		     : say_hello(chan);
}

/* The peer did not answer: it may not be there yet. */
static void say_hello_again(struct cadge_chan *chan, const char *words)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (chan->hellos == VERBS_HELLOS) {
		verbs_broke(chan, "the peer cannot be reached", words);
		return;
	}
	if (ibv_modify_qp(chan->qp, &attr, IBV_QP_STATE) || to_init(chan) ||
	    verbs_queue_connect(chan) != CADGE_DONE)
		verbs_broke(chan, "the queue pair cannot be connected again", words);
}

/* ---- operations ---- */

int verbs_issue(struct cadge_chan *chan, struct ibv_send_wr *wr, unsigned int flags,
		const struct verbs_op *op)
{
	struct cadge_ctx *ctx = chan->ctx;
	const bool signals = op->kind != VERBS_SILENT || chan->posted - chan->signaled >= VERBS_SIGNAL_EVERY;
	struct ibv_send_wr *bad;
	int error;

	if (chan->broken)
		return CADGE_E_DOWN;
	if (chan->posted - chan->finished == ctx->send_room) {
		ctx->busies++;
		return CADGE_BUSY;
	}
	wr->wr_id = number_of(chan, false, chan->posted);
	wr->send_flags = flags | (signals ? (unsigned int)IBV_SEND_SIGNALED : 0);
	error = ibv_post_send(chan->qp, wr, &bad);
	if (error)
		return verbs_broke(chan, "ibv_post_send", strerror(error));
	chan->ops[chan->posted % ctx->send_room] = *op;
	if (signals)
		chan->signaled = chan->posted;
	chan->posted++;
	return CADGE_DONE;
}

int verbs_issue_copy(struct cadge_chan *chan, struct ibv_send_wr *wr, const void *data, uint32_t bytes,
		     const struct verbs_op *op)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const bool travels_inside = bytes <= ctx->inline_bytes;
	struct ibv_sge piece = {.addr = (uintptr_t)data, .length = bytes};

	if (!travels_inside) {
		if (chan->posted - chan->finished == ctx->send_room)
			return CADGE_BUSY; /* its landing place is not free either */
		memcpy(verbs_landing(chan, chan->posted), data, bytes);
		piece.addr = (uintptr_t)verbs_landing(chan, chan->posted);
		piece.lkey = ctx->arena_registered.mr->lkey;
	}
	wr->sg_list = &piece;
	wr->num_sge = 1;
	return verbs_issue(chan, wr, travels_inside ? IBV_SEND_INLINE : 0, op);
}

/* What has to be done when one of the operations has ended. */
static int end_op(struct cadge_chan *chan, uint64_t number, int code)
{
	struct verbs_op op = chan->ops[number % chan->ctx->send_room];

	if (op.once)
		ibv_dereg_mr(op.once);
	chan->ops[number % chan->ctx->send_room].once = NULL;
	if (op.before_out && code == CADGE_DONE)
		memcpy(op.before_out, verbs_landing(chan, number), sizeof(*op.before_out));
	if (op.kind == VERBS_QUIET && code == CADGE_DONE && op.written > chan->flushed)
		chan->flushed = op.written;
	switch (op.kind) {
	case VERBS_SILENT: return 0;
	case VERBS_HELLO: chan->reached |= code == CADGE_DONE; return 0;
	case VERBS_WORK:
	case VERBS_QUIET: break;
	}
	if (!op.owner)
		return verbs_ended(chan, &op, code);
	cadge_mailbox_done(op.owner, code);
	return 0;
}

/* This operation has ended, and with it all before it. */
static int end_until(struct cadge_chan *chan, uint32_t low, int code)
{
	const uint64_t last = chan->finished + (uint32_t)(low - (uint32_t)chan->finished);
	int events = 0;

	while (chan->finished <= last && chan->finished < chan->posted) {
		const uint64_t number = chan->finished++;

		events += end_op(chan, number, number == last ? code : CADGE_DONE);
	}
	return events;
}

static int completed(struct cadge_ctx *ctx, const struct ibv_wc *wc)
{
	const uint32_t peer = (uint32_t)(wc->wr_id >> NUMBER_BITS) & ((1u << PEER_BITS) - 1);
	const bool receives = wc->wr_id >> (NUMBER_BITS + PEER_BITS) & 1;
	struct cadge_chan *chan = &ctx->chans[peer];
	const char *words = ibv_wc_status_str(wc->status);

	if (peer >= ctx->peers || chan->life != (uint16_t)(wc->wr_id >> 48) || !chan->qp)
		return 0; /* of a life before this one */
	if (receives) {
		if (wc->status == IBV_WC_SUCCESS) {
			const uint32_t slot = (uint32_t)wc->wr_id;

			verbs_noted(chan, slot, wc->byte_len);
			if (!chan->broken && post_receive(chan, slot))
				verbs_broke(chan, "ibv_post_recv", "refused");
		}
		return 0;
	}
	if (wc->status == IBV_WC_SUCCESS)
		return end_until(chan, (uint32_t)wc->wr_id, CADGE_DONE);
	if (!verbs_met(chan) && !chan->broken) {
		const uint16_t life = chan->life;

		forget(chan);
		chan->life = (uint16_t)(life + 1); /* what else of it is still to come is not looked at */
		say_hello_again(chan, words);
		return 0;
	}
	if (!chan->broken)
		verbs_broke(chan, "an operation failed", words);
	return end_until(chan, (uint32_t)wc->wr_id, CADGE_E_DOWN);
}

int verbs_completions(struct cadge_ctx *ctx)
{
	struct ibv_wc wcs[VERBS_EVENTS];
	int events = 0, count;

	if (ctx->has_early) {
		ctx->has_early = false;
		events += completed(ctx, &ctx->early);
	}
	count = ibv_poll_cq(ctx->cq, VERBS_EVENTS, wcs);
	if (count < 0) {
		snprintf(ctx->why, sizeof(ctx->why), "ibv_poll_cq failed");
		return CADGE_E_LIBRARY;
	}
	for (int i = 0; i < count; i++)
		events += completed(ctx, &wcs[i]);
	return events;
}
