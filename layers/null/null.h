/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the null layer: cells, which self.c moves as messages and calls.c as calls and replies, and the
 * slots of memory.c.
 */
#ifndef CADGE_NULL_H
#define CADGE_NULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "kit/bytes.h"

enum { NULL_IOV_MAX = 8, NULL_DEPTH_MAX = 4096, NULL_PEERS_MAX = 64 };
#define NULL_BYTES_MAX (UINT64_C(1) << 30)

/* NOTICE: of a put; RESERVED: being filled by the caller. */
enum null_kind { NULL_MESSAGE, NULL_CALL, NULL_REPLY, NULL_NOTICE, NULL_RESERVED };

/* What a call brings along and its answer takes over: who asked, and where the result goes. */
struct null_origin {
	uint64_t token;
	uint32_t peer, out_count;
	struct cadge_iov out_iov[NULL_IOV_MAX];
};

struct cadge_lend { /* a cell; what a receiver keeps is the cell itself */
	enum null_kind kind;
	uint32_t peer, op;
	int code;
	uint64_t serial; /* of a call that was delivered and not answered yet; else 0 */
	size_t bytes, room_bytes;
	unsigned char *data;
	struct null_origin origin;
	struct cadge_region *region; /* of a notice */
	uint64_t offset_bytes;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	bool connected, announced;
};

struct cadge_ctx {
	uint32_t depth, peers, cells, requests, free_cells, head, queued, unannounced;
	uint32_t reserved; /* which cell was reserved last */
	uint64_t message_bytes_max, serial;
	struct cadge_lend *cell, *delivering, **free_stack, **queue;
	struct cadge_chan *chan;
	struct cadge_region *regions;
};

/* A free cell with room for `bytes`; NULL when memory ran out. */
struct cadge_lend *null_cell_take(struct cadge_ctx *ctx, enum null_kind kind, uint32_t peer, size_t bytes);
/* Puts the cell at the end of the queue that poll delivers. */
void null_cell_queue(struct cadge_ctx *ctx, struct cadge_lend *cell);
/* The cell is free again. */
void null_cell_give(struct cadge_ctx *ctx, struct cadge_lend *cell);
/* Queues a message or a call; `inherits`: in place of a call that is passed on. DONE, BUSY or an error. */
int null_send(struct cadge_chan *chan, enum null_kind kind, const struct cadge_iov *iov, uint32_t count,
	      bool inherits, struct cadge_lend **cell_out);

/* The slots of calls.c, as layer.h describes them. */
int null_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
	      const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token);
int null_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
	       uint32_t count, uint32_t flags, uint64_t token);
int null_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags);
int null_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
		  const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);
/* Delivers a call or a reply from poll. */
void null_deliver_call(struct cadge_ctx *ctx, struct cadge_sink *sink, struct cadge_lend *call);
enum cadge_keep null_deliver_reply(struct cadge_sink *sink, struct cadge_lend *cell);

/* The slots of memory.c. */
int null_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void null_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int null_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		struct cadge_remote **remote_out);
void null_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int null_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token);
int null_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token);
int null_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int null_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		      struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int null_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);
/* Delivers a notice from poll. */
void null_deliver_notice(struct cadge_ctx *ctx, struct cadge_sink *sink, struct cadge_lend *cell);

#endif
