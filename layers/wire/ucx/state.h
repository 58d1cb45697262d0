/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the wire on UCX share: wire.c has packets and life, memory.c remote memory. */
#ifndef CADGE_WIRE_UCX_STATE_H
#define CADGE_WIRE_UCX_STATE_H

#include "wire/ucx/ucx.h"
#include "wire/ucx/path.h"
#include "wire/ucx/rma.h"
#include "wire/wire.h"
#include "wire/packets.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define WIRE_PUT_BYTES_MAX  (UINT64_C(1) << 30)

struct cadge_link {
	struct cadge_wire *wire;
	ucp_ep_h ep;                      /* NULL: not connected */
	struct cadge_packet_set *packets; /* of this life */
	unsigned int id_out, id_in;       /* id_in: CADGE_UCX_IDS until the address is asked for */
	uint32_t peer;
	bool greeted, greeting_left; /* the peer's came, ours has left */
	bool writes_wake;            /* a peer that sleeps is woken by each put */
	struct cadge_state state;
	/* Puts that only a flush makes visible have numbers; those up to `flushed` are. */
	uint64_t last_put, flushed;
	struct cadge_wire_operations *operations; /* of this life; NULL without REMOTE */
};

/*
 * The operations of one life of a link: what was begun with a peer that died may never end. Used again when nothing of
 * it is with the library any more.
 */
struct cadge_wire_operations {
	struct cadge_ucx_rma rma;           /* rma.user: the link; rma.ep is NULL after the life */
	struct cadge_wire_operations *next; /* among all of the wire */
	/* Who reads and writes memory of the peer that is not mapped here: asked once; NONE until then. */
	enum cadge_progress unmapped;
	bool device_atomics; /* asked with it: over verbs, the device has them */
};

/* The end of an operation that the library told outside of progress. */
struct cadge_wire_end {
	struct cadge_wire_operations *operations;
	uint64_t token;
	uint32_t life;
	int code;
};

struct cadge_wire {
	struct cadge_ucx ucx;
	const struct cadge_wire_calls *calls;
	void *arg;
	int events;
	bool inside;         /* progress */
	bool events_pending; /* something waits for deliver_events */
	uint32_t features, peers;
	bool trusting, messages; /* see cadge_wire_needs; messages: packets or notes */
	struct cadge_wire_facts facts;
	struct cadge_packet_sets sets;
	struct cadge_ucx_memory memory;
	struct cadge_wire_operations *operations; /* of all lives */
	uint32_t operations_max;
	struct cadge_wire_end *ends;
	size_t ends_count;
	uint64_t sent_late;
	struct cadge_link links[];
};

/* memory.c: operations for a life that begins, of a link that has its endpoint. DONE or E_MEMORY. */
int cadge_wire_operations_begin(struct cadge_link *link);
/* No `ended` follows, and remotes are detached. NULL operations are legal. */
void cadge_wire_operations_end(struct cadge_link *link);
/* Whether the library still has any, of any life. */
bool cadge_wire_operations_out(const struct cadge_wire *wire);
/* After the worker. */
void cadge_wire_operations_destroy(struct cadge_wire *wire);
/* Tells what ended outside of progress. */
void cadge_wire_report_ends(struct cadge_wire *wire);

/* The connection of a link broke: the next progress says `down`. */
static inline void cadge_wire_break(struct cadge_link *link)
{
	link->state.broken = true;
	link->wire->events_pending = true;
}

#endif
