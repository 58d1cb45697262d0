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
};

struct cadge_wire {
	const struct cadge_wire_calls *calls;
	void *arg;
	uint32_t peers, features;
	bool trusting;
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
	bool spoiled; /* MPI may use packets and landings until the process ends */
	char why[160];
	struct cadge_link links[];
};

/* True where the call went well; else keeps MPI's words for what happened. */
bool cadge_wire_went_well(struct cadge_wire *wire, const char *call, int ret);
/* The life has ended: what was attached is gone. */
void cadge_wire_detach_all(struct cadge_link *link);
/* The wire closes: what is still exposed or allocated goes. */
void cadge_wire_forget_memory(struct cadge_wire *wire);

#endif
