/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open loop: when its calls are due, and what became of each. Instants are fixed beforehand: a Poisson process, or equal
 * gaps. Integers only, so that a seed gives the same instants on every machine; nothing is allocated, and nothing of the
 * measured system is looked at.
 *
 * A call that cannot be handed over when it is due (as many as may be are outstanding, the layer is busy, or the caller is
 * late itself) waits in a queue, which is nothing but the gap between the present and the instant of the next call; it has
 * no bound, and its time counts. All spans are in ticks.
 */
#ifndef DRV_ARRIVALS_H
#define DRV_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/clock.h"
#include "measure/record.h"

enum drv_arrival_process { DRV_ARRIVALS_POISSON, DRV_ARRIVALS_FIXED };

/* In that order, NULL at the end: the words of a pattern's choice. */
extern const char *const drv_arrivals_words[];

struct drv_arrivals {
	enum drv_arrival_process process;
	/* of the generator of random numbers */
	uint64_t state;
	/* the mean gap, and the latest instant since the beginning: ticks with 16 fractional bits */
	uint64_t gap, at;
};

/*
 * Begins at instant 0, with `calls` calls in `span_ticks` on average. Neither is 0; a span of up to 2^47 ticks (half a
 * day of a counter of 3 GHz) can be passed through.
 */
void drv_arrivals_start(struct drv_arrivals *arrivals, enum drv_arrival_process process, uint64_t seed,
			uint64_t calls, uint64_t span_ticks);

/* The next instant, in ticks since the beginning; never before the one that it gave last. About 20 ns. */
uint64_t drv_arrivals_next(struct drv_arrivals *arrivals);

struct drv_pace {
	struct drv_arrivals arrivals;
	/* of a record: from the instant of a call to its reply, from handing it over to that, from the instant to handing over */
	struct drv_samples *response, *service, *lag;
	/* calls are due from here on, before there */
	uint64_t begin, end;
	/* instant of the next call */
	uint64_t due;
	/* calls handed over: in the end, all that were due */
	uint64_t offered;
	/* of these, for which no slot was free when they were due, or the layer was busy; and whether that holds of the next */
	uint64_t held;
	bool holds;
};

/* So many calls in so long. */
struct drv_rate {
	uint64_t calls, span_ns;
};

/* Starts the arrivals, at a rate. */
static inline void drv_pace_start(struct drv_pace *pace, const struct drv_clock *clock,
				  enum drv_arrival_process process, uint64_t seed, struct drv_rate rate)
{
	drv_arrivals_start(&pace->arrivals, process, seed, rate.calls,
			   drv_clock_to_ticks(clock, rate.span_ns));
}

/* Begins now; arrivals were started, and there is where samples go. */
static inline void drv_pace_begin(struct drv_pace *pace, uint64_t now, uint64_t end)
{
	pace->begin = now;
	pace->end = end;
	pace->due = now + drv_arrivals_next(&pace->arrivals);
	pace->offered = pace->held = 0;
	pace->holds = false;
}

/* No further call is due. */
static inline bool drv_pace_over(const struct drv_pace *pace)
{
	return pace->due >= pace->end;
}

/* The next call was handed over. */
static inline void drv_pace_sent(struct drv_pace *pace)
{
	pace->offered++;
	pace->held += pace->holds;
	pace->holds = false;
	pace->due = pace->begin + drv_arrivals_next(&pace->arrivals);
}

/* The reply of a call is here. */
static inline void drv_pace_done(struct drv_pace *pace, const struct drv_clock *clock, uint64_t due,
				 uint64_t sent, uint64_t now)
{
	drv_sample(pace->response, drv_clock_to_ns(clock, now - due));
	drv_sample(pace->service, drv_clock_to_ns(clock, now - sent));
	drv_sample(pace->lag, drv_clock_to_ns(clock, sent - due));
}

/* Whether calls came late rather than slowly: by the tail of the lag, or since not all offered ones were done in time. */
static inline bool drv_pace_generator_bound(const struct drv_pace *pace, const struct drv_record *record,
					    uint64_t span_ns)
{
	const uint64_t lag_ns = drv_histogram_quantile(&pace->lag->histogram, 990000);
	const uint64_t response_ns = drv_histogram_quantile(&pace->response->histogram, 990000);

	return lag_ns * 10 > response_ns ||
	       (unsigned __int128)record->operations * span_ns * 100 <
		       (unsigned __int128)pace->offered * record->elapsed_ns * 99;
}

#endif
