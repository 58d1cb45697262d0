/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory, and operations on a peer's; see verbs.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/verbs/verbs.h"

/* ---- registrations ---- */

unsigned int verbs_access(const struct verbs *verbs, uint32_t rights)
{
	return IBV_ACCESS_LOCAL_WRITE | (rights & CADGE_MAY_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0u) |
	       (rights & CADGE_MAY_READ ? IBV_ACCESS_REMOTE_READ : 0u) |
	       (rights & CADGE_MAY_ATOMIC && verbs_has_atomics(verbs) ? IBV_ACCESS_REMOTE_ATOMIC : 0u);
}

static void add_first(struct verbs *verbs, struct verbs_registered *one)
{
	one->next = verbs->registered;
	verbs->registered = one;
}

int verbs_register(struct verbs *verbs, struct verbs_registered *one, void *base, size_t bytes,
		   unsigned int access)
{
	one->mr = ibv_reg_mr(verbs->pd, base, bytes, access);
	if (!one->mr) {
		snprintf(verbs->why, sizeof(verbs->why), "ibv_reg_mr: %s%s", strerror(errno),
			 errno == ENOMEM ? " (is the limit of locked memory, ulimit -l, that low?)" : "");
		return errno == ENOMEM  ? CADGE_E_MEMORY
		       : errno == EPERM ? CADGE_E_PERMISSION
					: CADGE_E_LIBRARY;
	}
	add_first(verbs, one);
	return CADGE_DONE;
}

void verbs_deregister(struct verbs *verbs, struct verbs_registered *one)
{
	(void)CADGE_LIST_REMOVE(verbs->registered, one);
	if (one->mr && ibv_dereg_mr(one->mr))
		fprintf(stderr, "cadge: libibverbs could not deregister memory\n");
	one->mr = NULL;
}

/* The registration that holds these bytes, or NULL. */
static struct ibv_mr *registration_of(struct verbs *verbs, const void *base, size_t bytes)
{
	struct verbs_registered **at, *one;

	for (at = &verbs->registered; (one = *at); at = &one->next) {
		const uintptr_t offset = (uintptr_t)base - (uintptr_t)one->mr->addr;

		if (offset > one->mr->length || bytes > one->mr->length - offset)
			continue;
		*at = one->next;
		add_first(verbs, one);
		return one->mr;
	}
	return NULL;
}

/* ---- names of memory ---- */

void verbs_far_put(struct cadge_blob_out *blob, const void *at, uint32_t rkey)
{
	cadge_blob_u64(blob, (uintptr_t)at);
	cadge_blob_u32(blob, rkey);
}

struct verbs_far verbs_far_take(struct cadge_blob_in *blob)
{
	struct verbs_far far;

	far.addr = cadge_blob_take_u64(blob);
	far.rkey = cadge_blob_take_u32(blob);
	return far;
}

/* ---- operations ---- */

int verbs_transfer(struct verbs_queue *queue, enum ibv_wr_opcode opcode, void *local, size_t bytes,
		   struct verbs_far far, struct verbs_op *op)
{
	struct verbs *verbs = queue->verbs;
	const bool travels_inside = opcode == IBV_WR_RDMA_WRITE && bytes <= verbs->inline_bytes;
	struct ibv_sge piece = {.addr = (uintptr_t)local, .length = (uint32_t)bytes};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &piece,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = far.addr, .rkey = far.rkey}};
	int code;

	if (queue->broken)
		return CADGE_E_DOWN;
	if (travels_inside) {
		op->kind = VERBS_SILENT;
	} else {
		struct ibv_mr *mr = registration_of(verbs, local, bytes);

		if (!mr) {
			verbs->registered_once++;
			mr = op->once = ibv_reg_mr(verbs->pd, local, bytes, IBV_ACCESS_LOCAL_WRITE);
		}
		if (!mr)
			return CADGE_BUSY; /* registered memory is used up: what ends gives some back */
		piece.lkey = mr->lkey;
	}
	code = verbs_issue(queue, &wr, travels_inside ? IBV_SEND_INLINE : 0, op);
	if (code != CADGE_DONE) {
		if (op->once)
			ibv_dereg_mr(op->once);
		return code;
	}
	queue->written += opcode == IBV_WR_RDMA_WRITE;
	return travels_inside ? CADGE_DONE : CADGE_QUEUED;
}

/* The next operation's landing place. */
static struct ibv_sge landing_piece(const struct verbs_queue *queue)
{
	return (struct ibv_sge){.addr = (uintptr_t)verbs_landing(queue, queue->posted),
				.length = sizeof(uint64_t),
				.lkey = queue->verbs->own.mr->lkey};
}

/*
 * A completed write is in the peer's device, and where its processor sees it is not said; a read behind it brings back what
 * stands in memory after it (InfiniBand Architecture Specification, volume 1, section 9.5, table 79: writes before reads).
 */
int verbs_flush(struct verbs_queue *queue, struct verbs_op *op)
{
	struct ibv_sge piece = landing_piece(queue);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.sg_list = &piece,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = queue->peer_end.word.addr, .rkey = queue->peer_end.word.rkey}};
	int code;

	if (queue->broken)
		return CADGE_E_DOWN;
	if (queue->written == queue->flushed)
		return CADGE_DONE;
	op->kind = VERBS_QUIET;
	op->written = queue->written;
	code = verbs_issue(queue, &wr, 0, op);
	return code == CADGE_DONE ? CADGE_QUEUED : code;
}

int verbs_atomic(struct verbs_queue *queue, struct ibv_send_wr *wr, struct verbs_far far,
		 const struct verbs_op *op)
{
	struct ibv_sge piece = landing_piece(queue);
	int code;

	wr->sg_list = &piece;
	wr->num_sge = 1;
	wr->wr.atomic.remote_addr = far.addr;
	wr->wr.atomic.rkey = far.rkey;
	code = verbs_issue(queue, wr, 0, op);
	return code == CADGE_DONE ? CADGE_QUEUED : code;
}
