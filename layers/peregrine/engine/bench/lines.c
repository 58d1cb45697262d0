/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench.h: one line of memory bounced between two cores. */
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
