/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the wire on MPI share: wire.c has packets and lives, memory.c remote memory. */
#ifndef CADGE_WIRE_MPI_STATE_H
#define CADGE_WIRE_MPI_STATE_H

#include <mpi.h>

#include "kit/adapter.h"
#include "wire/wire.h"
#include "wire/packets.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define WIRE_PUT_BYTES_MAX ((uint64_t)1 << 30) /* MPI counts in an int */

/* What is exposed needs nothing of MPI: the window is open to all ranks. */
struct cadge_region {
	struct cadge_region *next; /* among those of the wire */
};

/* A part of the window. */
struct wire_allocation {
	struct wire_allocation *next;
	void *base;
	size_t bytes;
};

struct cadge_remote {
	struct cadge_remote *next; /* among those of the link */
	struct cadge_link *link;
	uint64_t offset_bytes, bytes; /* in the peer's window */
	uint32_t rights;
};

/* Room for a packet that comes in. */
struct wire_landing {
	struct wire_landing *next;
};

struct wire_far_op;

/* far.c: writes of a life, counted: begun, before the newest probe, before the newest probe that has come back. */
struct wire_far_link {
	uint64_t begun, probed, reached;
	bool held; /* no more is begun until a probe has come back that covers all */
	struct wire_far_op *quiets, **quiets_end; /* oldest first */
};

struct wire_far {
	/* requests[i] belongs to ops[i]; side by side, so that MPI tests them at once */
	MPI_Request *requests;
	struct wire_far_op **ops, *pool, *free;
	int outstanding;
};

struct cadge_link {
	struct cadge_wire *wire;
	uint32_t peer;
	int rank;                /* of the peer */
	int tag_in, tag_out;     /* of this life; tag_in 0: none was taken */
	int past_rank, past_tag; /* of the life before; tag 0: there was none */
	bool connected;
	struct cadge_state state;
	struct cadge_packet_set *packets;
	/* Sends that MPI has not finished, in order, each with its request; they end one after the other. */
	struct cadge_packet *sending, *sending_last;
	struct wire_landing *landing; /* where the receive that is posted goes; NULL: none is posted */
	struct cadge_remote *remotes;
	bool written; /* since the last flush */
	struct wire_far_link far;
};

struct cadge_wire {
	const struct cadge_wire_calls *calls;
	void *arg;
	uint32_t peers, features;
	bool trusting;
	enum cadge_place place;
	struct cadge_wire_facts facts;
	struct cadge_packet_sets sets;
	uint8_t *landings_pool;
	size_t landings_bytes;
	struct wire_landing *landings; /* those that are free */
	struct cadge_region *regions;
	struct wire_allocation *allocations;
	/* side by side, so that MPI tests them at once: receives by peer, then each link's first send that is not finished */
	MPI_Request *requests;
	MPI_Status *statuses;
	int *found;
	int senders;                    /* links with such a send */
	struct cadge_packet *left_over; /* sends that MPI had not finished when their link ended */
	int events;
	bool direct;         /* the target's library need not run; else see far.c */
	bool events_pending; /* without packets: a link is connected, and not up */
	uint32_t polls;      /* without packets */
	uint64_t flushes;
	struct wire_far far;
	bool unclean; /* MPI may use packets and landings until the process ends */
	char why[160];
	struct cadge_link links[];
};

/* ---- far.c ---- */

int cadge_wire_far_open(struct cadge_wire *wire, uint32_t operations);
/* Waits a little for what is outstanding; and peers whose flush has just begun are answered for a moment more. */
void cadge_wire_far_close(struct cadge_wire *wire);
void cadge_wire_far_begin(struct cadge_link *link);
/* Nobody waits for the operations of this link any more. */
void cadge_wire_far_end(struct cadge_link *link);
/* As of wire.h, at this place of the peer's window. */
int cadge_wire_far_put(struct cadge_link *link, const void *local, size_t bytes, uint64_t at_bytes,
		       uint64_t token);
int cadge_wire_far_get(struct cadge_link *link, void *local, size_t bytes, uint64_t at_bytes, uint64_t token);
int cadge_wire_far_add(struct cadge_link *link, uint64_t addend, uint64_t *before_out, uint64_t at_bytes,
		       uint64_t token);
int cadge_wire_far_quiet(struct cadge_link *link, uint64_t token);
/* DONE or E_LIBRARY. */
int cadge_wire_far_poll(struct cadge_wire *wire);
/* Any call will do: it is what lets the library answer others. DONE or E_LIBRARY. */
int cadge_wire_serve(struct cadge_wire *wire);
/* memory.c: MPI_Win_flush. DONE or E_DOWN. */
int cadge_wire_flush(struct cadge_link *link);

/* True where the call went well; else keeps MPI's words for what happened. */
bool cadge_wire_went_well(struct cadge_wire *wire, const char *call, int ret);
/* The life has ended: what was attached is gone. */
void cadge_wire_detach_all(struct cadge_link *link);
/* The wire closes: what is still exposed or allocated goes. */
void cadge_wire_forget_memory(struct cadge_wire *wire);

#endif
