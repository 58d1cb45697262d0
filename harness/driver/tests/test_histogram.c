/* SPDX-License-Identifier: BSD-3-Clause */
/* Known answers of the histogram. The comparison with the Python library is in harness/tests. */
#include <stdlib.h>
#include <string.h>

#include "measure/histogram.h"
#include "tap.h"

static struct drv_histogram *fresh(void)
{
	struct drv_histogram *histogram = malloc(sizeof(*histogram));

	if (!histogram)
		exit(77);
	drv_histogram_clear(histogram);
	return histogram;
}

/* Lower and upper end of a value's cell differ by less than a part in a thousand. */
static void test_cells(void)
{
	int monotone = 1, precise = 1;
	uint32_t before = 0;

	for (uint64_t value = 1; value <= DRV_HISTOGRAM_HIGHEST; value += value / 700 + 1) {
		struct drv_histogram *histogram;
		const uint32_t cell = drv_histogram_cell(value);
		uint64_t found;

		monotone &= cell >= before && cell < DRV_HISTOGRAM_CELLS;
		before = cell;
		if (value % 64 && value > 2048)
			continue; /* the quantile walks all cells: a part of the values is enough */
		histogram = fresh();
		drv_histogram_record(histogram, value);
		found = drv_histogram_quantile(histogram, 500000);
		precise &= found >= value && (found - value) * 1000 <= value;
		free(histogram);
	}
	tap_ok(monotone, "cells rise with values and stay in the table");
	tap_ok(precise, "a value is found again within 0.1 %%");
	tap_ok(drv_histogram_cell(2047) == 2047 && drv_histogram_cell(2048) == 2048 &&
		       drv_histogram_cell(2049) == 2048 && drv_histogram_cell(2050) == 2049,
	       "cells are 1 ns wide up to 2047 and 2 ns above");
	tap_ok(drv_histogram_cell(DRV_HISTOGRAM_HIGHEST) < DRV_HISTOGRAM_CELLS, "100 s has a cell");
}

static void test_totals(void)
{
	struct drv_histogram *left = fresh(), *right = fresh();
	char digits[40];

	for (uint64_t value = 1; value <= 1000; value++)
		drv_histogram_record(left, value);
	tap_ok(left->count == 1000 && left->sum_ns == 500500 && left->min_ns == 1 && left->max_ns == 1000,
	       "totals of 1..1000");
	tap_ok(!strcmp(drv_histogram_decimal(left->sum_sq_ns2, digits), "333833500"),
	       "sum of squares of 1..1000");
	tap_ok(drv_histogram_quantile(left, 500000) == 500 && drv_histogram_quantile(left, 990000) == 990 &&
		       drv_histogram_quantile(left, 1000000) == 1000 && drv_histogram_quantile(left, 0) == 1,
	       "quantiles of 1..1000");
	drv_histogram_record(right, UINT64_C(200000000000));
	tap_ok(right->overflows == 1 && right->count == 1 && right->max_ns == UINT64_C(200000000000),
	       "200 s is counted, as an overflow");
	tap_ok(!strcmp(drv_histogram_decimal(right->sum_sq_ns2, digits), "40000000000000000000000"),
	       "squares beyond 64 bits are exact");
	drv_histogram_merge(left, right);
	tap_ok(left->count == 1001 && left->max_ns == UINT64_C(200000000000) && left->min_ns == 1 &&
		       left->overflows == 1,
	       "merged totals");
	tap_ok(!strcmp(drv_histogram_decimal(0, digits), "0"), "zero in decimal");
	tap_ok(!strcmp(drv_histogram_decimal(~(unsigned __int128)0, digits),
		       "340282366920938463463374607431768211455"),
	       "2^128 - 1 in decimal");
	free(left);
	free(right);
}

