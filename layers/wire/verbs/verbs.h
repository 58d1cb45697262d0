/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs for adapters: the device behind an interface, registered memory, and one reliable connection (RC queue pair) a
 * peer on one completion queue. The wire (wire.c) stands on it.
 *
 *	device.c   the device, its GID, what it can
 *	queue.c    queue pairs: their states, operations given to them and completions of these
 *	memory.c   registrations, and operations on a peer's memory
 *
 * A queue pair finishes operations in the order in which it got them (InfiniBand Architecture Specification, volume 1,
 * section 10.8.3.3), so a ring of them a peer is enough, and not each of them has to announce its end.
 */
#ifndef CADGE_WIRE_VERBS_VERBS_H
#define CADGE_WIRE_VERBS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "kit/adapter.h"
#include "kit/bytes.h"
#include "wire/rdma_device.h"

enum {
	VERBS_PEERS_MAX = 0x7fff,
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
	VERBS_WORK,
	VERBS_QUIET, /* its end says that what was written before is visible */
};

/* An operation that was given to a queue pair. */
struct verbs_op {
	enum verbs_kind kind;
	void *owner; /* the adapter's */
	uint64_t token;
	uint64_t *before_out; /* of an atomic operation */
	uint64_t written;     /* of a quiet: how many writes were before it */
	struct ibv_mr *once;  /* registered for this operation alone */
};

/* Memory that the device knows. */
struct verbs_registered {
	struct ibv_mr *mr;
	struct verbs_registered *next;
	bool exposed; /* a region's, or the adapter's own: not for mem_dereg */
};

/* Where something lies in a peer's memory. */
struct verbs_far {
	uint64_t addr;
	uint32_t rkey;
};

/* What an address says of the end that made it. */
struct verbs_end {
	union ibv_gid gid;
	uint32_t queue, psn, mtu, reads;
	struct verbs_far word; /* a word of its memory, which our quiet reads */
};

struct verbs_queue {
	struct verbs *verbs;
	struct ibv_qp *qp; /* NULL: verbs_queue_make has to make one */
	struct verbs_end peer_end;
	struct verbs_op *ops; /* a ring of send_room entries */
	uint8_t *word;        /* of ours, which the peer's quiet reads; then send_room landing places */
	uint64_t posted, finished, signaled; /* numbers of operations */
	uint64_t written, flushed;           /* writes given to the queue pair, those known to be visible */
	uint32_t peer, psn, hellos;
	uint16_t life;
	bool broken;
	bool reached, greeted; /* our hello came over, and the peer's */
};

/* What the adapter does with what happens; all but post_receives inside verbs_completions. */
struct verbs_calls {
	/* WORK or QUIET has ended. Returns the number of events. */
	int (*ended)(struct verbs_queue *queue, const struct verbs_op *op, int code);
	/* A message of at least one byte came into this receive. False: no receive could be posted. */
	bool (*received)(struct verbs_queue *queue, uint32_t slot, uint32_t bytes);
	/* Posts all receives of a queue pair that begins, one of them for the hello; what was posted is not any more. 0 or errno. */
	int (*post_receives)(struct verbs_queue *queue);
	/* The hello has come into this receive. */
	void (*greeted)(struct verbs_queue *queue, uint32_t slot);
	void (*broke)(struct verbs_queue *queue);
};

struct verbs {
	struct verbs_device device;
	const struct verbs_calls *calls;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events; /* block mode */
	struct ibv_cq *cq;
	struct ibv_wc early; /* a completion that came while sleep was prepared */
	bool has_early;
	uint32_t peers, receives; /* receives: posted a queue pair, at most */
	uint32_t send_room, inline_bytes, reads;
	uint64_t bytes_max; /* of one operation */
	char interface[32];
	struct verbs_registered own;         /* words and landing places of all queues lie in it */
	struct verbs_registered *registered; /* the last one that was of use first */
	uint8_t *queues; /* of all peers, queue_bytes apart: of the adapter's channels the first member */
	size_t queue_bytes;
	uint64_t busies, registered_once;
	char why[160];
};

static inline struct verbs_queue *verbs_queue_of(const struct verbs *verbs, uint32_t peer)
{
	return (struct verbs_queue *)(void *)(verbs->queues + peer * verbs->queue_bytes);
}

/* Both ends are there. */
static inline bool verbs_is_greeted(const struct verbs_queue *queue)
{
	return queue->reached && queue->greeted;
}

/* Bytes from a queue's word to the end of its landing places. */
static inline size_t verbs_own_bytes(const struct verbs *verbs)
{
	return VERBS_LINE_BYTES + (size_t)verbs->send_room * VERBS_LANDING_BYTES;
}

/* Where the result of an operation comes, and what is copied for it lies. */
static inline uint8_t *verbs_landing(const struct verbs_queue *queue, uint64_t number)
{
	return queue->word + VERBS_LINE_BYTES + number % queue->verbs->send_room * VERBS_LANDING_BYTES;
}

