/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the wire on libfabric share: wire.c has life and connecting, flow.c packets,
 * memory.c remote memory.
 *
 * Who sent a packet stands in libfabric's immediate data: the slot that the receiver put into its address, a
 * generation that distinguishes the lives of a slot, and the kind. Two kinds beside data make `up`: HELLO says "you can
 * reach me and I know you", WELCOME answers it.
 */
#ifndef CADGE_WIRE_OFI_STATE_H
#define CADGE_WIRE_OFI_STATE_H

#include "kit/greeting.h"
#include "wire/ofi/ofi.h"
#include "wire/ofi/params.h"
#include "wire/ofi/rma.h"
#include "wire/wire.h"
#include "wire/packets.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum {
	WIRE_POSTED = 8, /* landings posted at a time; below POSTED_LOW at once, else when nothing is to do */
	WIRE_POSTED_LOW = 4,
	WIRE_NOTES = 64, /* of notes, all at once */
	WIRE_SPARE = 16, /* landings beyond those that are kept */
	WIRE_PEERS_MAX = CADGE_STAMP_SLOTS,
};

struct cadge_link {
	struct cadge_wire *wire;
	struct cadge_packet_set *packets; /* of this life; NULL: not connected */
	fi_addr_t addr;
	uint32_t peer;
	struct cadge_greeting greeting;
	bool announced; /* up or down has been told */
	struct cadge_state state;
	struct cadge_ofi_link rma;
	struct cadge_remote *remotes;
};

struct cadge_wire {
	struct cadge_ofi ofi;
	const struct cadge_wire_calls *calls;
	void *arg;
	int events;
	uint32_t features, peers;
	bool trusting;    /* see cadge_wire_needs */
	uint32_t pending; /* links that are connected and not announced */
	struct cadge_wire_facts facts;
	size_t inject_bytes;
	struct cadge_packet_sets sets;
	uint64_t sent_late, busy, stale;
	/* what comes in */
	uint8_t *landing_pool;
	size_t landings_count;
	struct cadge_packet *landings; /* free */
	uint32_t posted, posted_low, posted_max;
	/* remote memory */
	struct cadge_ofi_rma rma;
	struct cadge_region *regions;
	struct cadge_wire_alloc *allocs;
	struct fid_mr *words_mr;
	struct cadge_ofi_far words_far;
	uint64_t *words; /* two for each peer: what its quiet reads, and where ours goes */
	struct cadge_link links[];
};

/* flow.c: posts free landings until `wanted` are posted. DONE, also where the queue is full, or negative. */
int cadge_wire_post_landings(struct cadge_wire *wire, uint32_t wanted);

/* memory.c: room for operations, and the words; and what is left of regions. DONE or E_MEMORY. */
int cadge_wire_memory_open(struct cadge_wire *wire, size_t operations);
void cadge_wire_memory_close(struct cadge_wire *wire);
/* After the library has stopped: what was allocated and not freed. */
void cadge_wire_memory_free(struct cadge_wire *wire);
/* What a peer's quiet needs: who it is, and the word that it reads. Nothing is written or taken without REMOTE. */
struct cadge_wire_word {
	struct cadge_ofi_far far;
	pid_t pid;
	uint64_t nonce; /* what stands there */
};
void cadge_wire_word_address(const struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob);
struct cadge_wire_word cadge_wire_word_take(const struct cadge_wire *wire, struct cadge_blob_in *blob);
/* A life of a link begins, and ends. */
void cadge_wire_memory_begin(struct cadge_link *link, const struct cadge_wire_word *word);
void cadge_wire_detach_all(struct cadge_link *link);
void cadge_wire_memory_end(struct cadge_link *link);

static inline size_t cadge_wire_words_bytes(const struct cadge_wire *wire)
{
	return wire->peers * 2 * sizeof(uint64_t);
}

#endif
