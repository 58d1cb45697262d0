/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's one-sided operations with a quiet that means what the contract says: write, read,
 * fetch-and-add, and "all earlier writes are visible to the target's CPU".
 *
 * A write's completion means that its buffer may be reused. Quiet waits for the completions of all earlier
 * writes and for a read of the peer's memory that was issued after them. Over tcp;ofi_rxm the read travels
 * behind the writes in one byte stream. Within shm it is queued behind them, unless the library copies
 * straight into the peer's memory (process_vm_writev): then a write is visible when the call returns, and
 * quiet needs no read (`direct`).
 *
 * Everything runs on the one thread of its context. Nothing is allocated after create.
 */
#ifndef CADGE_WIRE_OFI_RMA_H
#define CADGE_WIRE_OFI_RMA_H

#include "wire/ofi/ofi.h"

#include <sys/types.h>

enum { CADGE_OFI_RMA_DEPTH_MAX = 4096 };
#define CADGE_OFI_RMA_BYTES_MAX (UINT64_C(1) << 30) /* longest single operation */

struct cadge_ofi_op;
struct cadge_ofi_link;

/* Remote memory as libfabric names it: a base address (0 where the provider counts from 0) and a key. */
struct cadge_ofi_far {
	uint64_t addr, key;
};

/*
 * Called from cadge_ofi_rma_completed for each finished operation: `link` and `token` as given, `owner` as
 * given (NULL for the caller's own). Returns the number of events it delivered. May start operations.
 */
typedef int (*cadge_ofi_done_fn)(void *arg, struct cadge_ofi_link *link, uint64_t token, void *owner,
				 int code);

struct cadge_ofi_rma {
	struct cadge_ofi *ofi;
	cadge_ofi_done_fn done;
	void *arg;
	bool direct;  /* shm copies straight into the peer; known after the first link */
	bool fetches; /* the provider has a 64-bit fetch-and-add of its own */
	bool swaps;   /* and a compare-and-swap */
	size_t inject_bytes;
	uint64_t next_key;
	struct cadge_ofi_op *ops, *free_op;
	size_t ops_count, reads; /* reads: in flight */
	uint64_t writes_injected, writes_queued, flush_reads, busy_operations;
};

/* What is known of one peer. Zeroed by the adapter, filled by cadge_ofi_link_open. */
struct cadge_ofi_link {
	struct cadge_ofi_rma *rma;
	fi_addr_t addr;
	struct cadge_ofi_far word; /* 8 bytes of the peer that quiet reads */
	void *landing;             /* 8 bytes of ours where they go */
	uint64_t serial;
	uint32_t writes;  /* in flight */
	uint32_t flushes; /* reads of quiets, in flight */
	bool unflushed;   /* writes were accepted after the last quiet */
	struct cadge_ofi_op *quiets;
};

/* Operations for an opened endpoint: at most `operations` in flight. DONE or E_MEMORY. */
int cadge_ofi_rma_create(struct cadge_ofi_rma *rma, struct cadge_ofi *ofi, size_t operations,
			 cadge_ofi_done_fn done, void *arg);
/*
 * Before the endpoint is closed: takes completions, without telling anybody, until no read is in flight or
 * 200 ms have passed. In libfabric 1.17 closing ofi_rxm while the answer to a read is coming in ends in a
 * null pointer.
 */
void cadge_ofi_rma_drain(struct cadge_ofi_rma *rma);
/* After the endpoint was closed. Legal on a zeroed struct. */
void cadge_ofi_rma_destroy(struct cadge_ofi_rma *rma);

/* Lets peers do with [base, base + bytes) what `rights` (CADGE_MAY_*) allow. DONE or a negative code. */
int cadge_ofi_expose(struct cadge_ofi_rma *rma, void *base, size_t bytes, uint32_t rights,
		     struct fid_mr **mr_out, struct cadge_ofi_far *far_out);
void cadge_ofi_unexpose(struct fid_mr *mr);

/*
 * Begins to use a peer. `pid` and `nonce` say who it is and what stands in its word: where this process can
 * read that by process_vm_readv, so can the library, and `direct` stays true. `landing` is 8 bytes of ours.
 */
void cadge_ofi_link_open(struct cadge_ofi_link *link, struct cadge_ofi_rma *rma, fi_addr_t addr,
			 struct cadge_ofi_far word, pid_t pid, uint64_t nonce, void *landing);
/* Forgets it; no `done` of its operations follows. */
void cadge_ofi_link_close(struct cadge_ofi_link *link);

/* All return DONE, QUEUED (`done` follows), BUSY or E_DOWN. The atomic ones never DONE. */
int cadge_ofi_write(struct cadge_ofi_link *link, const void *local, size_t bytes, struct cadge_ofi_far far,
		    uint64_t token, void *owner);
int cadge_ofi_read(struct cadge_ofi_link *link, void *local, size_t bytes, struct cadge_ofi_far far,
		   uint64_t token);
int cadge_ofi_fetch_add(struct cadge_ofi_link *link, uint64_t addend, uint64_t *before_out,
			struct cadge_ofi_far far, uint64_t token);
int cadge_ofi_compare_swap(struct cadge_ofi_link *link, uint64_t expected, uint64_t desired,
			   uint64_t *before_out, struct cadge_ofi_far far, uint64_t token);
int cadge_ofi_quiet(struct cadge_ofi_link *link, uint64_t token, void *owner);
/* No later write becomes visible before an earlier one: DONE or BUSY. */
int cadge_ofi_fence(const struct cadge_ofi_link *link);

/* True where this op_context of a completion is one of ours. */
bool cadge_ofi_rma_owns(const struct cadge_ofi_rma *rma, const void *op_context);
/* The link of an operation in flight; NULL after it was closed. */
struct cadge_ofi_link *cadge_ofi_rma_link(const void *op_context);
/* The library finished an operation. Returns the events that `done` delivered. */
int cadge_ofi_rma_completed(struct cadge_ofi_rma *rma, void *op_context, int code);

void cadge_ofi_rma_counters(const struct cadge_ofi_rma *rma,
			    void (*each)(void *arg, const char *name, uint64_t value), void *arg);

#endif
