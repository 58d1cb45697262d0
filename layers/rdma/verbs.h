/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of rdma-verbs share: verbs.c has the life of a context and what it says of itself, verbs_flow.c the slots that
 * move bytes, and the mailbox's. Queue pairs and memory are those of wire/verbs/verbs.h.
 *
 * One arena a context, registered as a whole, with a part for each peer:
 *
 *	area      of the mailbox, written by the peer
 *	staging   of the mailbox, read by our own writes
 *	word      read by the peer's quiet, and the landing places of the queue pair
 *	credit    written by the peer: how many notifications it has taken
 *	notes     received into: notifications, in block mode, and the hello
 */
#ifndef CADGE_RDMA_VERBS_H
#define CADGE_RDMA_VERBS_H

#include "cadge/layer.h"
#include "wire/mailbox.h"
#include "wire/verbs/verbs.h"

enum {
	RDMA_NOTES =
		32, /* receives posted a channel, in block mode: notifications that may be on their way */
	RDMA_SPARE = 64, /* operations of the mailbox and notifications, beside the caller's */
};

struct cadge_region {
	struct verbs_registered registered;
};

struct cadge_remote {
	struct verbs_far far;
	uint64_t bytes;
};

struct cadge_chan {
	struct verbs_queue queue; /* first, so that it is a channel */
	struct cadge_ctx *ctx;
	struct cadge_mailbox *mailbox;
	struct verbs_far area, credit; /* the peer's */
	uint32_t peer_notes;
	uint8_t *part; /* of the arena */
	uint32_t outstanding;
	uint32_t notes_sent, notes_told;      /* notifications: given to the peer, taken by it as it told */
	uint32_t notes_taken, notes_credited; /* taken from the peer, told to it */
	bool connected;
};

struct cadge_ctx {
	struct verbs verbs;
	uint32_t depth, notes;
	enum cadge_wait_mode wait_mode;
	uint64_t message_bytes_max;
	struct cadge_mailbox_shape shape;
	size_t area_bytes, staging_bytes, part_bytes;
	uint8_t *arena;
	struct cadge_chan *chans;
	struct cadge_sink *sink; /* while poll runs */
};

static inline uint8_t *rdma_credit(const struct cadge_chan *chan)
{
	return chan->queue.word + verbs_own_bytes(&chan->ctx->verbs);
}

static inline uint8_t *rdma_note(const struct cadge_chan *chan, uint32_t slot)
{
	return rdma_credit(chan) + (slot + 1) * (size_t)VERBS_LINE_BYTES;
}

extern const struct verbs_calls rdma_verbs_calls;
extern const struct cadge_mailbox_ops rdma_verbs_polling_ops, rdma_verbs_blocking_ops;

/* The slots of the contract. */
int rdma_verbs_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token);
int rdma_verbs_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int rdma_verbs_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int rdma_verbs_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int rdma_verbs_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_verbs_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_verbs_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			 struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_verbs_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			    uint32_t flags, uint64_t token);
int rdma_verbs_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);

#endif
