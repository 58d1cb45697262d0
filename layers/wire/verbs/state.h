/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the wire on verbs share: wire.c has packets and lives, remote.c remote memory. */
#ifndef CADGE_WIRE_VERBS_STATE_H
#define CADGE_WIRE_VERBS_STATE_H

#include "wire/packets.h"
#include "wire/verbs/verbs.h"
#include "wire/wire.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Exposed memory is registered for itself, with its rights: the device holds peers to them, and to its bounds. */
struct cadge_region {
	struct verbs_registered registered;
};

/* Memory of cadge_wire_alloc. */
struct wire_allocation {
	struct verbs_registered registered;
	struct wire_allocation *next;
	void *base;
	size_t bytes;
};

struct cadge_remote {
	struct cadge_remote *next; /* among those of the link */
	struct cadge_link *link;
	struct verbs_far far;
	uint64_t bytes;
	uint32_t rights;
};

/* Room for a packet that comes in; its bytes lie CADGE_PACKET_HEAD_BYTES behind. */
struct wire_landing {
	struct wire_landing *next;
	struct cadge_link *link; /* where it is posted; NULL: free, or kept */
	uint32_t number;
};
_Static_assert(sizeof(struct wire_landing) <= CADGE_PACKET_HEAD_BYTES, "room before a packet");

/* Without packets: a note is a message into a receive of which the peer knows that it is posted. */
struct wire_notes {
	struct verbs_far credit;     /* where the peer is told how many were taken */
	uint32_t peer_room;          /* receives that it has posted for them; 0: it does not sleep */
	uint32_t sent, acknowledged; /* given to the peer, acknowledged by it */
	uint32_t taken, credited;    /* taken from the peer, told to it */
};

struct cadge_link {
	struct verbs_queue queue; /* first, so that it is a link */
	struct cadge_wire *wire;
	struct cadge_packet_set *packets; /* of this life */
	struct cadge_remote *remotes;
	uint32_t posted; /* landings */
	struct wire_notes notes;
	bool connected;
	struct cadge_state state;
};

struct cadge_wire {
	struct verbs verbs;
	const struct cadge_wire_calls *calls;
	void *arg;
	int events;
	bool events_pending; /* a link broke, and the style does not know */
	bool lacking;        /* a link has fewer landings posted than it should */
	bool closing;
	uint32_t features;
	uint32_t handshakes; /* links that are connected, and neither up nor down */
	uint32_t notes;      /* receives of a link posted for them */
	bool trusting;
	struct cadge_wire_facts facts;
	struct cadge_packet_sets sets;
	uint8_t *own; /* words and landing places of the queue pairs, then the landings of packets */
	size_t own_bytes, landings_at;
	struct wire_landing *landings; /* those that are free */
	uint32_t landings_count;
	struct wire_allocation *allocations;
	struct cadge_link links[];
};

/* The life has ended: what was attached is gone. */
void cadge_wire_detach_all(struct cadge_link *link);
/* After the queue pairs: what is still registered or allocated goes. */
void cadge_wire_forget_memory(struct cadge_wire *wire);
/* notes.c, which are there without packets: what a peer needs for them, and its counterpart. */
void cadge_wire_notes_address(const struct cadge_link *link, struct cadge_blob_out *blob);
void cadge_wire_notes_take(struct cadge_link *link, struct cadge_blob_in *blob);
/* Tells peers how many were taken, where half of their room is used. */
void cadge_wire_notes_credit(struct cadge_wire *wire);
/* Whether that is still to be done for any. */
bool cadge_wire_owes_credit(const struct cadge_wire *wire);
/* Bytes that notes take of a link, behind the words and landing places of its queue pair. */
#define WIRE_NOTES_BYTES VERBS_LINE_BYTES

/* Registers memory of the wire's own until it closes; NULL where it cannot be. */
struct ibv_mr *cadge_wire_register(struct cadge_wire *wire, void *base, size_t bytes);

#endif
