/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one endpoint measures in one attempt: values of the pattern's quantities, and the totals that every pattern
 * has. All raw: integers in the unit of the name, no means, no quantiles.
 */
#ifndef DRV_RECORD_H
#define DRV_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "measure/histogram.h"
#include "measure/warmup.h"

#define DRV_FIRST_MAX  1000
#define DRV_RECORD_MAX 24
#define DRV_RECORD_HOT static inline __attribute__((always_inline))

enum drv_quantity_kind {
	/* samples in ns */
	DRV_HISTOGRAM,
	/* an amount and the time it took */
	DRV_RATE,
	/* a whole number an attempt */
	DRV_COUNT,
	/* a real number an attempt */
	DRV_FIT,
};

struct drv_quantity {
	const char *name;
	enum drv_quantity_kind kind;
};

/* Samples of one histogram, and the first of them in time order. */
struct drv_samples {
	struct drv_histogram histogram;
	uint64_t first_ns[DRV_FIRST_MAX];
	uint32_t first_count;
};

struct drv_value {
	/* false: the quantity does not exist for this attempt, and is left out of the result */
	bool there;
	/* histogram; owned */
	struct drv_samples *samples;
	/* rate: amount and span; count: amount */
	uint64_t amount, elapsed_ns;
	/* fit */
	double real;
};

struct drv_record {
	/* of the pattern; ends with a NULL name */
	const struct drv_quantity *quantities;
	struct drv_value values[DRV_RECORD_MAX];
	/* of the measurement; bytes are those of payload, both ways */
	uint64_t elapsed_ns, operations, bytes, lost, late;
	uint64_t warmup_operations;
	bool warmup_steady;
};

/* An empty record of these quantities. The caller ends it with drv_record_free. */
void drv_record_start(struct drv_record *record, const struct drv_quantity *quantities);
void drv_record_free(struct drv_record *record);

/*
 * An empty histogram for quantity number `index`, owned by the record; NULL with DRV_MEMORY. To be called in
 * `prepare`: its pages are touched.
 */
struct drv_samples *drv_record_samples(struct drv_record *record, unsigned index, struct drv_fail *fail);

/* The same for the first quantity that is a histogram. */
struct drv_samples *drv_record_first_samples(struct drv_record *record, struct drv_fail *fail);

/* Sets the value of a quantity of the other kinds. */
void drv_record_rate(struct drv_record *record, unsigned index, uint64_t amount, uint64_t elapsed_ns);
void drv_record_count(struct drv_record *record, unsigned index, uint64_t amount);
void drv_record_fit(struct drv_record *record, unsigned index, double value);

/* Takes over what a warm-up found. */
void drv_record_warmup(struct drv_record *record, const struct drv_warmup *warmup);

/* Adds one sample. A few ns. */
DRV_RECORD_HOT void drv_sample(struct drv_samples *samples, uint64_t span_ns)
{
	drv_histogram_record(&samples->histogram, span_ns);
	if (__builtin_expect(samples->first_count < DRV_FIRST_MAX, 0))
		samples->first_ns[samples->first_count++] = span_ns;
}

/* Adds what another thread sampled. */
void drv_samples_add(struct drv_samples *into, const struct drv_samples *from);

/*
 * Adds what another thread of the same endpoint measured: samples, amounts and counts add up, the longest span counts,
 * and of real numbers the mean by operations. With `warmup_only` only what the warm-up found.
 */
void drv_record_add(struct drv_record *into, const struct drv_record *from, bool warmup_only);

/* How many samples lie above the range of the histograms. */
uint64_t drv_record_overflows(const struct drv_record *record);

/*
 * {"latency": [{"endpoint": 0, ...}], ...} with the values that are there, as in the result. New reference, or NULL
 * when memory is short.
 */
json_t *drv_record_json(const struct drv_record *record, int endpoint);

/* Adds the entries of such an object that another endpoint sent to `into`. 0, or -1 when it makes no sense. */
int drv_record_merge(json_t *into, const json_t *from, const struct drv_quantity *quantities, int endpoint);

#endif
