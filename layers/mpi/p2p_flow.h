/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of mpi-p2p share: its state, and the slots that move messages (p2p_flow.c). */
#ifndef CADGE_MPI_P2P_FLOW_H
#define CADGE_MPI_P2P_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "cadge/layer.h"
#include "wire/mpi/world.h"

enum {
	P2P_SPARE = 64,  /* buffers of a channel beyond those that a caller may keep: most that are posted */
	P2P_EVENTS = 16, /* most messages of a channel in one poll */
	P2P_BURST = 8,   /* so many polls in a row that find something done are a burst */
	P2P_SHORT_BYTES = 256, /* what ob1 sends inside MPI_Isend (mca_pml_ob1_send_inline) */
	P2P_IOV_MAX = 8,
	P2P_DEPTH_MAX = 1024,
	P2P_PEERS_MAX = 4096,
	P2P_GREETINGS = 2,
	P2P_THREADS_MAX = 8, /* of MPI and PMIx: connections to mpirun, timers */
};
#define P2P_POOL_BYTES (UINT64_C(1) << 30) /* most address space for buffers of each kind */

struct p2p_send {
	MPI_Request request;
	uint64_t token;
	bool greeting;
	void *staging; /* for messages in several pieces */
	struct p2p_send *next;
};

/* A receive buffer; what a caller keeps of a message is this. */
struct cadge_lend {
	MPI_Request
		request; /* a persistent receive from the peer of chan; MPI_REQUEST_NULL where chan is NULL */
	struct cadge_chan *chan;
	void *data;
	struct cadge_lend *next;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	int rank, tag_in, tag_out;
	pid_t pid; /* of the peer, as it calls itself */
	bool connected, begins, up, down;
	uint32_t greetings_sent, greetings_received, posted, posted_wanted, queued;
	uint32_t streak;   /* polls in a row that found something done */
	size_t gone_bytes; /* messages of up to so many bytes have usually left when MPI_Isend returns */
	/* Oldest first; the requests of the oldest are in oldest[], where one call tests both. */
	MPI_Request oldest[2];
	struct cadge_lend *receive_head, *receive_tail;
	struct cadge_lend *free_lend; /* whose request is made for this channel */
	struct p2p_send *send_head, *send_tail;
};
enum { P2P_RECEIVE = 0, P2P_SEND = 1 };

struct cadge_ctx {
	uint32_t peers, depth;
	uint32_t posted_most; /* receives of a channel */
	uint32_t lend_count;
	enum cadge_place place;
	uint64_t message_bytes_max, eager_bytes;
	uint64_t rendezvous_eager_bytes; /* see mpi_path_limits */
	struct cadge_chan *chan;
	struct cadge_lend *lends, *free_lend; /* free: of no channel */
	struct p2p_send *sends, *free_send;
	void *receive_pool, *send_pool;
	size_t receive_pool_bytes, send_pool_bytes;
	uint64_t gathered_messages;
	char interface[64]; /* what the tcp transport was told to use */
	char why[160];      /* what MPI said of the last error */
};

/* The slots of the contract. */
int mpi_p2p_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		 uint64_t token);
int mpi_p2p_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
void mpi_p2p_release(struct cadge_ctx *ctx, struct cadge_lend *lend);

#endif
