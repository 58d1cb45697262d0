/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For comparison with other implementations: reads decimal values from stdin, one a line, and prints four
 * lines: the V2 payload in hexadecimal, its compressed base64 form, the sum of squares, and the values at 50,
 * 99 and 99.9 %.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/histogram.h"

int main(void)
{
	struct drv_histogram *histogram = malloc(sizeof(*histogram));
	uint8_t *payload = malloc(DRV_HISTOGRAM_ENCODED_MAX);
	char digits[40], *text;
	uint64_t value;
	size_t bytes;

	if (!histogram || !payload)
		return 70;
	drv_histogram_clear(histogram);
	while (scanf("%" SCNu64, &value) == 1)
		drv_histogram_record(histogram, value);
	bytes = drv_histogram_encode(histogram, payload, DRV_HISTOGRAM_ENCODED_MAX);
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", payload[i]);
	text = drv_histogram_base64(histogram);
	printf("\n%s\n%s\n%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", text ? text : "",
	       drv_histogram_decimal(histogram->sum_sq_ns2, digits),
	       drv_histogram_quantile(histogram, 500000), drv_histogram_quantile(histogram, 990000),
	       drv_histogram_quantile(histogram, 999000));
	free(text);
	free(payload);
	free(histogram);
	return 0;
}
