/* SPDX-License-Identifier: BSD-3-Clause */
/* One exposed region and its remote view, for the one-sided tests. */
#ifndef CADGE_RMA_H
#define CADGE_RMA_H

#include "conformance.h"

#define RMA_CAPS (CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP)

struct rma {
	struct endpoint *ep;
	unsigned char *base;  /* the answerer's exposed memory */
	unsigned char *local; /* the starter's buffer, as large */
	size_t bytes;
	uint64_t peer_base;          /* where the region lies in the answerer */
	bool can_peek;               /* both: rma_peek works here */
	struct cadge_region *region; /* answerer */
	struct cadge_remote *remote; /* starter */
};

/* The answerer exposes `bytes` of zeroes, the starter attaches. */
int rma_open(struct rma *rma, struct endpoint *ep, size_t bytes);
int rma_close(struct rma *rma);
/* Each begins an operation, polling while BUSY; on return it may be outstanding (endpoint_drain). */
int rma_put(struct rma *rma, const void *local, size_t bytes, uint64_t offset_bytes);
int rma_put_with(struct rma *rma, const void *local, size_t bytes, uint64_t offset_bytes, uint32_t flags);
int rma_get(struct rma *rma, void *local, size_t bytes, uint64_t offset_bytes);
int rma_fetch_add(struct rma *rma, uint64_t addend, uint64_t *before_out, uint64_t offset_bytes);
int rma_compare_swap(struct rma *rma, uint64_t expected, uint64_t desired, uint64_t *before_out,
		     uint64_t offset_bytes);
int rma_quiet(struct rma *rma);
/* One more, behind those that are under way. 1: DONE, so that all puts are visible; 0: it is not, or was not accepted. */
int rma_quiet_again(struct rma *rma);
/*
 * Reads the answerer's memory from outside, whatever it does. -1: not permitted here. Never fails the test.
 */
int rma_peek(const struct rma *rma, uint64_t offset_bytes, void *out, size_t bytes);

#endif
