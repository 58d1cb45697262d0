/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory on UCX for layers that write to it: memory from the library's allocator, keys, and operations
 * under way. No messages.
 *
 * Memory comes from ucp_mem_map with UCP_MEM_MAP_ALLOCATE, since UCX reaches only such memory directly over
 * shared memory; a put to any other becomes an active message that waits for the target's library.
 *
 * cadge_region and cadge_remote of the contract are completed here.
 */
#ifndef CADGE_WIRE_UCX_RMA_H
#define CADGE_WIRE_UCX_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "cadge/layer.h"
#include "kit/bytes.h"

/* ---- memory of a context ---- */

struct cadge_ucx_alloc;

struct cadge_ucx_memory {
	ucp_context_h context;
	struct cadge_ucx_alloc *allocs;
	struct cadge_region *regions;
	struct cadge_remote *remotes, *deferred; /* deferred: operations that go on may still use them */
};

/* A peer's memory as seen from one channel. */
struct cadge_remote {
	struct cadge_remote *next;
	struct cadge_ucx_rma *rma;
	ucp_rkey_h rkey;
	uint64_t base;
	uint64_t bytes;
	uint32_t rights; /* for the caller's use */
	bool mapped;     /* here, so that operations on it do without the peer */
};

/* As mem_alloc and mem_free of the contract. */
void *cadge_ucx_mem_alloc(struct cadge_ucx_memory *memory, size_t bytes);
void cadge_ucx_mem_free(struct cadge_ucx_memory *memory, void *base);
/* As expose and unexpose of the contract; `key` is written to the blob. */
int cadge_ucx_expose(struct cadge_ucx_memory *memory, void *base, size_t bytes, struct cadge_blob_out *key,
		     struct cadge_region **region_out);
void cadge_ucx_unexpose(struct cadge_ucx_memory *memory, struct cadge_region *region);
/* Everything that is left, remotes too. No operation may start any more; the worker must still be there. */
void cadge_ucx_memory_destroy(struct cadge_ucx_memory *memory);

/* ---- operations of one channel ---- */

struct cadge_ucx_record;

/*
 * Called inside progress when an operation that was QUEUED ended: `tag` and `token` as given to it. Not for
 * operations of an earlier life.
 */
typedef void (*cadge_ucx_rma_done_fn)(void *user, void *tag, uint64_t token, int code);

struct cadge_ucx_rma {
	struct cadge_ucx_memory *memory;
	ucp_ep_h ep; /* set by the caller */
	struct cadge_ucx_record *idle, *records;
	uint32_t under_way; /* of all lives */
	uint32_t life;      /* the caller adds 1 to have no more events of what is under way */
	cadge_ucx_rma_done_fn done;
	void *user;
};

/* With so many operations under way at most. DONE or E_MEMORY. */
int cadge_ucx_rma_init(struct cadge_ucx_rma *rma, struct cadge_ucx_memory *memory, uint32_t records,
		       cadge_ucx_rma_done_fn done, void *user);
/* After the worker is gone. Zero is legal. */
void cadge_ucx_rma_fini(struct cadge_ucx_rma *rma);

/* Makes a peer's memory usable: the key is taken from the blob. DONE, E_MEMORY or E_ARGUMENT. */
int cadge_ucx_attach(struct cadge_ucx_rma *rma, struct cadge_blob_in *key, struct cadge_remote **remote_out);
void cadge_ucx_detach(struct cadge_remote *remote);
/* Detaches all memory of this channel. */
void cadge_ucx_detach_all(struct cadge_ucx_rma *rma);

/* DONE, QUEUED (then `done`), BUSY (too many under way) or negative, as put, get, fetch_add, quiet of the
 * contract. */
int cadge_ucx_put(struct cadge_ucx_rma *rma, const void *local, size_t bytes,
		  const struct cadge_remote *remote, uint64_t offset_bytes, void *tag, uint64_t token);
int cadge_ucx_get(struct cadge_ucx_rma *rma, void *local, size_t bytes, const struct cadge_remote *remote,
		  uint64_t offset_bytes, void *tag, uint64_t token);
int cadge_ucx_fetch_add(struct cadge_ucx_rma *rma, uint64_t addend, uint64_t *before_out,
			const struct cadge_remote *remote, uint64_t offset_bytes, void *tag, uint64_t token);
int cadge_ucx_compare_swap(struct cadge_ucx_rma *rma, uint64_t expected, uint64_t desired,
			   uint64_t *before_out, const struct cadge_remote *remote, uint64_t offset_bytes,
			   void *tag, uint64_t token);
int cadge_ucx_flush(struct cadge_ucx_rma *rma, void *tag, uint64_t token);
/* Sends a short active message, which is copied. Its `done` is only called on failure. */
#define CADGE_UCX_NOTE_BYTES 16u
int cadge_ucx_note(struct cadge_ucx_rma *rma, unsigned int id, const void *note, void *tag);

#endif
