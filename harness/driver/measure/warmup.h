/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a measurement is warm: operations are grouped into windows of at least 16 operations and 100 us, or of an eighth
 * of the cap. It ends when the medians of the last 5 windows lie within 3 % of each other, or when the cap of time is
 * reached. At the cap it counts as steady where the medians, of 5 to 16 windows, neither rise nor fall: windows may
 * scatter by more than 3 % for ever. Trend: Mann, Nonparametric tests against trend, Econometrica 13 (1945), two-sided
 * at 5 %, by the normal approximation with continuity correction.
 */
#ifndef DRV_WARMUP_H
#define DRV_WARMUP_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/clock.h"

#define DRV_WARMUP_RULE                                                                                      \
	"5 medians of windows (>= 16 operations and 100 us, or an eighth of the limit) within 3 %; at the "  \
	"limit, no trend (Mann, 5 %) in the last 16"
#define DRV_WARMUP_WINDOWS 5
#define DRV_WARMUP_KEPT    16  /* windows that a trend is looked for in: the latest */
#define DRV_WARMUP_HELD    128 /* values of a window that its median is taken from: the latest */

struct drv_warmup {
	uint64_t window_ticks, window_most_ticks, cap_ticks; /* spans */
	uint64_t least_ticks;                                /* it is not over before, steady or not */
	uint64_t most_operations; /* it is over after so many; UINT64_MAX: only when steady, or at the cap */
	uint64_t started, window_started; /* clock */
	uint32_t in_window;               /* operations so far */
	uint64_t values[DRV_WARMUP_HELD];
	uint64_t medians[DRV_WARMUP_KEPT];
	uint32_t windows;
	uint64_t operations;
	bool steady, over;
	uint64_t median; /* of the latest whole window, in ticks; of the values so far when there is none */
};

/* Begins at `now`. The cap is max(10 ms, 20 % of the point's duration), given in ticks. */
void drv_warmup_start(struct drv_warmup *warmup, uint64_t now, uint64_t window_ticks, uint64_t cap_ticks);

/* Begins now, with windows of 100 us. */
void drv_warmup_begin(struct drv_warmup *warmup, const struct drv_clock *clock, uint64_t cap_ns);

/* Adds one operation that took `span` ticks and ended at `now`. Returns true when the warm-up is over. */
bool drv_warmup_add(struct drv_warmup *warmup, uint64_t now, uint64_t span);

/* Notes that time passed without an operation; true when the cap is reached. */
bool drv_warmup_expired(struct drv_warmup *warmup, uint64_t now);

/* What begins from now on in this thread lasts so long at least, steady or not; 0: as long as it takes. */
void drv_warmup_last(uint64_t least_ticks);

/* What begins from now on in this thread ends after so many operations, whatever the time; UINT64_MAX: as usual. */
void drv_warmup_count(uint64_t operations);

/* The cap in ns for a point of this duration. */
static inline uint64_t drv_warmup_cap_ns(uint64_t duration_ns)
{
	return duration_ns / 5 > UINT64_C(10000000) ? duration_ns / 5 : UINT64_C(10000000);
}

/*
 * When an operation over something unreliable is lost: after 100 times what is usual, within reason. What is lost is
 * counted, not timed; what comes after all is late: counted, dropped. One rule for layers and floors.
 */
#define DRV_LOSS_MAX_NS UINT64_C(200000000)
/* longer than the scheduler keeps a process waiting */
#define DRV_LOSS_MIN_NS UINT64_C(20000000)

/* After a loss of messages without identity nothing more is sent until so long nothing came in, at most so long. */
#define DRV_QUIET_NS     UINT64_C(2000000)
#define DRV_QUIET_MAX_NS UINT64_C(20000000)

/* The deadline of an operation once a warm-up found the usual time; `median_ns` is 0 when it found none. */
static inline uint64_t drv_loss_deadline_ns(uint64_t median_ns)
{
	if (!median_ns || median_ns > DRV_LOSS_MAX_NS / 100)
		return DRV_LOSS_MAX_NS;
	return median_ns * 100 < DRV_LOSS_MIN_NS ? DRV_LOSS_MIN_NS : median_ns * 100;
}

/* The same in ticks, of a warm-up that is over. */
uint64_t drv_warmup_patience(const struct drv_warmup *warmup, const struct drv_clock *clock);

#endif