static void test_encoding(void)
{
	/*
	 * cookie, length 3, offset 0, digits 3, lowest 1, highest 10^11, ratio 1.0; then -5 (zeros 0..4), 1
	 */
	static const uint8_t five[] = {0x1c, 0x84, 0x93, 0x13, 0,    0,    0, 2, 0, 0, 0, 0, 0, 0,
				       0,    3,    0,    0,    0,    0,    0, 0, 0, 1, 0, 0, 0, 0x17,
				       0x48, 0x76, 0xe8, 0,    0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 9, 2};
	struct drv_histogram *histogram = fresh();
	uint8_t *room = malloc(DRV_HISTOGRAM_ENCODED_MAX);
	char *text = drv_histogram_base64(histogram);

	if (!room)
		exit(77);
	tap_ok(drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX) == 40,
	       "an empty histogram has a header alone");
	tap_ok(text != NULL, "an empty histogram can be printed");
	free(text);
	drv_histogram_record(histogram, 5);
	tap_ok(drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX) == sizeof(five) &&
		       !memcmp(room, five, sizeof(five)),
	       "one value of 5 ns, byte for byte");
	tap_ok(drv_histogram_encode(histogram, room, 45) == 0, "too little room is noticed");
	for (uint32_t cell = 0; cell < DRV_HISTOGRAM_CELLS; cell++)
		histogram->cells[cell] = UINT64_MAX / 4;
	histogram->max_ns = DRV_HISTOGRAM_HIGHEST;
	tap_ok(drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX) > 0,
	       "the stated room suffices for the worst");
	free(histogram);
	free(room);
}

/* The ends of what a cell, a count, a buffer and a number can hold. */
static void test_bounds(void)
{
	struct drv_histogram *histogram = fresh(), *other = fresh();
	uint8_t *room = malloc(DRV_HISTOGRAM_ENCODED_MAX), *same = malloc(DRV_HISTOGRAM_ENCODED_MAX);
	char digits[42] = "x";
	size_t bytes;

	if (!room || !same)
		exit(77);
	drv_histogram_record(histogram, DRV_HISTOGRAM_HIGHEST);
	drv_histogram_record(other, DRV_HISTOGRAM_HIGHEST + 1);
	bytes = drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX);
	tap_ok(!histogram->overflows && other->overflows == 1, "100 s is no overflow, and 1 ns more is one");
	drv_histogram_clear(other);
	drv_histogram_record(other, 2 * DRV_HISTOGRAM_HIGHEST);
	tap_ok(bytes == drv_histogram_encode(other, same, DRV_HISTOGRAM_ENCODED_MAX) &&
		       !memcmp(room, same, bytes),
	       "what is above is at the top of the range");
	histogram->cells[DRV_HISTOGRAM_CELLS - 1] = 3;
	drv_histogram_merge(other, histogram);
	tap_ok(other->cells[DRV_HISTOGRAM_CELLS - 1] == 3, "the last cell is merged");
	drv_histogram_clear(histogram);
	drv_histogram_record(histogram, 5);
	tap_ok(!drv_histogram_encode(histogram, room, 49) && drv_histogram_encode(histogram, room, 50) == 42,
	       "each count may need nine bytes");
	histogram->cells[5] = 64;
	tap_ok(drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX) == 43 && room[41] == 0x80 &&
		       room[42] == 0x01,
	       "64 is the first count of two bytes");
	histogram->cells[5] = UINT64_C(1) << 62;
	tap_ok(drv_histogram_encode(histogram, room, DRV_HISTOGRAM_ENCODED_MAX) == 50 && room[49] == 0x80,
	       "the ninth byte has eight bits");
	drv_histogram_decimal(~(unsigned __int128)0, digits + 1);
	tap_ok(digits[0] == 'x' && strlen(digits + 1) == 39, "the largest number fits into its room");
	free(histogram);
	free(other);
	free(room);
	free(same);
}

int main(void)
{
	test_cells();
	test_totals();
	test_encoding();
	test_bounds();
	return tap_done();
}
