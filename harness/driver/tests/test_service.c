/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does before it answers: the numbers that are drawn, and that it takes as long as they say. */
#include <inttypes.h>
#include <string.h>

#include "measure/service.h"
#include "tap.h"

#define CALLS   1000000
#define MEAN_NS 29900
enum { WORKED = 200 };

static struct drv_clock shared_clock;

static struct drv_service service_of(enum drv_service_work work, enum drv_service_spread spread,
				     uint64_t mean_ns, uint64_t bytes, uint64_t seed)
{
	struct drv_service service;
	struct drv_fail fail;

	if (drv_service_start(&service, work, spread, mean_ns, bytes, true, seed, &shared_clock, &fail))
		tap_ok(false, "memory for a server: %s", fail.text);
	return service;
}

static bool near(double value, double wanted, double tolerance)
{
	return value >= wanted - tolerance && value <= wanted + tolerance;
}

/* Mean and variance of the draws for numbers that follow one another, as those of a measurement do. */
static void check_spread(enum drv_service_spread spread, uint64_t seed, double deviation)
{
	const struct drv_service service = service_of(DRV_SERVICE_SPIN, spread, MEAN_NS, 0, seed);
	double sum = 0, squares = 0, mean, variance;
	uint64_t most = 0, in_a_row = 0;

	for (uint64_t number = 0; number < CALLS; number++) {
		const uint64_t drawn = drv_service_draw_ns(&service, number);

		sum += (double)drawn;
		squares += (double)drawn * (double)drawn;
		most = drawn > most ? drawn : most;
		in_a_row += drawn;
		if (number % 16 != 15)
			continue;
		if (in_a_row > drv_service_most_ns(&service, 16))
			tap_ok(false, "16 calls up to %" PRIu64 " take %" PRIu64 " ns", number, in_a_row);
		in_a_row = 0;
	}
	mean = sum / CALLS;
	variance = squares / CALLS - mean * mean;
	/* five standard errors; the variance's own is taken to be 5 % at most */
	tap_ok(near(mean, MEAN_NS, 5 * deviation / 1000 + 1),
	       "%s, seed %" PRIu64 ": the mean is %.1f of %d ns", drv_service_spread_words[spread], seed,
	       mean, MEAN_NS);
	tap_ok(near(variance, deviation * deviation, 0.05 * deviation * deviation + 1e-3),
	       "its variance is %.4g of %.4g", variance, deviation * deviation);
	tap_ok(most <= drv_service_most_ns(&service, 1), "no call takes longer than is expected: %" PRIu64,
	       most);
}

/* Short and long ones, and how many of each. */
static void check_bimodal(void)
{
	const struct drv_service service = service_of(DRV_SERVICE_SPIN, DRV_SERVICE_BIMODAL, MEAN_NS, 0, 3);
	uint64_t shorts = 0, longs = 0;

	for (uint64_t number = 0; number < CALLS; number++) {
		const uint64_t drawn = drv_service_draw_ns(&service, number);

		shorts += drawn == 20000;
		longs += drawn == 2000000;
	}
	tap_ok(shorts + longs == CALLS, "a bimodal call takes 20 us or 2 ms for a mean of 29.9 us");
	tap_ok(longs > 4647 && longs < 5353, "%" PRIu64 " of a million calls are long", longs);
}

static void check_repeats(void)
{
	/* of seed 7 and a mean of 1000 ns, on every machine */
	static const uint64_t known[] = {1349, 3250, 2671, 604};
	const struct drv_service one = service_of(DRV_SERVICE_SPIN, DRV_SERVICE_EXPONENTIAL, 1000, 0, 7),
				 other = service_of(DRV_SERVICE_SLEEP, DRV_SERVICE_EXPONENTIAL, 1000, 0, 7),
				 third = service_of(DRV_SERVICE_SPIN, DRV_SERVICE_EXPONENTIAL, 1000, 0, 8);
	bool same = true, differs = false;

	for (uint64_t i = 0; i < 10000; i++) {
		/* in whatever order */
		const uint64_t number = i * 7919 % 10000;

		same &= drv_service_draw_ns(&one, number) == drv_service_draw_ns(&other, number);
		differs |= drv_service_draw_ns(&one, number) != drv_service_draw_ns(&third, number);
	}
	tap_ok(same, "seed and number give the same draw at both ends");
	tap_ok(differs, "another seed gives others");
	same = true;
	for (uint64_t number = 0; number < sizeof(known) / sizeof(known[0]); number++)
		same &= drv_service_draw_ns(&one, number) == known[number];
	tap_ok(same, "on every machine: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
	       drv_service_draw_ns(&one, 0), drv_service_draw_ns(&one, 1), drv_service_draw_ns(&one, 2),
	       drv_service_draw_ns(&one, 3));
}

