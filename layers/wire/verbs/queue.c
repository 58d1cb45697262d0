/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs; see verbs.h.
 *
 * Their states are those of the InfiniBand Architecture Specification, volume 1, section 10.3.1: RESET, INIT (may post
 * receives), RTR (receives), RTS (sends), and error, from which only RESET leads on. A connected queue pair proves nothing of
 * the peer's, so each begins with an empty message, the hello, and nothing else is sent until both hellos have come over. Where
 * ours fails, the peer is not there yet, and the queue pair goes through its states again, with the numbers that the peer was
 * told; what the peer sends next is then its hello, or, where that came over before, whatever follows it. The completion of its
 * coming is in the queue before the one of our failure, since nothing comes in after that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/verbs/verbs.h"

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

/* ---- device and completion queue ---- */

static int make_completions(struct verbs *verbs, const struct cadge_open_args *args, uint32_t least,
			    uint32_t wanted)
{
	const uint64_t cqe_max = (uint64_t)verbs->device.attr.max_cqe;
	const uint64_t most = cadge_least(cqe_max / verbs->peers, (uint64_t)verbs->device.attr.max_qp_wr);

	if (most < (uint64_t)least + verbs->receives)
		return cadge_refuse(args, CADGE_E_MEMORY,
				    "%s completes %llu operations at a time, too few for %u peers",
				    verbs->device.rdma.name, (unsigned long long)cqe_max, verbs->peers);
	verbs->send_room = (uint32_t)cadge_least(wanted, most - verbs->receives);
	if (args->wait_mode == CADGE_WAIT_BLOCK) {
		verbs->events = ibv_create_comp_channel(verbs->device.context);
		if (!verbs->events || fcntl(verbs->events->fd, F_SETFL, O_NONBLOCK) < 0)
			return cadge_refuse(args, CADGE_E_LIBRARY, "no descriptor for completions: %s",
					    strerror(errno));
	}
	/* Twice what one life of each queue pair may complete: those of the life before may still be there. */
	verbs->cq = ibv_create_cq(
		verbs->device.context,
		(int)cadge_least(UINT64_C(2) * verbs->peers * (verbs->send_room + verbs->receives), cqe_max),
		NULL, verbs->events, 0);
	return verbs->cq
		       ? CADGE_DONE
		       : cadge_refuse(args, errno == ENOMEM ? CADGE_E_MEMORY : CADGE_E_LIBRARY,
				      "no completion queue for %u peers: %s", verbs->peers, strerror(errno));
}

int verbs_open(struct verbs *verbs, const struct cadge_open_args *args, uint32_t receives, uint32_t least,
	       uint32_t wanted)
{
	int code = verbs_device_open(args, &verbs->device);

	verbs->peers = args->peers_max;
	verbs->receives = receives;
	snprintf(verbs->interface, sizeof(verbs->interface), "%s", args->device);
	if (code != CADGE_DONE)
		return code;
	verbs->reads = (uint32_t)cadge_least((uint64_t)verbs->device.attr.max_qp_rd_atom, VERBS_READS_MAX);
	verbs->bytes_max = cadge_least(verbs->device.port.max_msg_sz, VERBS_BYTES_MAX);
	for (uint32_t peer = 0; peer < verbs->peers; peer++) {
		verbs_queue_of(verbs, peer)->verbs = verbs;
		verbs_queue_of(verbs, peer)->peer = peer;
	}
	verbs->pd = ibv_alloc_pd(verbs->device.context);
	if (!verbs->pd)
		return cadge_refuse(args, CADGE_E_LIBRARY, "no protection domain: %s", strerror(errno));
	return make_completions(verbs, args, least, wanted);
}

void verbs_close(struct verbs *verbs)
{
	for (uint32_t peer = 0; peer < verbs->peers; peer++)
		free(verbs_queue_of(verbs, peer)->ops);
	if (verbs->cq && ibv_destroy_cq(verbs->cq))
		fprintf(stderr, "cadge: libibverbs could not end the completion queue\n");
	if (verbs->events && ibv_destroy_comp_channel(verbs->events))
		fprintf(stderr, "cadge: libibverbs could not end the completion channel\n");
	if (verbs->pd && ibv_dealloc_pd(verbs->pd))
		fprintf(stderr, "cadge: libibverbs could not end a protection domain\n");
	verbs_device_close(&verbs->device);
}

static bool take_events(struct verbs *verbs)
{
	struct ibv_cq *cq;
	void *arg;
	unsigned int count = 0;

	while (ibv_get_cq_event(verbs->events, &cq, &arg) == 0)
		count++;
	if (count)
		ibv_ack_cq_events(verbs->cq, count);
	return errno == EAGAIN || errno == EINTR;
}

