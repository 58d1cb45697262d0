/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/popularity.h"

#include <math.h>
#include <stdlib.h>

#include "traffic/payload.h"

#define TWO_TO_64 18446744073709551616.0

int press_popularity_start(struct press_popularity *popularity, uint32_t count, double alpha, uint64_t seed)
{
	double all = 0, sum = 0;

	*popularity = (struct press_popularity){.count = count, .state = seed};
	popularity->below = calloc(count, sizeof(*popularity->below));
	if (!popularity->below)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		all += pow(i + 1.0, -alpha);
	for (uint32_t i = 0; i < count; i++) {
		const double share = (sum += pow(i + 1.0, -alpha)) / all * TWO_TO_64;

		popularity->below[i] = share < TWO_TO_64 ? (uint64_t)share : UINT64_MAX;
	}
	popularity->below[count - 1] = UINT64_MAX;
	return 0;
}

void press_popularity_free(struct press_popularity *popularity)
{
	free(popularity->below);
	popularity->below = NULL;
}

uint32_t press_popularity_next(struct press_popularity *popularity)
{
	const uint64_t drawn = drv_mix(popularity->state, 1);
	uint32_t first = 0, last = popularity->count - 1;

	popularity->state += UINT64_C(0x9e3779b97f4a7c15);
	while (first < last) {
		const uint32_t middle = first + (last - first) / 2;

		if (drawn <= popularity->below[middle])
			last = middle;
		else
			first = middle + 1;
	}
	return first;
}
