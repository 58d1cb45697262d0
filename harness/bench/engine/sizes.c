/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on shared memory beside the best bare ring, over sizes: arguments and result of so many bytes, touched. The bare
 * ring's parts are of one size for a message size: that whose median is the least.
 */
#include <math.h>
#include <stdio.h>

#include "floors.h"

#define PARTS_MAX 6u

static const size_t sizes[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1u << 20, 4u << 20, 16u << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const size_t parts[] = {2048, 4096, 8192, 16384, 32768};

/* The engine first, then the rings. Returns how many. */
static unsigned int readings_of(size_t bytes, struct reading *out)
{
	unsigned int count = 0;

	out[count++] = (struct reading){.name = "shm touched",
					.unit = "ns",
					.server = touched_server,
					.client = touched_client,
					.wire = "shm",
					.bytes = bytes};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const bool whole = bytes <= parts[i];

		out[count++] = (struct reading){.name = "bare ring",
						.unit = "ns",
						.server = rings_server,
						.client = rings_client,
						.bytes = bytes,
						.part = whole ? bytes : parts[i]};
		if (whole)
			break;
	}
	return count;
}

static void print_size(size_t bytes, double values[][ROUNDS_MAX], const struct reading *of,
		       unsigned int count, unsigned int rounds, FILE *keep)
{
	const double aim = bytes <= 1024 ? 1.10 : 1.15;
	double ratios[ROUNDS_MAX];
	struct summary engine = sum_up(values[0], rounds), ring, ratio;
	unsigned int best = 1;

	for (unsigned int i = 2; i < count; i++)
		if (sum_up(values[i], rounds).median < sum_up(values[best], rounds).median)
			best = i;
	ring = sum_up(values[best], rounds);
	for (unsigned int round = 0; round < rounds; round++)
		ratios[round] = values[0][round] / values[best][round];
	ratio = sum_up(ratios, rounds);
	printf("%9zu B  %12.0f %12.0f  parts of %6zu  %6.3f [%.3f, %.3f]  aim %.2f%s\n", bytes, engine.median,
	       ring.median, of[best].part, ratio.median, ratio.low, ratio.high, aim,
	       ratio.median <= aim ? "" : "  missed");
	if (!keep)
		return;
	fprintf(keep, "%s\n {\"bytes\": %zu, \"part\": %zu", bytes == sizes[0] ? "" : ",", bytes,
		of[best].part);
	print_values(keep, "engine", values[0], rounds);
	print_values(keep, "ring", values[best], rounds);
	fprintf(keep, "}");
}

void print_sizes(unsigned int rounds, double tick_ns, FILE *keep)
{
	static double values[SIZES][PARTS_MAX][ROUNDS_MAX];
	struct reading of[SIZES][PARTS_MAX];
	unsigned int counts[SIZES];
	char why[256];

	for (size_t i = 0; i < SIZES; i++)
		counts[i] = readings_of(sizes[i], of[i]);
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < SIZES; i++)
			for (unsigned int k = 0; k < counts[i]; k++) {
				/* now the engine first, now the rings */
				const unsigned int now = round % 2 ? counts[i] - 1 - k : k;

				values[i][now][round] = take_reading(&of[i][now], tick_ns, why, sizeof(why));
				if (isnan(values[i][now][round])) {
					printf("not here: %s\n", why);
					return;
				}
			}
	printf("round trip, ns: %11s %12s %34s\n", "engine", "bare ring", "engine / ring");
	if (keep)
		fprintf(keep, "{\"schema\": \"pgr.sizes/1\", \"rounds\": %u, \"sizes\": [", rounds);
	for (size_t i = 0; i < SIZES; i++)
		print_size(sizes[i], values[i], of[i], counts[i], rounds, keep);
	if (keep)
		fprintf(keep, "\n]}\n");
}
