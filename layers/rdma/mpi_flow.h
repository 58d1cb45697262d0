/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of rdma-mpi share: its state, and the slots that move bytes (mpi_flow.c). */
#ifndef CADGE_RDMA_MPI_FLOW_H
#define CADGE_RDMA_MPI_FLOW_H

#include <mpi.h>

#include "kit/adapter.h"
#include "wire/mailbox.h"

enum {
	RMA_DEPTH_MAX = 1024,
	RMA_PEERS_MAX = 4096,
	RMA_SPARE_OPS = 64,
	RMA_EVENTS = 64,     /* most completions in one poll */
	RMA_IDLE_POLLS = 64, /* where nothing needs it, MPI is given the processor every so many polls */
	RMA_THREADS_MAX = 8, /* of MPI and PMIx: connections to mpirun, timers */
	RMA_DRAIN_MS = 200,
	RMA_LINGER_MS = 20,
	RMA_BYTES_MAX = 1 << 30,
};

enum rma_kind {
	RMA_REQUEST, /* the mailbox's or the caller's */
	RMA_PROBE,   /* our own get, see rma_push */
	RMA_QUIET,   /* has no request: it waits for a probe */
};

/* What is not complete: of the mailbox, of the caller, or, after disconnect, of nobody. */
struct rma_op {
	enum rma_kind kind;
	struct cadge_chan *chan; /* NULL: nobody waits for it */
	uint64_t token;
	struct cadge_mailbox_op *owner; /* NULL: the caller's */
	uint64_t covers;                /* probe, quiet: so many writes of the channel were begun before it */
	uint64_t word;                  /* fetch_add: what is added; probe: what comes back */
	struct rma_op *next;            /* in the pool, or among the quiets of a channel */
};

struct cadge_region {
	uint64_t offset_bytes;
};

struct cadge_remote {
	uint64_t offset_bytes, bytes; /* in the peer's window */
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_mailbox *mailbox;
	uint32_t peer;
	int rank;
	bool connected;
	/* writes: begun, before the newest probe, before the newest probe that has come back */
	uint64_t begun, probed, reached;
	bool held; /* no more is begun until a probe has come back that covers all */
	struct rma_op *quiets, **quiets_end; /* oldest first */
	char *area;                          /* of our mailbox, in the window */
	uint64_t area_offset_bytes;          /* of the peer's mailbox, in its window */
};

struct cadge_ctx {
	uint32_t peers, depth;
	enum cadge_place place;
	bool direct, swaps; /* see mpi_window_direct and mpi_window_swaps */
	uint64_t message_bytes_max;
	struct cadge_mailbox_shape shape;
	size_t area_bytes;
	void *staging; /* of all mailboxes */
	struct cadge_chan *chan;
	/* requests[i] belongs to ops[i]; side by side, so that MPI tests them at once */
	MPI_Request *requests;
	struct rma_op **ops;
	struct rma_op *pool, *free;
	int outstanding, outstanding_max;
	uint32_t idle_polls;
	struct cadge_sink *sink; /* while poll runs */
	uint64_t flushes;
	char why[160]; /* what MPI said of the last error */
};

extern const struct cadge_mailbox_ops rdma_mpi_mailbox_ops;

/* Nobody waits for the operations of this channel any more. */
void rdma_mpi_forget(struct cadge_ctx *ctx, struct cadge_chan *chan);
/* Waits a little for what is outstanding; false where some of it stays with MPI. */
bool rdma_mpi_drain(struct cadge_ctx *ctx);

/* The slots of the contract. */
int rdma_mpi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		  uint64_t token);
int rdma_mpi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int rdma_mpi_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_mpi_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_mpi_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_mpi_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int rdma_mpi_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);

#endif
