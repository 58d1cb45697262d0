/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers for messages, used again and again: memory that is fresh from the kernel costs a page fault every 4
 * KiB, which is more than copying into it. Each belongs to a power of two; what is given back is kept, up to
 * a bound. Under a sanitizer nothing is kept, so that it sees what is used too far or too late.
 */
#include "engine.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD_BYTES     64u /* keeps what follows on a line of its own */
#define CLASS_LEAST    8u  /* 256 bytes */
#define FREE_BYTES_MAX (UINT64_C(64) << 20)

#if defined(__SANITIZE_ADDRESS__)
#define KEEP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP 0
#endif
#endif
#ifndef KEEP
#define KEEP 1
#endif

struct pgr_buffer {
	struct pgr_buffer *next;
	unsigned int class;
};

/*
 * It lies across two pages, the first of which ends with what a child shall not have. Before Linux 4.14 nothing is wiped, and a
 * fork is not seen.
 */
struct pgr *pgr_endpoint_take(void)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = aligned_alloc(page_bytes, 2 * page_bytes);

	_Static_assert(offsetof(struct pgr, wire) == PGR_WIPED_BYTES && sizeof(struct pgr) <= 4096,
		       "two pages");
	if (!pages)
		return NULL;
	memset(pages, 0, 2 * page_bytes);
	madvise(pages, page_bytes, MADV_WIPEONFORK);
	return (struct pgr *)(void *)(pages + page_bytes - PGR_WIPED_BYTES);
}

void pgr_endpoint_give(struct pgr *pgr)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = (uint8_t *)pgr + PGR_WIPED_BYTES - page_bytes;

	madvise(pages, page_bytes, MADV_KEEPONFORK); /* it will be others' memory */
	free(pages);
}

static unsigned int class_of(uint64_t bytes)
{
	unsigned int class = CLASS_LEAST;

	while (UINT64_C(1) << class < bytes)
		class ++;
	return class;
}

uint8_t *pgr_buffer_take(struct pgr *pgr, uint64_t bytes)
{
	const unsigned int class = class_of(bytes);
	struct pgr_buffer *buffer;

	if (class >= PGR_BUFFER_CLASSES)
		return NULL;
	buffer = pgr->buffers[class];
	if (buffer) {
		pgr->buffers[class] = buffer->next;
		pgr->buffers_bytes -= UINT64_C(1) << class;
	} else {
		buffer = malloc(HEAD_BYTES + (KEEP ? (size_t)1 << class : (size_t)bytes));
		if (!buffer)
			return NULL;
		buffer->class = class;
	}
	return (uint8_t *)buffer + HEAD_BYTES;
}

void pgr_buffer_give(struct pgr *pgr, uint8_t *at)
{
	struct pgr_buffer *buffer;

	if (!at)
		return;
	buffer = (struct pgr_buffer *)(void *)(at - HEAD_BYTES);
	if (!KEEP || pgr->buffers_bytes + (UINT64_C(1) << buffer->class) > FREE_BYTES_MAX) {
		free(buffer);
		return;
	}
	buffer->next = pgr->buffers[buffer->class];
	pgr->buffers[buffer->class] = buffer;
	pgr->buffers_bytes += UINT64_C(1) << buffer->class;
}

void pgr_buffers_free(struct pgr *pgr)
{
	for (unsigned int i = 0; i < PGR_BUFFER_CLASSES; i++)
		while (pgr->buffers[i]) {
			struct pgr_buffer *buffer = pgr->buffers[i];

			pgr->buffers[i] = buffer->next;
			free(buffer);
		}
}

uint8_t *pgr_marshal(struct pgr *pgr, const char *signature, const struct pgr_iov *iov, uint32_t count,
		     uint64_t bytes, struct pgr_outgoing *out)
{
	const bool words = (pgr->off & PGR_OFF_NO_CONVERSION) != 0;
	const uint64_t made = pgr_marshalled_bytes(pgr, signature, bytes);
	uint8_t *plain = pgr_buffer_take(pgr, bytes + 1);
	uint8_t *converted = words ? pgr_buffer_take(pgr, made + 8) : plain;

	if (!plain || !converted) {
		pgr_buffer_give(pgr, plain);
		if (words)
			pgr_buffer_give(pgr, converted);
		return NULL;
	}
	pgr_gather(iov, count, plain);
	if (words) {
		pgr_words_make(signature, plain, bytes, converted);
		pgr_buffer_give(pgr, plain);
	}
	out->iov[0] = (struct pgr_iov){converted, (size_t)made};
	out->count = 1;
	out->bytes = (uint32_t)made;
	return converted;
}

/* Not from malloc: what that has had before it writes all over with zeros. */
void *pgr_table_take(uint64_t mask)
{
	void *table = mmap(NULL, (mask + 1) * sizeof(void *), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return table == MAP_FAILED ? NULL : table;
}

void pgr_table_free(void *table, uint64_t mask)
{
	if (table)
		munmap(table, (mask + 1) * sizeof(void *));
}