bool verbs_armed(struct verbs *verbs)
{
	if (verbs->has_early || !take_events(verbs) || ibv_req_notify_cq(verbs->cq, 0))
		return false;
	/* What completed before it was armed notifies nobody. */
	verbs->has_early = ibv_poll_cq(verbs->cq, 1, &verbs->early) == 1;
	return !verbs->has_early;
}

/* ---- states ---- */

int verbs_broke(struct verbs_queue *queue, const char *what, const char *words)
{
	snprintf(queue->verbs->why, sizeof(queue->verbs->why), "%s: %s", what, words);
	queue->broken = true;
	queue->verbs->calls->broke(queue);
	return CADGE_E_DOWN;
}

static uint64_t number_of(const struct verbs_queue *queue, bool receives, uint64_t number)
{
	return (uint64_t)queue->life << 48 | (uint64_t)receives << (NUMBER_BITS + PEER_BITS) |
	       (uint64_t)queue->peer << NUMBER_BITS | (uint32_t)number;
}

int verbs_post_receive(struct verbs_queue *queue, uint32_t slot, void *base, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge piece = {.addr = (uintptr_t)base, .length = bytes, .lkey = lkey};
	struct ibv_recv_wr wr = {.wr_id = number_of(queue, true, slot), .sg_list = &piece, .num_sge = 1},
			   *bad;

	return ibv_post_recv(queue->qp, &wr, &bad);
}

static int to_init(struct verbs_queue *queue)
{
	const struct verbs *verbs = queue->verbs;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)verbs->device.rdma.port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   (verbs_has_atomics(verbs) ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};
	int error = ibv_modify_qp(queue->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	return error ? error : verbs->calls->post_receives(queue);
}

static int to_sending(struct verbs_queue *queue)
{
	const struct verbs *verbs = queue->verbs;
	const struct verbs_end *end = &queue->peer_end;
	const uint32_t mtu = (uint32_t)verbs->device.port.active_mtu;
	struct ibv_qp_attr receiving = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(end->mtu < mtu ? end->mtu : mtu),
		.dest_qp_num = end->queue,
		.rq_psn = (end->psn + queue->greeted) & PSN_MASK,
		.max_dest_rd_atomic = (uint8_t)verbs->reads,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)verbs->device.rdma.port,
			    .grh = {.dgid = end->gid,
				    .sgid_index = verbs->device.gid_index,
				    .hop_limit = HOPS}},
	};
	struct ibv_qp_attr sending = {
		.qp_state = IBV_QPS_RTS,
		.timeout = RETRY_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_FOR_EVER,
		.sq_psn = queue->psn,
		.max_rd_atomic = (uint8_t)cadge_least(end->reads, verbs->reads),
	};
	int error = ibv_modify_qp(queue->qp, &receiving,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	return error ? error
		     : ibv_modify_qp(queue->qp, &sending,
				     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_queue_make(struct verbs_queue *queue)
{
	struct verbs *verbs = queue->verbs;
	struct ibv_qp_init_attr init = {
		.send_cq = verbs->cq,
		.recv_cq = verbs->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = verbs->send_room,
			.max_recv_wr = verbs->receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_WANTED},
	};
	uint64_t random;
	int error;

	if (queue->qp)
		return CADGE_DONE;
	if (!queue->ops)
		queue->ops = calloc(verbs->send_room, sizeof(*queue->ops));
	if (!queue->ops)
		return CADGE_E_MEMORY;
	if (cadge_nonce(&random) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	/* Devices refuse what they cannot send inline, and say nowhere how much they can. */
	while (!(queue->qp = ibv_create_qp(verbs->pd, &init)) && init.cap.max_inline_data) {
		init.cap.max_inline_data /= 2;
		init.cap.max_send_wr = verbs->send_room;
	}
	error = queue->qp ? to_init(queue) : errno;
	if (error) {
		snprintf(verbs->why, sizeof(verbs->why), "no queue pair: %s", strerror(error));
		verbs_queue_free(queue);
		return error == ENOMEM ? CADGE_E_MEMORY : CADGE_E_LIBRARY;
	}
	verbs->inline_bytes = init.cap.max_inline_data;
	queue->psn = (uint32_t)random & PSN_MASK;
	return CADGE_DONE;
}

static void forget(struct verbs_queue *queue)
{
	for (; queue->finished < queue->posted; queue->finished++) {
		struct verbs_op *op = &queue->ops[queue->finished % queue->verbs->send_room];

		if (op->once)
			ibv_dereg_mr(op->once);
		op->once = NULL;
	}
}

void verbs_queue_free(struct verbs_queue *queue)
{
	if (queue->qp && ibv_destroy_qp(queue->qp))
		fprintf(stderr, "cadge: libibverbs could not end a queue pair\n");
	queue->qp = NULL;
	forget(queue);
	queue->posted = queue->finished = queue->signaled = queue->written = queue->flushed = 0;
	queue->hellos = 0;
	queue->life++;
	queue->broken = queue->reached = queue->greeted = false;
}

static int send_hello(struct verbs_queue *queue)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct verbs_op op = {.kind = VERBS_HELLO};

	queue->hellos++;
	return verbs_issue(queue, &wr, 0, &op);
}

int verbs_queue_connect(struct verbs_queue *queue)
{
	const int error = to_sending(queue);

	return error ? verbs_broke(queue, "the queue pair cannot be connected", strerror(error))
		     : send_hello(queue);
}

/* The peer did not answer: it may not be there yet. */
static void resend_hello(struct verbs_queue *queue, const char *words)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (queue->hellos == VERBS_HELLOS) {
		verbs_broke(queue, "the peer cannot be reached", words);
		return;
	}
	if (ibv_modify_qp(queue->qp, &attr, IBV_QP_STATE) || to_init(queue) ||
	    verbs_queue_connect(queue) != CADGE_DONE)
		verbs_broke(queue, "the queue pair cannot be connected again", words);
}

