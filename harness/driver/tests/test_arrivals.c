/* SPDX-License-Identifier: BSD-3-Clause */
/* The arrival process: mean, variance and shape of its gaps, that none depends on the one before, and determinism. */
#include <stdbool.h>
#include <string.h>

#include "measure/arrivals.h"
#include "tap.h"

#define CALLS 1000000
enum { BINS = 4 };

struct gaps {
	double mean, variance;
	/* of each gap with the next */
	double correlation;
	/* gaps shorter than ln 2, 1, 2 and 4 times the mean, of one */
	double below[BINS];
	uint64_t last;
};

static const double edges[BINS] = {0.693147180559945, 1, 2, 4};

/* Gaps of a mean of 1000 ticks. */
static struct gaps gaps_of(enum drv_arrival_process process, uint64_t seed)
{
	struct drv_arrivals arrivals;
	struct gaps found = {0};
	double sum = 0, squares = 0, products = 0, before = 0;

	drv_arrivals_start(&arrivals, process, seed, 1000, 1000000);
	for (int i = 0; i < CALLS; i++) {
		const uint64_t at = drv_arrivals_next(&arrivals);
		const double gap = (double)(at - found.last);

		sum += gap;
		squares += gap * gap;
		products += gap * before;
		for (int bin = 0; bin < BINS; bin++)
			found.below[bin] += gap < edges[bin] * 1000;
		before = gap;
		found.last = at;
	}
	found.mean = sum / CALLS;
	found.variance = squares / CALLS - found.mean * found.mean;
	found.correlation =
		(products / CALLS - found.mean * found.mean) / (found.variance > 0 ? found.variance : 1);
	for (int bin = 0; bin < BINS; bin++)
		found.below[bin] /= CALLS;
	return found;
}

static bool near(double value, double wanted, double tolerance)
{
	return value >= wanted - tolerance && value <= wanted + tolerance;
}

static void check_poisson(uint64_t seed)
{
	/* 1 - e^-x */
	static const double wanted[BINS] = {0.5, 0.632120558828558, 0.864664716763387, 0.981684361111266};
	const struct gaps found = gaps_of(DRV_ARRIVALS_POISSON, seed);
	bool shape = true;

	/* five standard errors of a million gaps */
	tap_ok(near(found.mean, 1000, 5), "seed %llu: the mean gap is %.2f of 1000", (unsigned long long)seed,
	       found.mean);
	tap_ok(near(found.variance, 1e6, 15e3), "its variance is %.0f of 1000 squared", found.variance);
	tap_ok(near(found.correlation, 0, 0.005), "gaps do not depend on the one before: %.4f",
	       found.correlation);
	for (int bin = 0; bin < BINS; bin++)
		shape &= near(found.below[bin], wanted[bin], 0.0026);
	tap_ok(shape, "gaps are exponential: %.4f, %.4f, %.4f, %.4f", found.below[0], found.below[1],
	       found.below[2], found.below[3]);
}

int main(void)
{
	static const uint64_t known[] = {79, 134, 200, 238}; /* of seed 7 */
	const struct gaps fixed = gaps_of(DRV_ARRIVALS_FIXED, 1);
	struct drv_arrivals one, other, third;
	bool same = true, ordered = true, differs = false;
	uint64_t last = 0;

	check_poisson(1);
	check_poisson(UINT64_C(0xfeedfacecafebeef));
	tap_ok(fixed.mean == 1000 && fixed.variance == 0, "fixed gaps are all the same");
	drv_arrivals_start(&one, DRV_ARRIVALS_FIXED, 1, 3, 10);
	for (int i = 0; i < 3000000; i++)
		last = drv_arrivals_next(&one);
	tap_ok(last >= 9999950 && last <= 10000000, "gaps of 3 1/3 ticks do not drift: %llu",
	       (unsigned long long)last);
	drv_arrivals_start(&one, DRV_ARRIVALS_POISSON, 7, 1, 50);
	drv_arrivals_start(&other, DRV_ARRIVALS_POISSON, 7, 1, 50);
	drv_arrivals_start(&third, DRV_ARRIVALS_POISSON, 8, 1, 50);
	last = 0;
	for (int i = 0; i < 10000; i++) {
		const uint64_t at = drv_arrivals_next(&one);

		same &= at == drv_arrivals_next(&other);
		differs |= at != drv_arrivals_next(&third);
		ordered &= at >= last;
		last = at;
	}
	tap_ok(same, "the same seed gives the same instants");
	tap_ok(differs, "another seed gives others");
	tap_ok(ordered, "instants follow one another");
	drv_arrivals_start(&one, DRV_ARRIVALS_POISSON, 7, 1, 50);
	same = true;
	for (int i = 0; i < 4; i++)
		same &= drv_arrivals_next(&one) == known[i];
	tap_ok(same, "on every machine");
	tap_ok(strcmp(drv_arrivals_words[DRV_ARRIVALS_POISSON], "poisson") == 0 &&
		       strcmp(drv_arrivals_words[DRV_ARRIVALS_FIXED], "fixed") == 0 &&
		       !drv_arrivals_words[DRV_ARRIVALS_FIXED + 1],
	       "words stand in the order of the processes");
	return tap_done();
}