/* ---- device.c ---- */

/* Opens the device of args->device, at the GID that is args->address. DONE, or a refusal of open. */
int verbs_device_open(const struct cadge_open_args *args, struct verbs_device *device);
/* A zeroed struct is legal. */
void verbs_device_close(struct verbs_device *device);
/* Which libibverbs, as cadge_layer.library. */
void cadge_wire_library(struct cadge_library *library_out);

static inline bool verbs_has_atomics(const struct verbs *verbs)
{
	return verbs->device.attr.atomic_cap != IBV_ATOMIC_NONE;
}

/* ---- queue.c ---- */

/*
 * Opens device, protection domain and completion queue for args->peers_max queue pairs, `receives` messages posted on each,
 * and as many operations under way as are wanted (send_room, no fewer than `least`). The caller has set calls, queues and
 * queue_bytes. DONE or a refusal of open; verbs_close is legal then.
 */
int verbs_open(struct verbs *verbs, const struct cadge_open_args *args, uint32_t receives, uint32_t least,
	       uint32_t wanted);
void verbs_close(struct verbs *verbs);

/* The peer's queue pair, ready to receive, if it has none; the ring of operations too. DONE or a negative code, with why. */
int verbs_queue_make(struct verbs_queue *queue);
/* Ends it; operations under way are forgotten. */
void verbs_queue_free(struct verbs_queue *queue);
/* What the peer needs of us to connect. */
void verbs_queue_address(const struct verbs_queue *queue, struct cadge_blob_out *blob);
/* Reads that into peer_end. False: it is no address. */
bool verbs_queue_take(struct verbs_queue *queue, struct cadge_blob_in *blob);
/* Connects it to peer_end and says hello. DONE or a negative code, with why. */
int verbs_queue_connect(struct verbs_queue *queue);
/* As describe_path, but for the note. */
int verbs_queue_describe(const struct verbs_queue *queue, struct cadge_path *path);

/* Posts a receive of the adapter's, whose number comes back with what came into it. 0 or errno. */
int verbs_post_receive(struct verbs_queue *queue, uint32_t slot, void *base, uint32_t bytes, uint32_t lkey);
/*
 * Gives the queue pair an operation, a copy of `op`. `wr` has all but number and flags; `flags` are IBV_SEND_INLINE or 0.
 * DONE: it is there, and complete for the caller where it is SILENT. BUSY, E_DOWN: it is not.
 */
int verbs_issue(struct verbs_queue *queue, struct ibv_send_wr *wr, unsigned int flags,
		const struct verbs_op *op);
/* The same for some bytes that are copied at once, to where they are inline or in a landing place. */
int verbs_issue_copy(struct verbs_queue *queue, struct ibv_send_wr *wr, const void *data, uint32_t bytes,
		     const struct verbs_op *op);
/* Takes completions. Returns the number of events delivered, or a negative code. */
int verbs_completions(struct verbs *verbs);
/* Prepares sleep: true where the descriptor will report the next completion. */
bool verbs_armed(struct verbs *verbs);
/* Keeps words for why, marks the queue as broken. Returns E_DOWN. */
int verbs_broke(struct verbs_queue *queue, const char *what, const char *words);

/* ---- memory.c ---- */

/* CADGE_MAY_* as IBV_ACCESS_*, as far as the device can. */
unsigned int verbs_access(const struct verbs *verbs, uint32_t rights);
/* Registers memory and lists it, with `one`, which the caller keeps until verbs_deregister. DONE or negative, with why. */
int verbs_register(struct verbs *verbs, struct verbs_registered *one, void *base, size_t bytes,
		   unsigned int access);
void verbs_deregister(struct verbs *verbs, struct verbs_registered *one);

void verbs_far_put(struct cadge_blob_out *blob, const void *at, uint32_t rkey);
struct verbs_far verbs_far_take(struct cadge_blob_in *blob);
static inline struct verbs_far verbs_far_at(struct verbs_far far, uint64_t offset_bytes)
{
	far.addr += offset_bytes;
	return far;
}

/* A write or a read of registered memory, inline or, where it is neither, of memory registered for once. DONE, QUEUED, BUSY or E_DOWN. */
int verbs_transfer(struct verbs_queue *queue, enum ibv_wr_opcode opcode, void *local, size_t bytes,
		   struct verbs_far far, struct verbs_op *op);
/* DONE or, in the end of the operation: every write before is visible. QUEUED, BUSY, E_DOWN as above. */
int verbs_flush(struct verbs_queue *queue, struct verbs_op *op);
/* An atomic operation of `wr`, which has opcode and operands; the word that stood there goes to before_out. QUEUED, BUSY, E_DOWN. */
int verbs_atomic(struct verbs_queue *queue, struct ibv_send_wr *wr, struct verbs_far far,
		 const struct verbs_op *op);

#endif
