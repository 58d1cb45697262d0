/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench.h: memory between two cores. */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"

/* Two lines a round trip, one each way; every pair of the ring in turn. */
void lines_server(void)
{
	shared->ready = 1;
	for (uint64_t i = 1; i <= CALLS + WARM_UP; i++) {
		struct line *pair = &shared->lines[i % LINES * 2];

		while (atomic_load_explicit(&pair[0].word, memory_order_acquire) != i)
			if (reading->pause)
				_mm_pause();
		atomic_store_explicit(&pair[1].word, i, memory_order_release);
	}
}

double lines_client(void)
{
	const bool pause = reading->pause;

	for (uint64_t i = 1; i <= CALLS + WARM_UP; i++) {
		struct line *pair = &shared->lines[i % LINES * 2];
		const uint64_t begin = __rdtsc();

		atomic_store_explicit(&pair[0].word, i, memory_order_release);
		while (atomic_load_explicit(&pair[1].word, memory_order_acquire) != i)
			if (pause)
				_mm_pause();
		if (i > WARM_UP)
			samples[i - WARM_UP - 1] = (uint32_t)(__rdtsc() - begin);
	}
	return p50(CALLS);
}

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
