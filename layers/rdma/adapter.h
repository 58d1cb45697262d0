/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations as a library has them: the contract on a wire's remote memory, and messages through mailboxes over the same
 * puts (wire/mail.h). There are no packets. In block mode each write of a message is followed by a note, since a write alone wakes
 * nobody.
 *
 * A put costs less than a few calls do. So a substrate's file includes this, the sources of its wire and then adapter.c, and all
 * of them are one unit for the compiler. A put of 64 bytes over UCX: 212 instructions, 221 with a call more.
 */
#ifndef CADGE_RDMA_ADAPTER_H
#define CADGE_RDMA_ADAPTER_H

#include <stdint.h>

static void rdma_ended(void *arg, uint32_t peer, uint64_t token, int code);
#define CADGE_WIRE_ENDED(wire) rdma_ended

#include "wire/mail.h"
#include "wire/style.h"
#include "wire/wire.h"

/* An operation of the caller's that may be QUEUED. */
struct rdma_operation {
	struct rdma_operation *next;
	struct cadge_chan *chan;
	uint64_t token;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_link *link; /* NULL: not connected */
	struct cadge_box *box;
	struct rdma_operation *idle, *operations; /* operations: as many as the depth */
	uint32_t peer;
};

struct cadge_ctx {
	struct cadge_wire *wire;
	struct cadge_mail mail;
	struct cadge_mail_style mail_style;
	struct cadge_mailbox_ops mailbox_ops;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	struct rdma_operation *operations; /* of all channels */
	int events;
	unsigned int skipped;             /* polls without progress of the library */
	enum cadge_progress copy, atomic; /* who carries them out, at all peers so far */
	bool proved;                      /* there was one; until then it is expected */
	struct cadge_chan chans[];
};

/* What differs between substrates; a constant of each unit. */
struct rdma_substrate {
	const struct cadge_option *options;
	uint32_t depth_max;
	/* Operations that may be under way with a peer, the mailbox's among them: so many each of the depth, and some more. */
	uint32_t operations_each, operations_more;
	/*
	 * What lies in a mailbox that is mapped needs no library. So poll looks there first, lets the library run by this when they are
	 * empty, or every 16th time, and looks again where it says that it has brought something. NULL: the library runs first.
	 */
	unsigned int (*mapped_poll)(struct cadge_wire *wire);
	const char *short_path, *long_path;
	bool maps;                /* see cadge_mail_style */
	int (*fence)(void *link); /* of the mailbox; its link is a box */
	/* Who is expected to carry out what `right` stands for, before there is a peer. */
	enum cadge_progress (*expected)(const struct cadge_wire *wire, uint32_t right);
	/* What describe_path says of the path. */
	void (*note)(const struct cadge_chan *chan, char *note, size_t bytes);
};

int cadge_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void cadge_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int cadge_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out);
void cadge_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int cadge_slot_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
int cadge_slot_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
int cadge_slot_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			 struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int cadge_slot_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			    uint32_t flags, uint64_t token);
int cadge_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);
void *cadge_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes);
void cadge_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes);
void cadge_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);

#define RDMA_CAPS                                                                                            \
	(CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD |   \
	 CADGE_CAP_COMPARE_SWAP)

/* Beside CADGE_STYLE_SLOTS_BARE. */
#define RDMA_SLOTS                                                                                           \
	.style = "rdma", .semantics = cadge_slot_semantics, .expose = cadge_slot_expose,                     \
	.unexpose = cadge_slot_unexpose, .attach = cadge_slot_attach, .detach = cadge_slot_detach,           \
	.put = cadge_slot_put, .get = cadge_slot_get, .fetch_add = cadge_slot_fetch_add,                     \
	.compare_swap = cadge_slot_compare_swap, .quiet = cadge_slot_quiet

#define RDMA_ALLOC_SLOTS .mem_alloc = cadge_slot_mem_alloc, .mem_free = cadge_slot_mem_free

#endif