void verbs_queue_address(const struct verbs_queue *queue, struct cadge_blob_out *blob)
{
	const struct verbs *verbs = queue->verbs;

	cadge_blob_raw(blob, verbs->device.gid.raw, sizeof(verbs->device.gid.raw));
	cadge_blob_u32(blob, queue->qp->qp_num);
	cadge_blob_u32(blob, queue->psn);
	cadge_blob_u32(blob, (uint32_t)verbs->device.port.active_mtu);
	cadge_blob_u32(blob, verbs->reads);
	verbs_far_put(blob, queue->word, verbs->own.mr->rkey);
}

bool verbs_queue_take(struct verbs_queue *queue, struct cadge_blob_in *blob)
{
	const void *gid = cadge_blob_take(blob, sizeof(union ibv_gid));
	struct verbs_end end = {0};

	end.queue = cadge_blob_take_u32(blob);
	end.psn = cadge_blob_take_u32(blob);
	end.mtu = cadge_blob_take_u32(blob);
	end.reads = cadge_blob_take_u32(blob);
	end.word = verbs_far_take(blob);
	if (!blob->ok || end.mtu < IBV_MTU_256)
		return false;
	memcpy(end.gid.raw, gid, sizeof(end.gid.raw));
	queue->peer_end = end;
	return true;
}

int verbs_queue_describe(const struct verbs_queue *queue, struct cadge_path *path)
{
	const struct verbs *verbs = queue->verbs;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	char gid[INET6_ADDRSTRLEN] = "?";

	if (!queue->qp || ibv_query_qp(queue->qp, &attr, IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_PORT, &init))
		return CADGE_E_DOWN;
	inet_ntop(AF_INET6, attr.ah_attr.grh.dgid.raw, gid, sizeof(gid));
	path->medium = CADGE_MEDIUM_NETWORK;
	path->as_asked = 1;
	snprintf(path->asked, sizeof(path->asked), "device %s", verbs->interface);
	snprintf(path->used, sizeof(path->used),
		 "RC queue pair on %s port %u, to GID %s, MTU %d, %u bytes inline", verbs->device.rdma.name,
		 attr.port_num, gid, 128 << attr.path_mtu, verbs->inline_bytes);
	snprintf(path->device, sizeof(path->device), "%s", verbs->interface);
	return CADGE_DONE;
}

/* ---- operations ---- */

int verbs_issue(struct verbs_queue *queue, struct ibv_send_wr *wr, unsigned int flags,
		const struct verbs_op *op)
{
	struct verbs *verbs = queue->verbs;
	const bool signals =
		op->kind != VERBS_SILENT || queue->posted - queue->signaled >= VERBS_SIGNAL_EVERY;
	struct ibv_send_wr *bad;
	int error;

	if (queue->broken)
		return CADGE_E_DOWN;
	if (queue->posted - queue->finished == verbs->send_room) {
		verbs->busies++;
		return CADGE_BUSY;
	}
	wr->wr_id = number_of(queue, false, queue->posted);
	wr->send_flags = flags | (signals ? (unsigned int)IBV_SEND_SIGNALED : 0);
	error = ibv_post_send(queue->qp, wr, &bad);
	if (error)
		return verbs_broke(queue, "ibv_post_send", strerror(error));
	queue->ops[queue->posted % verbs->send_room] = *op;
	if (signals)
		queue->signaled = queue->posted;
	queue->posted++;
	return CADGE_DONE;
}

