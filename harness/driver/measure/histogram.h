/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of nanoseconds, 1 ns to 100 s, 3 significant digits: the log-linear layout of HdrHistogram, so
 * that every tool that reads HdrHistogram's V2 format reads ours. Integers only; two histograms merge without
 * loss. Values above the range are counted as overflow, kept at the top of the range, and make the caller's
 * check fail.
 */
#ifndef DRV_HISTOGRAM_H
#define DRV_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define DRV_HISTOGRAM_LOWEST  1u
#define DRV_HISTOGRAM_HIGHEST UINT64_C(100000000000)
#define DRV_HISTOGRAM_DIGITS  3
/* 2 * 10^3 needs 11 bits: 2,048 sub-buckets, the upper half of each is new */
#define DRV_HISTOGRAM_HALF_BITS 10
#define DRV_HISTOGRAM_BUCKETS   27 /* 2,048 << 26 is the first limit above 10^11 */
#define DRV_HISTOGRAM_CELLS     ((DRV_HISTOGRAM_BUCKETS + 1) << DRV_HISTOGRAM_HALF_BITS)

struct drv_histogram {
	uint64_t count, sum_ns, min_ns, max_ns; /* of the exact values; min_ns is UINT64_MAX while empty */
	uint64_t overflows;
	unsigned __int128 sum_sq_ns2;
	uint64_t cells[DRV_HISTOGRAM_CELLS];
};

/* Empties a histogram (about 230 KiB: also touches its pages). */
void drv_histogram_clear(struct drv_histogram *histogram);

/* The cell of a value within the range. */
static inline uint32_t drv_histogram_cell(uint64_t value)
{
	const uint64_t sub_mask = (UINT64_C(2) << DRV_HISTOGRAM_HALF_BITS) - 1;
	const uint32_t bucket = 63u - (uint32_t)__builtin_clzll(value | sub_mask) - DRV_HISTOGRAM_HALF_BITS;

	return (bucket << DRV_HISTOGRAM_HALF_BITS) + (uint32_t)(value >> bucket);
}

/* Adds one value. A few ns, no branch that is hard to predict. */
static inline void drv_histogram_record(struct drv_histogram *histogram, uint64_t value_ns)
{
	uint64_t clamped = value_ns;

	if (__builtin_expect(clamped > DRV_HISTOGRAM_HIGHEST, 0)) {
		clamped = DRV_HISTOGRAM_HIGHEST;
		histogram->overflows++;
	}
	histogram->count++;
	histogram->sum_ns += value_ns;
	histogram->sum_sq_ns2 += (unsigned __int128)value_ns * value_ns;
	if (value_ns < histogram->min_ns)
		histogram->min_ns = value_ns;
	if (value_ns > histogram->max_ns)
		histogram->max_ns = value_ns;
	histogram->cells[drv_histogram_cell(clamped)]++;
}

/* Adds everything of `from` to `into`. */
void drv_histogram_merge(struct drv_histogram *into, const struct drv_histogram *from);

/*
 * The highest value of the cell below or at which `per_million` of the values lie (HdrHistogram's rule). 0
 * when empty. For decisions of the driver (warm-up, deadlines) and tests; reports compute their own.
 */
uint64_t drv_histogram_quantile(const struct drv_histogram *histogram, uint32_t per_million);

/*
 * HdrHistogram's V2 payload, not compressed. Returns the length, or 0 when `room_bytes` is too small;
 * DRV_HISTOGRAM_ENCODED_MAX always suffices.
 */
#define DRV_HISTOGRAM_ENCODED_MAX (40u + 9u * DRV_HISTOGRAM_CELLS)
size_t drv_histogram_encode(const struct drv_histogram *histogram, uint8_t *out, size_t room_bytes);

/* The V2 compressed form in base64, NUL-terminated, from malloc; NULL when memory is short. The caller frees
 * it. */
char *drv_histogram_base64(const struct drv_histogram *histogram);

/* A 128-bit count as decimal digits, NUL-terminated; 40 bytes always suffice. Returns `out`. */
char *drv_histogram_decimal(unsigned __int128 value, char out[40]);

#endif
