/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of rdma-ofi share: its state, and the slots that move bytes (ofi_flow.c). */
#ifndef CADGE_RDMA_OFI_FLOW_H
#define CADGE_RDMA_OFI_FLOW_H

#include "wire/mailbox.h"
#include "wire/ofi/rma.h"

enum {
	RDMA_EVENTS = 16, /* most completions in one poll */
	RDMA_NOTES = 64,  /* receive buffers for notifications, block mode */
	RDMA_DEPTH_MAX = 1024,
	RDMA_PEERS_MAX = 0xffff,
	RDMA_SPARE_OPS = 64,
	RDMA_WORD_BYTES = 64,
	RDMA_GENERATION_SHIFT = 16,
	RDMA_GENERATION_MASK = 0xffff,
};

struct rdma_note {
	struct fi_context2 context;
	uint8_t data[CADGE_MAILBOX_NOTE_BYTES];
};

struct cadge_region {
	struct fid_mr *mr;
	struct cadge_region *next;
};

struct cadge_remote {
	struct cadge_ofi_far far;
	uint64_t bytes;
};

struct cadge_chan {
	struct cadge_ofi_link link; /* first, so that a link is a channel */
	struct cadge_ctx *ctx;
	struct cadge_mailbox *mailbox;
	uint32_t peer, generation, peer_stamp;
	bool connected;
	struct cadge_ofi_far area; /* of the peer's mailbox */
	char *part;                /* of the arena */
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	struct cadge_ofi_rma rma;
	uint32_t peers, depth;
	uint64_t message_bytes_max;
	size_t area_bytes, part_bytes;
	struct cadge_mailbox_shape shape;
	struct fid_mr *mr;
	struct cadge_ofi_far arena_far;
	char *arena;
	struct cadge_region *regions; /* exposed by the caller */
	struct cadge_chan *chan;
	struct rdma_note *notes;
	struct cadge_sink *sink; /* while poll runs */
};

/* What the mailbox calls: without and with a notification after each write. */
extern const struct cadge_mailbox_ops rdma_ofi_polling_ops, rdma_ofi_blocking_ops;

/* Called by wire/ofi/rma for each finished operation. `arg` is the context. */
int rdma_ofi_done(void *arg, struct cadge_ofi_link *link, uint64_t token, void *owner, int code);
/* Block mode: makes and posts the buffers for notifications. */
int rdma_ofi_make_notes(struct cadge_ctx *ctx);

/* The slots of the contract. */
int rdma_ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		  uint64_t token);
int rdma_ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int rdma_ofi_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int rdma_ofi_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int rdma_ofi_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		    uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void rdma_ofi_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int rdma_ofi_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		    uint32_t flags, struct cadge_remote **remote_out);
void rdma_ofi_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int rdma_ofi_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_ofi_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_ofi_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_ofi_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_ofi_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);

#endif
