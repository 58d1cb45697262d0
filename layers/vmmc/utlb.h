/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VMMC-2's user-managed translation cache: which pages of this process are ready to be sent from. Direct-mapped by page
 * number. Counts in pages. On today's substrates nothing is pinned for an entry, so that only the counting costs.
 */
#ifndef CADGE_VMMC_UTLB_H
#define CADGE_VMMC_UTLB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTLB_PAGE_BYTES 4096u

struct utlb {
	uintptr_t first, end; /* pages of the range that was looked up last, all of which are in */
	uintptr_t *entries;   /* page numbers; 0: empty */
	uintptr_t mask;
	uint64_t hits, misses, evictions;
};

/* `pages`: a power of two. False: out of memory. */
bool utlb_create(struct utlb *utlb, uint32_t pages);
void utlb_destroy(struct utlb *utlb);
/* Pages of memory that goes away. */
void utlb_drop(struct utlb *utlb, const void *base, size_t bytes);
void utlb_look_up(struct utlb *utlb, uintptr_t first, uintptr_t end);

/* Translates the pages of [base, base + bytes), bytes > 0. */
static inline void utlb_translate(struct utlb *utlb, const void *base, size_t bytes)
{
	const uintptr_t first = (uintptr_t)base / UTLB_PAGE_BYTES;
	const uintptr_t end = ((uintptr_t)base + bytes - 1) / UTLB_PAGE_BYTES + 1;

	if (first >= utlb->first && end <= utlb->end)
		utlb->hits += end - first;
	else
		utlb_look_up(utlb, first, end);
}

#endif
