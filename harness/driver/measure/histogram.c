/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram's cells, quantiles, and HdrHistogram's V2 encoding. */
#include "measure/histogram.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COOKIE_V2            UINT32_C(0x1c849313)
#define COOKIE_V2_COMPRESSED UINT32_C(0x1c849314)
#define HEADER_BYTES         40u

void drv_histogram_clear(struct drv_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min_ns = UINT64_MAX;
}

void drv_histogram_merge(struct drv_histogram *into, const struct drv_histogram *from)
{
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_sq_ns2 += from->sum_sq_ns2;
	into->overflows += from->overflows;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (size_t i = 0; i < DRV_HISTOGRAM_CELLS; i++)
		into->cells[i] += from->cells[i];
}

/* The lowest value of a cell. The first bucket is used in full, of each later one the upper half. */
static uint64_t cell_lowest(uint32_t cell)
{
	const uint32_t row = cell >> DRV_HISTOGRAM_HALF_BITS;
	const uint64_t half = UINT64_C(1) << DRV_HISTOGRAM_HALF_BITS;
	const uint64_t sub = cell & (half - 1);

	return row == 0 ? sub : (sub + half) << (row - 1);
}

uint64_t drv_histogram_quantile(const struct drv_histogram *histogram, uint32_t per_million)
{
	const unsigned __int128 product = (unsigned __int128)histogram->count * per_million;
	uint64_t wanted = (uint64_t)((product + 500000) / 1000000);
	uint64_t cumulated = 0;

	if (histogram->count == 0)
		return 0;
	if (wanted == 0)
		wanted = 1;
	for (uint32_t cell = 0; cell < DRV_HISTOGRAM_CELLS; cell++) {
		cumulated += histogram->cells[cell];
		if (cumulated >= wanted)
			return cell_lowest(cell + 1) - 1;
	}
	return histogram->max_ns;
}

static uint8_t *put_be32(uint8_t *at, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		*at++ = (uint8_t)(value >> shift);
	return at;
}

static uint8_t *put_be64(uint8_t *at, uint64_t value)
{
	at = put_be32(at, (uint32_t)(value >> 32));
	return put_be32(at, (uint32_t)value);
}

/* HdrHistogram's ZigZag LEB128-64b9B: seven bits a byte, the ninth byte carries eight. */
static uint8_t *put_zigzag(uint8_t *at, int64_t value)
{
	uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);

	for (int i = 0; i < 8; i++) {
		if (rest < 0x80) {
			*at++ = (uint8_t)rest;
			return at;
		}
		*at++ = (uint8_t)(rest | 0x80);
		rest >>= 7;
	}
	*at++ = (uint8_t)rest;
	return at;
}

size_t drv_histogram_encode(const struct drv_histogram *histogram, uint8_t *out, size_t room_bytes)
{
	const uint64_t top =
		histogram->max_ns > DRV_HISTOGRAM_HIGHEST ? DRV_HISTOGRAM_HIGHEST : histogram->max_ns;
	const uint32_t cells = histogram->count ? drv_histogram_cell(top) + 1 : 0;
	uint8_t *at = out + HEADER_BYTES;

	if (room_bytes < HEADER_BYTES)
		return 0;
	for (uint32_t cell = 0; cell < cells;) {
		if (room_bytes - (size_t)(at - out) < 9)
			return 0;
		if (histogram->cells[cell]) {
			at = put_zigzag(at, (int64_t)histogram->cells[cell++]);
		} else {
			int64_t zeros = 0;

			for (; cell < cells && !histogram->cells[cell]; cell++)
				zeros++;
			at = put_zigzag(at, -zeros);
		}
	}
	put_be32(out, COOKIE_V2);
	put_be32(out + 4, (uint32_t)(at - out - HEADER_BYTES));
	put_be32(out + 8, 0); /* normalizing index offset */
	put_be32(out + 12, DRV_HISTOGRAM_DIGITS);
	put_be64(out + 16, DRV_HISTOGRAM_LOWEST);
	put_be64(out + 24, DRV_HISTOGRAM_HIGHEST);
	put_be64(out + 32, UINT64_C(0x3ff0000000000000)); /* conversion ratio 1.0 */
	return (size_t)(at - out);
}

static char *to_base64(const uint8_t *bytes, size_t count)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((count + 2) / 3 * 4 + 1);
	char *at = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < count; i += 3) {
		const size_t left = count - i;
		const uint32_t group = (uint32_t)bytes[i] << 16 |
				       (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				       (left > 2 ? bytes[i + 2] : 0);

		*at++ = digits[group >> 18];
		*at++ = digits[group >> 12 & 63];
		*at++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*at++ = left > 2 ? digits[group & 63] : '=';
	}
	*at = '\0';
	return text;
}

char *drv_histogram_base64(const struct drv_histogram *histogram)
{
	uint8_t *plain = malloc(DRV_HISTOGRAM_ENCODED_MAX);
	uint8_t *packed = NULL;
	char *text = NULL;
	size_t plain_bytes;
	uLongf packed_bytes;

	if (!plain)
		return NULL;
	plain_bytes = drv_histogram_encode(histogram, plain, DRV_HISTOGRAM_ENCODED_MAX);
	packed_bytes = compressBound((uLong)plain_bytes);
	packed = malloc(8 + packed_bytes);
	if (packed && compress(packed + 8, &packed_bytes, plain, (uLong)plain_bytes) == Z_OK) {
		put_be32(packed, COOKIE_V2_COMPRESSED);
		put_be32(packed + 4, (uint32_t)packed_bytes);
		text = to_base64(packed, 8 + packed_bytes);
	}
	free(packed);
	free(plain);
	return text;
}

char *drv_histogram_decimal(unsigned __int128 value, char out[40])
{
	char *at = out + 39;

	*at = '\0';
	do {
		*--at = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value);
	memmove(out, at, (size_t)(out + 40 - at));
	return out;
}
