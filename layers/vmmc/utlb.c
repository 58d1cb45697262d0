/* SPDX-License-Identifier: BSD-3-Clause */
#include "vmmc/utlb.h"

#include <stdlib.h>

bool utlb_create(struct utlb *utlb, uint32_t pages)
{
	*utlb = (struct utlb){.entries = calloc(pages, sizeof(*utlb->entries)), .mask = pages - 1};
	return utlb->entries;
}

void utlb_destroy(struct utlb *utlb)
{
	free(utlb->entries);
}

void utlb_look_up(struct utlb *utlb, uintptr_t first, uintptr_t end)
{
	for (uintptr_t page = first; page < end; page++) {
		uintptr_t *entry = &utlb->entries[page & utlb->mask];

		if (*entry == page) {
			utlb->hits++;
			continue;
		}
		utlb->misses++;
		utlb->evictions += *entry != 0;
		*entry = page;
	}
	/* A range that is longer than the cache has evicted its own beginning. */
	utlb->first = end - first <= utlb->mask + 1 ? first : end - utlb->mask - 1;
	utlb->end = end;
}

void utlb_drop(struct utlb *utlb, const void *base, size_t bytes)
{
	const uintptr_t first = (uintptr_t)base / UTLB_PAGE_BYTES;
	const uintptr_t end = ((uintptr_t)base + bytes + UTLB_PAGE_BYTES - 1) / UTLB_PAGE_BYTES;

	for (uintptr_t i = 0; i <= utlb->mask; i++)
		if (utlb->entries[i] >= first && utlb->entries[i] < end)
			utlb->entries[i] = 0;
	utlb->first = utlb->end = 0;
}
