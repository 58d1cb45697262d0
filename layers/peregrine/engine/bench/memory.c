/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What memory of pgr_alloc is worth: calls whose messages lie in it beside calls whose messages lie in memory of the program's
 * own. New: arguments and result are written before each call and read after it. Again: the arguments were written once, and
 * each call has them read; the result is empty.
 */
#include <math.h>
#include <stdio.h>

#include "bench.h"

static const size_t sizes[] = {16392, 32768, 65536, 262144, 1u << 20, 4u << 20, 16u << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
enum { NEW, NEW_IN_PLACE, AGAIN, AGAIN_IN_PLACE, KINDS };

static void print_ratio(const double *in_place, const double *copied, unsigned int rounds)
{
	double ratios[ROUNDS_MAX];
	struct summary ratio;

	for (unsigned int round = 0; round < rounds; round++)
		ratios[round] = copied[round] / in_place[round];
	ratio = sum_up(ratios, rounds);
	printf("  %11.0f %11.0f  %5.2f [%.2f, %.2f]", sum_up(copied, rounds).median,
	       sum_up(in_place, rounds).median, ratio.median, ratio.low, ratio.high);
}

void print_memory(unsigned int rounds, double tick_ns, FILE *keep)
{
	static double values[SIZES][KINDS][ROUNDS_MAX];
	char why[256];

	(void)keep;
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < SIZES; i++)
			for (unsigned int k = 0; k < KINDS; k++) {
				const unsigned int now = round % 2 ? KINDS - 1 - k : k;
				const struct reading one = {.name = "shm in memory",
							    .unit = "ns",
							    .server = touched_server,
							    .client = touched_client,
							    .wire = "shm",
							    .bytes = sizes[i],
							    .in_place = now % 2 == 1,
							    .again = now >= AGAIN};

				values[i][now][round] = take_reading(&one, tick_ns, why, sizeof(why));
				if (isnan(values[i][now][round])) {
					printf("not here: %s\n", why);
					return;
				}
			}
	printf("round trip, ns: written anew, own memory, pgr_alloc, times as fast; the same, sent again\n");
	for (size_t i = 0; i < SIZES; i++) {
		printf("%9zu B", sizes[i]);
		print_ratio(values[i][NEW_IN_PLACE], values[i][NEW], rounds);
		print_ratio(values[i][AGAIN_IN_PLACE], values[i][AGAIN], rounds);
		printf("\n");
	}
}
