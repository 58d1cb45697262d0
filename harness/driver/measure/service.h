/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns whose server takes time before it answers: what it does then, how long, and what the
 * client makes of that. How long a call takes is drawn from the attempt's seed and the call's number, so that both ends
 * know it and a seed repeats it, in whatever order calls arrive. Numbers are keys of requests (see payload.h), which
 * have 16 bytes at least.
 */
#ifndef DRV_SERVICE_H
#define DRV_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "measure/record.h"

/* In the order of drv_service_work_words. */
enum drv_service_work {
	/* reads the clock until the time is over */
	DRV_SERVICE_SPIN,
	/* sleeps in the kernel, with a timer slack of 1 ns */
	DRV_SERVICE_SLEEP,
	/* reads and writes memory of its own; takes as long as that takes */
	DRV_SERVICE_TOUCH,
};
extern const char *const drv_service_work_words[];

/* In the order of drv_service_spread_words. */
enum drv_service_spread {
	DRV_SERVICE_FIXED,
	DRV_SERVICE_EXPONENTIAL,
	/* one call in 200, by chance, takes 100 times as long as the others */
	DRV_SERVICE_BIMODAL,
};
extern const char *const drv_service_spread_words[];

#define DRV_SERVICE_LONG_OF    200u
#define DRV_SERVICE_LONG_TIMES 100u

/* What one call of a pattern's server takes. */
struct drv_service {
	enum drv_service_work work;
	enum drv_service_spread spread;
	/* of all calls; 0 where memory is touched */
	uint64_t mean_ns;
	/* bimodal: of those that are not long */
	uint64_t short_ns;
	uint64_t seed;
	/* number of the first call that is measured; draws count from there */
	uint64_t first;
	const struct drv_clock *clock;
	/* touched: whole words of 8 bytes, owned; NULL where there are none */
	uint64_t *memory;
	uint64_t words;
	/* where the time goes that each call took; NULL: nowhere, and then several threads may share a fixed time that they spin */
	struct drv_samples *samples;
	/* calls take the time that is drawn, and it is recorded; else they take none, but memory is touched all the same */
	bool on;
};

/*
 * Gets ready for one attempt; both ends do, with the same values. `serves`: the end that does the work, with `bytes` to
 * be touched. 0, or -1 with DRV_MEMORY. To be ended with drv_service_stop, which may be called without.
 */
int drv_service_start(struct drv_service *service, enum drv_service_work work, enum drv_service_spread spread,
		      uint64_t mean_ns, uint64_t bytes, bool serves, uint64_t seed,
		      const struct drv_clock *clock, struct drv_fail *fail);
void drv_service_stop(struct drv_service *service);

/* From now on calls take what is drawn, or no longer do. To be called in the thread that serves. */
void drv_service_switch(struct drv_service *service, bool on);

/* For a thread that works for as long as the attempt lasts, whoever switches: it sleeps as exactly as drv_service_switch has it. */
void drv_service_settle_in(const struct drv_service *service);

/* Does the work of one call, and records how long it took where it is on. */
void drv_service_do(struct drv_service *service, uint64_t number);

/* How long so many calls that are served one after the other can take: more than that is not to be expected ever. */
uint64_t drv_service_most_ns(const struct drv_service *service, uint32_t calls);

/* How long one call is to take. A few ns, 20 where it is exponential. */
static inline uint64_t drv_service_draw_ns(const struct drv_service *service, uint64_t number)
{
	uint64_t state = drv_mix(service->seed, number - service->first);

	if (service->spread == DRV_SERVICE_FIXED)
		return service->mean_ns;
	if (service->spread == DRV_SERVICE_EXPONENTIAL)
		return drv_random_exponential(&state, service->mean_ns);
	return (unsigned __int128)drv_random(&state) * DRV_SERVICE_LONG_OF >> 64
		       ? service->short_ns
		       : service->short_ns * DRV_SERVICE_LONG_TIMES;
}

/* The client's account of calls whose time is known beforehand. */
struct drv_tally {
	const struct drv_service *service;
	/* round trips, and the same less what was drawn; both of a record */
	struct drv_samples *latency, *overhead;
	/* round trips in thousandths of what was drawn (of 1 ns, where that is less); owned by whoever made it */
	struct drv_histogram *slowdown;
};

/* The reply of a call is here. */
static inline void drv_tally_done(struct drv_tally *tally, uint64_t number, uint64_t latency_ns)
{
	const uint64_t drawn_ns = drv_service_draw_ns(tally->service, number);

	drv_sample(tally->latency, latency_ns);
	/* clocks of two hosts may differ by a few ns */
	drv_sample(tally->overhead, latency_ns > drawn_ns ? latency_ns - drawn_ns : 0);
	drv_histogram_record(tally->slowdown, latency_ns * 1000 / (drawn_ns ? drawn_ns : 1));
}

#endif
