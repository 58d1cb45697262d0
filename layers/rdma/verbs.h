/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of rdma-verbs: libibverbs alone, one reliable connection (RC queue pair) a channel, one completion queue a context,
 * and messages through the mailbox of wire/ over RDMA writes.
 *
 *	verbs.c          the life of a context, what it says of itself
 *	verbs_device.c   the device behind an interface, its GID, what it can
 *	verbs_memory.c   registered memory, the caller's and our own
 *	verbs_queue.c    queue pairs: their states, operations given to them and completions of these
 *	verbs_flow.c     the slots that move bytes, and the mailbox's
 *
 * A queue pair finishes operations in the order in which it got them (InfiniBand Architecture Specification, volume 1,
 * section 10.8.3.3), so a ring of them a channel is enough, and not each of them has to announce its end.
 */
#ifndef CADGE_RDMA_VERBS_H
#define CADGE_RDMA_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "cadge/layer.h"
#include "kit/adapter.h"
#include "wire/mailbox.h"
#include "wire/rdma_device.h"

enum {
	VERBS_PEERS_MAX = 0x7fff,
	VERBS_DEPTH_MAX = 1024,
	VERBS_NOTES =
		32, /* receives posted a channel, in block mode: notifications that may be on their way */
	VERBS_SPARE = 64,        /* operations of the mailbox and notifications, beside the caller's */
	VERBS_SIGNAL_EVERY = 16, /* operations, of which one at least announces its end */
	VERBS_EVENTS = 16,       /* completions taken in one poll */
	VERBS_LANDING_BYTES = 16,
	VERBS_LINE_BYTES = 64,
	VERBS_HELLOS = 64, /* tries to reach a peer that is not there yet, each of half a second or so */
	VERBS_READS_MAX = 16,
};

#define VERBS_BYTES_MAX (UINT64_C(1) << 30)

/* What a device and its port can, and the name under which the port is reached. */
struct verbs_device {
	struct cadge_rdma_device rdma;
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint8_t gid_index;
};

enum verbs_kind {
	VERBS_SILENT, /* nobody waits for its end */
	VERBS_HELLO, /* the message that begins a connection; its end says that the peer's queue pair is there */
	VERBS_WORK,  /* of the mailbox, where it has an owner, or of the caller */
	VERBS_QUIET, /* the same; its end says that what was written before is visible */
};

/* An operation that was given to a queue pair. */
struct verbs_op {
	enum verbs_kind kind;
	void *owner; /* a struct cadge_mailbox_op */
	uint64_t token;
	uint64_t *before_out; /* of an atomic operation */
	uint64_t written;     /* of a quiet: how many writes were before it */
	struct ibv_mr *once;  /* registered for this operation alone */
};

/* Memory of the caller, or our arena, that the device knows. */
struct verbs_registered {
	struct ibv_mr *mr;
	struct verbs_registered *next;
	bool exposed; /* a region's */
};

struct cadge_region {
	struct verbs_registered registered;
};

/* Where something lies in a peer's memory. */
struct verbs_far {
	uint64_t addr;
	uint32_t rkey;
};

struct cadge_remote {
	struct verbs_far far;
	uint64_t bytes;
};

/* What an address says of the end that made it. */
struct verbs_end {
	union ibv_gid gid;
	uint32_t queue, psn, mtu, reads, notes;
	struct verbs_far area, word, credit;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_mailbox *mailbox;
	struct ibv_qp *qp; /* NULL: address has to make one */
	struct verbs_end peer_end;
	uint8_t *part;                       /* of the arena, see verbs_memory.c */
	struct verbs_op *ops;                /* a ring of send_room entries */
	uint64_t posted, finished, signaled; /* numbers of operations */
	uint64_t written, flushed;           /* writes given to the queue pair, those known to be visible */
	uint32_t peer, psn, outstanding, hellos;
	uint32_t notes_sent, notes_told;      /* notifications: given to the peer, taken by it as it told */
	uint32_t notes_taken, notes_credited; /* taken from the peer, told to it */
	uint16_t life;
	bool connected, broken;
	bool reached, heard; /* our hello came over, and the peer's */
};

struct cadge_ctx {
	struct verbs_device device;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events; /* block mode */
	struct ibv_cq *cq;
	struct ibv_wc early; /* a completion that came while sleep was prepared */
	bool has_early;
	uint32_t peers, depth, send_room, notes, inline_bytes, reads;
	enum cadge_wait_mode wait_mode;
	char interface[32];
	uint64_t message_bytes_max, rma_bytes_max;
	struct cadge_mailbox_shape shape;
	size_t area_bytes, staging_bytes, part_bytes;
	uint8_t *arena;
	struct verbs_registered arena_registered;
	struct verbs_registered *registered; /* the last one that was of use first; the arena among them */
	struct cadge_chan *chans;
	struct cadge_sink *sink; /* while poll runs */
	uint64_t busies, registered_once;
	char why[160];
};

