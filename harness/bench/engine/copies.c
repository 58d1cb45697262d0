/* SPDX-License-Identifier: BSD-3-Clause */
/* See floors.h: memory that one core has written, and another one reads. */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "floors.h"

/* One copy of a source that is dirty in the other core's cache; bytes a ns. */
void copy_server(void)
{
	shared->server = getpid();
	shared->ready = 1;
	for (unsigned int i = 1; i <= BIG_ROUNDS; i++) {
		for (size_t at = 0; at < BIG_BYTES; at += 64)
			shared->big[at] = (uint8_t)i;
		atomic_store(&shared->lines[0].word, i);
		while (atomic_load(&shared->lines[1].word) != i)
			;
	}
}

static void copy_once(uint8_t *to)
{
	const struct iovec here = {to, BIG_BYTES}, there = {shared->big, BIG_BYTES};

	if (!reading->pull)
		memcpy(to, shared->big, BIG_BYTES);
	else if (process_vm_readv(shared->server, &here, 1, &there, 1, 0) != (ssize_t)BIG_BYTES)
		exit(errno == EPERM ? PAIR_SKIPPED : PAIR_FAILED);
}

double copy_client(void)
{
	uint8_t *to = malloc(BIG_BYTES);

	memset(to, 1, BIG_BYTES);
	for (unsigned int i = 1; i <= BIG_ROUNDS; i++) {
		uint64_t begin_ns;

		while (atomic_load(&shared->lines[0].word) != i)
			;
		begin_ns = now_ns();
		copy_once(to);
		samples[i - 1] = (uint32_t)(now_ns() - begin_ns);
		atomic_store(&shared->lines[1].word, i);
	}
	return BIG_BYTES / p50(BIG_ROUNDS);
}