/* Works for some calls, and says how long they took at least, and as a rule. */
static void check_work(enum drv_service_work work, uint64_t mean_ns, uint64_t bytes, const char *what)
{
	struct drv_service service = service_of(work, DRV_SERVICE_EXPONENTIAL, mean_ns, bytes, 5);
	static struct drv_samples samples;
	uint64_t drawn = 0;
	bool before;

	memset(&samples, 0, sizeof(samples));
	drv_histogram_clear(&samples.histogram);
	service.samples = &samples;
	drv_service_do(&service, 1);
	before = samples.histogram.count == 0;
	drv_service_switch(&service, true);
	for (uint64_t number = 0; number < WORKED; number++) {
		drv_service_do(&service, number);
		drawn += drv_service_draw_ns(&service, number);
	}
	drv_service_switch(&service, false);
	drv_service_do(&service, 1);
	tap_ok(before && samples.histogram.count == WORKED, "%s: what is not measured is not recorded", what);
	tap_ok(samples.histogram.sum_ns >= drawn,
	       "%s: calls take what was drawn at least, %" PRIu64 " ns of %" PRIu64, what,
	       samples.histogram.sum_ns, drawn);
	if (bytes)
		/* once for number 1 before and after, and for 0 to 199; in every word */
		tap_ok(service.memory[0] == UINT64_C(0x0101010101010101) + 2 + 19900 &&
			       service.memory[service.words - 1] == service.memory[0],
		       "%s: every word is read and written once a call", what);
	drv_service_stop(&service);
	tap_ok(!service.memory, "%s: its memory is given back", what);
}

static void check_tally(void)
{
	const struct drv_service service = service_of(DRV_SERVICE_SPIN, DRV_SERVICE_FIXED, 1000, 0, 1);
	static struct drv_samples latency, overhead;
	static struct drv_histogram slowdown;
	struct drv_tally tally = {&service, &latency, &overhead, &slowdown};

	drv_histogram_clear(&latency.histogram);
	drv_histogram_clear(&overhead.histogram);
	drv_histogram_clear(&slowdown);
	drv_tally_done(&tally, 0, 1500);
	drv_tally_done(&tally, 1, 999); /* by another host's clock */
	tap_ok(latency.histogram.sum_ns == 2499 && overhead.histogram.sum_ns == 500 &&
		       overhead.histogram.count == 2,
	       "overhead is the round trip less what was drawn, and never below 0");
	tap_ok(slowdown.sum_ns == 1500 + 999, "slowdown is their ratio");
}

int main(void)
{
	drv_clock_start(&shared_clock, true);
	for (uint64_t seed = 1; seed <= 2; seed++) {
		check_spread(DRV_SERVICE_FIXED, seed, 0);
		check_spread(DRV_SERVICE_EXPONENTIAL, seed, MEAN_NS);
		/* sqrt(0.995 * 20000^2 + 0.005 * 2000000^2 - 29900^2) */
		check_spread(DRV_SERVICE_BIMODAL, seed, 139656);
	}
	check_bimodal();
	check_repeats();
	check_work(DRV_SERVICE_SPIN, 2000, 0, "spin");
	check_work(DRV_SERVICE_SPIN, 0, 0, "spin for no time");
	check_work(DRV_SERVICE_SLEEP, 2000, 0, "sleep");
	check_work(DRV_SERVICE_TOUCH, 0, 4097, "touch");
	check_tally();
	return tap_done();
}