/* Both ends are there. */
static inline bool verbs_met(const struct cadge_chan *chan)
{
	return chan->reached && chan->heard;
}

/* Receives posted a channel: for notifications, and one for the hello. */
static inline uint32_t verbs_receives(const struct cadge_ctx *ctx)
{
	return ctx->notes + 1;
}

/* ---- verbs_device.c ---- */

/* Opens the device of args->device, at the GID that is args->address. DONE, or a refusal of open. */
int verbs_device_open(const struct cadge_open_args *args, struct verbs_device *device);
/* A zeroed struct is legal. */
void verbs_device_close(struct verbs_device *device);
/* Which libibverbs, as cadge_layer.library. */
void verbs_library(struct cadge_library *library_out);

/* ---- verbs_memory.c ---- */

/* What peers may do with exposed memory, as IBV_ACCESS_*: all that the device can. */
unsigned int verbs_access_rights(const struct cadge_ctx *ctx);
/* The arena and its parts, one a channel; needs depth, send_room, notes and shape. DONE or a refusal of open. */
int verbs_arena_make(struct cadge_ctx *ctx, const struct cadge_open_args *args);
void verbs_arena_free(struct cadge_ctx *ctx);
/* Parts of a part: a word that the peer's quiet reads, a word that it tells its credit in, receives, landing places. */
uint8_t *verbs_word(const struct cadge_chan *chan);
uint8_t *verbs_credit(const struct cadge_chan *chan);
uint8_t *verbs_note(const struct cadge_chan *chan, uint32_t slot);
uint8_t *verbs_landing(const struct cadge_chan *chan, uint64_t number);

/* The registration that holds these bytes, or NULL. */
struct ibv_mr *verbs_registration_of(struct cadge_ctx *ctx, const void *base, size_t bytes);
/* Registers them for one operation; NULL with errno. */
struct ibv_mr *verbs_register_once(struct cadge_ctx *ctx, void *base, size_t bytes);

int verbs_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		 uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void verbs_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int verbs_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		 struct cadge_remote **remote_out);
void verbs_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int verbs_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes);
int verbs_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes);

/* ---- verbs_queue.c ---- */

/* Completion queue and, in block mode, its descriptor, for all channels. Lowers depth and send_room until they fit. */
int verbs_queues_make(struct cadge_ctx *ctx, const struct cadge_open_args *args);
void verbs_queues_free(struct cadge_ctx *ctx);
/* The channel's queue pair, ready to receive, if it has none. DONE or a negative code, with why. */
int verbs_queue_make(struct cadge_chan *chan);
/* Ends it; operations under way are forgotten. */
void verbs_queue_free(struct cadge_chan *chan);
/* Connects it to chan->peer_end and says hello. DONE or a negative code, with why. */
int verbs_queue_connect(struct cadge_chan *chan);

/*
 * Gives the queue pair an operation, a copy of `op`. `wr` has all but number and flags; `flags` are IBV_SEND_INLINE or 0.
 * DONE: it is there, and complete for the caller where it is SILENT. BUSY, E_DOWN: it is not.
 */
int verbs_issue(struct cadge_chan *chan, struct ibv_send_wr *wr, unsigned int flags,
		const struct verbs_op *op);
/* The same for some bytes that are copied at once, to where they are inline or in a landing place. */
int verbs_issue_copy(struct cadge_chan *chan, struct ibv_send_wr *wr, const void *data, uint32_t bytes,
		     const struct verbs_op *op);
/* Takes completions. Returns the number of events delivered, or a negative code. */
int verbs_completions(struct cadge_ctx *ctx);
/* Prepares sleep: true where the descriptor will tell of the next completion. */
bool verbs_armed(struct cadge_ctx *ctx);
/* Keeps words for why, marks the channel as broken. Returns E_DOWN. */
int verbs_broke(struct cadge_chan *chan, const char *what, const char *words);

/* ---- verbs_flow.c ---- */

extern const struct cadge_mailbox_ops verbs_polling_ops, verbs_blocking_ops;

/* An operation of the caller's has ended. Returns the number of events. */
int verbs_ended(struct cadge_chan *chan, const struct verbs_op *op, int code);
/* A message has come into a slot: a notification, or the empty one that is a hello. */
void verbs_noted(struct cadge_chan *chan, uint32_t slot, uint32_t bytes);

int verbs_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
	       uint64_t token);
int verbs_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int verbs_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int verbs_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int verbs_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	      uint64_t offset_bytes, uint32_t flags, uint64_t token);
int verbs_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	      uint64_t offset_bytes, uint32_t flags, uint64_t token);
int verbs_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		    struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int verbs_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int verbs_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);

#endif
