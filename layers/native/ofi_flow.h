/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of native-ofi share: its state, and the slots that move messages (ofi_flow.c). */
#ifndef CADGE_NATIVE_OFI_FLOW_H
#define CADGE_NATIVE_OFI_FLOW_H

#include "kit/greeting.h"
#include "wire/ofi/ofi.h"
#include "wire/ofi/params.h"

enum {
	OFI_SPARE = 16,                    /* buffers beyond those that a caller may keep */
	OFI_EVENTS = 16,                   /* most events in one poll */
	OFI_PEERS_MAX = CADGE_STAMP_SLOTS, /* in the immediate data */
	OFI_DEPTH_MAX = 1024,              /* sends in flight a channel */
};
#define OFI_POOL_BYTES (UINT64_C(1) << 30) /* most address space for receive buffers */

/* A send in flight. The first member is libfabric's. */
struct ofi_send {
	struct fi_context2 context;
	struct cadge_chan *chan; /* NULL after disconnect: no event */
	uint64_t token;
	struct ofi_send *next;
};

/* A receive buffer; what a caller keeps of a message is this. The first member is libfabric's. */
struct cadge_lend {
	struct fi_context2 context;
	void *data;
	struct cadge_lend *next;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	fi_addr_t addr;
	uint32_t peer;
	struct cadge_greeting greeting;
	bool connected, up, down, announced;
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	uint32_t peers, depth;
	uint32_t pending; /* channels that are connected and not yet announced */
	uint32_t posted, posted_wanted;
	uint64_t message_bytes_max;
	uint64_t eager_bytes; /* above it ofi_rxm lets a message wait for the receiver */
	size_t inject_bytes, pool_bytes;
	uint32_t iov_max;
	struct cadge_chan *chan;
	struct ofi_send *sends, *free_send;
	size_t sends_count;
	struct cadge_lend *lends, *free_lend;
	uint32_t lends_count;
	void *pool;
	uint64_t stale_messages, busy_posts;
};

/*
 * Posts free buffers until `wanted` are posted. A full receive queue is no error: the next poll tries
 * again.
 */
int native_ofi_repost(struct cadge_ctx *ctx, uint32_t wanted);

/* The slots of the contract. */
int native_ofi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token);
int native_ofi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
void native_ofi_release(struct cadge_ctx *ctx, struct cadge_lend *lend);

#endif