int verbs_issue_copy(struct verbs_queue *queue, struct ibv_send_wr *wr, const void *data, uint32_t bytes,
		     const struct verbs_op *op)
{
	const struct verbs *verbs = queue->verbs;
	const bool travels_inside = bytes <= verbs->inline_bytes;
	struct ibv_sge piece = {.addr = (uintptr_t)data, .length = bytes};

	if (!travels_inside) {
		if (queue->posted - queue->finished == verbs->send_room)
			return CADGE_BUSY; /* its landing place is not free either */
		memcpy(verbs_landing(queue, queue->posted), data, bytes);
		piece.addr = (uintptr_t)verbs_landing(queue, queue->posted);
		piece.lkey = verbs->own.mr->lkey;
	}
	wr->sg_list = &piece;
	wr->num_sge = 1;
	return verbs_issue(queue, wr, travels_inside ? IBV_SEND_INLINE : 0, op);
}

/* What has to be done when one of the operations has ended. */
static int end_op(struct verbs_queue *queue, uint64_t number, int code)
{
	struct verbs_op op = queue->ops[number % queue->verbs->send_room];

	if (op.once)
		ibv_dereg_mr(op.once);
	queue->ops[number % queue->verbs->send_room].once = NULL;
	if (op.before_out && code == CADGE_DONE)
		memcpy(op.before_out, verbs_landing(queue, number), sizeof(*op.before_out));
	if (op.kind == VERBS_QUIET && code == CADGE_DONE && op.written > queue->flushed)
		queue->flushed = op.written;
	switch (op.kind) {
	case VERBS_SILENT: return 0;
	case VERBS_HELLO: queue->reached |= code == CADGE_DONE; return 0;
	case VERBS_WORK:
	case VERBS_QUIET: break;
	}
	return queue->verbs->calls->ended(queue, &op, code);
}

/* This operation has ended, and with it all before it. */
static int end_until(struct verbs_queue *queue, uint32_t low, int code)
{
	const uint64_t last = queue->finished + (uint32_t)(low - (uint32_t)queue->finished);
	int events = 0;

	while (queue->finished <= last && queue->finished < queue->posted) {
		const uint64_t number = queue->finished++;

		events += end_op(queue, number, number == last ? code : CADGE_DONE);
	}
	return events;
}

static void came(struct verbs_queue *queue, uint32_t slot, uint32_t bytes)
{
	const struct verbs_calls *calls = queue->verbs->calls;

	if (!bytes) {
		queue->greeted = true;
		calls->greeted(queue, slot);
	} else if (!calls->received(queue, slot, bytes) && !queue->broken) {
		verbs_broke(queue, "ibv_post_recv", "refused");
	}
}

static int completed(struct verbs *verbs, const struct ibv_wc *wc)
{
	const uint32_t peer = (uint32_t)(wc->wr_id >> NUMBER_BITS) & ((1u << PEER_BITS) - 1);
	const bool receives = wc->wr_id >> (NUMBER_BITS + PEER_BITS) & 1;
	struct verbs_queue *queue;
	const char *words = ibv_wc_status_str(wc->status);

	if (peer >= verbs->peers)
		return 0;
	queue = verbs_queue_of(verbs, peer);
	if (queue->life != (uint16_t)(wc->wr_id >> 48) || !queue->qp)
		return 0; /* of a life before this one */
	if (receives) {
		if (wc->status == IBV_WC_SUCCESS)
			came(queue, (uint32_t)wc->wr_id, wc->byte_len);
		else if (wc->status != IBV_WC_WR_FLUSH_ERR && !queue->broken)
			verbs_broke(queue, "a receive failed", words);
		return 0;
	}
	if (wc->status == IBV_WC_SUCCESS)
		return end_until(queue, (uint32_t)wc->wr_id, CADGE_DONE);
	if (!verbs_is_greeted(queue) && !queue->broken) {
		const uint16_t life = queue->life;

		forget(queue);
		queue->life = (uint16_t)(life + 1); /* what else of it is still to come is not looked at */
		resend_hello(queue, words);
		return 0;
	}
	if (!queue->broken)
		verbs_broke(queue, "an operation failed", words);
	return end_until(queue, (uint32_t)wc->wr_id, CADGE_E_DOWN);
}

int verbs_completions(struct verbs *verbs)
{
	struct ibv_wc wcs[VERBS_EVENTS];
	int events = 0, count;

	if (verbs->has_early) {
		verbs->has_early = false;
		events += completed(verbs, &verbs->early);
	}
	count = ibv_poll_cq(verbs->cq, VERBS_EVENTS, wcs);
	if (count < 0) {
		snprintf(verbs->why, sizeof(verbs->why), "ibv_poll_cq failed");
		return CADGE_E_LIBRARY;
	}
	for (int i = 0; i < count; i++)
		events += completed(verbs, &wcs[i]);
	return events;
}
